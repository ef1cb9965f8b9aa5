/* SPDX-License-Identifier: MIT */
#include "stats/changepoint.h"

#include "close.h"

#include <errno.h>

#include "base/random.h"

static double tip[120];

/* One commit: the median of the logarithms of its runs, drawn from the published shape. */
static double commit(struct random *random, int runs, double factor)
{
	double logs[32];

	for (int i = 0; i < runs; i++)
		logs[i] = log(factor * tip[random_below(random, 120)]);
	series_sort(logs, (size_t)runs);
	return series_median(logs, (size_t)runs);
}

/* 1,000 series of 200 commits without change: no more than 1% raise any alarm (and a band of
 * three deviations for the draw; the alarm's own chance is alpha). */
static void null_series_stay_quiet(void **state)
{
	struct random random;

	for (int kind = 0; kind < 3; kind++) {
		int alarms = 0;

		random_seed(&random, 31);
		for (int trial = 0; trial < 1000; trial++) {
			struct changepoint changes[8];
			double values[200];
			size_t count;

			for (int i = 0; i < 200; i++)
				values[i] = kind == 0	? commit(&random, 5, 1)
					    : kind == 1 ? log(tip[random_below(&random, 120)])
							: tan(M_PI * (random_unit(&random) - 0.5));
			assert_int_equal(changepoint_find(values, 200, 0.005, changes, 8, &count),
					 0);
			alarms += count > 0;
		}
		print_message("noise %d: %d of 1000 series alarm at alpha 0.5%%\n", kind, alarms);
		assert_in_range(alarms, 0, 10);
	}
}

/* A step of 1.5, looked for after each commit until five lie after it. */
static void a_step_is_found_soon(void **state)
{
	static const int runs[] = {5, 7, 10};
	static const double least[] = {0.66, 0.75, 0.85};
	struct random random;

	for (size_t set = 0; set < COUNT(runs); set++) {
		int found = 0, trials = 300;

		random_seed(&random, 17);
		for (int trial = 0; trial < trials; trial++) {
			double values[205];
			bool alarm = false;

			for (int i = 0; i < 200; i++)
				values[i] = commit(&random, runs[set], 1);
			for (int i = 200; i < 205 && !alarm; i++) {
				struct changepoint changes[8];
				size_t count;

				values[i] = commit(&random, runs[set], 1.5);
				changepoint_find(values, (size_t)i + 1, 0.005, changes, 8, &count);
				alarm = count && changes[count < 8 ? count - 1 : 7].index >= 197;
			}
			found += alarm;
		}
		print_message("%d runs a commit: step of 1.5 found within 5 in %d of %d\n",
			      runs[set], found, trials);
		assert_true(found >= least[set] * trials);
	}
}

static void two_steps_are_told_apart(void **state)
{
	struct changepoint changes[4];
	struct random random;
	double values[150];
	size_t count;

	random_seed(&random, 3);
	for (int i = 0; i < 150; i++)
		values[i] = random_unit(&random) + (i >= 60 && i < 110 ? 5 : 0);
	assert_int_equal(changepoint_find(values, 150, 0.01, changes, 4, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(changes[0].index, 60);
	assert_int_equal(changes[1].index, 110);
	assert_true(changes[0].before < 1 && changes[0].after > 5 && changes[1].after < 1);
	assert_true(changes[0].before == changes[0].before && changes[1].before > 5);
	assert_int_equal(changepoint_find(values, 150, 0.01, changes, 1, &count), 0);
	assert_int_equal(count, 2); /* more than there was room for */
	assert_int_equal(changepoint_scan(values + 50, 40, changes), 0);
	assert_int_equal(changes[0].index, 10);
	assert_true(changes[0].p < 0.001);
}

/* Short and constant series: nothing can be, or is, claimed. */
static void edges(void **state)
{
	static const double step[] = {1, 2, 3, 11, 12, 13};
	double values[5000] = {0};
	const double nan[] = {1, 2, 3, NAN, 5, 6};
	struct changepoint change;
	struct random random;
	size_t count = 9;

	assert_int_equal(changepoint_find(step, 6, 0.01, &change, 1, &count), 0);
	assert_int_equal(count, 0); /* complete separation of 3 and 3 happens in 10% */
	assert_int_equal(changepoint_scan(step, 6, &change), 0);
	assert_true(change.p >= 0.09);
	assert_int_equal(change.index, 3);
	assert_int_equal(changepoint_scan(step, 5, &change), -ERANGE);
	assert_int_equal(changepoint_find(step, 5, 0.01, &change, 1, &count), 0);
	assert_int_equal(changepoint_find(step, 0, 0.01, &change, 1, &count), 0);
	assert_int_equal(changepoint_find(nan, 6, 0.01, &change, 1, &count), -EINVAL);
	assert_int_equal(changepoint_find(step, 6, 0, &change, 1, &count), -EINVAL);
	assert_int_equal(changepoint_find(values, 5000, 0.01, &change, 1, &count), 0);
	assert_int_equal(count, 0);
	random_seed(&random, 1);
	for (int i = 0; i < 5000; i++)
		values[i] = random_unit(&random) + (i >= 3000 ? 0.2 : 0);
	assert_int_equal(changepoint_find(values, 5000, 0.01, &change, 1, &count), 0);
	assert_int_equal(count, 1);
	assert_in_range(change.index, 2950, 3050);
}

static int load(void **state)
{
	return load_series("tip-mean", tip, 120) != 120;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(null_series_stay_quiet),
		cmocka_unit_test(a_step_is_found_soon),
		cmocka_unit_test(two_steps_are_told_apart),
		cmocka_unit_test(edges),
	};

	return cmocka_run_group_tests(tests, load, NULL);
}
