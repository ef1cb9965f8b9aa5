/* SPDX-License-Identifier: MIT */
#ifndef STATS_INTERVAL_H
#define STATS_INTERVAL_H

#include <stdbool.h>
#include <stddef.h>

#include "stats/rank.h"

/* An estimate and its confidence interval; an unavailable bound is NaN. */
struct interval {
	double estimate, low, high;
	double confidence; /* what was asked for, 0.99 = 99% */
};

enum shift_method {
	SHIFT_EXACT,	  /* bounds are order statistics of the differences */
	SHIFT_NORMAL,	  /* bounds by inverting the normal rank test, as R does */
	SHIFT_COMPRESSED, /* normal, from quantiles of each series: see below */
};

struct shift {
	struct interval shift; /* Hodges-Lehmann: median of all differences a - b, in their unit */
	struct interval ratio; /* exp of the same on logarithms: a / b */
	bool has_ratio;	       /* false: a value is zero or negative, ratio is NaN */
	enum shift_method method, ratio_method;
};

/*
 * How far a lies above b, as a difference and as a ratio (Hodges & Lehmann 1963), with the
 * intervals that R's wilcox.test(conf.int = TRUE) gives on the values and on their logarithms.
 * Time O((n + m) log) a step, memory O(n + m): the n x m differences are never written down.
 * Above SHIFT_FULL_MAX values in all each series is first compressed to its quantiles at
 * SHIFT_QUANTILES equal steps (SHIFT_COMPRESSED): an approximation, whose error is at most the
 * distance of neighbouring quantiles. -EINVAL, -ENOMEM as rank_test().
 */
#define SHIFT_FULL_MAX 200000
#define SHIFT_QUANTILES 20000
int shift_estimate(const double *sorted_a, size_t count_a, const double *sorted_b, size_t count_b,
		   double confidence, struct shift *ret_shift);

/*
 * rank_test(), and P(a > b) + P(a = b) / 2 = u / (n m): how often a run of a is greater than one of
 * b. Interval: variance of the placements (Brunner & Munzel 2000, DeLong 1988) on the logit scale
 * with Student's t; where the series separate completely, Clopper-Pearson's bound for the smaller
 * size. Bounds NaN below two values a side. -EINVAL, -ENOMEM as rank_test().
 */
int rank_and_superiority(const double *sorted_a, size_t count_a, const double *sorted_b,
			 size_t count_b, double confidence, struct rank_test *ret_test,
			 struct interval *ret_interval);

/*
 * Order-statistic interval of the value at @fraction (0.5 = median) of one series: distribution
 * free, coverage at least @confidence by the binomial. estimate: the ceil(n x fraction)-th value,
 * the median the usual one. -ERANGE when the values are too few for a bound on each side: fewer
 * than ln((1 - confidence) / 2) / ln(max(fraction, 1 - fraction)), 3688 for p99.9 at 95%.
 */
int percentile_interval(const double *sorted, size_t count, double fraction, double confidence,
			struct interval *ret_interval);

enum equivalence {
	EQUIVALENCE_WITHIN, /* the interval lies within the least effect: equivalent */
	EQUIVALENCE_BEYOND, /* the interval lies wholly beyond it: different by more */
	EQUIVALENCE_OPEN,   /* it contains a bound: cannot conclude */
};

/*
 * Two one-sided rank tests at level @alpha (Schuirmann 1987): is the 1 - 2 alpha interval of the
 * ratio within [1 / (1 + min_effect), 1 + min_effect]? ret_bound: the smallest effect (0.05 = 5%)
 * within which these data show the series equivalent. -EINVAL also for alpha outside (0, 0.5),
 * min_effect <= 0; -ERANGE: no ratio (zero or negative values).
 */
int equivalence_test(const double *sorted_a, size_t count_a, const double *sorted_b, size_t count_b,
		     double alpha, double min_effect, enum equivalence *ret_verdict,
		     double *ret_bound);

#endif
