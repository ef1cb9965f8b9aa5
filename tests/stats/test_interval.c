/* SPDX-License-Identifier: MIT */
#include "stats/interval.h"

#include "close.h"

#include <errno.h>

#include "base/random.h"
#include "golden/golden_r.h"
#include "golden/golden_scipy.h"

static double a[500], b[500];

static int superiority(const double *sorted_a, size_t n, const double *sorted_b, size_t m,
		       double confidence, struct interval *ret_interval)
{
	struct rank_test test;

	return rank_and_superiority(sorted_a, n, sorted_b, m, confidence, &test, ret_interval);
}

static void small_sets(void)
{
	for (size_t i = 0; i < COUNT(x15); i++)
		a[i] = x15[i];
	for (size_t i = 0; i < COUNT(y12); i++)
		b[i] = y12[i];
	series_sort(a, COUNT(x15));
	series_sort(b, COUNT(y12));
}

static void seed_sets(void)
{
	assert_int_equal(load_series("mapping-mean", a, 120), 120);
	assert_int_equal(load_series("tip-mean", b, 120), 120);
	series_sort(a, 120);
	series_sort(b, 120);
}

static void shift_and_ratio_agree_with_r(void **state)
{
	struct shift shift;

	small_sets();
	assert_int_equal(shift_estimate(a, COUNT(x15), b, COUNT(y12), 0.95, &shift), 0);
	assert_int_equal(shift.method, SHIFT_EXACT);
	assert_same(shift.shift.low, GOLDEN_SHIFT_SMALL_LOW);
	assert_same(shift.shift.high, GOLDEN_SHIFT_SMALL_HIGH);
	assert_same(shift.shift.estimate, GOLDEN_SHIFT_SMALL_MEDIAN);
	assert_int_equal(shift_estimate(a, COUNT(x15), b, COUNT(y12), 0.99, &shift), 0);
	assert_true(shift.has_ratio);
	assert_same(log(shift.ratio.low), GOLDEN_RATIO_SMALL_LOW);
	assert_same(log(shift.ratio.high), GOLDEN_RATIO_SMALL_HIGH);
	assert_same(log(shift.ratio.estimate), GOLDEN_RATIO_SMALL_MEDIAN);
	seed_sets();
	assert_int_equal(shift_estimate(a, 120, b, 120, 0.99, &shift), 0);
	assert_int_equal(shift.ratio_method, SHIFT_NORMAL);
	assert_same(log(shift.ratio.low), GOLDEN_RATIO_SEED_LOW);
	assert_same(log(shift.ratio.high), GOLDEN_RATIO_SEED_HIGH);
	assert_same(log(shift.ratio.estimate), GOLDEN_RATIO_SEED_MEDIAN);
	/* R's root is within 1e-4 unless told otherwise. */
	assert_float_equal(log(shift.ratio.low), GOLDEN_RATIO_SEED_DEFAULT_LOW, 1e-4);
	assert_float_equal(log(shift.ratio.high), GOLDEN_RATIO_SEED_DEFAULT_HIGH, 1e-4);
	assert_int_equal(shift_estimate(a, 120, b, 120, 0.95, &shift), 0);
	assert_same(shift.shift.low, GOLDEN_SHIFT_SEED_LOW);
	assert_same(shift.shift.high, GOLDEN_SHIFT_SEED_HIGH);
	assert_same(shift.shift.estimate, GOLDEN_SHIFT_SEED_MEDIAN);
}

static int compare_doubles(const void *left, const void *right)
{
	double x = *(const double *)left, y = *(const double *)right;

	return (x > y) - (x < y);
}

/* The selection against all differences written down and sorted, ties and signs included. */
static void median_is_that_of_all_differences(void **state)
{
	struct random random;

	random_seed(&random, 9);
	for (int trial = 0; trial < 200; trial++) {
		size_t n = 1 + random_below(&random, 20), m = 1 + random_below(&random, 20);
		double all[400];
		struct shift shift;

		for (size_t i = 0; i < n; i++)
			a[i] = trial % 2 ? floor(random_unit(&random) * 9) - 4
					 : exp(20 * random_unit(&random) - 10);
		for (size_t i = 0; i < m; i++)
			b[i] = trial % 2 ? floor(random_unit(&random) * 9) - 4
					 : exp(20 * random_unit(&random) - 10);
		series_sort(a, n);
		series_sort(b, m);
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < m; k++)
				all[i * m + k] = a[i] - b[k];
		qsort(all, n * m, sizeof(double), compare_doubles);
		assert_int_equal(shift_estimate(a, n, b, m, 0.9, &shift), 0);
		assert_close(shift.shift.estimate, series_median(all, n * m), 1e-15);
	}
}

