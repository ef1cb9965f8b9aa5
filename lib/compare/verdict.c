/* SPDX-License-Identifier: MIT */
#include "compare/comparison.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "stats/multiple.h"

/* Is the estimated effect beyond the least one? Without a ratio only the sign can be told. */
static bool beyond_least_effect(const struct comparison *comparison,
				const struct comparison_pair *pair)
{
	double least = comparison->options.min_effect, ratio = pair->shift.ratio.estimate;

	if (!pair->shift.has_ratio)
		return true;
	return ratio > 1 + least || ratio < 1 / (1 + least);
}

/* The whole interval within the least effect, at a level that the family shares. */
static bool shown_equivalent(const struct comparison *comparison, struct comparison_pair *pair)
{
	const struct comparison_arm *a = &comparison->arms[pair->a];
	const struct comparison_arm *b = &comparison->arms[pair->b];
	enum equivalence verdict;

	if (!(comparison->options.min_effect > 0) || !pair->shift.has_ratio)
		return false;
	if (equivalence_test(a->sorted, a->count, b->sorted, b->count,
			     comparison->options.alpha / (double)comparison->family,
			     comparison->options.min_effect, &verdict, &pair->equivalence_bound))
		return false;
	return verdict == EQUIVALENCE_WITHIN;
}

static enum comparison_verdict direction(const struct comparison *comparison,
					 const struct comparison_pair *pair)
{
	bool greater = pair->test.log_p_greater < pair->test.log_p_less;

	return greater != comparison->higher_is_better ? COMPARISON_SLOWER : COMPARISON_FASTER;
}

/* Why no verdict: too few runs for any data to decide, or these data do not. */
static void explain(const struct comparison *comparison, struct comparison_pair *pair)
{
	double alpha = comparison->options.alpha;
	double least_log = pair->test.log_least_p + log((double)comparison->family);
	size_t fewest = rank_fewest_runs(alpha / (double)comparison->family);

	if (pair->log_p_holm <= log(alpha)) {
		snprintf(pair->why, sizeof(pair->why),
			 "the difference is real (p %.1g) but its estimate lies within the least "
			 "effect of %g%%",
			 exp(pair->log_p_holm), 100 * comparison->options.min_effect);
		return;
	}
	if (least_log > log(alpha)) {
		char family[64] = "";

		if (comparison->family > 1)
			snprintf(family, sizeof(family), ", %.2g after Holm over %zu",
				 fmin(1, exp(least_log)), comparison->family);
		snprintf(pair->why, sizeof(pair->why),
			 "too few runs: with %zu and %zu the least attainable p is %.2g%s, above "
			 "alpha %g; %zu an arm can decide",
			 pair->test.count_a, pair->test.count_b, exp(pair->test.log_least_p),
			 family, alpha, fewest);
		return;
	}
	snprintf(pair->why, sizeof(pair->why), "p %.2g is above alpha %g", exp(pair->log_p_holm),
		 alpha);
}

static void decide(const struct comparison *comparison, struct comparison_pair *pair)
{
	bool different = pair->log_p_holm <= log(comparison->options.alpha);

	pair->why[0] = '\0';
	if (different && beyond_least_effect(comparison, pair)) {
		pair->verdict = direction(comparison, pair);
		return;
	}
	if (shown_equivalent(comparison, pair)) {
		pair->verdict = COMPARISON_EQUIVALENT;
		return;
	}
	pair->verdict = COMPARISON_UNDECIDED;
	explain(comparison, pair);
}

int comparison_decide(struct comparison *const *comparisons, size_t count)
{
	size_t family = 0, at = 0;
	double *log_p;
	int error;

	for (size_t i = 0; i < count; i++)
		family += comparisons[i]->pair_count;
	if (family == 0)
		return 0;
	log_p = calloc(family, sizeof(*log_p));
	if (!log_p)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < comparisons[i]->pair_count; j++)
			log_p[at++] = comparisons[i]->pairs[j].test.log_p;
	error = holm_adjust_log(log_p, family, log_p);
	at = 0;
	for (size_t i = 0; i < count && !error; i++) {
		comparisons[i]->family = family;
		for (size_t j = 0; j < comparisons[i]->pair_count; j++) {
			comparisons[i]->pairs[j].log_p_holm = log_p[at++];
			decide(comparisons[i], &comparisons[i]->pairs[j]);
		}
	}
	free(log_p);
	return error;
}
