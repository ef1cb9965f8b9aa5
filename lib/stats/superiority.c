/* SPDX-License-Identifier: MIT */
#include "stats/interval.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>

#include "stats/distribution.h"
#include "stats/series.h"

/* Mean of the placements of a series and the sum of squares about it. */
struct placements {
	double mean, m2;
};

/*
 * Placement of a value: share of @other below it plus half of the share equal to it. Twice a
 * placement times the size of @other is a whole number, so the sums are exact (128 bits hold them
 * up to 10^9 values a side) and need no division in the loop.
 */
static void placements(const double *sorted, size_t count, const double *other, size_t count_other,
		       struct placements *ret_placements)
{
	const double n = (double)count, whole = 2 * (double)count_other;
	size_t below = 0, not_above = 0;
	unsigned __int128 sum = 0, squares = 0;

	for (size_t i = 0; i < count; i++) {
		uint64_t twice;

		while (below < count_other && other[below] < sorted[i])
			below++;
		not_above = not_above < below ? below : not_above;
		while (not_above < count_other && other[not_above] <= sorted[i])
			not_above++;
		twice = below + not_above;
		sum += twice;
		squares += (unsigned __int128)twice * twice;
	}
	ret_placements->mean = (double)sum / n / whole;
	ret_placements->m2 = (double)(squares * count - sum * sum) / n / whole / whole;
}

/* Variance of the share of superior pairs, by parts, and its degrees of freedom. */
struct spread {
	double estimate, variance, df;
};

static int measure_spread(const double *a, size_t count_a, const double *b, size_t count_b,
			  struct spread *ret_spread)
{
	struct placements of_a, of_b;
	double part_a, part_b;

	if (!count_a || !count_b || series_check(a, count_a, true) ||
	    series_check(b, count_b, true))
		return -EINVAL;
	placements(a, count_a, b, count_b, &of_a);
	placements(b, count_b, a, count_a, &of_b);
	*ret_spread = (struct spread){.estimate = of_a.mean, .variance = NAN, .df = NAN};
	if (count_a < 2 || count_b < 2)
		return 0;
	part_a = of_a.m2 / (double)(count_a - 1) / (double)count_a;
	part_b = of_b.m2 / (double)(count_b - 1) / (double)count_b;
	ret_spread->variance = part_a + part_b;
	ret_spread->df =
		ret_spread->variance * ret_spread->variance /
		(part_a * part_a / (double)(count_a - 1) + part_b * part_b / (double)(count_b - 1));
	return 0;
}

int superiority(const double *sorted_a, size_t count_a, const double *sorted_b, size_t count_b,
		double confidence, struct interval *ret_interval)
{
	struct interval interval = {NAN, NAN, NAN, confidence};
	double smaller = (double)(count_a < count_b ? count_a : count_b);
	double tail = (1 - confidence) / 2, p, logit, width;
	struct spread spread;
	int error;

	if (!(confidence > 0 && confidence < 1))
		return -EINVAL;
	error = measure_spread(sorted_a, count_a, sorted_b, count_b, &spread);
	if (error)
		return error;
	p = interval.estimate = spread.estimate;
	if (isnan(spread.variance)) {
		*ret_interval = interval;
		return 0;
	}
	if (p == 0 || p == 1) { /* complete separation: the variance says nothing */
		interval.low = p == 1 ? pow(tail, 1 / smaller) : 0;
		interval.high = p == 1 ? 1 : 1 - pow(tail, 1 / smaller);
		*ret_interval = interval;
		return 0;
	}
	if (!(spread.variance > 0)) { /* all tied: the largest variance that p allows */
		spread.variance = p * (1 - p) / smaller;
		spread.df = smaller - 1;
	}
	logit = log(p / (1 - p));
	width = student_upper_quantile(tail, spread.df) * sqrt(spread.variance) / (p * (1 - p));
	interval.low = 1 / (1 + exp(width - logit));
	interval.high = 1 / (1 + exp(-width - logit));
	*ret_interval = interval;
	return 0;
}

int brunner_munzel(const double *sorted_a, size_t count_a, const double *sorted_b, size_t count_b,
		   double *ret_statistic, double *ret_p)
{
	struct spread spread;
	int error = measure_spread(sorted_a, count_a, sorted_b, count_b, &spread);
	double statistic;

	if (error)
		return error;
	if (!(spread.variance > 0))
		return -EDOM;
	statistic = (spread.estimate - 0.5) / sqrt(spread.variance);
	*ret_statistic = statistic;
	*ret_p = 2 * student_upper(fabs(statistic), spread.df);
	return 0;
}