/* 120,000 a side are compressed to quantiles; the answer stays beside the full one's. */
static void large_series_are_compressed(void **state)
{
	size_t n = 120000;
	double *x = malloc(n * sizeof(double)), *y = malloc(n * sizeof(double));
	struct shift full, compressed;
	struct random random;

	random_seed(&random, 4);
	for (size_t i = 0; i < n; i++) {
		x[i] = 1.25 / (0.01 + random_unit(&random));
		y[i] = 1 / (0.01 + random_unit(&random));
	}
	series_sort(x, n);
	series_sort(y, n);
	assert_int_equal(shift_estimate(x, n, y, n, 0.99, &compressed), 0);
	assert_int_equal(compressed.ratio_method, SHIFT_COMPRESSED);
	assert_int_equal(shift_estimate(x, n, y, 80000, 0.99, &full), 0);
	assert_int_equal(full.ratio_method, SHIFT_NORMAL); /* other data: only its label counts */
	assert_true(compressed.ratio.low < 1.25 && 1.25 < compressed.ratio.high);
	assert_true(compressed.ratio.high - compressed.ratio.low < 0.05);
	free(x);
	free(y);
}

static void no_ratio_of_zero_and_negative(void **state)
{
	static const double zero[] = {0, 1, 2, 3, 4}, good[] = {1, 2, 3, 4, 6};
	enum equivalence verdict;
	struct shift shift;
	double bound;

	assert_int_equal(shift_estimate(zero, 5, good, 5, 0.95, &shift), 0);
	assert_false(shift.has_ratio);
	assert_true(isnan(shift.ratio.estimate) && isnan(shift.ratio.low));
	assert_float_equal(shift.shift.estimate, -1, 0);
	assert_int_equal(equivalence_test(zero, 5, good, 5, 0.05, 0.05, &verdict, &bound), -ERANGE);
}

/* Too few values for the confidence: an estimate, and no bounds. */
static void few_values_have_no_bounds(void **state)
{
	static const double x[] = {5, 6, 7}, y[] = {1, 2, 3};
	struct interval interval;
	struct shift shift;

	assert_int_equal(shift_estimate(x, 3, y, 3, 0.99, &shift), 0);
	assert_float_equal(shift.shift.estimate, 4, 0);
	assert_true(isnan(shift.shift.low) && isnan(shift.shift.high));
	assert_int_equal(shift_estimate(x, 3, y, 3, 0.9, &shift), 0);
	assert_float_equal(shift.shift.low, 2, 0); /* P(U = 0) = 1/20 */
	assert_float_equal(shift.shift.high, 6, 0);
	assert_int_equal(shift_estimate(x, 1, y, 1, 0.95, &shift), 0);
	assert_float_equal(shift.shift.estimate, 4, 0);
	assert_true(isnan(shift.ratio.low));
	assert_int_equal(superiority(x, 1, y, 1, 0.95, &interval), 0);
	assert_float_equal(interval.estimate, 1, 0);
	assert_true(isnan(interval.low));
}

static void superiority_is_the_share_of_pairs(void **state)
{
	struct interval interval;

	small_sets();
	assert_int_equal(superiority(a, COUNT(x15), b, COUNT(y12), 0.95, &interval), 0);
	assert_close(interval.estimate, GOLDEN_RANK_U / 180.0, 1e-14);
	assert_true(interval.low > 0.5 && interval.low < interval.estimate);
	assert_true(interval.high > interval.estimate && interval.high < 1);
	seed_sets();
	assert_int_equal(superiority(a, 120, b, 120, 0.99, &interval), 0);
	assert_close(interval.estimate, GOLDEN_SEED_U / 14400.0, 1e-12);
}

