/* SPDX-License-Identifier: MIT */
#ifndef UNDO_LOCK_H
#define UNDO_LOCK_H

#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"

/*
 * The machine-wide lock: flock(2) on "lock" in the folder of the journals; its content names the
 * holder. It belongs to the open file: a descriptor that was passed on holds it too.
 */

/* Descriptor that holds the lock; -EBUSY with "held by NAME (pid N)" in @message. */
int lock_try(int directory_fd, const char *program, pid_t pid, struct message *message);

/* As lock_try, again until @wait_ns is over. */
int lock_acquire(int directory_fd, const char *program, pid_t pid, int64_t wait_ns,
		 struct message *message);

/* Gives the lock up for every descriptor of this open file, and closes this one. */
void lock_release(int fd);

/* 10 s, or SYSLATENCY_LOCK_WAIT_S. */
int64_t lock_wait_ns(void);

#endif
