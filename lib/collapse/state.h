/* SPDX-License-Identifier: MIT */
#ifndef COLLAPSE_STATE_H
#define COLLAPSE_STATE_H

/* Shared by the files of collapse/ alone. */
#include <stdbool.h>

#include "collapse/collapse.h"
#include "collapse/judge.h"
#include "record/metric_table.h"
#include "sys/khugepaged.h"
#include "sys/snapshot.h"
#include "sys/thp.h"
#include "undo/transaction.h"

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif

#define THP_FOLDER "/sys/kernel/mm/transparent_hugepage"

/* How the pages of the region lie. */
enum region_state {
	REGION_NONE,
	REGION_HUGE,	     /* one huge page a table */
	REGION_HOLE_LAST,    /* small pages, the last of each table missing */
	REGION_HOLE_FIRST,   /* the first missing: refused at the first look */
	REGION_HOLE_MIDDLE,  /* half-way */
	REGION_UNREFERENCED, /* all pages there, none used lately */
	REGION_EMPTY,	     /* no table at all */
};

/* How MADV_COLLAPSE finds a table. The first four must become huge pages. */
enum table_state {
	TABLE_SMALL,   /* all pages small */
	TABLE_HALF,    /* half of them */
	TABLE_ONE,     /* one */
	TABLE_SWAPPED, /* all in swap */
	TABLE_SHMEM,   /* of a memfd */
	TABLE_FILE,    /* of a file that is open for writing */
	TABLE_NONE,
	TABLE_UNALIGNED, /* a range that holds no whole table */
};

/* What runs while the neighbours are measured. */
enum neighbour_load {
	NEIGHBOURS_IDLE,
	NEIGHBOURS_SCAN,     /* khugepaged, with nothing to collapse */
	NEIGHBOURS_COLLAPSE, /* MADV_COLLAPSE of small pages, again and again */
	NEIGHBOURS_LOOP,     /* MADV_COLLAPSE of what is huge, in one call over all of it */
};

#define ROW_NEEDS_KNOBS 1     /* changes khugepaged's settings: root */
#define ROW_NEEDS_COLLAPSE 2  /* MADV_COLLAPSE, Linux 6.1 */
#define ROW_SCANS 4	      /* measures khugepaged, a window for each number of the sweep */
#define ROW_TIMES_REFERENCE 8 /* lasts, and times the reference all the while */

struct collapse;

struct collapse_row {
	const char *name, *group, *summary;
	unsigned int flags;
	enum region_state state;
	/* 0, or -errno with why it cannot be measured here; -EINTR: stopped. What it changed by
	 * knobs is put back by the caller. */
	int (*run)(struct collapse *collapse, const struct collapse_row *row, struct message *why);
	int argument;
};

extern const struct collapse_row collapse_rows[]; /* ends with a NULL name */
bool collapse_row_wanted(const char *rows, const struct collapse_row *row);

/* What became of one row over the runs. */
struct collapse_outcome {
	bool wanted;
	int64_t took_ns;	   /* its last turn; 0: none yet */
	unsigned int runs, broken; /* measured; of these, under conditions that were not met */
	bool absent;
	struct message why; /* absent: why; broken: the first reason */
};

/* Nanoseconds of many calls; allocated once, sorted in place. */
struct collapse_samples {
	double *values;
	size_t count, capacity;
};

struct collapse {
	const struct collapse_settings *settings;
	struct record *record;
	struct transaction *transaction; /* NULL: not root */
	struct metric_table metrics;
	struct collapse_outcome outcomes[COLLAPSE_ROWS_MOST];

	uint64_t bytes;	      /* of the region */
	uint64_t table_bytes; /* one PMD: 2 MiB */
	uint64_t page_bytes;  /* 4 KiB */
	uint64_t tables, pages_per_table;
	double clock_cost_ns;
	struct collapse_samples reference; /* of the turn so far */
	int zeros;			   /* descriptor of what the reference reads; -1: none */
	json_t *answers;		   /* {row: {"collapsed" or errno name: calls}} */
	struct thp_region region;
	enum region_state state;
	pid_t khugepaged; /* 0: not seen */

	/* The turn under way: */
	const struct collapse_row *row;
	struct collapse_outcome *outcome;
	unsigned int run;    /* from 0 */
	bool conditions_met; /* so far */
	char prefix[64];     /* of its metrics' names, after the row's: "2M_" */

	char progress[160]; /* what is under way, "": nothing */
	int64_t expected_end_ns, progress_again_ns;
};

/* --- turn.c: what every row needs --- */

bool collapse_stopping(const struct collapse *collapse);
/* Sleeps until @ns have passed; false when stopped. */
bool collapse_sleep(struct collapse *collapse, int64_t ns);

