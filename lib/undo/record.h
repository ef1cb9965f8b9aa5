/* SPDX-License-Identifier: MIT */
#ifndef UNDO_RECORD_H
#define UNDO_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"

/*
 * How to undo one change, as a line of text:
 *
 *	write PATH VALUE
 *	group PATH
 *	trace-instance PATH
 *	mount PATH
 *	swap DEVICE HOT_ADDED ALGORITHM
 *	process PID START_TICKS
 *	scheduling PID START_TICKS POLICY PRIORITY NICE CPU_LIST
 *
 * Fields are set apart by one blank; the last one is the rest of the line, and may hold blanks or
 * nothing. Every field is checked when the line is parsed, against a closed list of places, so that
 * a forged journal cannot make a privileged restore write or remove anything else.
 */
enum undo_verb {
	UNDO_WRITE,
	UNDO_GROUP,
	UNDO_TRACE_INSTANCE,
	UNDO_MOUNT,
	UNDO_SWAP,
	UNDO_PROCESS,
	UNDO_SCHEDULING,
	UNDO_VERBS
};

#define TRACEFS_PLACE "/sys/kernel/tracing" /* the one place where anything is mounted */
#define UNDO_FIELDS 6
#define UNDO_LINE_BYTES 32768 /* longest line, with its NUL */

struct undo_record {
	uint64_t sequence;
	enum undo_verb verb;
	bool done;
	char *text; /* holds the fields */
	const char *fields[UNDO_FIELDS];
};

struct undo_list {
	struct undo_record *records; /* oldest first */
	size_t count, capacity;
};

/* @fields: as many as the verb has. Length without NUL; -EMSGSIZE; -EINVAL: a newline in a field,
 * or a blank in one that is not the last. */
int undo_line_format(enum undo_verb verb, const char *const *fields, char *buffer, size_t size);

/* Checks the line and appends it; -EINVAL (says what is wrong), -ENOMEM. */
int undo_list_add(struct undo_list *list, uint64_t sequence, const char *line,
		  struct message *message);

struct undo_record *undo_list_find(struct undo_list *list, uint64_t sequence); /* NULL: none */
/* Is anything left whose change the whole machine shares? */
bool undo_list_is_global(const struct undo_list *list);
size_t undo_list_left(const struct undo_list *list); /* not done yet */
void undo_list_clear(struct undo_list *list);

/* Unsigned decimal field that parsing has checked. */
int64_t undo_field_number(const struct undo_record *record, size_t field);

struct undo_context {
	pid_t program;	  /* alive: moved out of groups, not killed; 0: none */
	int64_t limit_ns; /* no single step waits for longer; INT64_MAX: as long as is usual */
	int journal_fd;	  /* where what is put back is marked done; as far as it can be written */
};

/*
 * Undoes what is not done yet and has a sequence above @mark. First all own processes and the
 * members of own groups get SIGKILL, all at once, because they hold memory, swap and groups; then
 * the rest is undone newest first, each change before those that it was built on. Goes on after an
 * error; the first one is returned. Undoing twice does no harm.
 */
int undo_list_run(struct undo_list *list, uint64_t mark, const struct undo_context *context,
		  struct message *message);

/* An error of undo_list_run() that may pass with time: -ETIMEDOUT, -EBUSY, -ENOMEM, -EAGAIN. */
bool undo_may_pass(int error);

/*
 * Our mounts of tracefs are known by their source in /proc/self/mounts: it outlives whoever mounted
 * it, so that every program that came to use it can unmount it, and the last one does.
 */
enum tracefs_owner { TRACEFS_NOT_MOUNTED, TRACEFS_OURS, TRACEFS_OTHERS };

/* Whose mount lies (uppermost) on TRACEFS_PLACE. */
enum tracefs_owner tracefs_owner(void);

/* Mounts it, unless it is ours already. -EBUSY: it is mounted there by others. */
int tracefs_mount(struct message *message);

#endif
