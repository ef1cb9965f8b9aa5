/* SPDX-License-Identifier: MIT */
#include "record/sampling.h"

#include <sched.h>

/* @terms values highest, highest - period, ... in closed form. */
static struct moments moments_of_series(int64_t highest_ns, int64_t period_ns, uint64_t terms)
{
	double n = (double)terms, period = (double)period_ns;
	double lowest = (double)(highest_ns - (int64_t)(terms - 1) * period_ns);

	return (struct moments){
		.count = terms,
		.mean = ((double)highest_ns + lowest) / 2,
		.m2 = period * period * n * (n * n - 1) / 12,
		.minimum = lowest,
		.maximum = (double)highest_ns,
	};
}

/* By whole buckets: a stall of minutes at 100 us must not keep the loop busy filling it in. */
static void histogram_add_series(struct histogram *histogram, int64_t highest_ns, int64_t period_ns,
				 uint64_t terms)
{
	int64_t value_ns = highest_ns;

	while (terms > 0) {
		int64_t room_ns = value_ns - histogram_lowest(histogram_index(value_ns));
		uint64_t here = value_ns < 0 ? terms : (uint64_t)(room_ns / period_ns) + 1;

		if (here > terms)
			here = terms;
		histogram_record_many(histogram, value_ns, here);
		value_ns -= (int64_t)here * period_ns;
		terms -= here;
	}
}

static void worst_add(struct sampling_thread *thread, int64_t when_ns, int64_t late_ns,
		      uint64_t index, int cpu)
{
	struct sampling_worst *smallest = &thread->worst[0];
	int64_t floor_ns;

	for (int i = 1; i < SAMPLING_WORST; i++)
		if (thread->worst[i].late_ns < smallest->late_ns)
			smallest = &thread->worst[i];
	smallest->when_ns = when_ns;
	smallest->late_ns = late_ns;
	smallest->index = index;
	smallest->cpu = cpu;
	smallest->steal_ns = -1;
	floor_ns = late_ns;
	for (int i = 0; i < SAMPLING_WORST; i++)
		if (thread->worst[i].late_ns < floor_ns)
			floor_ns = thread->worst[i].late_ns;
	thread->worst_floor_ns = floor_ns;
}

void sampling_add(struct sampling_thread *thread, int64_t when_ns, int64_t late_ns)
{
	uint64_t count = atomic_load_explicit(&thread->count, memory_order_relaxed);
	int cpu = sched_getcpu();

	moments_add(&thread->moments, (double)late_ns);
	histogram_record(&thread->observed, late_ns);
	if (late_ns > thread->worst_floor_ns)
		worst_add(thread, when_ns, late_ns, count, cpu);
	if (thread->cpu >= 0 && cpu != thread->cpu)
		thread->migrations++;
	/* One writer: a plain store is enough, and cheaper than a locked addition. */
	atomic_store_explicit(&thread->count, count + 1, memory_order_relaxed);
}

uint64_t sampling_add_scheduled(struct sampling_thread *thread, int64_t when_ns, int64_t late_ns,
				int64_t raw_late_ns, int64_t period_ns)
{
	uint64_t missed = raw_late_ns < period_ns ? 0 : (uint64_t)(raw_late_ns / period_ns);
	struct moments passed = moments_of_series(late_ns, period_ns, missed + 1);

	sampling_add(thread, when_ns, late_ns);
	moments_merge(&thread->corrected_moments, &passed);
	histogram_add_series(&thread->corrected, late_ns, period_ns, missed + 1);
	if (missed)
		atomic_store_explicit(&thread->missed,
				      atomic_load_explicit(&thread->missed, memory_order_relaxed) +
					      missed,
				      memory_order_relaxed);
	return missed;
}

void sampling_add_phase(struct sampling_thread *thread, int phase, int64_t took_ns)
{
	moments_add(&thread->phase_moments[phase], (double)took_ns);
	histogram_record(&thread->phases[phase], took_ns);
}
