/* SPDX-License-Identifier: MIT */
/*
 * khugepaged's scan: passes over the region in a window, wall and processor time for each table.
 * With scan_sleep_millisecs 0 it does not rest, so all of its time is scanning.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parse.h"
#include "collapse/state.h"

#define KHUGEPAGED_LEAST 0.95 /* of the window on a CPU */
#define TICK_NS (100 * NS_PER_MS)
#define REFUSED_COUNTER "vmstat.thp_scan_exceed_none_pte"

static int64_t refused_tables(void)
{
	struct snapshot *snapshot;
	int64_t count = -1;

	if (snapshot_take(NULL, &snapshot) < 0)
		return -1;
	if (snapshot_get(snapshot, REFUSED_COUNTER, &count) < 0)
		count = -1;
	snapshot_free(snapshot);
	return count;
}

/* The first turns meet cold caches, and what was registered meanwhile: let two go by. */
static int wait_two_scans(struct collapse *collapse, struct message *why)
{
	int64_t limit_ns = 3 * collapse->settings->window_ns, begin_ns = clock_now_ns();
	struct khugepaged_sample first, now;
	int error = khugepaged_sample(0, &first);

	if (limit_ns < 30 * NS_PER_S)
		limit_ns = 30 * NS_PER_S;
	while (!error) {
		error = khugepaged_sample(0, &now);
		if (error || (uint32_t)(now.full_scans - first.full_scans) >= 2)
			break;
		if (clock_now_ns() - begin_ns > limit_ns)
			return message_set(why, -ETIMEDOUT,
					   "khugepaged did not scan everything twice in %.0f s: "
					   "give less memory (--size) or a longer --window",
					   (double)limit_ns / 1e9);
		if (!collapse_sleep(collapse, 5 * NS_PER_MS))
			return -EINTR;
	}
	return error ? message_set_errno(why, error, "khugepaged's counters") : 0;
}

static void check_scan(struct collapse *collapse, const struct khugepaged_sample *begin,
		       const struct khugepaged_sample *end)
{
	double elapsed_ns = (double)(end->when_ns - begin->when_ns);
	double share = (double)(end->cpu_ns - begin->cpu_ns) / elapsed_ns;
	double waited = (double)(end->waited_ns - begin->waited_ns) / elapsed_ns;

	if ((uint32_t)(end->full_scans - begin->full_scans) < 2)
		collapse_break(collapse, "fewer than two full scans in the window: give less "
					 "memory (--size) or a longer --window");
	if (end->pages_collapsed != begin->pages_collapsed)
		collapse_break(collapse, "khugepaged collapsed %" PRId64 " tables in the window",
			       end->pages_collapsed - begin->pages_collapsed);
	if (end->cpu_ns < 0 || begin->cpu_ns < 0 || share >= KHUGEPAGED_LEAST)
		return;
	collapse_break(collapse,
		       "khugepaged ran %.0f%% of the window: it %s (%.0f%% waiting for a CPU)",
		       100 * share,
		       waited >= 1 - KHUGEPAGED_LEAST ? "starved beside others, being nice 19"
						      : "was blocked, by a lock or a sleep",
		       100 * waited);
}

/* Someone else may turn the same knobs. */
static void check_knobs(struct collapse *collapse, const char *pages_to_scan)
{
	const struct {
		const char *path, *value;
	} knobs[] = {
		{KHUGEPAGED_FOLDER "/pages_to_scan", pages_to_scan},
		{KHUGEPAGED_FOLDER "/scan_sleep_millisecs", "0"},
		{KHUGEPAGED_FOLDER "/alloc_sleep_millisecs", "0"},
		{KHUGEPAGED_FOLDER "/max_ptes_none", "0"},
		{THP_FOLDER "/enabled", "madvise"},
	};
	char value[32];

	for (size_t i = 0; i < ARRAY_SIZE(knobs); i++)
		if (machine_read_choice(knobs[i].path, value, sizeof(value)) < 0 ||
		    strcmp(value, knobs[i].value) != 0)
			collapse_break(collapse, "someone changed %s in the window", knobs[i].path);
}

