/* SPDX-License-Identifier: MIT */
#include "stats/sequential.h"

#include "close.h"

#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "stats/boundary.h"
#include "stats/plan.h"

static struct sequential *start(double alpha, size_t pairs, size_t max_runs, double min_effect)
{
	struct sequential_plan plan = {alpha, pairs, max_runs, 0, min_effect, 0};
	struct sequential *sequential;

	assert_int_equal(sequential_new(&plan, &sequential), 0);
	return sequential;
}

static void boundary_spends_what_it_may(void **state)
{
	double bounds[121], spent;

	assert_int_equal(boundary_compute(0.01, 5, 120, bounds, &spent), 0);
	assert_close(spent, 0.01, 1e-6);
	for (int runs = 0; runs < 6; runs++)
		assert_true(isinf(bounds[runs])); /* 2/252 is above what may be spent by then */
	assert_close(bounds[6], rank_log_least_p(6, 6), 1e-8);
	for (int runs = 7; runs <= 120; runs++)
		assert_true(bounds[runs] < log(0.00101) && bounds[runs] > log(0.0004));
	/* One look at the end, where p is nearly continuous, is a test of fixed size. */
	assert_int_equal(boundary_compute(0.01, 120, 120, bounds, &spent), 0);
	assert_close(bounds[120], log(0.01), 1e-8);
	/* The first look has nothing before it: it may spend all of 0.05 x sqrt(1/2). */
	assert_int_equal(boundary_compute(0.05, 50, 100, bounds, &spent), 0);
	assert_close(bounds[50], log(0.05 * sqrt(0.5)), 1e-8);
	assert_close(spent, 0.05, 1e-6);
}

/* Crossings of the boundary by Gaussian paths themselves: as many as were spent. */
static void boundary_holds_for_brownian_paths(void **state)
{
	int crossed = 0, trials = 40000;
	double bounds[41], critical[41];
	struct random random;

	assert_int_equal(boundary_compute(0.1, 5, 40, bounds, NULL), 0);
	for (int runs = 5; runs <= 40; runs++) { /* two-sided p to z, by bisection */
		double low = 0, high = 9;

		while (high - low > 1e-9) {
			double half = (low + high) / 2;

			if (log(erfc(half * M_SQRT1_2)) > bounds[runs])
				low = half;
			else
				high = half;
		}
		critical[runs] = high;
	}
	random_seed(&random, 21);
	for (int trial = 0; trial < trials; trial++) {
		double sum = 0;

		for (int runs = 1; runs <= 40; runs++) {
			sum += sqrt(-2 * log(1 - random_unit(&random))) *
			       cos(2 * M_PI * random_unit(&random));
			if (runs >= 5 && fabs(sum) > critical[runs] * sqrt(runs)) {
				crossed++;
				break;
			}
		}
	}
	assert_in_range(crossed, trials * 0.094, trials * 0.106); /* four deviations of 0.0015 */
}

static void complete_separation_decides_at_six(void **state)
{
	static const double slow[] = {10, 11, 12, 13, 14, 15, 16}, fast[] = {1, 2, 3, 4, 5, 6, 7};
	struct sequential *sequential = start(0.01, 1, 120, 0.05);
	struct sequential_look look;

	for (size_t runs = 0; runs < 6; runs++) {
		assert_int_equal(sequential_look(sequential, 1, slow, runs, fast, runs, &look), 0);
		assert_int_equal(look.verdict, SEQUENTIAL_UNDECIDED);
		assert_true(isinf(look.log_boundary));
	}
	assert_int_equal(sequential_look(sequential, 1, slow, 6, fast, 6, &look), 0);
	assert_int_equal(look.verdict, SEQUENTIAL_SLOWER);
	assert_int_equal(look.method, RANK_EXACT);
	assert_close(exp(look.log_p), 2.0 / 924, 1e-12);
	assert_true(look.ratio > 2);
	assert_int_equal(sequential_look(sequential, 1, fast, 6, slow, 6, &look), 0);
	assert_int_equal(look.verdict, SEQUENTIAL_FASTER);
	/* A lost run: 7 against 6 is looked at as 6. */
	assert_int_equal(sequential_look(sequential, 1, slow, 7, fast, 6, &look), 0);
	assert_int_equal(look.runs, 6);
	assert_int_equal(look.verdict, SEQUENTIAL_SLOWER);
	sequential_free(sequential);
}

