/* SPDX-License-Identifier: MIT */
#include "stats/summary.h"

#include "close.h"

#include <errno.h>
#include <string.h>

#include "base/random.h"
#include "golden/golden_r.h"

/* NIST StRD NumAcc2 to 4: centre, then centre -+ 0.1 in turn, 1001 values; lag 1 is -0.999. */
static void nist_numacc(void **state)
{
	static const double centres[] = {1.2, 1000000.2, 10000000.2};
	static const double tolerances[] = {1e-14, 2e-9, 2e-8}; /* what the doubles hold of 0.1 */
	struct moments running;

	running = (struct moments){0};
	moments_add(&running, 10000001);
	moments_add(&running, 10000003);
	moments_add(&running, 10000002);
	assert_float_equal(running.mean, 10000002, 0);
	assert_float_equal(moments_stddev(&running), 1, 0);
	for (size_t set = 0; set < COUNT(centres); set++) {
		double values[1001];

		running = (struct moments){0};
		for (int i = 0; i < 1001; i++) {
			/* As the files are read: the nearest double to the decimal. */
			values[i] = rint((centres[set] + (i == 0  ? 0
							  : i % 2 ? -0.1
								  : 0.1)) *
					 10) /
				    10;
			moments_add(&running, values[i]);
		}
		assert_close(running.mean, centres[set], 1e-15);
		assert_float_equal(moments_stddev(&running), 0.1, tolerances[set]);
		assert_float_equal(series_lag1(values, 1001), -0.999, tolerances[set] * 100);
	}
}

static void moments_of_few(void **state)
{
	double tip[120], *same = tip;
	struct moments running, left, right;

	running = (struct moments){0};
	assert_true(isnan(moments_stddev(&running)));
	moments_add(&running, 3);
	assert_true(isnan(moments_stddev(&running)));
	assert_float_equal(running.minimum, 3, 0);
	assert_float_equal(running.maximum, 3, 0);
	load_series("tip-mean", tip, 120);
	running = (struct moments){0};
	left = (struct moments){0};
	right = (struct moments){0};
	for (int i = 0; i < 120; i++) {
		moments_add(&running, tip[i]);
		moments_add(i < 37 ? &left : &right, tip[i]);
	}
	assert_same(moments_stddev(&running), GOLDEN_SD_SEED);
	moments_merge(&left, &right);
	assert_same(moments_stddev(&left), GOLDEN_SD_SEED);
	assert_same(left.mean, running.mean);
	assert_int_equal(left.count, 120);
	assert_same(series_lag1(tip, 120), GOLDEN_LAG1_SEED);
	for (int i = 0; i < 120; i++)
		same[i] = 0.1;
	assert_true(isnan(series_lag1(same, 120)));
	assert_true(isnan(series_lag1(same, 2)));
}

static void histogram_holds_every_value(void **state)
{
	struct random random;
	int64_t last = -1;

	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		assert_true(histogram_lowest(i) == last + 1);
		last = histogram_highest(i);
		assert_int_equal(histogram_index(histogram_lowest(i)), i);
		assert_int_equal(histogram_index(last), i);
	}
	assert_true(last == INT64_MAX);
	assert_int_equal(histogram_index(-5), 0);
	random_seed(&random, 1);
	for (int i = 0; i < 100000; i++) {
		int64_t value = (int64_t)(random_next(&random) >> (1 + random_below(&random, 62)));
		size_t index = histogram_index(value);
		double width = (double)(histogram_highest(index) - histogram_lowest(index));

		assert_true(histogram_lowest(index) <= value && value <= histogram_highest(index));
		assert_true(width <= (double)histogram_lowest(index) / 128);
	}
}

static void percentiles_and_summary(void **state)
{
	struct histogram *histogram = calloc(1, sizeof(*histogram)),
			 *other = calloc(1, sizeof(*other));
	struct latency_summary summary;
	struct moments moments;

	assert_int_equal(histogram_percentile(histogram, 0.5, 100), -1);
	moments = (struct moments){0};
	latency_summary_from(histogram, &moments, &summary);
	assert_true(isnan(summary.mean_ns) && isnan(summary.stddev_ns));
	assert_true(summary.min_ns == INT64_MIN && summary.max_ns == INT64_MIN);
	assert_int_equal(summary.p50_ns, -1);
	for (int value = 1; value <= 1000; value++) {
		histogram_record(value % 2 ? histogram : other, value);
		moments_add(&moments, value);
	}
	histogram_merge(histogram, other);
	assert_int_equal(histogram->total, 1000);
	assert_int_equal(histogram_percentile(histogram, 0, 1000), 1);
	assert_int_equal(histogram_percentile(histogram, 0.1, 1000), 100);
	assert_int_equal(histogram_percentile(histogram, 1, 1000), 1000); /* not the bucket's top */
	assert_int_equal(histogram_percentile(histogram, NAN, 1000), -1);
	latency_summary_from(histogram, &moments, &summary);
	assert_in_range(summary.p50_ns, 500, 503);
	assert_in_range(summary.p99_9_ns, 999, 1000);
	assert_int_equal(summary.p99_99_ns, -1); /* 1000 samples cannot say */
	assert_float_equal(summary.mean_ns, 500.5, 1e-9);
	assert_int_equal(histogram_count_above(histogram, 200), 800);
	assert_int_equal(histogram_count_above(histogram, -1), 1000);
	assert_int_equal(histogram_count_above(histogram, INT64_MAX), 0);
	histogram_record_many(histogram, 675208500000, 3);
	assert_int_equal(histogram->total, 1003);
	assert_int_equal(histogram_percentile(histogram, 1, 675208500000), 675208500000);
	free(histogram);
	free(other);
}