static void put_scan(struct collapse *collapse, const struct khugepaged_sample *begin,
		     const struct khugepaged_sample *end, double passes, bool walked)
{
	double elapsed_ns = (double)(end->when_ns - begin->when_ns);
	double cpu_ns = end->cpu_ns >= 0 && begin->cpu_ns >= 0
				? (double)(end->cpu_ns - begin->cpu_ns)
				: NAN;
	double visits = passes * (double)collapse->tables;
	double window_s = (double)collapse->settings->window_ns / 1e9;
	char size[32];

	/* As many as fit into the window that was asked for: sleeping ends a little late. */
	collapse_put(collapse, "passes", "passes", passes * window_s * 1e9 / elapsed_ns,
		     "full passes over %s in %gs", format_size(collapse->bytes, size, sizeof(size)),
		     window_s);
	collapse_put(collapse, "cpu_pct", "%", 100 * cpu_ns / elapsed_ns, "khugepaged CPU");
	collapse_put(collapse, "table_ns", "ns", elapsed_ns / visits,
		     "cost per refused table, wall");
	collapse_put(collapse, "table_cpu_ns", "ns", cpu_ns / visits,
		     "cost per refused table, CPU");
	if (walked)
		collapse_put(collapse, "page_ns", "ns",
			     elapsed_ns / visits / (double)collapse->pages_per_table,
			     "cost per page entry, wall");
}

/* The window, with a look at the machine's speed now and then. */
static int sleep_and_time_reference(struct collapse *collapse)
{
	int64_t end_ns = clock_now_ns() + collapse->settings->window_ns, left_ns;

	while ((left_ns = end_ns - clock_now_ns()) > 0) {
		if (!collapse_sleep(collapse, left_ns < TICK_NS ? left_ns : TICK_NS))
			return -EINTR;
		collapse_reference_time(collapse, REFERENCE_TICK_CALLS);
	}
	return 0;
}

static int scan_window(struct collapse *collapse, const struct collapse_row *row,
		       struct message *why)
{
	bool walked = row->state == REGION_HOLE_LAST || row->state == REGION_UNREFERENCED;
	/* The kernel counts each table refused for its holes, so passes are known to a fraction. */
	bool counted = row->state == REGION_HOLE_LAST || row->state == REGION_HOLE_FIRST ||
		       row->state == REGION_HOLE_MIDDLE;
	struct khugepaged_sample begin, end;
	int64_t refused_begin = -1, refused_end = -1;
	struct collapse_window window;
	double passes;
	int error = wait_two_scans(collapse, why);

	if (error)
		return error;
	collapse_window_begin(collapse, &window);
	if (counted)
		refused_begin = refused_tables();
	khugepaged_sample(collapse->khugepaged, &begin);
	error = sleep_and_time_reference(collapse);
	if (counted)
		refused_end = refused_tables();
	khugepaged_sample(collapse->khugepaged, &end);
	collapse_window_end(collapse, &window, WINDOW_KHUGEPAGED);
	if (error)
		return error;
	passes = (double)(uint32_t)(end.full_scans - begin.full_scans);
	if (refused_begin >= 0 && refused_end > refused_begin)
		passes = (double)(refused_end - refused_begin) / (double)collapse->tables;
	check_scan(collapse, &begin, &end);
	put_scan(collapse, &begin, &end, passes, walked);
	return 0;
}

int collapse_scan_row(struct collapse *collapse, const struct collapse_row *row,
		      struct message *why)
{
	const struct collapse_settings *settings = collapse->settings;
	int error = 0;

	for (size_t i = 0; i < settings->sweep_count && !error; i++) {
		size_t mark = collapse_mark(collapse);
		char value[32];

		snprintf(value, sizeof(value), "%" PRIu64, settings->pages_to_scan[i]);
		if (i > 0)
			collapse_prefix(collapse, "scan%s_", value);
		collapse_region_check(collapse, "before");
		error = transaction_write(collapse->transaction, KHUGEPAGED_FOLDER "/pages_to_scan",
					  value, why);
		if (!error) /* the write wakes it */
			error = transaction_write(collapse->transaction,
						  KHUGEPAGED_FOLDER "/scan_sleep_millisecs", "0",
						  why);
		if (!error)
			error = scan_window(collapse, row, why);
		if (!error)
			check_knobs(collapse, value);
		error = collapse_undo(collapse, mark, error, why);
		collapse_region_check(collapse, "after");
	}
	return error;
}
