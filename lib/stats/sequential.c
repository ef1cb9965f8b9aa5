/* SPDX-License-Identifier: MIT */
#include "stats/sequential.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stats/boundary.h"
#include "stats/series.h"

#define FIRST_LOOK 5
#define PAIRS_MAX 64
#define RUNS_MAX 500

struct sequential {
	struct sequential_plan plan;
	double *log_bounds; /* for open = 1 to pairs: max_runs + 1 looks each */
};

static bool plan_is_good(const struct sequential_plan *plan)
{
	return plan->alpha > 0 && plan->alpha < 1 && plan->pairs >= 1 && plan->pairs <= PAIRS_MAX &&
	       plan->max_runs >= 2 && plan->max_runs <= RUNS_MAX && plan->min_effect >= 0 &&
	       isfinite(plan->min_effect);
}

int sequential_new(const struct sequential_plan *plan, struct sequential **ret_sequential)
{
	struct sequential *sequential;
	int error = -ENOMEM;

	if (!plan_is_good(plan))
		return -EINVAL;
	sequential = calloc(1, sizeof(*sequential));
	if (!sequential)
		return -ENOMEM;
	sequential->plan = *plan;
	if (!plan->first_look)
		sequential->plan.first_look = FIRST_LOOK;
	sequential->log_bounds = calloc(plan->pairs * (plan->max_runs + 1), sizeof(double));
	if (!sequential->log_bounds)
		goto fail;
	for (size_t open = 1; open <= plan->pairs; open++) {
		error = boundary_compute(
			plan->alpha / (double)open, sequential->plan.first_look, plan->max_runs,
			sequential->log_bounds + (open - 1) * (plan->max_runs + 1), NULL);
		if (error)
			goto fail;
	}
	*ret_sequential = sequential;
	return 0;
fail:
	sequential_free(sequential);
	return error;
}

void sequential_free(struct sequential *sequential)
{
	if (!sequential)
		return;
	free(sequential->log_bounds);
	free(sequential);
}

double sequential_log_boundary(const struct sequential *sequential, size_t open, size_t runs)
{
	if (!open || open > sequential->plan.pairs || runs > sequential->plan.max_runs)
		return -INFINITY;
	return sequential->log_bounds[(open - 1) * (sequential->plan.max_runs + 1) + runs];
}

const char *sequential_verdict_name(enum sequential_verdict verdict)
{
	switch (verdict) {
	case SEQUENTIAL_SLOWER:
		return "slower";
	case SEQUENTIAL_FASTER:
		return "faster";
	case SEQUENTIAL_UNDECIDED:
		break;
	}
	return "undecided";
}

/*
 * The exact p is below the normal one, the more so the fewer the runs: at p = 1e-4 by a factor
 * of up to 10 at 9 runs, 2.2 at 19, 1.4 at 42, 1.1 at 141. Beyond twice that there is no doubt.
 */
static double doubtful_factor(size_t runs)
{
	return runs <= 16 ? 20 : 1 + 40 / (double)runs;
}

/*
 * The exact test, unless the cheap one leaves no doubt that this look cannot decide. Sparing the
 * exact one can only lose a decision, never make one.
 */
static int test_near_bound(const struct sequential *sequential, const double *a, size_t count_a,
			   const double *b, size_t count_b, const struct sequential_look *look,
			   struct rank_test *ret_test)
{
	size_t approximate_above = sequential->plan.approximate_above;
	int error = rank_test_by(RANK_NORMAL, a, count_a, b, count_b, ret_test);

	if (error || ret_test->log_p > look->log_boundary + log(doubtful_factor(look->runs)) ||
	    (approximate_above && look->runs > approximate_above))
		return error;
	return rank_test_by(RANK_EXACT, a, count_a, b, count_b, ret_test);
}

static int judge(const struct sequential *sequential, const double *a, size_t count_a,
		 const double *b, size_t count_b, struct sequential_look *look)
{
	double least_ratio = 1 + sequential->plan.min_effect;
	struct rank_test test;
	struct shift shift;
	bool greater;
	int error = test_near_bound(sequential, a, count_a, b, count_b, look, &test);

	if (error)
		return error;
	look->log_p = test.log_p;
	look->log_least_p = test.log_least_p;
	look->method = test.method;
	if (!(test.log_p <= look->log_boundary))
		return 0;
	error = shift_estimate(a, count_a, b, count_b, 1 - sequential->plan.alpha, &shift);
	if (error)
		return error;
	look->ratio = shift.ratio.estimate;
	greater = test.log_p_greater < test.log_p_less;
	if (shift.has_ratio && (greater ? look->ratio : 1 / look->ratio) < least_ratio)
		look->small_effect = true;
	else
		look->verdict = greater ? SEQUENTIAL_SLOWER : SEQUENTIAL_FASTER;
	return 0;
}

int sequential_look(const struct sequential *sequential, size_t open, const double *a,
		    size_t count_a, const double *b, size_t count_b,
		    struct sequential_look *ret_look)
{
	struct sequential_look look = {.open = open, .ratio = NAN};
	size_t most = sequential->plan.max_runs;
	double *sorted_a = NULL, *sorted_b = NULL;
	int error;

	if (!open || open > sequential->plan.pairs || count_a > most || count_b > most)
		return -EINVAL;
	if (count_a && count_b)
		look.runs = 2 * count_a * count_b / (count_a + count_b);
	look.log_boundary = sequential_log_boundary(sequential, open, look.runs);
	error = series_sorted_copy(a, count_a, &sorted_a);
	if (!error)
		error = series_sorted_copy(b, count_b, &sorted_b);
	if (!error && count_a && count_b)
		error = judge(sequential, sorted_a, count_a, sorted_b, count_b, &look);
	free(sorted_a);
	free(sorted_b);
	if (!error)
		*ret_look = look;
	return error;
}

/* One pass over the open pairs, @open of them sharing alpha; how many it decided. */
static int look_once(const struct sequential *sequential, struct sequential_pair *pairs,
		     size_t count, size_t open, size_t *ret_decided)
{
	size_t decided = 0;

	for (size_t i = 0; i < count; i++) {
		struct sequential_pair *pair = &pairs[i];
		int error;

		if (pair->decided)
			continue;
		error = sequential_look(sequential, open, pair->a, pair->count_a, pair->b,
					pair->count_b, &pair->look);
		if (error)
			return error;
		pair->decided = pair->look.verdict != SEQUENTIAL_UNDECIDED;
		decided += pair->decided;
	}
	*ret_decided = decided;
	return 0;
}

int sequential_look_all(const struct sequential *sequential, struct sequential_pair *pairs,
			size_t count, size_t *ret_decided)
{
	size_t open = 0, decided = 0;

	if (count != sequential->plan.pairs)
		return -EINVAL;
	for (size_t i = 0; i < count; i++)
		open += !pairs[i].decided;
	while (open) {
		int error = look_once(sequential, pairs, count, open, &decided);

		if (error)
			return error;
		open -= decided;
		if (!decided)
			break;
	}
	*ret_decided = count - open;
	return 0;
}

bool interval_precise(const struct interval *interval, double target)
{
	double half_width = interval->high / 2 - interval->low / 2;

	return half_width <= target * fabs(interval->estimate);
}