static void a_small_effect_is_not_decided(void **state)
{
	struct sequential *sequential = start(0.01, 1, 60, 0.05);
	struct sequential_look look;
	double a[20], b[20];

	for (int i = 0; i < 20; i++) {
		a[i] = 1030 + i * 0.1;
		b[i] = 1000 + i * 0.1;
	}
	assert_int_equal(sequential_look(sequential, 1, a, 20, b, 20, &look), 0);
	assert_true(look.log_p < look.log_boundary);
	assert_true(look.small_effect);
	assert_int_equal(look.verdict, SEQUENTIAL_UNDECIDED);
	assert_close(look.ratio, 1.03, 1e-3);
	for (int i = 0; i < 20; i++) { /* no ratio: the effect is not asked for */
		a[i] -= 1030;
		b[i] -= 1030;
	}
	assert_int_equal(sequential_look(sequential, 1, a, 20, b, 20, &look), 0);
	assert_int_equal(look.verdict, SEQUENTIAL_SLOWER);
	assert_true(isnan(look.ratio));
	sequential_free(sequential);
}

/* Alpha of decided pairs goes to the open ones, at once. */
static void family_hands_alpha_on(void **state)
{
	struct sequential *sequential = start(0.01, 2, 40, 0);
	double base[8], slow[8], middle[8];
	struct sequential_pair pairs[2] = {{.a = slow, .b = base, .count_a = 8, .count_b = 8},
					   {.a = middle, .b = base, .count_a = 8, .count_b = 8}};
	size_t decided;

	assert_true(sequential_log_boundary(sequential, 1, 20) >
		    sequential_log_boundary(sequential, 2, 20));
	assert_true(isinf(sequential_log_boundary(sequential, 3, 20)));
	assert_true(isinf(sequential_log_boundary(sequential, 1, 41)));
	for (int i = 0; i < 8; i++) {
		base[i] = i;
		slow[i] = 100 + i;
		middle[i] = i + 0.5;
	}
	assert_int_equal(sequential_look_all(sequential, pairs, 2, &decided), 0);
	assert_int_equal(decided, 1);
	assert_true(pairs[0].decided && !pairs[1].decided);
	assert_int_equal(pairs[0].look.open, 2);
	assert_int_equal(pairs[1].look.open, 1);
	assert_true(pairs[1].look.log_boundary == sequential_log_boundary(sequential, 1, 8));
	pairs[0].a = NULL; /* a dropped arm is not read */
	assert_int_equal(sequential_look_all(sequential, pairs, 2, &decided), 0);
	assert_int_equal(decided, 1);
	assert_int_equal(sequential_look_all(sequential, pairs, 1, &decided), -EINVAL);
	sequential_free(sequential);
}

static void bad_plans_and_series(void **state)
{
	static const struct sequential_plan bad[] = {
		{0, 1, 10, 0, 0, 0},	 {1, 1, 10, 0, 0, 0},	{0.01, 0, 10, 0, 0, 0},
		{0.01, 65, 10, 0, 0, 0}, {0.01, 1, 1, 0, 0, 0}, {0.01, 1, 501, 0, 0, 0},
		{0.01, 1, 10, 0, -1, 0},
	};
	const double nan[] = {1, 2, NAN, 4, 5, 6}, good[] = {1, 2, 3, 4, 5, 6};
	struct sequential *sequential = NULL;
	struct sequential_look look;

	for (size_t i = 0; i < COUNT(bad); i++)
		assert_int_equal(sequential_new(&bad[i], &sequential), -EINVAL);
	sequential = start(0.01, 1, 10, 0);
	assert_int_equal(sequential_look(sequential, 1, nan, 6, good, 6, &look), -EINVAL);
	assert_int_equal(sequential_look(sequential, 2, good, 6, good, 6, &look), -EINVAL);
	assert_int_equal(sequential_look(sequential, 1, good, 11, good, 6, &look), -EINVAL);
	assert_int_equal(sequential_look(sequential, 1, good, 6, good, 6, &look), 0);
	assert_int_equal(look.verdict, SEQUENTIAL_UNDECIDED);
	sequential_free(sequential);
	sequential_free(NULL);
	assert_string_equal(sequential_verdict_name(SEQUENTIAL_SLOWER), "slower");
}

