/* SPDX-License-Identifier: MIT */
#ifndef RECORD_SAMPLING_H
#define RECORD_SAMPLING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stats/histogram.h"

/*
 * What one sampling thread writes and the supervisor reads while it runs. It lies in memory shared
 * by both processes; one writer (the thread), so plain relaxed atomics serve.
 */
enum sampling_phase { PHASE_MAP, PHASE_POPULATE, PHASE_UNMAP, PHASE_COUNT };

#define SAMPLING_WORST 10

/* One of the worst delays, kept with what the thread could tell cheaply. */
struct sampling_worst {
	int64_t when_ns;     /* CLOCK_MONOTONIC of the expected expiry (wakeup) or of the start (thp) */
	int64_t late_ns;
	int32_t cpu;	     /* where the sample ended */
	int32_t reserved;
	int64_t steal_ns;    /* of that CPU over the delay; -1 unknown, filled after delays over 1 ms */
};

struct sampling_thread {
	/* set by the supervisor before the start */
	int32_t index;
	int32_t cpu;			/* pinned there; -1: not pinned */
	/* set by the thread when ready */
	_Atomic int32_t tid;
	_Atomic int32_t state;		/* enum sampling_state */
	_Atomic int32_t error;		/* negative errno of a failed start */
	int32_t policy, priority;	/* read back */
	bool memory_locked;

	/* live */
	_Atomic int64_t waiting_since_ns; /* expected expiry (wakeup) or start (thp) of the sample under way; 0: none */
	_Atomic uint64_t count;
	_Atomic uint64_t early;		/* woke before the expiry (kept signed in min, counted here) */
	_Atomic uint64_t missed;	/* deadlines of a fixed schedule that passed while late */
	int64_t min_ns, max_ns;
	double mean_ns, m2_ns2;		/* Welford */
	uint64_t faults_minor, faults_major; /* in the steady state: getrusage(RUSAGE_THREAD) */
	uint64_t migrations;
	uint64_t throttle_gaps;		/* gaps between samples that look like RT throttling (thp, unpaced) */
	int64_t throttle_total_ns;
	uint64_t thp_hits, thp_misses;	/* mappings that did / did not become one huge page */
	struct sampling_worst worst[SAMPLING_WORST]; /* unordered: smallest is replaced */
	struct histogram observed;
	struct histogram corrected;	/* fixed schedule only */
	struct histogram phases[PHASE_COUNT]; /* thp only */
};

enum sampling_state { SAMPLING_STARTING, SAMPLING_READY, SAMPLING_RUNNING, SAMPLING_DONE, SAMPLING_FAILED };

#endif
