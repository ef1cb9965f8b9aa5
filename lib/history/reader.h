/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_READER_H
#define HISTORY_READER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "history/intern.h"

/* Of the records, what a history keeps. */
enum run_state { RUN_VALID, RUN_SUSPECT, RUN_INVALID, RUN_FAILED };
enum run_purpose { PURPOSE_HISTORY, PURPOSE_CONFIRM };

struct run_value {
	uint32_t series; /* number in run_list.series */
	double value;
};

struct history_run {
	char uuid[37];
	uint8_t state, purpose;
	uint16_t value_count;
	uint32_t commit, source; /* numbers in run_list.commits, .sources */
	uint64_t content;	 /* hash_json() of the record */
	int64_t started_us;	 /* since 1970; INT64_MIN: not told */
	size_t first_value;	 /* in run_list.values */
};

/*
 * Texts are fields parted by '\x1f': a series "machine, benchmark, arm, settings (canonical
 * JSON), metric, unit, better", a commit "name, branch, tags, kernel, time_us".
 */
#define RUN_FIELD '\x1f'
#define RUN_VALUES_MOST 256

struct run_list {
	struct history_run *runs;
	size_t count, capacity;
	struct run_value *values;
	size_t value_count, value_capacity;
	struct intern series, commits, sources;
};

/* What the user says of the runs, where the records do not know it (or know better: NULL). */
struct run_labels {
	const char *commit, *branch, *tags, *machine;
	int64_t commit_time_us; /* INT64_MIN: not told */
	uint8_t purpose;
	bool mix_machines; /* one operand may hold runs of several machines */
	bool drop_torn;	   /* a torn last line is dropped instead of refused */
};

/*
 * Reads records: a folder with runs.jsonl, a file of records, one a line, or of one record ("-":
 * standard input). Every line is checked before anything is returned. -EINVAL with file and line;
 * -EEXIST: one id twice with different contents; -EXDEV: an operand of several machines. Twice the
 * same record is one. The list is appended to; free it in any case.
 */
int run_list_read(struct run_list *list, const char *path, const struct run_labels *labels,
		  struct message *message);
/* The same from memory; @name stands in messages. */
int run_list_read_text(struct run_list *list, const char *name, const char *text, size_t size,
		       const struct run_labels *labels, struct message *message);
void run_list_free(struct run_list *list);

/* Sorts out ids that occur twice: -EEXIST, or drops the second when it is the same. */
int run_list_drop_duplicates(struct run_list *list, struct message *message);

/* RFC 3339 to microseconds since 1970; -EINVAL. */
int time_parse_rfc3339(const char *text, int64_t *ret_us);

#endif