/* Whole experiments from the published shapes: few runs where there is a difference, few alarms
 * where there is none. The full figures are made by simulate_sequential. */
static void experiments_stop_early_and_rarely_err(void **state)
{
	struct sequential *sequential = start(0.01, 1, 120, 0);
	double slow[120], fast[120], a[120], b[120];
	size_t stopped[121] = {0}, below = 0, median = 0;
	int alarms = 0, trials = 400;
	struct random random;

	load_series("mapping-mean", slow, 120);
	load_series("tip-mean", fast, 120);
	random_seed(&random, 2);
	for (int trial = 0; trial < 2 * trials; trial++) {
		bool differ = trial < trials;
		struct sequential_look look = {0};
		size_t runs = 0;

		while (look.verdict == SEQUENTIAL_UNDECIDED && runs < 120) {
			a[runs] = (differ ? slow : fast)[random_below(&random, 120)];
			b[runs++] = fast[random_below(&random, 120)];
			sequential_look(sequential, 1, a, runs, b, runs, &look);
		}
		if (differ)
			stopped[runs]++;
		else
			alarms += look.verdict != SEQUENTIAL_UNDECIDED;
		assert_false(differ && look.verdict == SEQUENTIAL_FASTER);
	}
	while (below < 200)
		below += stopped[median++];
	assert_in_range(median - 1, 6, 15);
	for (size_t i = 0; i <= 40; i++)
		below = i ? below + stopped[i] : stopped[0];
	assert_true(below >= 0.985 * trials); /* 99% at 40 runs and fewer */
	assert_in_range(alarms, 0, 13);	      /* P(Binomial(400, 1%) > 13) is 1e-4 */
	sequential_free(sequential);
}

static void precision_rule(void **state)
{
	struct interval interval = {100, 96, 104, 0.99};

	assert_true(interval_precise(&interval, 0.05));
	assert_false(interval_precise(&interval, 0.03));
	interval.low = NAN;
	assert_false(interval_precise(&interval, 0.5));
}

static void planning(void **state)
{
	struct plan_question question = {.alpha = 0.01,
					 .power = 0.99,
					 .pairs = 1,
					 .max_runs = 120,
					 .simulations = 500,
					 .seed = 3};
	double slow[120], fast[120];
	struct plan_answer answer;

	load_series("mapping-mean", slow, 120);
	load_series("tip-mean", fast, 120);
	assert_int_equal(plan_runs(&question, slow, 120, fast, 120, &answer), 0);
	assert_in_range(answer.fixed_runs, 20, 34);
	assert_in_range(answer.sequential_median, 9, 15);
	assert_in_range(answer.sequential_p99, answer.sequential_median, 42);
	assert_true(answer.fixed_power >= 0.99 && answer.sequential_power > 0.99);
	assert_int_equal(answer.least_runs, 5);
	question.ratio = 1; /* the truth is no difference: no size is enough */
	question.max_runs = 30;
	question.simulations = 200;
	assert_int_equal(plan_runs(&question, NULL, 0, fast, 120, &answer), 0);
	assert_int_equal(answer.fixed_runs, 0);
	assert_int_equal(answer.sequential_median, 30);
	question.ratio = 0;
	assert_int_equal(plan_runs(&question, slow, 3, fast, 120, &answer), -ERANGE);
	question.power = 1;
	assert_int_equal(plan_runs(&question, slow, 120, fast, 120, &answer), -EINVAL);
	question.power = 0.9;
	question.ratio = 1.1;
	fast[5] = 0;
	assert_int_equal(plan_runs(&question, NULL, 0, fast, 120, &answer), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(boundary_spends_what_it_may),
		cmocka_unit_test(boundary_holds_for_brownian_paths),
		cmocka_unit_test(complete_separation_decides_at_six),
		cmocka_unit_test(a_small_effect_is_not_decided),
		cmocka_unit_test(family_hands_alpha_on),
		cmocka_unit_test(bad_plans_and_series),
		cmocka_unit_test(experiments_stop_early_and_rarely_err),
		cmocka_unit_test(precision_rule),
		cmocka_unit_test(planning),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