/* Long, with ties, of unequal sizes. */
static void one_walk_for_both(void **state)
{
	static double long_a[700], long_b[900];
	struct rank_test test, together;
	struct interval beside;
	struct random random;

	random_seed(&random, 12);
	for (size_t i = 0; i < COUNT(long_a); i++)
		long_a[i] = floor(300 * random_unit(&random));
	for (size_t i = 0; i < COUNT(long_b); i++)
		long_b[i] = floor(320 * random_unit(&random));
	series_sort(long_a, COUNT(long_a));
	series_sort(long_b, COUNT(long_b));
	assert_int_equal(rank_test(long_a, COUNT(long_a), long_b, COUNT(long_b), &test), 0);
	assert_int_equal(rank_and_superiority(long_a, COUNT(long_a), long_b, COUNT(long_b), 0.95,
					      &together, &beside),
			 0);
	assert_int_equal(together.method, RANK_NORMAL);
	assert_float_equal(together.u, test.u, 0);
	assert_float_equal(together.log_p, test.log_p, 0);
	assert_close(beside.estimate, test.u / 630000, 1e-14);
	assert_int_equal(rank_and_superiority(a, 0, b, 1, 0.95, &together, &beside), -EINVAL);
	assert_int_equal(rank_and_superiority(a, 1, b, 1, 1, &together, &beside), -EINVAL);
}

static void superiority_at_the_edges(void **state)
{
	static const double low[] = {1, 2, 3, 4, 5}, high[] = {6, 7, 8, 9}, same[] = {2, 2, 2, 2};
	struct interval interval;

	assert_int_equal(superiority(high, 4, low, 5, 0.95, &interval), 0);
	assert_float_equal(interval.estimate, 1, 0);
	assert_float_equal(interval.high, 1, 0);
	assert_close(interval.low, pow(0.025, 0.25), 1e-14);
	assert_int_equal(superiority(low, 5, high, 4, 0.95, &interval), 0);
	assert_close(interval.high, 1 - pow(0.025, 0.25), 1e-14);
	assert_int_equal(superiority(same, 4, same, 4, 0.95, &interval), 0);
	assert_float_equal(interval.estimate, 0.5, 0);
	assert_true(interval.low < 0.2 && interval.high > 0.8);
}

/* Does the interval hold the truth (0.76 for normals one deviation apart) as often as it says? */
static void superiority_covers(void **state)
{
	int covered = 0, trials = 2000;
	struct random random;

	random_seed(&random, 8);
	for (int trial = 0; trial < trials; trial++) {
		struct interval interval;

		for (int i = 0; i < 15; i++) {
			double spread = sqrt(-2 * log(1 - random_unit(&random)));
			double turn = 2 * M_PI * random_unit(&random);

			a[i] = spread * cos(turn) + 1;
			b[i] = spread * sin(turn);
		}
		series_sort(a, 15);
		series_sort(b, 15);
		superiority(a, 15, b, 15, 0.95, &interval);
		covered += interval.low <= 0.7602499 && 0.7602499 <= interval.high;
	}
	assert_in_range(covered, trials * 0.935, trials * 0.98);
}

static void order_statistics(void **state)
{
	struct interval interval;
	static double values[5000];

	for (int i = 0; i < 5000; i++)
		values[i] = i + 1;
	assert_int_equal(percentile_interval(values, 120, 0.5, 0.95, &interval), 0);
	assert_float_equal(interval.estimate, 60.5, 0);
	assert_float_equal(interval.low, GOLDEN_MEDIAN_120_LOW, 0);
	assert_float_equal(interval.high, GOLDEN_MEDIAN_120_HIGH, 0);
	assert_int_equal(percentile_interval(values, 9, 0.5, 0.95, &interval), 0);
	assert_float_equal(interval.low, GOLDEN_MEDIAN_9_LOW, 0);
	assert_float_equal(interval.high, GOLDEN_MEDIAN_9_HIGH, 0);
	assert_int_equal(percentile_interval(values, 200, 0.9, 0.99, &interval), 0);
	assert_float_equal(interval.estimate, 180, 0);
	assert_float_equal(interval.low, GOLDEN_P90_200_LOW, 0);
	assert_float_equal(interval.high, GOLDEN_P90_200_HIGH, 0);
	assert_int_equal(percentile_interval(values, 5000, 0.999, 0.95, &interval), 0);
	assert_float_equal(interval.low, GOLDEN_P99_9_5000_LOW, 0);
	assert_float_equal(interval.high, GOLDEN_P99_9_5000_HIGH, 0);
}

