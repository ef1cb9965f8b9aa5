/* SPDX-License-Identifier: MIT */
#ifndef UNDO_JOURNAL_H
#define UNDO_JOURNAL_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"
#include "undo/record.h"

/*
 * The journal of one program: text, one record a line, appended before the change that it undoes.
 *
 *	syslatency-journal 2
 *	boot BOOT_ID
 *	program PID START_TICKS NAME
 *	1 write /sys/... 10000		sequence number and record, see record.h
 *	done 1				put back, or never changed
 *
 * It lies in /run/syslatency (root), $XDG_RUNTIME_DIR/syslatency or /tmp/syslatency-<uid>, a folder
 * that must belong to the user and be writable by nobody else. A last line without its newline was
 * not written whole, so its change was never made. The guardian makes the file, so that none is
 * left by a program that was killed before its guardian lived, and holds a flock(2) on it while it
 * lives.
 */
#define JOURNAL_NAME_BYTES 64

/* Opens (makes, when @make) the folder; descriptor; -EACCES when it is not safe. -ENOENT. */
int journal_open_directory(bool make, struct message *message);

/*
 * A new journal of process @pid with its header, locked; its descriptor. @name: of
 * JOURNAL_NAME_BYTES. Nothing is left behind on error.
 */
int journal_create(int directory_fd, pid_t pid, uint64_t start_ticks, const char *program,
		   char *name, struct message *message);

/*
 * One line and its newline, whole or not at all. One caller at a time. -ENOSPC and the like. What
 * an earlier caller left half written goes.
 */
int journal_append(int fd, const char *line);
int journal_mark_done(int fd, uint64_t sequence);

struct journal_content {
	bool this_boot;
	bool damaged; /* some line in the middle could not be read */
	pid_t pid;    /* 0: the header is not whole; then there are no records */
	uint64_t start_ticks;
	struct undo_list list;
};

/* -EPROTONOSUPPORT: of a version that this program does not know. */
int journal_load(int fd, struct journal_content *ret_content, struct message *message);

/*
 * The undoing of @name by another than its guardian, where that is dead; a journal of which nothing
 * is left is removed. 1: it was undone; 0: there was nothing to undo, or its owner lives. @self:
 * the program whose own journal it is; 0: none. @lock_fd: the caller's machine-wide lock; -1: none.
 * @limit_ns: see undo_context.
 */
int journal_undo_alone(int directory_fd, const char *name, pid_t self, int lock_fd,
		       int64_t limit_ns, struct message *message);

/*
 * The machine-wide lock: flock(2) on "lock" in the folder of the journals; its content names the
 * holder. It belongs to the open file: program and guardian, which have one, hold it together.
 */
int lock_open(int directory_fd, struct message *message);

/*
 * Tries until @wait_ns is over, or *@interrupted (may be NULL) is set: -EINTR. -EBUSY names the
 * holder. 0 also when it is held already.
 */
int lock_take(int fd, const char *program, pid_t pid, int64_t wait_ns,
	      const volatile sig_atomic_t *interrupted, struct message *message);

/* Gives the lock up for every descriptor of this open file. */
void lock_release(int fd);

/* 10 s, or SYSLATENCY_LOCK_WAIT_S. */
int64_t lock_wait_ns(void);

#endif
