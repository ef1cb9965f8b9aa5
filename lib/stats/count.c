/* SPDX-License-Identifier: MIT */
#include "stats/count.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stats/distribution.h"

/* R counts a table as no likelier when it is so within this; equal chances differ by rounding. */
#define AS_LIKELY (1 + 1e-7)

/* Given the margins: hits of a from low to low + count - 1, with the logarithm of each chance. */
struct tables {
	uint64_t low;
	size_t count, seen; /* place of the table that was seen */
	double *log_chance;
};

static int list_tables(uint64_t hits_a, uint64_t total_a, uint64_t hits_b, uint64_t total_b,
		       struct tables *tables)
{
	uint64_t hits = hits_a + hits_b, high = hits < total_a ? hits : total_a;

	tables->low = hits > total_b ? hits - total_b : 0;
	tables->count = high - tables->low + 1;
	tables->seen = hits_a - tables->low;
	tables->log_chance = malloc(tables->count * sizeof(double));
	if (!tables->log_chance)
		return -ENOMEM;
	for (size_t i = 0; i < tables->count; i++)
		tables->log_chance[i] = log_choose(total_a, tables->low + i) +
					log_choose(total_b, hits - tables->low - i) -
					log_choose(total_a + total_b, hits);
	return 0;
}

/* At these log odds: P(X >= seen), P(X <= seen), mean of X - low. */
static void tails_at(const struct tables *tables, double log_odds, double *ret_at_least,
		     double *ret_at_most, double *ret_mean)
{
	double peak = -INFINITY, all = 0, at_least = 0, at_most = 0, mean = 0;

	for (size_t i = 0; i < tables->count; i++)
		peak = fmax(peak, tables->log_chance[i] + log_odds * (double)i);
	for (size_t i = 0; i < tables->count; i++) {
		double chance = exp(tables->log_chance[i] + log_odds * (double)i - peak);

		all += chance;
		mean += chance * (double)i;
		if (i >= tables->seen)
			at_least += chance;
		if (i <= tables->seen)
			at_most += chance;
	}
	*ret_at_least = at_least / all;
	*ret_at_most = at_most / all;
	*ret_mean = mean / all;
}

enum odds_aim { ODDS_MEAN, ODDS_LOW, ODDS_HIGH };

/* The odds at which the mean is what was seen, or a tail has the size wanted; all monotone. */
static double solve_odds(const struct tables *tables, enum odds_aim aim, double tail)
{
	double low = -800, high = 800;

	while (high - low > 1e-14 * (1 + fabs(low))) {
		double half = low + (high - low) / 2, at_least, at_most, mean;
		bool short_of;

		if (half <= low || half >= high)
			break;
		tails_at(tables, half, &at_least, &at_most, &mean);
		if (aim == ODDS_MEAN)
			short_of = mean < (double)tables->seen;
		else
			short_of = aim == ODDS_LOW ? at_least < tail : at_most > tail;
		if (short_of)
			low = half;
		else
			high = half;
	}
	return exp(low + (high - low) / 2);
}

int count_fisher(uint64_t hits_a, uint64_t total_a, uint64_t hits_b, uint64_t total_b,
		 double confidence, struct count_test *ret_test)
{
	struct tables tables;
	struct count_test test = {.ratio = {NAN, NAN, NAN, confidence}};
	double mean;
	int error;

	if (!total_a || !total_b || hits_a > total_a || hits_b > total_b ||
	    !(confidence > 0 && confidence < 1))
		return -EINVAL;
	error = list_tables(hits_a, total_a, hits_b, total_b, &tables);
	if (error)
		return error;
	tails_at(&tables, 0, &test.p_greater, &test.p_less, &mean);
	for (size_t i = 0; i < tables.count; i++)
		if (tables.log_chance[i] <= tables.log_chance[tables.seen] + log(AS_LIKELY))
			test.p += exp(tables.log_chance[i]);
	test.p = fmin(test.p, 1);
	if (tables.count > 1) {
		bool least = tables.seen == 0, most = tables.seen == tables.count - 1;
		double tail = (1 - confidence) / 2;

		test.ratio.estimate = least  ? 0
				      : most ? INFINITY
					     : solve_odds(&tables, ODDS_MEAN, 0);
		test.ratio.low = least ? 0 : solve_odds(&tables, ODDS_LOW, tail);
		test.ratio.high = most ? INFINITY : solve_odds(&tables, ODDS_HIGH, tail);
	}
	free(tables.log_chance);
	*ret_test = test;
	return 0;
}

