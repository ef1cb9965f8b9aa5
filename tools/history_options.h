/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_OPTIONS_H
#define HISTORY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/options.h"
#include "history/check.h"
#include "history/history.h"

/* What the parts of syslat history share. */

struct history_settings {
	const char *db, *json, *junit, *output, *format;
	/* add */
	const char *commit, *branch, *tags, *machine;
	int64_t commit_time_us, batch;
	bool mix_machines, drop_torn, confirms, progress;
	/* which series */
	int64_t series;
	const char *benchmark, *arm, *metric;
	/* check */
	struct check_settings check;
	int64_t confirm_runs;
	const char *confirm, *confirm_dir;
	/* acknowledge */
	const char *note;
	/* plot */
	bool terminal;
};

#define HISTORY_NAME "history"

/* A part: "syslat history <name>". */
struct history_part {
	const char *name, *summary, *usage;
	int (*run)(struct history_settings *settings, char *const *operands, size_t count);
	const struct option_row *rows;
	size_t row_count;
};

extern const struct history_part history_part_add, history_part_list, history_part_show,
	history_part_check, history_part_plot, history_part_rm, history_part_rebuild,
	history_part_export, history_part_acknowledge;

/* Prints the line of an error and gives its exit code. */
int history_fail(int error, const struct message *message);

/* Options that several parts have. */
int history_take_when(void *settings, const char *argument, struct message *message);

#define HISTORY_AT(member) .offset = offsetof(struct history_settings, member)

#define HISTORY_ROW_DB                                                                          \
	{                                                                                       \
		OPTION_STRING, 0, "db", "WHERE",                                                \
			"a file, or postgresql://USER@HOST/NAME (default: results/history.db)", \
			HISTORY_AT(db)                                                          \
	}

#define HISTORY_ROWS_SERIES                                                                          \
	{OPTION_INT,                                                                                 \
	 0,                                                                                          \
	 "series",                                                                                   \
	 "N",                                                                                        \
	 "the series of that number (see list)",                                                     \
	 HISTORY_AT(series),                                                                         \
	 .minimum = 1,                                                                               \
	 .maximum = INT64_MAX},                                                                      \
		{OPTION_STRING, 0, "machine", "KEY", "series of that machine", HISTORY_AT(machine)}, \
		{OPTION_STRING,	       0, "benchmark", "NAME", "series of that benchmark",           \
		 HISTORY_AT(benchmark)},                                                             \
		{OPTION_STRING, 0, "arm", "NAME", "series of that arm", HISTORY_AT(arm)},            \
		{OPTION_STRING,	    0, "metric", "NAME", "mean, p50, p99, max or a metric's name",   \
		 HISTORY_AT(metric)},                                                                \
	{                                                                                            \
		OPTION_STRING, 0, "branch", "NAME", "commits of that branch", HISTORY_AT(branch)     \
	}

#define HISTORY_ROW_COUNT(rows) (ARRAY_SIZE(rows))

/* The filter that the options make. */
struct history_filter history_filter_of(const struct history_settings *settings);

/* Opens the database, reads what the options name, with @points also the values, and works on it;
 * an exit code. */
typedef int (*history_work)(struct history *history, const struct history_settings *settings,
			    struct history_data *data, struct message *message);
int history_on_data(const struct history_settings *settings, const char *part, size_t operands,
		    bool points, history_work work);

/* history/confirm: runs COMMAND on both sides of each suspected change (history_confirm.c). */
int history_confirm(struct history *history, const struct history_settings *settings,
		    const struct check_report *report, size_t *ret_added, struct message *message);

#endif
