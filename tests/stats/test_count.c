/* SPDX-License-Identifier: MIT */
#include "stats/count.h"

#include "close.h"

#include <errno.h>

#include "golden/golden_r.h"
#include "golden/golden_scipy.h"
#include "stats/distribution.h"
#include "stats/multiple.h"

static void fisher_agrees_with_r_and_scipy(void **state)
{
	struct count_test test;

	assert_int_equal(count_fisher(9, 20, 3, 25, 0.95, &test), 0);
	assert_same(test.p, GOLDEN_FISHER_P);
	assert_same(test.p_greater, GOLDEN_FISHER_GREATER);
	assert_same(test.p_less, GOLDEN_FISHER_LESS);
	assert_same(test.ratio.estimate, GOLDEN_FISHER_ODDS);
	assert_same(test.ratio.low, GOLDEN_FISHER_ODDS_LOW);
	assert_same(test.ratio.high, GOLDEN_FISHER_ODDS_HIGH);
	assert_int_equal(count_fisher(0, 120, 7, 120, 0.95, &test), 0);
	assert_same(test.p, GOLDEN_FISHER_ZERO_P);
	assert_same(test.p_less, GOLDEN_FISHER_ZERO_LESS);
	assert_close(test.p_greater, GOLDEN_FISHER_ZERO_GREATER, 1e-12);
	assert_float_equal(test.ratio.estimate, 0, 0);
	assert_float_equal(test.ratio.low, 0, 0);
	assert_true(test.ratio.high > 0 && test.ratio.high < 1);
	assert_int_equal(count_fisher(10, 10, 0, 12, 0.95, &test), 0);
	assert_same(test.p, GOLDEN_FISHER_ALL_P);
	assert_same(test.p_greater, GOLDEN_FISHER_ALL_GREATER);
	assert_true(isinf(test.ratio.estimate) && isinf(test.ratio.high));
	assert_true(test.ratio.low > 1);
}

static void nothing_happened(void **state)
{
	struct count_test test;

	assert_int_equal(count_fisher(0, 5, 0, 7, 0.95, &test), 0);
	assert_close(test.p, 1, 1e-12);
	assert_true(isnan(test.ratio.estimate));
	assert_int_equal(count_poisson(0, 5, 0, 7, 0.95, &test), 0);
	assert_float_equal(test.p, 1, 0);
	assert_true(isnan(test.ratio.low));
	assert_int_equal(count_fisher(6, 5, 0, 7, 0.95, &test), -EINVAL);
	assert_int_equal(count_fisher(0, 0, 0, 7, 0.95, &test), -EINVAL);
	assert_int_equal(count_poisson(1, 0, 1, 7, 0.95, &test), -EINVAL);
	assert_int_equal(count_poisson(1, NAN, 1, 7, 0.95, &test), -EINVAL);
}

static void poisson_agrees_with_r(void **state)
{
	struct count_test test;

	assert_int_equal(count_poisson(11, 800, 23, 1083, 0.95, &test), 0);
	assert_same(test.p, GOLDEN_POISSON_P);
	assert_same(test.ratio.estimate, GOLDEN_POISSON_RATIO);
	assert_same(test.ratio.low, GOLDEN_POISSON_LOW);
	assert_same(test.ratio.high, GOLDEN_POISSON_HIGH);
	assert_int_equal(count_poisson(0, 10, 9, 12, 0.95, &test), 0);
	assert_same(test.p, GOLDEN_POISSON_ZERO_P);
	assert_float_equal(test.ratio.low, 0, 0);
	assert_same(test.ratio.high, GOLDEN_POISSON_ZERO_HIGH);
	assert_int_equal(count_poisson(5300, 1e6, 5000, 1.1e6, 0.95, &test), 0);
	assert_same(test.p, GOLDEN_POISSON_LARGE_P);
	assert_same(test.ratio.low, GOLDEN_POISSON_LARGE_LOW);
	assert_same(test.ratio.high, GOLDEN_POISSON_LARGE_HIGH);
	assert_int_equal(count_poisson(9, 12, 0, 10, 0.95, &test), 0);
	assert_same(test.p, GOLDEN_POISSON_ZERO_P); /* the sides changed */
	assert_true(isinf(test.ratio.estimate) && isinf(test.ratio.high));
}

