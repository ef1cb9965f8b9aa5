/* SPDX-License-Identifier: MIT */
#include "stats/distribution.h"

#include "close.h"

#include <errno.h>

#include "golden/golden_r.h"
#include "stats/multiple.h"

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
	assert_same(binomial_at_most(40, 120, 0.5), GOLDEN_BINOMIAL_AT_MOST);
	assert_same(binomial_at_most(4998000, 10000000, 0.5), GOLDEN_BINOMIAL_LARGE);
	assert_true(isnan(beta_lower(2, 1, 1)) && isnan(student_upper_quantile(0.7, 3)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holm_agrees_with_r),
		cmocka_unit_test(distributions_agree_with_r),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
