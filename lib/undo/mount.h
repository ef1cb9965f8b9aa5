/* SPDX-License-Identifier: MIT */
#ifndef UNDO_MOUNT_H
#define UNDO_MOUNT_H

#include "base/message.h"

/* The source that our mounts of tracefs are known by in /proc/self/mounts: it outlives whoever
 * mounted it, so that every program that came to use it can unmount it, and the last one does. */
#define TRACEFS_SOURCE "syslatency"

enum tracefs_owner { TRACEFS_NOT_MOUNTED, TRACEFS_OURS, TRACEFS_OTHERS };

/* Whose mount lies (uppermost) on TRACEFS_PLACE. */
enum tracefs_owner tracefs_owner(void);

/* Mounts it, unless it is ours already. -EBUSY: it is mounted there by others. */
int tracefs_mount(struct message *message);

#endif
