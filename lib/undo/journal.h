/* SPDX-License-Identifier: MIT */
#ifndef UNDO_JOURNAL_H
#define UNDO_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"
#include "undo/record.h"
#include "undo/verbs.h"

/*
 * The journal of one program: text, one record a line, appended before the change that it undoes.
 *
 *	syslatency-journal 1
 *	boot BOOT_ID
 *	program PID START_TICKS NAME
 *	1 write /sys/... 10000		sequence number and record, see knob_record.h
 *	done 1				put back
 *
 * It lies in /run/syslatency (root), $XDG_RUNTIME_DIR/syslatency or /tmp/syslatency-<uid>, a folder
 * that must belong to the user and be writable by nobody else. A line without its newline was never
 * acknowledged, so its change was never made. The guardian holds a flock(2) on it while it lives.
 */
#define JOURNAL_NAME_BYTES 64

struct journal {
	int fd;
	int directory_fd;
	char name[JOURNAL_NAME_BYTES];
	bool published; /* it has its name */
	/* the one until then, where a file must have one; else "" */
	char unfinished[JOURNAL_NAME_BYTES];
};

/* Opens (makes, when @make) the folder; descriptor; -EACCES when it is not safe. -ENOENT. */
int journal_open_directory(bool make, struct message *message);

/*
 * A new journal of the calling process, with its header, locked, not yet under its name. Nothing is
 * left behind on error.
 */
int journal_create(const char *program, struct journal *ret_journal, struct message *message);

/*
 * Gives it its name: for the guardian, so that a program killed before its guardian is there leaves
 * no journal that asks for a restore. -EEXIST, -ENOENT and the like.
 */
int journal_publish(struct journal *journal);

/* One line and its newline, whole or not at all. -ENOSPC and the like. */
int journal_append(const struct journal *journal, const char *line);

int journal_mark_done(const struct journal *journal, uint64_t sequence);
void journal_remove(const struct journal *journal);
void journal_close(struct journal *journal);

struct journal_content {
	bool this_boot;
	bool damaged; /* some line in the middle could not be read */
	pid_t pid;    /* 0: the header is not whole; then there are no records */
	uint64_t start_ticks;
	char program[64];
	struct undo_list list;
};

/* -EPROTONOSUPPORT: of a version that this program does not know. */
int journal_load(int fd, struct journal_content *ret_content, struct message *message);
void journal_content_free(struct journal_content *content);

enum journal_state {
	JOURNAL_ACTIVE, /* its program or guardian lives */
	JOURNAL_STALE,	/* of another boot, or nothing is left to undo */
	JOURNAL_ABANDONED,
};

/*
 * Opens, checks (owner, mode, regular file, one link), locks and loads @name in @directory_fd.
 * @self: a pid that does not count as alive (the program that undoes its own journal); 0: none.
 */
int journal_claim(int directory_fd, const char *name, pid_t self, struct journal *ret_journal,
		  struct journal_content *ret_content, enum journal_state *ret_state,
		  struct message *message);

/*
 * Undoes a claimed journal and removes it when nothing is left. No single step waits for longer
 * than @limit_ns (INT64_MAX: as long as is usual).
 */
int journal_undo(const struct journal *journal, struct journal_content *content, pid_t spare,
		 int64_t limit_ns, struct message *message);

#endif
