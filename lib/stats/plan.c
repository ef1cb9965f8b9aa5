/* SPDX-License-Identifier: MIT */
#include "stats/plan.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "stats/rank.h"
#include "stats/sequential.h"
#include "stats/series.h"

#define PILOT_MIN 4
#define DEFAULT_SIMULATIONS 2000
/* Above this many runs an arm the normal p is within some 3% of the exact one at p = 1%. */
#define EXACT_WORTH 24

/* Drawn experiments of one question. */
struct study {
	const struct plan_question *question;
	const double *pilot_a, *pilot_b;
	size_t count_a, count_b;
	double scale;  /* of what is drawn for a */
	int direction; /* of the pilots: 1 a is greater, -1 b is, 0 neither */
	size_t simulations;
	double *a, *b; /* max_runs each */
};

static void draw_runs(const struct study *study, struct random *random, size_t from, size_t to)
{
	for (size_t i = from; i < to; i++) {
		study->a[i] = study->scale * study->pilot_a[random_below(random, study->count_a)];
		study->b[i] = study->pilot_b[random_below(random, study->count_b)];
	}
}

/* 1: a tends to be greater, -1: b does. */
static int sign_of(const struct rank_test *test)
{
	return (test->log_p_greater < test->log_p_less) - (test->log_p_less < test->log_p_greater);
}

/* Whether the estimated ratio, in the direction found, is beyond the least effect. */
static int beyond_least(const struct study *study, size_t runs, int sign, bool *ret_beyond)
{
	struct shift shift;
	int error;

	*ret_beyond = true;
	if (!(study->question->min_effect > 0))
		return 0;
	error = shift_estimate(study->a, runs, study->b, runs, 0.95, &shift);
	if (!error && shift.has_ratio)
		*ret_beyond = (sign > 0 ? shift.ratio.estimate : 1 / shift.ratio.estimate) >=
			      1 + study->question->min_effect;
	return error;
}

/* One experiment of the fixed design: is it decided in the pilots' direction? The drawn values
 * are sorted here. */
static int fixed_verdict(const struct study *study, size_t runs, double log_alpha, bool *ret_right)
{
	enum rank_method method = runs <= EXACT_WORTH ? RANK_EXACT : RANK_NORMAL;
	struct rank_test test;
	int error;

	*ret_right = false;
	series_sort(study->a, runs);
	series_sort(study->b, runs);
	error = rank_test_by(method, study->a, runs, study->b, runs, &test);
	if (error || test.log_p > log_alpha || sign_of(&test) != study->direction)
		return error;
	return beyond_least(study, runs, study->direction, ret_right);
}

static int fixed_power(const struct study *study, size_t runs, double *ret_power)
{
	double log_alpha = log(study->question->alpha / (double)study->question->pairs);
	size_t right = 0;
	struct random random;

	/* The same draws at every size: the search then sees a smooth curve. */
	random_seed(&random, study->question->seed);
	for (size_t i = 0; i < study->simulations; i++) {
		bool decided;
		int error;

		draw_runs(study, &random, 0, runs);
		error = fixed_verdict(study, runs, log_alpha, &decided);
		if (error)
			return error;
		right += decided;
	}
	*ret_power = (double)right / (double)study->simulations;
	return 0;
}

static int plan_fixed(const struct study *study, struct plan_answer *answer)
{
	size_t low = 1, high = study->question->max_runs;
	int error = fixed_power(study, high, &answer->fixed_power);

	if (error || answer->fixed_power < study->question->power)
		return error;
	while (low < high) {
		size_t half = low + (high - low) / 2;
		double power;

		error = fixed_power(study, half, &power);
		if (error)
			return error;
		if (power >= study->question->power) {
			high = half;
			answer->fixed_power = power;
		} else {
			low = half + 1;
		}
	}
	answer->fixed_runs = high;
	return 0;
}

static int play_sequential(const struct study *study, const struct sequential *sequential,
			   struct random *random, size_t *ret_runs, int *ret_sign)
{
	size_t most = study->question->max_runs, runs = 0;
	struct sequential_look look = {.verdict = SEQUENTIAL_UNDECIDED};