/* Up to 5 values the mean, to 9 the median, from 10 on the trimean of Tukey's hinges. */
static void igt_estimate(void **state)
{
	static const double values[] = {100, 1, 2, 3, 4, 50, 7, 8, 9, 10, 11};

	assert_true(isnan(igt_trimean_or_mean(values, 0)));
	assert_float_equal(igt_trimean_or_mean(values, 1), 100, 0);
	assert_float_equal(igt_trimean_or_mean(values, 5), 22, 1e-12);
	assert_float_equal(igt_trimean_or_mean(values, 6), 3.5, 0); /* 1 2 3 4 50 100 */
	assert_float_equal(igt_trimean_or_mean(values, 9), 7, 0);   /* 1 2 3 4 7 8 9 50 100 */
	/* 1 2 3 4 7 | 8 9 10 50 100: hinges 3 and 10, median 7.5 */
	assert_float_equal(igt_trimean_or_mean(values, 10), (3 + 15 + 10) / 4.0, 1e-12);
	/* 1 2 3 4 7 8 9 10 11 50 100: halves 1..8 and 8..100, hinges 3.5 and 10.5 */
	assert_float_equal(igt_trimean_or_mean(values, 11), (3.5 + 16 + 10.5) / 4, 1e-12);
}

static void sorting(void **state)
{
	static const size_t sizes[] = {0, 1, 2, 24, 25, 300, 2047, 5000, 200000};
	double refused[] = {3, NAN, 1}, signs[] = {0.0, -1, -0.0, 5, -7, 1e308, -1e308, 5e-324};
	struct random random;

	random_seed(&random, 3);
	for (size_t i = 0; i < COUNT(sizes); i++) {
		for (int kind = 0; kind < 3; kind++) {
			double *values = malloc((sizes[i] + 1) * sizeof(double)), sum = 0,
			       after = 0;

			for (size_t k = 0; k < sizes[i]; k++) {
				values[k] = kind == 0	? floor(random_unit(&random) * 50) - 25
					    : kind == 1 ? exp(40 * random_unit(&random) - 20)
							: (double)k;
				sum += floor(values[k]);
			}
			assert_int_equal(series_sort(values, sizes[i]), 0);
			assert_int_equal(series_check(values, sizes[i], true), 0);
			for (size_t k = 0; k < sizes[i]; k++)
				after += floor(values[k]);
			assert_close(after, sum, 1e-9);
			free(values);
		}
	}
	assert_int_equal(series_sort(refused, 3), -EINVAL);
	assert_float_equal(refused[0], 3, 0);
	assert_int_equal(series_sort(signs, COUNT(signs)), 0);
	assert_int_equal(series_check(signs, COUNT(signs), true), 0);
	assert_float_equal(signs[0], -1e308, 0);
	assert_false(signbit(signs[3]) || signbit(signs[4]));
	assert_true(isnan(series_median(NULL, 0)));
	assert_true(series_median((double[]){1.6e308, 1.7e308}, 2) > 1.6e308);
	assert_int_equal(series_log((double[]){0, 1}, 2), -ERANGE);
}

static int by_value(const void *a, const void *b)
{
	double of_a = *(const double *)a, of_b = *(const double *)b;

	return (of_a > of_b) - (of_a < of_b);
}

/* Every kind of digit: constant high bits, all in one bucket, both signs, near and far values. */
static double drawn(struct random *random, int kind, size_t place)
{
	double unit = random_unit(random);

	switch (kind) {
	case 0:
		return 1e6 + floor(unit * 3);
	case 1:
		return ldexp(unit - 0.5, (int)(random_next(random) % 2000) - 1000);
	case 2:
		return 1 + unit * 0x1p-40;
	case 3:
		return unit < 0.001 ? -1e300 : 5 + unit;
	case 4:
		return -(double)place;
	default:
		return round(exp(9 + unit + random_unit(random)) * 1000) / 1000;
	}
}

static void sorting_as_qsort_does(void **state)
{
	static const size_t sizes[] = {16, 17, 40, 4000, 65535, 65536, 65537, 300000};
	struct random random;

	random_seed(&random, 8);
	for (size_t i = 0; i < COUNT(sizes); i++)
		for (int kind = 0; kind < 6; kind++) {
			size_t size = sizes[i] * sizeof(double);
			double *values = malloc(size), *expected = malloc(size);

			for (size_t k = 0; k < sizes[i]; k++)
				values[k] = drawn(&random, kind, k);
			memcpy(expected, values, size);
			qsort(expected, sizes[i], sizeof(double), by_value);
			assert_int_equal(series_sort(values, sizes[i]), 0);
			for (size_t k = 0; k < sizes[i]; k++)
				if (values[k] != expected[k])
					fail_msg("kind %d, size %zu, place %zu: %.17g, not %.17g",
						 kind, sizes[i], k, values[k], expected[k]);
			free(values);
			free(expected);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nist_numacc),
		cmocka_unit_test(moments_of_few),
		cmocka_unit_test(histogram_holds_every_value),
		cmocka_unit_test(percentiles_and_summary),
		cmocka_unit_test(igt_estimate),
		cmocka_unit_test(sorting),
		cmocka_unit_test(sorting_as_qsort_does),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
