/* SPDX-License-Identifier: MIT */
#include "stats/rank.h"

#include "close.h"

#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "golden/golden_r.h"
#include "golden/golden_scipy.h"
#include "stats/rank_exact.h"

static void test_of(enum rank_method method, const double *a, size_t n, const double *b, size_t m,
		    struct rank_test *test)
{
	double *sorted_a, *sorted_b;

	assert_int_equal(series_sorted_copy(a, n, &sorted_a), 0);
	assert_int_equal(series_sorted_copy(b, m, &sorted_b), 0);
	assert_int_equal(rank_test_by(method, sorted_a, n, sorted_b, m, test), 0);
	free(sorted_a);
	free(sorted_b);
}

static void exact_agrees_with_r_and_scipy(void **state)
{
	struct rank_test test;

	test_of(RANK_EXACT, x15, COUNT(x15), y12, COUNT(y12), &test);
	assert_float_equal(test.u, GOLDEN_RANK_U, 0);
	assert_same(exp(test.log_p), GOLDEN_RANK_P);
	assert_same(exp(test.log_p), GOLDEN_SCIPY_RANK_P);
	assert_same(exp(test.log_p_greater), GOLDEN_RANK_GREATER);
	assert_same(exp(test.log_p_less), GOLDEN_RANK_LESS);
	assert_false(test.ties);
}

/* The published shape, 120 a side: moved apart by less than anything, R is exact. */
static void tiny_p_keeps_its_digits(void **state)
{
	double slow[120], fast[120];
	struct rank_test test;

	assert_int_equal(load_series("mapping-mean", slow, 120), 120);
	assert_int_equal(load_series("tip-mean", fast, 120), 120);
	test_of(RANK_EXACT, slow, 60, fast, 60, &test);
	assert_close(test.log_p_greater, GOLDEN_SEED60_LOG_GREATER, 1e-11);
	test_of(RANK_NORMAL, slow, 120, fast, 120, &test);
	assert_close(test.log_p, GOLDEN_SEED_NORMAL_LOG_P, 1e-12);
	assert_close(test.log_p, GOLDEN_SCIPY_SEED_NORMAL_LOG_P, 1e-12);
	assert_close(test.log_p_greater, GOLDEN_SEED_NORMAL_GREATER, 1e-12);
	for (int i = 0; i < 120; i++) {
		slow[i] += 1e-7 * (i + 1);
		fast[i] += 1.37e-7 * (i + 1);
	}
	test_of(RANK_EXACT, slow, 120, fast, 120, &test);
	assert_float_equal(test.u, GOLDEN_SEED_U, 0);
	assert_false(test.ties);
	assert_close(test.log_p, GOLDEN_SEED_LOG_P, 1e-11);
}

static void ties_are_exact(void **state)
{
	double slow[120], fast[120];
	struct rank_test test;

	test_of(RANK_EXACT, ties1, COUNT(ties1), ties2, COUNT(ties2), &test);
	assert_true(test.ties);
	assert_close(test.log_p_greater, GOLDEN_TIES_LOG_GREATER, 1e-12);
	assert_close(test.log_p_less, GOLDEN_TIES_LOG_LESS, 1e-12);
	test_of(RANK_NORMAL, ties1, COUNT(ties1), ties2, COUNT(ties2), &test);
	assert_same(exp(test.log_p), GOLDEN_TIES_NORMAL_P);
	load_series("mapping-mean", slow, 120);
	load_series("tip-mean", fast, 120);
	for (int i = 0; i < 120; i++) {
		slow[i] = rint(slow[i] / 1000) * 1000;
		fast[i] = rint(fast[i] / 1000) * 1000;
	}
	test_of(RANK_EXACT, slow, 40, fast, 50, &test);
	assert_close(test.log_p_greater, GOLDEN_ROUNDED_LOG_GREATER, 1e-12);
	assert_close(test.log_p_less, GOLDEN_ROUNDED_LOG_LESS, 1e-12);
}

/* Complete separation at any size is the least p there is: 2 / C(n + m, n). */
static void separation_is_the_least_p(void **state)
{
	static const size_t sizes[][2] = {{1, 1},  {4, 4},     {5, 5},	   {6, 6},
					  {3, 90}, {120, 120}, {500, 500}, {500, 1}};
	static double a[500], b[500];

	for (size_t i = 0; i < 500; i++) {
		a[i] = 1000 + (double)i;
		b[i] = (double)i;
	}
	for (size_t i = 0; i < COUNT(sizes); i++) {
		size_t n = sizes[i][0], m = sizes[i][1];
		struct rank_test test;

		assert_int_equal(rank_test(a, n, b, m, &test), 0);
		assert_int_equal(test.method, RANK_EXACT);
		assert_close(test.log_p, rank_log_least_p(n, m), 1e-11);
		assert_close(test.log_p, test.log_least_p, 1e-11);
		assert_float_equal(test.u, (double)(n * m), 0);
	}
	assert_close(exp(rank_log_least_p(4, 4)), 2.0 / 70, 1e-12);
	assert_close(exp(rank_log_least_p(6, 6)), 2.0 / 924, 1e-12);
	assert_float_equal(rank_log_least_p(1, 1), 0, 1e-12);
	assert_int_equal(rank_fewest_runs(2.0 / 252), 5);
	assert_int_equal(rank_fewest_runs(0.01), 5);
	assert_int_equal(rank_fewest_runs(0.0078), 6);
}

