/* SPDX-License-Identifier: MIT */
#include "stats/interval.h"

#include <errno.h>
#include <math.h>

#include "stats/distribution.h"
#include "stats/series.h"

/* Whether (1 - confidence) / 2 bounds a chance, without missing equality by a rounding. */
static bool within_tail(double chance, double confidence)
{
	return chance <= (1 - confidence) / 2 * (1 + 1e-12);
}

/* Largest r with P(fewer than r values lie below the percentile) within the tail; 0: none. */
static size_t lower_place(size_t count, double fraction, double confidence)
{
	size_t low = 0, high = count;

	while (low < high) {
		size_t half = low + (high - low + 1) / 2;

		if (within_tail(binomial_at_most(half - 1, count, fraction), confidence))
			low = half;
		else
			high = half - 1;
	}
	return low;
}

/* Smallest s with P(s or more values lie below the percentile) within the tail; count + 1: none. */
static size_t upper_place(size_t count, double fraction, double confidence)
{
	size_t low = 1, high = count + 1;

	while (low < high) {
		size_t half = low + (high - low) / 2;

		if (within_tail(binomial_at_least(half, count, fraction), confidence))
			high = half;
		else
			low = half + 1;
	}
	return low;
}

int percentile_interval(const double *sorted, size_t count, double fraction, double confidence,
			struct interval *ret_interval)
{
	size_t low, high, place;

	if (!count || !(fraction > 0 && fraction < 1) || !(confidence > 0 && confidence < 1) ||
	    series_check(sorted, count, true))
		return -EINVAL;
	low = lower_place(count, fraction, confidence);
	high = upper_place(count, fraction, confidence);
	if (!low || high > count)
		return -ERANGE;
	place = (size_t)ceil((double)count * fraction * (1 - 0x1p-52));
	if (place < 1)
		place = 1;
	*ret_interval = (struct interval){
		.estimate = fraction == 0.5 ? series_median(sorted, count) : sorted[place - 1],
		.low = sorted[low - 1],
		.high = sorted[high - 1],
		.confidence = confidence,
	};
	return 0;
}
