/* SPDX-License-Identifier: MIT */
#ifndef RUN_STATE_H
#define RUN_STATE_H

#include "run/loads.h"
#include "run/plan.h"
#include "run/run.h"
#include "sampler/sampler.h"
#include "sys/cgroup.h"
#include "sys/kmsg.h"
#include "undo/transaction.h"
#include "sys/snapshot.h"
#include "sys/swap.h"

#define RUN_LOADS_MAX 8
#define RUN_CAUSES_MAX 8

/* What happened around one of the worst delays: counters over the ticks that hold it. */
struct worst_context {
	int64_t when_ns, late_ns;
	json_t *deltas; /* owned */
};

/* One run under way; private to run/. */
struct run {
	const struct run_settings *settings;
	struct run_plan plan;
	struct record *record;
	struct message *message;

	struct transaction *transaction;
	struct cgroup group; /* version CGROUP_NONE: machine scope */
	struct swap_area swap;
	struct load_process loads[RUN_LOADS_MAX];
	size_t load_count;
	struct sampler *sampler;
	struct kmsg *kmsg;
	void *cause_states[RUN_CAUSES_MAX]; /* in the order of causes[]; NULL: not collecting */
	struct snapshot *origin;	    /* before any load: what is pinned since then is ours */
	struct snapshot *before, *after, *tick;
	struct snapshot_series *series;
	struct worst_context *contexts; /* one for each slot of each thread's worst */
	size_t context_count;

	int64_t begin_ns, end_ns; /* of the measured window */
	int64_t stall_ns;	  /* unfinished wait at the end */
	int64_t cpu_ns;		  /* processor time of this process in the window */
	bool interrupted, broke_above;
	bool load_death_noted[RUN_LOADS_MAX];
};

/* scope.c: group, limit, swap, reset. The transaction undoes it. */
int run_enter_scope(struct run *run);
const struct backend_ops *run_choose_backend(const struct run_settings *settings,
					     struct record *record);

/* run_window.c: loads, warm-up, the measured window with its watch. */
int run_start_loads(struct run *run);
int run_warm_up(struct run *run);
int run_measure(struct run *run);

/*
 * run_causes.c: collectors of why. What cannot collect is noted and left out: no run fails for it.
 * The last ends what run_finish_causes() did not.
 */
void run_start_causes(struct run *run);
void run_poll_causes(struct run *run);
void run_finish_causes(struct run *run);
void run_abandon_causes(struct run *run);

/* run_result.c: from threads, loads and snapshots to the record. */
int run_fill_record(struct run *run);
int run_fill_worst(struct run *run); /* run_worst.c */

#endif
