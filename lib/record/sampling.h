/* SPDX-License-Identifier: MIT */
#ifndef RECORD_SAMPLING_H
#define RECORD_SAMPLING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "stats/histogram.h"
#include "stats/moments.h"

/*
 * What one sampling thread writes and the supervisor reads while it runs. It lies in memory shared
 * by both processes; one writer (the thread), so plain relaxed atomics serve.
 */
#define SAMPLING_PHASES 3 /* the most parts that a sample may have */

#define SAMPLING_WORST 10

/* One of the worst delays, kept with what the thread could tell cheaply. */
struct sampling_worst {
	int64_t when_ns; /* CLOCK_MONOTONIC of the expected expiry (wakeup) or of the start (thp) */
	int64_t late_ns;
	uint64_t index; /* of the sample in its thread, from 0 */
	int32_t cpu;	/* where the sample ended */
	int32_t reserved;
	/* Of that CPU between the polls around the delay and the tick after it that counts (an
	 * upper bound); -1 unknown; filled by the supervisor at the end, for delays over 1 ms. */
	int64_t steal_ns;
};

struct sampling_thread {
	/* set by the supervisor before the start */
	int32_t index;
	int32_t cpu; /* pinned there; -1: not pinned */
	/* set by the thread when ready */
	_Atomic int32_t tid;
	_Atomic int32_t state;	  /* enum sampling_state */
	_Atomic int32_t error;	  /* negative errno of a failed start */
	int32_t policy, priority; /* read back */
	bool memory_locked;

	/* live */
	_Atomic int64_t waiting_since_ns; /* expected expiry (wakeup) or start (thp) of the sample
					     under way; 0: none */
	_Atomic uint64_t count;
	_Atomic uint64_t early;	 /* woke before the expiry (kept signed in min, counted here) */
	_Atomic uint64_t missed; /* deadlines of a fixed schedule that passed while late */
	struct moments moments;	 /* of all samples, nanoseconds */
	uint64_t faults_minor, faults_major; /* in the steady state: getrusage(RUSAGE_THREAD) */
	uint64_t migrations;
	uint64_t throttle_gaps; /* gaps between samples that look like RT throttling (thp, unpaced)
				 */
	int64_t throttle_total_ns;
	uint64_t thp_hits, thp_misses; /* mappings that did / did not become one huge page */
	struct sampling_worst
		worst[SAMPLING_WORST];	  /* unordered: smallest is replaced; late_ns 0: unused */
	int64_t worst_floor_ns;		  /* smallest of worst */
	struct moments corrected_moments; /* fixed schedule only */
	struct moments phase_moments[SAMPLING_PHASES]; /* thp only */
	struct histogram observed;
	struct histogram corrected; /* fixed schedule only */
	/* SAMPLING_PHASES of them, in memory shared at the same address; thp only, NULL else: three
	 * more would take a wakeup thread over its 256 KiB. */
	struct histogram *phases;
};

/*
 * What every loop does with a sample: count, moments, extremes, histogram, worst, migration.
 * @when_ns: expected expiry or start; @late_ns: the sample, signed. No call that can block.
 */
void sampling_add(struct sampling_thread *thread, int64_t when_ns, int64_t late_ns);

/*
 * The same for one wake of a fixed schedule of @period_ns: late L also stands for the deadlines
 * that passed meanwhile, and the corrected histogram gets L, L - P, L - 2P... down to 0 (never
 * twice, never for an early wake). Returns the deadlines missed, floor(L / P). @raw_late_ns: L
 * before the cost of the clock read was taken off, which decides what was missed.
 */
uint64_t sampling_add_scheduled(struct sampling_thread *thread, int64_t when_ns, int64_t late_ns,
				int64_t raw_late_ns, int64_t period_ns);

void sampling_add_phase(struct sampling_thread *thread, int phase, int64_t took_ns);

enum sampling_state {
	SAMPLING_STARTING,
	SAMPLING_READY,
	SAMPLING_RUNNING,
	SAMPLING_DONE,
	SAMPLING_FAILED
};

#endif
