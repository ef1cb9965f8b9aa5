/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/json.h"
#include "collapse/state.h"

/* Other use of processors above this share of one CPU disturbs. */
#define NEIGHBOURS_MOST 0.10

void collapse_window_begin(struct collapse *collapse, struct collapse_window *window)
{
	*window = (struct collapse_window){0};
	if (khugepaged_find(&window->khugepaged_pid) < 0)
		window->khugepaged_pid = 0;
	if (snapshot_take(NULL, &window->snapshot) < 0)
		window->snapshot = NULL;
	window->own_cpu_ns = clock_own_cpu_ns();
	window->wall_ns = clock_now_ns();
	khugepaged_sample(window->khugepaged_pid, &window->khugepaged);
}

/* What moves or breaks up the memory that is measured. Counters of the whole machine. */
static void check_counters(struct collapse *collapse, const json_t *deltas, unsigned int expected)
{
	static const struct {
		const char *path, *what;
		unsigned int unless;
	} counters[] = {
		{"vmstat.pswpin", "pages were swapped in", WINDOW_SWAPS},
		{"vmstat.pswpout", "pages were swapped out", WINDOW_SWAPS},
		{"vmstat.thp_split_page", "huge pages were split", WINDOW_SPLITS},
		{"vmstat.thp_split_pmd", "huge mappings were split", WINDOW_SPLITS},
		{"vmstat.compact_stall", "memory was compacted", WINDOW_COMPACTS},
		{"vmstat.compact_migrate_scanned", "compaction looked at pages", WINDOW_COMPACTS},
	};

	for (size_t i = 0; i < ARRAY_SIZE(counters); i++) {
		const json_t *delta = json_at(deltas, counters[i].path);

		if (!(expected & counters[i].unless) && json_is_integer(delta) &&
		    json_integer_value(delta) > 0)
			collapse_break(collapse, "%s in the window (%lld)", counters[i].what,
				       (long long)json_integer_value(delta));
	}
}

static void check_neighbours(struct collapse *collapse, const json_t *deltas, int64_t ours_ns,
			     int64_t elapsed_ns)
{
	const json_t *busy = json_at(deltas, "cpu.busy_ms");
	const char *who = json_string_value(json_at(deltas, "cpu.busiest_neighbour"));
	double steal_ms = json_get_number(deltas, "steal_ms", 0), others_ms;

	if (!json_is_number(busy))
		return;
	others_ms = json_number_value(busy) - (double)ours_ns / 1e6;
	/* Ticks of 10 ms, of which each CPU may be off by one at either end. */
	if (others_ms > NEIGHBOURS_MOST * (double)elapsed_ns / 1e6 + 20)
		collapse_break(collapse,
			       "others used %.0f%% of a CPU (%s among them): stop them, or "
			       "measure when the machine is quiet",
			       100 * others_ms * 1e6 / (double)elapsed_ns,
			       who && strcmp(who, "khugepaged") != 0 ? who : "kernel threads");
	if (steal_ms > NEIGHBOURS_MOST * (double)elapsed_ns / 1e6 + 20)
		collapse_break(collapse, "the host took %.0f ms away from this machine", steal_ms);
}

void collapse_window_end(struct collapse *collapse, struct collapse_window *window,
			 unsigned int expected)
{
	struct khugepaged_sample after = {.cpu_ns = -1};
	int64_t elapsed_ns, ours_ns;
	struct snapshot *snapshot;
	pid_t pid = 0;
	json_t *deltas;

	elapsed_ns = clock_now_ns() - window->wall_ns;
	ours_ns = clock_own_cpu_ns() - window->own_cpu_ns;
	khugepaged_sample(window->khugepaged_pid, &after);
	if (expected & WINDOW_KHUGEPAGED && after.cpu_ns >= 0 && window->khugepaged.cpu_ns >= 0)
		ours_ns += after.cpu_ns - window->khugepaged.cpu_ns;
	khugepaged_find(&pid);
	if (pid != window->khugepaged_pid)
		collapse_break(collapse, "khugepaged was started anew in the window: someone "
					 "changed the huge page settings");
	if (!window->snapshot || snapshot_take(NULL, &snapshot) < 0) {
		collapse_break(collapse, "the counters of the kernel cannot be read");
	} else {
		deltas = snapshot_delta(window->snapshot, snapshot);
		check_counters(collapse, deltas, expected);
		if (!(expected & WINDOW_KHUGEPAGED) || window->khugepaged_pid > 0)
			check_neighbours(collapse, deltas, ours_ns, elapsed_ns);
		json_decref(deltas);
		snapshot_free(snapshot);
	}
	snapshot_free(window->snapshot);
	window->snapshot = NULL;
}
