/* SPDX-License-Identifier: MIT */
#ifndef UNDO_GROUP_H
#define UNDO_GROUP_H

#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"

/* Ending control groups of our own; paths without the root prefix. */

/*
 * SIGKILL to every process in the group and in groups below it; @spare (the program itself, 0:
 * none) and the caller are moved to the parent group instead. 0 also when there is no such group.
 */
int group_end_members(const char *path, pid_t spare, struct message *message);

/* Removes the group and those below it, ending members, for as long as it is busy. -EBUSY. */
int group_remove(const char *path, pid_t spare, int64_t busy_ns, struct message *message);

#endif
