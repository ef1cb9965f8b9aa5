/* SPDX-License-Identifier: MIT */
#ifndef BASE_PACE_H
#define BASE_PACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"

/*
 * Offered rate of operations, shared by any number of threads: operation k is due at
 * start + k / rate, whatever happened to the ones before (an open loop: who falls behind catches
 * up).
 */
struct pace {
	double rate_per_s; /* 0: as fast as it can */
	int64_t start_ns;
	_Atomic uint64_t next;
};

static inline void pace_start(struct pace *pace, double rate_per_s)
{
	pace->rate_per_s = rate_per_s;
	pace->start_ns = clock_now_ns();
	atomic_store(&pace->next, 0);
}

/* Sleeps until @deadline_ns in slices of 20 ms; false when *stop was set meanwhile. */
static inline bool pace_sleep_until(int64_t deadline_ns, const _Atomic int32_t *stop)
{
	const int64_t slice_ns = 20000000;

	while (!atomic_load_explicit(stop, memory_order_relaxed)) {
		int64_t now_ns = clock_now_ns();

		if (now_ns >= deadline_ns)
			return true;
		clock_sleep_until(deadline_ns - now_ns > slice_ns ? now_ns + slice_ns
								  : deadline_ns);
	}
	return false;
}

/* Takes the next operation and waits until it is due; false when *stop was set. */
static inline bool pace_wait(struct pace *pace, const _Atomic int32_t *stop)
{
	uint64_t k;

	if (pace->rate_per_s <= 0)
		return !atomic_load_explicit(stop, memory_order_relaxed);
	k = atomic_fetch_add_explicit(&pace->next, 1, memory_order_relaxed);
	return pace_sleep_until(pace->start_ns + (int64_t)((double)k * 1e9 / pace->rate_per_s),
				stop);
}

#endif