static void percentiles_that_n_cannot_support(void **state)
{
	struct interval interval = {.estimate = 7};
	static double values[4000];

	for (int i = 0; i < 4000; i++)
		values[i] = i;
	assert_int_equal(percentile_interval(values, 3687, 0.999, 0.95, &interval), -ERANGE);
	assert_float_equal(interval.estimate, 7, 0);
	assert_int_equal(percentile_interval(values, 3688, 0.999, 0.95, &interval), 0);
	assert_int_equal(percentile_interval(values, 5, 0.5, 0.95, &interval), -ERANGE);
	assert_int_equal(percentile_interval(values, 6, 0.5, 0.95, &interval), 0);
	assert_int_equal(percentile_interval(values, 0, 0.5, 0.95, &interval), -EINVAL);
	assert_int_equal(percentile_interval(values, 9, 1, 0.95, &interval), -EINVAL);
}

static void equivalence(void **state)
{
	enum equivalence verdict;
	double bound;

	for (int i = 0; i < 100; i++) {
		a[i] = 1000 + i * 0.1;
		b[i] = 1000 + i * 0.1 + 0.05;
	}
	assert_int_equal(equivalence_test(a, 100, b, 100, 0.01, 0.05, &verdict, &bound), 0);
	assert_int_equal(verdict, EQUIVALENCE_WITHIN);
	assert_true(bound > 0 && bound < 0.01);
	assert_int_equal(equivalence_test(a, 3, b, 3, 0.01, 0.05, &verdict, &bound), 0);
	assert_int_equal(verdict, EQUIVALENCE_OPEN);
	assert_true(isinf(bound));
	seed_sets();
	assert_int_equal(equivalence_test(a, 120, b, 120, 0.01, 0.05, &verdict, &bound), 0);
	assert_int_equal(verdict, EQUIVALENCE_BEYOND);
	assert_int_equal(equivalence_test(a, 120, b, 120, 0.01, 0.95, &verdict, &bound), 0);
	assert_int_equal(verdict, EQUIVALENCE_OPEN);
	assert_int_equal(equivalence_test(a, 120, b, 120, 0.5, 0.05, &verdict, &bound), -EINVAL);
	assert_int_equal(equivalence_test(a, 120, b, 120, 0.01, 0, &verdict, &bound), -EINVAL);
}

static void bad_input_is_refused(void **state)
{
	const double nan[] = {1, NAN}, good[] = {1, 2};
	struct interval interval;
	struct shift shift;

	assert_int_equal(shift_estimate(nan, 2, good, 2, 0.95, &shift), -EINVAL);
	assert_int_equal(shift_estimate(good, 0, good, 2, 0.95, &shift), -EINVAL);
	assert_int_equal(shift_estimate(good, 2, good, 2, 1, &shift), -EINVAL);
	assert_int_equal(superiority(good, 2, nan, 2, 0.95, &interval), -EINVAL);
	assert_int_equal(percentile_interval(nan, 2, 0.5, 0.5, &interval), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shift_and_ratio_agree_with_r),
		cmocka_unit_test(median_is_that_of_all_differences),
		cmocka_unit_test(large_series_are_compressed),
		cmocka_unit_test(no_ratio_of_zero_and_negative),
		cmocka_unit_test(few_values_have_no_bounds),
		cmocka_unit_test(superiority_is_the_share_of_pairs),
		cmocka_unit_test(one_walk_for_both),
		cmocka_unit_test(superiority_at_the_edges),
		cmocka_unit_test(superiority_covers),
		cmocka_unit_test(order_statistics),
		cmocka_unit_test(percentiles_that_n_cannot_support),
		cmocka_unit_test(equivalence),
		cmocka_unit_test(bad_input_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