static void proportion_agrees_with_r(void **state)
{
	struct interval interval;

	assert_int_equal(count_proportion(3, 120, 0.95, &interval), 0);
	assert_same(interval.low, GOLDEN_PROPORTION_LOW);
	assert_same(interval.high, GOLDEN_PROPORTION_HIGH);
	assert_int_equal(count_proportion(0, 10, 0.95, &interval), 0);
	assert_float_equal(interval.low, 0, 0);
	assert_same(interval.high, 1 - pow(0.025, 0.1));
	assert_int_equal(count_proportion(10, 10, 0.95, &interval), 0);
	assert_float_equal(interval.high, 1, 0);
	assert_int_equal(count_proportion(1, 0, 0.95, &interval), -EINVAL);
}

static void holm_agrees_with_r(void **state)
{
	double log_p[COUNT(holm_in)];

	for (size_t i = 0; i < COUNT(holm_in); i++)
		log_p[i] = log(holm_in[i]);
	assert_int_equal(holm_adjust_log(log_p, COUNT(holm_in), log_p), 0);
	for (size_t i = 0; i < COUNT(holm_in); i++)
		assert_same(exp(log_p[i]), holm_out[i]);
	log_p[0] = -800; /* below what a double holds as p */
	log_p[1] = -0.1;
	assert_int_equal(holm_adjust_log(log_p, 2, log_p), 0);
	assert_close(log_p[0], -800 + log(2), 1e-14);
	assert_close(log_p[1], -0.1, 1e-14);
	log_p[1] = NAN;
	assert_int_equal(holm_adjust_log(log_p, 2, log_p), -EINVAL);
	log_p[1] = 0.5;
	assert_int_equal(holm_adjust_log(log_p, 2, log_p), -EINVAL);
	assert_int_equal(holm_adjust_log(log_p, 0, log_p), 0);
}

static void distributions_agree_with_r(void **state)
{
	assert_same(normal_log_upper(40), GOLDEN_NORMAL_UPPER_40);
	assert_same(normal_log_upper(3), GOLDEN_NORMAL_UPPER_3);
	assert_close(normal_log_upper(5 - 1e-12), normal_log_upper(5 + 1e-12), 1e-11);
	assert_close(normal_log_upper(-40), 0, 1e-300);
	assert_close(normal_log_upper(0), log(0.5), 1e-15);
	assert_same(normal_upper_quantile(log(1e-9)), GOLDEN_NORMAL_QUANTILE);
	assert_close(normal_upper_quantile(log(0.5)), 0, 1e-14);
	assert_same(student_upper_quantile(0.005, 7.3), GOLDEN_T_QUANTILE);
	assert_same(student_upper(2.5, 3.7), GOLDEN_T_UPPER);
	assert_same(student_upper(-2.5, 3.7), 1 - GOLDEN_T_UPPER);
	assert_same(beta_lower(0.3, 2.5, 7), GOLDEN_BETA);
	assert_same(beta_quantile(0.01, 4, 117), GOLDEN_BETA_QUANTILE);
	assert_same(binomial_at_most(40, 120, 0.5), GOLDEN_BINOMIAL_AT_MOST);
	assert_same(binomial_at_most(4998000, 10000000, 0.5), GOLDEN_BINOMIAL_LARGE);
	assert_true(isnan(beta_lower(2, 1, 1)) && isnan(student_upper_quantile(0.7, 3)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fisher_agrees_with_r_and_scipy),
		cmocka_unit_test(nothing_happened),
		cmocka_unit_test(poisson_agrees_with_r),
		cmocka_unit_test(proportion_agrees_with_r),
		cmocka_unit_test(holm_agrees_with_r),
		cmocka_unit_test(distributions_agree_with_r),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
