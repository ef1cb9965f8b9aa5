/* SPDX-License-Identifier: MIT */
#include "stats/bootstrap.h"

#include "close.h"

#include <errno.h>

#include "base/random.h"

#define RUNS 20

static struct histogram *runs[RUNS], *slower[RUNS];

static int make_runs(void **state)
{
	struct random random;

	random_seed(&random, 11);
	for (int run = 0; run < RUNS; run++) {
		double level = 50000 * (0.8 + 0.4 * random_unit(&random));

		runs[run] = calloc(1, sizeof(struct histogram));
		slower[run] = calloc(1, sizeof(struct histogram));
		for (int i = 0; i < 500; i++) {
			double value = level / (0.05 + random_unit(&random));

			histogram_record(runs[run], (int64_t)value);
			histogram_record(slower[run], (int64_t)(2 * value));
		}
	}
	return 0;
}

static int free_runs(void **state)
{
	for (int run = 0; run < RUNS; run++) {
		free(runs[run]);
		free(slower[run]);
	}
	return 0;
}

#define AS_CONST(array) ((const struct histogram *const *)(array))

static void percentile_of_merged_runs(void **state)
{
	struct histogram *merged = calloc(1, sizeof(*merged));
	struct interval interval, again;
	double expected;

	for (int run = 0; run < RUNS; run++)
		histogram_merge(merged, runs[run]);
	assert_int_equal(bootstrap_percentile(AS_CONST(runs), RUNS, 0.99, 0.95, 1000, 7, &interval),
			 0);
	expected = (double)histogram_percentile(merged, 0.99, INT64_MAX);
	assert_true(fabs(interval.estimate / expected - 1) <
		    0.004); /* middle and top of a bucket */
	assert_true(interval.low < interval.estimate && interval.estimate < interval.high);
	assert_true(interval.high / interval.low < 1.3);
	assert_int_equal(bootstrap_percentile(AS_CONST(runs), RUNS, 0.99, 0.95, 1000, 7, &again),
			 0);
	assert_float_equal(again.low, interval.low, 0); /* repeatable */
	assert_float_equal(again.high, interval.high, 0);
	free(merged);
}

/* Runs that differ widely among each other, though each is precise: the run is the unit. */
static void the_run_is_the_unit(void **state)
{
	struct histogram *two[4];
	struct interval interval;

	for (int i = 0; i < 4; i++) {
		two[i] = calloc(1, sizeof(struct histogram));
		histogram_record_many(two[i], 1000 << i, 100000);
	}
	assert_int_equal(bootstrap_percentile(AS_CONST(two), 4, 0.5, 0.95, 1000, 1, &interval), 0);
	assert_true(interval.high > 3.5 * interval.low);
	for (int i = 0; i < 4; i++)
		free(two[i]);
}

static void ratio_of_two_arms(void **state)
{
	struct interval interval;

	assert_int_equal(bootstrap_percentile_ratio(AS_CONST(slower), RUNS, AS_CONST(runs), RUNS,
						    0.5, 0.95, 1000, 7, &interval),
			 0);
	assert_true(fabs(interval.estimate - 2) < 0.02);
	assert_true(interval.low < 2 && 2 < interval.high);
}

static void what_samples_cannot_support(void **state)
{
	struct histogram *none = calloc(1, sizeof(*none));
	const struct histogram *one[] = {runs[0], none};
	struct interval interval;

	assert_int_equal(
		bootstrap_percentile(AS_CONST(runs), RUNS, 0.9999, 0.95, 1000, 1, &interval),
		-ERANGE); /* 10,000 samples, 36,888 wanted */
	assert_int_equal(bootstrap_percentile(one, 2, 0.5, 0.95, 1000, 1, &interval), -ERANGE);
	assert_int_equal(bootstrap_percentile(one, 0, 0.5, 0.95, 1000, 1, &interval), -ERANGE);
	assert_int_equal(bootstrap_percentile(AS_CONST(runs), RUNS, 0.5, 0.99, 100, 1, &interval),
			 -EINVAL); /* half a replicate in each tail */
	assert_int_equal(bootstrap_percentile(AS_CONST(runs), RUNS, 1.5, 0.95, 1000, 1, &interval),
			 -EINVAL);
	free(none);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(percentile_of_merged_runs),
		cmocka_unit_test(the_run_is_the_unit),
		cmocka_unit_test(ratio_of_two_arms),
		cmocka_unit_test(what_samples_cannot_support),
	};

	return cmocka_run_group_tests(tests, make_runs, free_runs);
}
