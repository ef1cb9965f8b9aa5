/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "history/database.h"
#include "history/reader.h"

/*
 * Runs of many commits, kept in a database. A series is what may be compared over time: one
 * machine, benchmark, arm, settings and metric. The records stay the truth: history_add() reads
 * them, and the database can be made anew from them.
 */
struct history {
	struct database *database;
};

#define HISTORY_DEFAULT "results/history.db"

/* @where: a file or a URL; @make: make it when it is not there. */
int history_open(const char *where, bool make, struct history *ret_history,
		 struct message *message);
void history_close(struct history *history);

struct history_added {
	size_t runs, known; /* new; there already with the same content */
	size_t values;
};

/*
 * Adds all runs of @runs, in transactions of @batch (0: 2000, or a twentieth of many): all that was
 * told by @acknowledge is on disk. Before anything is written every run is looked up: -EEXIST when
 * one is there with another content. Adding twice adds nothing.
 */
int history_add(struct history *history, const struct run_list *runs, size_t batch,
		void (*acknowledge)(void *data, size_t runs), void *data,
		struct history_added *ret_added, struct message *message);

struct history_series {
	int64_t id;
	char *machine, *benchmark, *arm, *settings_key, *metric, *unit, *better, *settings;
};

struct history_commit {
	int64_t id;
	char *name, *branch, *tags, *kernel;
	int64_t time_us;  /* of the commit when it was told, else of its first run */
	bool time_is_own; /* it was told */
};

/* One value; runs of one commit are neighbours. */
struct history_point {
	uint32_t commit; /* index into commits, which are in the order of time */
	uint8_t state;	 /* enum run_state */
	uint8_t purpose; /* enum run_purpose */
	double value;	 /* NaN: none */
};

struct history_note {
	int64_t series, commit; /* ids */
	char *text;
};

/* What a check, a list or a plot works on. */
struct history_data {
	struct history_series *series;
	size_t series_count;
	struct history_commit *commits; /* by time */
	size_t commit_count;
	struct history_note *notes;
	size_t note_count;
	struct history_point *points; /* by series, then by commit */
	size_t *starts;		      /* of series i: points [starts[i], starts[i + 1]) */
};

/* Which series: NULL is any; @series 0 any, else the id. Texts are compared whole. */
struct history_filter {
	int64_t series;
	const char *machine, *benchmark, *arm, *metric, *branch;
};

/* Reads series, commits and notes; with @points also the values. -ENOENT: no series is like
 * @filter. Free with history_data_free(). */
int history_read(struct history *history, const struct history_filter *filter, bool points,
		 struct history_data *ret_data, struct message *message);
void history_data_free(struct history_data *data);

/* Number of values of a series; of all when @series is 0. */
int history_count(struct history *history, int64_t series, int64_t *ret_count,
		  struct message *message);

/* Runs whose id starts with @uuid, or those of the commit called @commit; *ret_removed: runs. */
int history_remove(struct history *history, const char *uuid, const char *commit,
		   size_t *ret_removed, struct message *message);

/* A note on a known change of a series (0: of every series) at a commit. -ENOENT: no such. */
int history_acknowledge(struct history *history, int64_t series, const char *commit,
			const char *text, struct message *message);

struct history_run_row {
	const char *uuid, *commit, *branch, *tags, *kernel, *source, *machine, *arm, *metric, *unit;
	int64_t started_us, state, purpose, series;
	double value;
};

/* Every value of every run whose id starts with @uuid, or of the commit called so. */
int history_show(struct history *history, const char *what,
		 int (*row)(void *data, const struct history_run_row *run), void *data,
		 struct message *message);

/* Every file that runs came from. */
int history_sources(struct history *history, int (*source)(void *data, const char *path),
		    void *data, struct message *message);

/* What the database knows of a run besides its record. */
struct history_label {
	const char *uuid, *commit, *branch, *tags, *kernel;
	int64_t time_us, purpose; /* INT64_MIN: not told */
};
int history_labels(struct history *history,
		   int (*label)(void *data, const struct history_label *label), void *data,
		   struct message *message);

/* Notes of @from into @to, where the series and the commit are there too. */
int history_copy_notes(struct history *from, struct history *to, struct message *message);

#endif
