/* SPDX-License-Identifier: MIT */
#ifndef COMPARE_SAMPLES_H
#define COMPARE_SAMPLES_H

#include "compare/comparison.h"
#include "stats/histogram.h"

/* All samples of the runs of an arm that count, from their merged histograms. */
struct arm_samples {
	struct histogram *merged; /* NULL: no run has a histogram; the caller frees it */
	int64_t max_ns;		  /* exact */
	size_t runs;		  /* with a histogram */
};

int arm_samples_merge(const struct arm_set *set, const struct comparison *comparison, size_t arm,
		      struct arm_samples *ret_samples);

/*
 * The percentile in microseconds; NaN when there are too few samples to say: fewer than 1 /
 * (1 - fraction).
 */
double arm_samples_percentile_us(const struct arm_samples *samples, double fraction);

#endif