void collapse_progress(struct collapse *collapse, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* From now on the metrics of this turn are called "<row>_<prefix><name>"; "": none. */
void collapse_prefix(struct collapse *collapse, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
/* Adds a value of the row under way. Of times ("ns") less is better, of all else more. */
void collapse_put(struct collapse *collapse, const char *name, const char *unit, double value,
		  const char *title_format, ...) __attribute__((format(printf, 5, 6)));

/* The conditions of this turn are not met: it is left out of the medians. */
void collapse_break(struct collapse *collapse, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* For collapse_undo(); without a transaction nothing changes and nothing is undone. */
size_t collapse_mark(const struct collapse *collapse);
/* Puts back what was changed since @mark. @error, or when it is 0 that of the undoing, with why. */
int collapse_undo(struct collapse *collapse, size_t mark, int error, struct message *why);

/* -ENOMEM; for collapse_samples_free(). */
int collapse_samples_make(struct collapse_samples *samples, size_t capacity);
void collapse_samples_free(struct collapse_samples *samples);
/* A call that began at @begin_ns (clock_now_ns()) ends now. Beyond the capacity it is dropped. */
void collapse_samples_add(const struct collapse *collapse, struct collapse_samples *samples,
			  int64_t begin_ns);
void collapse_samples_sort(struct collapse_samples *samples);
/* The value at @fraction after sorting; NaN when too few to say it. */
double collapse_samples_at(const struct collapse_samples *samples, double fraction);
/* Sorts, and adds p50 and p99 as "p50_ns" and "p99_ns", and what @further asks for. */
#define SAMPLES_P99_9 1
#define SAMPLES_MAX 2
void collapse_put_samples(struct collapse *collapse, struct collapse_samples *samples,
			  unsigned int further, const char *title_format, ...)
	__attribute__((format(printf, 4, 5)));

/* Size of what a row uses apart from the region: at most @most_bytes and a quarter of --size. */
uint64_t collapse_small_bytes(const struct collapse *collapse, uint64_t most_bytes);
/* Writes to each of @count pages from @memory on. */
void collapse_touch(const struct collapse *collapse, char *memory, uint64_t count);
/* Takes and gives back @bytes twice over (at most --size), so that what is timed next does not meet
 * memory that the host must fetch. */
void collapse_warm_up(const struct collapse *collapse, uint64_t bytes);

/* --- reference.c --- */

/* -ENOMEM. */
int collapse_reference_open(struct collapse *collapse);
void collapse_reference_close(struct collapse *collapse);
/* Times the fixed work @calls times more. */
void collapse_reference_time(struct collapse *collapse, unsigned int calls);
#define REFERENCE_TURN_CALLS 32	 /* between turns of a few milliseconds */
#define REFERENCE_TICK_CALLS 8	 /* ten times a second, while khugepaged works */
#define REFERENCE_ROW_CALLS 1000 /* before and after a row that has neither */
/* Its p50 of this turn as a metric of the row. */
void collapse_reference_put(struct collapse *collapse);

/* --- region.c --- */

/* Makes the region anew when it does not lie as @state asks; -ENOMEM, -ENOTSUP, with why. */
int collapse_region(struct collapse *collapse, enum region_state state, struct message *why);
void collapse_region_free(struct collapse *collapse);
/* Breaks the turn when the region is not mapped as its state says (AnonHugePages). */
void collapse_region_check(struct collapse *collapse, const char *when);

/* --- window.c --- */

/* Counters around a measurement, to judge whether it was undisturbed. */
struct collapse_window {
	struct khugepaged_sample khugepaged;
	struct snapshot *snapshot;
	int64_t own_cpu_ns, wall_ns;
	pid_t khugepaged_pid;
};

#define WINDOW_KHUGEPAGED 1 /* it works for us: its time is no neighbour's */
#define WINDOW_SWAPS 2	    /* swapping belongs to what is measured */
#define WINDOW_SPLITS 4	    /* so does splitting huge pages */
#define WINDOW_COMPACTS 8   /* and looking for free ones */

void collapse_window_begin(struct collapse *collapse, struct collapse_window *window);
/* Breaks the turn for each condition that was not met; @expected: WINDOW_*. */
void collapse_window_end(struct collapse *collapse, struct collapse_window *window,
			 unsigned int expected);

/* --- the rows' functions --- */

typedef int collapse_row_run(struct collapse *collapse, const struct collapse_row *row,
			     struct message *why);

collapse_row_run collapse_scan_row;	  /* scan.c */
collapse_row_run collapse_lengths_row;	  /* lengths.c */
collapse_row_run collapse_of_state_row;	  /* by_state.c: argument: enum table_state */
collapse_row_run collapse_remote_row;	  /* by_state.c */
collapse_row_run collapse_populate_row;	  /* faults.c */
collapse_row_run collapse_fault_row;	  /* faults.c */
collapse_row_run collapse_fork_row;	  /* faults.c */
collapse_row_run collapse_neighbours_row; /* neighbours.c: argument: enum neighbour_load */

#endif
