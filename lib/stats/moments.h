/* SPDX-License-Identifier: MIT */
#ifndef STATS_MOMENTS_H
#define STATS_MOMENTS_H

#include <math.h>
#include <stdint.h>

/*
 * Mean, variance and extremes of a series in one pass (Welford 1962; merge: Chan, Golub, LeVeque
 * 1979). All zero: no value yet. Extremes are exact for whole numbers up to 2^53 (ns: 104 days).
 */
struct moments {
	uint64_t count;
	double mean, m2;	 /* m2: sum of squared distances from the mean */
	double minimum, maximum; /* without meaning while count is 0 */
};

static inline void moments_add(struct moments *moments, double value)
{
	double delta = value - moments->mean;

	if (moments->count++ == 0)
		moments->minimum = moments->maximum = value;
	moments->mean += delta / (double)moments->count;
	moments->m2 += delta * (value - moments->mean);
	if (value < moments->minimum)
		moments->minimum = value;
	if (value > moments->maximum)
		moments->maximum = value;
}

static inline void moments_merge(struct moments *into, const struct moments *from)
{
	double delta = from->mean - into->mean, share;

	if (from->count == 0)
		return;
	if (into->count == 0) {
		*into = *from;
		return;
	}
	share = (double)from->count / ((double)into->count + (double)from->count);
	into->mean += delta * share;
	into->m2 += from->m2 + delta * delta * ((double)into->count * share);
	into->count += from->count;
	if (from->minimum < into->minimum)
		into->minimum = from->minimum;
	if (from->maximum > into->maximum)
		into->maximum = from->maximum;
}

/* Of a sample (n - 1); NaN below two values. */
static inline double moments_stddev(const struct moments *moments)
{
	return moments->count < 2 ? NAN : sqrt(moments->m2 / (double)(moments->count - 1));
}

#endif
