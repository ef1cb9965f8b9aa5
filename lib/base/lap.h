/* SPDX-License-Identifier: MIT */
#ifndef BASE_LAP_H
#define BASE_LAP_H

#include <stdint.h>
#include <time.h>

#include "base/clock.h"

/* Wall and processor time of the calling thread, from joint to joint. */
struct lap {
	int64_t wall_ns, cpu_ns;
};

static inline int64_t lap_thread_cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return timespec_to_ns(&time);
}

static inline void lap_start(struct lap *lap)
{
	lap->cpu_ns = lap_thread_cpu_ns();
	lap->wall_ns = clock_now_ns();
}

/*
 * Adds what passed since the last joint; the next lap starts here. Wall times stand inside of the
 * slower read of the processor time, so that read is in no lap's wall time; in its processor time
 * it is, with about 0.2 us.
 */
static inline void lap_add(struct lap *lap, int64_t *wall_ns, int64_t *cpu_ns)
{
	int64_t now_ns = clock_now_ns(), now_cpu_ns = lap_thread_cpu_ns();

	*wall_ns += now_ns - lap->wall_ns;
	*cpu_ns += now_cpu_ns - lap->cpu_ns;
	lap->cpu_ns = now_cpu_ns;
	lap->wall_ns = clock_now_ns();
}

#endif