	while (look.verdict == SEQUENTIAL_UNDECIDED && runs < most) {
		int error;

		draw_runs(study, random, runs, runs + 1);
		runs++;
		/* The other pairs are taken as open: at worst so many share alpha. */
		error = sequential_look(sequential, study->question->pairs, study->a, runs,
					study->b, runs, &look);
		if (error)
			return error;
	}
	*ret_runs = runs;
	*ret_sign = (look.verdict == SEQUENTIAL_SLOWER) - (look.verdict == SEQUENTIAL_FASTER);
	return 0;
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static size_t quantile(const double *sorted, size_t count, double fraction)
{
	return (size_t)sorted[(size_t)ceil(fraction * (double)count) - 1];
}

static int plan_sequential(const struct study *study, struct plan_answer *answer)
{
	const struct plan_question *question = study->question;
	struct sequential_plan plan = {.alpha = question->alpha,
				       .pairs = question->pairs,
				       .max_runs = question->max_runs,
				       .min_effect = question->min_effect};
	struct sequential *sequential;
	size_t right = 0, wrong = 0, count = study->simulations;
	double *stopped = malloc(count * sizeof(*stopped)), total = 0;
	struct random random;
	int error = stopped ? sequential_new(&plan, &sequential) : -ENOMEM;

	if (error)
		goto out;
	random_seed(&random, question->seed);
	for (size_t i = 0; !error && i < count; i++) {
		size_t runs = 0;
		int sign = 0;

		error = play_sequential(study, sequential, &random, &runs, &sign);
		stopped[i] = (double)runs;
		total += (double)runs;
		right += sign && sign == study->direction;
		wrong += sign && sign != study->direction;
	}
	sequential_free(sequential);
	if (error)
		goto out;
	qsort(stopped, count, sizeof(*stopped), compare_doubles);
	answer->sequential_median = quantile(stopped, count, 0.5);
	answer->sequential_p90 = quantile(stopped, count, 0.9);
	answer->sequential_p99 = quantile(stopped, count, 0.99);
	answer->sequential_mean = total / (double)count;
	answer->sequential_power = (double)right / (double)count;
	answer->sequential_wrong = (double)wrong / (double)count;
out:
	free(stopped);
	return error;
}

static int check_question(const struct plan_question *question)
{
	if (!(question->alpha > 0 && question->alpha < 1) ||
	    !(question->power > 0 && question->power < 1) || question->pairs < 1 ||
	    question->pairs > 64 || question->max_runs < 2 || question->max_runs > 500 ||
	    !(question->min_effect >= 0 && isfinite(question->min_effect)) ||
	    !(question->ratio >= 0 && isfinite(question->ratio)))
		return -EINVAL;
	return 0;
}

/* Which way the pilots differ; with a ratio supposed, that decides. */
static int find_direction(struct study *study)
{
	double *a = NULL, *b = NULL;
	struct rank_test test;
	int error;

	if (study->question->ratio > 0) {
		study->direction = (study->scale > 1) - (study->scale < 1);
		return 0;
	}
	error = series_sorted_copy(study->pilot_a, study->count_a, &a);
	if (!error)
		error = series_sorted_copy(study->pilot_b, study->count_b, &b);
	if (!error)
		error = rank_test_by(RANK_NORMAL, a, study->count_a, b, study->count_b, &test);
	if (!error)
		study->direction = sign_of(&test);
	free(a);
	free(b);
	return error;
}

int plan_runs(const struct plan_question *question, const double *pilot_a, size_t count_a,
	      const double *pilot_b, size_t count_b, struct plan_answer *ret_answer)
{
	bool supposed = question->ratio > 0;
	struct study study = {
		.question = question,
		.pilot_a = supposed ? pilot_b : pilot_a,
		.count_a = supposed ? count_b : count_a,
		.pilot_b = pilot_b,
		.count_b = count_b,
		.scale = supposed ? question->ratio : 1,
		.simulations = question->simulations ? question->simulations : DEFAULT_SIMULATIONS,
	};
	struct plan_answer answer = {0};
	int error = check_question(question);

	if (!error && !study.simulations)
		study.simulations = question->max_runs <= 120
					    ? DEFAULT_SIMULATIONS
					    : DEFAULT_SIMULATIONS * 120 / question->max_runs;
	if (error || series_check(study.pilot_a, study.count_a, false) ||
	    series_check(pilot_b, count_b, false))
		return -EINVAL;
	for (size_t i = 0; supposed && i < count_b; i++)
		if (!(pilot_b[i] > 0))
			return -EINVAL;
	if (study.count_a < PILOT_MIN || count_b < PILOT_MIN)
		return -ERANGE;
	study.a = malloc(question->max_runs * sizeof(double));
	study.b = malloc(question->max_runs * sizeof(double));
	error = -ENOMEM;
	if (!study.a || !study.b)
		goto out;
	answer.least_runs = rank_fewest_runs(question->alpha / (double)question->pairs);
	error = find_direction(&study);
	if (!error)
		error = plan_fixed(&study, &answer);
	if (!error)
		error = plan_sequential(&study, &answer);
	if (!error)
		*ret_answer = answer;
out:
	free(study.a);
	free(study.b);
	return error;
}