static void least_p_knows_ties(void **state)
{
	static const double a[] = {1, 2, 2}, b[] = {2, 2, 3};
	struct rank_test test;

	/* Of 20 draws, the lowest 1, 2, 2 comes 6 ways (2 of 4 twos), the highest 6 ways too. */
	assert_int_equal(rank_test(a, 3, b, 3, &test), 0);
	assert_close(exp(test.log_least_p), 2 * 6.0 / 20, 1e-12);
	assert_close(exp(test.log_p), 2 * 6.0 / 20, 1e-12);
}

/* Against a plain distribution, built by another recursion, for all u and unequal sizes. */
static void every_u_agrees_with_the_recursion(void **state)
{
	size_t n = 7, m = 11;
	double *at_most;

	assert_int_equal(rank_null_distribution(n, m, &at_most), 0);
	for (size_t u = 0; u <= n * m; u++) {
		int64_t scores[18], sum = (int64_t)(u + n * (n + 1) / 2);
		double log_at_least, log_at_most;

		for (int i = 0; i < 18; i++)
			scores[i] = i + 1;
		assert_int_equal(rank_exact_tails(scores, 18, n, sum, &log_at_least, &log_at_most),
				 0);
		assert_same(exp(log_at_most), at_most[u]);
		if (u)
			assert_close(exp(log_at_least), 1 - at_most[u - 1], 1e-13);
	}
	free(at_most);
}

static void equal_values_prove_nothing(void **state)
{
	static const double same[] = {5, 5, 5, 5};
	struct rank_test test;

	for (int method = RANK_EXACT; method <= RANK_NORMAL; method++) {
		assert_int_equal(rank_test_by(method, same, 4, same, 3, &test), 0);
		assert_float_equal(test.log_p, 0, 0);
		assert_float_equal(test.log_least_p, 0, 1e-12);
		assert_float_equal(test.u, 6, 0);
	}
}

static void bad_input_is_refused(void **state)
{
	static const double good[] = {1, 2}, disorder[] = {2, 1};
	const double nan[] = {1, NAN}, inf[] = {1, INFINITY};
	static double many[501];
	struct rank_test test;

	assert_int_equal(rank_test(good, 0, good, 2, &test), -EINVAL);
	assert_int_equal(rank_test(good, 2, good, 0, &test), -EINVAL);
	assert_int_equal(rank_test(nan, 2, good, 2, &test), -EINVAL);
	assert_int_equal(rank_test(good, 2, inf, 2, &test), -EINVAL);
	assert_int_equal(rank_test(disorder, 2, good, 2, &test), -EINVAL);
	assert_int_equal(rank_test_by(RANK_EXACT, many, 501, good, 2, &test), -E2BIG);
	assert_int_equal(rank_test(many, 501, good, 2, &test), 0);
	assert_int_equal(test.method, RANK_NORMAL);
}

/* Exchangeable series: p at or below 0.05 in no more than 5% (binomial band), ties or none. */
static void no_difference_alarms_as_often_as_it_says(void **state)
{
	struct random random;

	random_seed(&random, 5);
	for (int with_ties = 0; with_ties < 2; with_ties++) {
		int alarms = 0, trials = 4000;

		for (int i = 0; i < trials; i++) {
			double a[9], b[9];
			struct rank_test test;

			for (int k = 0; k < 9; k++) {
				a[k] = random_unit(&random);
				b[k] = random_unit(&random);
				if (with_ties) {
					a[k] = floor(a[k] * 6);
					b[k] = floor(b[k] * 6);
				}
			}
			test_of(RANK_EXACT, a, 9, b, 9, &test);
			alarms += test.log_p <= log(0.05);
		}
		assert_in_range(alarms, 4000 * 0.02, 4000 * 0.05 + 4 * 14);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exact_agrees_with_r_and_scipy),
		cmocka_unit_test(tiny_p_keeps_its_digits),
		cmocka_unit_test(ties_are_exact),
		cmocka_unit_test(separation_is_the_least_p),
		cmocka_unit_test(least_p_knows_ties),
		cmocka_unit_test(every_u_agrees_with_the_recursion),
		cmocka_unit_test(equal_values_prove_nothing),
		cmocka_unit_test(bad_input_is_refused),
		cmocka_unit_test(no_difference_alarms_as_often_as_it_says),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
