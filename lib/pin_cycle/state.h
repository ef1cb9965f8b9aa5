/* SPDX-License-Identifier: MIT */
#ifndef PIN_CYCLE_STATE_H
#define PIN_CYCLE_STATE_H

/* Shared by the files of pin_cycle/ alone. */
#include <stdbool.h>

#include "run/loads.h"
#include "pin_cycle/pin_cycle.h"
#include "pin_cycle/worker.h"
#include "record/metric_table.h"
#include "sys/cgroup.h"
#include "sys/swap.h"

#define LANES_MOST 8

/* One way of holding pages: a column of the table. */
struct pin_lane {
	char label[32]; /* "mapping"; a driver's by its name: "i915" */
	const struct backend_ops *ops;
	enum variant variant;
	bool gone;	    /* cannot be measured (any more) */
	unsigned int turns; /* that counted */
	struct pin_worker worker;
};

struct pin_cycle {
	const struct pin_cycle_settings *settings;
	struct record *record;
	struct knobs *knobs;
	struct metric_table metrics;
	struct pin_lane lanes[LANES_MOST];
	size_t lane_count;
	uint64_t page_bytes;
	double clock_cost_ns;
	struct cgroup group; /* version CGROUP_NONE: none */
	struct swap_area swap;
	bool has_swap;
};

void pin_cycle_progress(const struct pin_cycle *cycle, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* --- pin_cycle_lanes.c --- */

/* Which backends and variants; -EINVAL, -ENOTSUP. */
int pin_lanes_choose(struct pin_cycle *cycle, struct message *message);
/* Starts a process for each lane, in @group (NULL: here). -ENOTSUP: none works. */
int pin_lanes_start(struct pin_cycle *cycle, const struct cgroup *group, struct message *message);
void pin_lanes_stop(struct pin_cycle *cycle);

/* --- pin_cycle_rounds.c --- */

/*
 * Rounds of one turn a lane with buffers of @bytes, until @time_ns is over (or settings->rounds are
 * done); metrics "<prefix><phase>_<lane>_<size>_page_ns" and what release costs one lane more than
 * another. -EINTR, -ENOTSUP when no lane is left.
 */
int pin_cycle_rounds(struct pin_cycle *cycle, const char *prefix, uint64_t bytes, bool pageout,
		     int64_t time_ns, struct message *message);

#endif
