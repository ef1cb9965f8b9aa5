/* SPDX-License-Identifier: MIT */
#include "stats/interval.h"

#include <math.h>

#include "stats/distribution.h"
#include "stats/placement.h"

/* Variance of the share of superior pairs, by parts, and its degrees of freedom. */
struct spread {
	double estimate, variance, df;
};

/* Sum of squares about the mean of @count placements, as shares of the other series. */
static double placement_m2(const struct placement_sums *sums, size_t count, size_t count_other)
{
	const double whole = 2 * (double)count_other;

	return (double)(sums->twice_squared * count - sums->twice * sums->twice) / (double)count /
	       whole / whole;
}

static struct spread spread_of(const struct merged_order *order, size_t count_a, size_t count_b)
{
	struct spread spread = {.variance = NAN, .df = NAN};
	double part_a, part_b;

	spread.estimate = (double)order->a.twice / (double)count_a / (2 * (double)count_b);
	if (count_a < 2 || count_b < 2)
		return spread;
	part_a =
		placement_m2(&order->a, count_a, count_b) / (double)(count_a - 1) / (double)count_a;
	part_b =
		placement_m2(&order->b, count_b, count_a) / (double)(count_b - 1) / (double)count_b;
	spread.variance = part_a + part_b;
	spread.df =
		spread.variance * spread.variance /
		(part_a * part_a / (double)(count_a - 1) + part_b * part_b / (double)(count_b - 1));
	return spread;
}

void superiority_of_order(const struct merged_order *order, size_t count_a, size_t count_b,
			  double confidence, struct interval *ret_interval)
{
	struct spread spread = spread_of(order, count_a, count_b);
	struct interval interval = {spread.estimate, NAN, NAN, confidence};
	double smaller = (double)(count_a < count_b ? count_a : count_b);
	double tail = (1 - confidence) / 2, p = spread.estimate, logit, width;

	if (isnan(spread.variance)) {
		*ret_interval = interval;
		return;
	}
	if (p == 0 || p == 1) { /* complete separation: the variance says nothing */
		interval.low = p == 1 ? pow(tail, 1 / smaller) : 0;
		interval.high = p == 1 ? 1 : 1 - pow(tail, 1 / smaller);
		*ret_interval = interval;
		return;
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
}