static double log_binomial(uint64_t successes, uint64_t trials, double p)
{
	return log_choose(trials, successes) + (double)successes * log(p) +
	       (double)(trials - successes) * log1p(-p);
}

/* P(X >= i) for the first i from @from to @to (chances fall) that is as unlikely as @log_bound. */
static double far_upper(uint64_t from, uint64_t to, double log_bound, uint64_t trials, double p)
{
	while (from < to) {
		uint64_t half = from + (to - from) / 2;

		if (log_binomial(half, trials, p) <= log_bound)
			to = half;
		else
			from = half + 1;
	}
	return binomial_at_least(from, trials, p);
}

/* P(X <= i) for the last i from 0 to @to (chances rise) that is as unlikely; 0: none. */
static double far_lower(uint64_t to, double log_bound, uint64_t trials, double p)
{
	uint64_t low = 0, high = to + 1; /* the answer + 1 */

	while (low < high) {
		uint64_t half = low + (high - low) / 2;

		if (log_binomial(half, trials, p) <= log_bound)
			low = half + 1;
		else
			high = half;
	}
	return low ? binomial_at_most(low - 1, trials, p) : 0;
}

/* Both tails: what was seen and everything no likelier. */
static double binomial_two_sided(uint64_t successes, uint64_t trials, double p)
{
	double expected = (double)trials * p;
	double log_bound = log_binomial(successes, trials, p) + log(AS_LIKELY);

	if ((double)successes == expected)
		return 1;
	if ((double)successes < expected)
		return fmin(1, binomial_at_most(successes, trials, p) +
				       far_upper((uint64_t)ceil(expected), trials + 1, log_bound,
						 trials, p));
	return fmin(1, binomial_at_least(successes, trials, p) +
			       far_lower((uint64_t)floor(expected), log_bound, trials, p));
}

int count_proportion(uint64_t hits, uint64_t total, double confidence,
		     struct interval *ret_interval)
{
	double tail = (1 - confidence) / 2, misses = (double)(total - hits);

	if (!total || hits > total || !(confidence > 0 && confidence < 1))
		return -EINVAL;
	*ret_interval = (struct interval){
		.estimate = (double)hits / (double)total,
		.low = hits ? beta_quantile(tail, (double)hits, misses + 1) : 0,
		.high = hits < total ? beta_quantile(1 - tail, (double)hits + 1, misses) : 1,
		.confidence = confidence,
	};
	return 0;
}

int count_poisson(uint64_t events_a, double exposure_a, uint64_t events_b, double exposure_b,
		  double confidence, struct count_test *ret_test)
{
	struct count_test test = {.p = 1, .p_greater = 1, .p_less = 1};
	uint64_t events = events_a + events_b;
	struct interval share;
	double scale, p;
	int error;

	if (!(exposure_a > 0 && isfinite(exposure_a)) ||
	    !(exposure_b > 0 && isfinite(exposure_b)) || !(confidence > 0 && confidence < 1))
		return -EINVAL;
	test.ratio = (struct interval){NAN, NAN, NAN, confidence};
	if (!events) {
		*ret_test = test;
		return 0;
	}
	p = exposure_a / (exposure_a + exposure_b);
	scale = exposure_b / exposure_a;
	error = count_proportion(events_a, events, confidence, &share);
	if (error)
		return error;
	test.p = binomial_two_sided(events_a, events, p);
	test.p_greater = binomial_at_least(events_a, events, p);
	test.p_less = binomial_at_most(events_a, events, p);
	test.ratio.estimate = (double)events_a / (double)events_b * scale;
	test.ratio.low = share.low / (1 - share.low) * scale;
	test.ratio.high = events_b ? share.high / (1 - share.high) * scale : INFINITY;
	*ret_test = test;
	return 0;
}
