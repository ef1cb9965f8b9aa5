/* SPDX-License-Identifier: MIT */
#include "stats/summary.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* -1 when the count has fewer than one sample beyond the percentile. */
static int64_t supported(const struct histogram *histogram, unsigned int per_ten_thousand,
			 int64_t max_ns)
{
	uint64_t beyond = 10000 - per_ten_thousand;

	if (histogram->total * beyond < 10000)
		return -1;
	return histogram_percentile(histogram, per_ten_thousand / 10000.0, max_ns);
}

void latency_summary_from(const struct histogram *histogram, const struct moments *moments,
			  struct latency_summary *ret_summary)
{
	uint64_t count = histogram->total;
	int64_t max_ns = (int64_t)moments->maximum;

	*ret_summary = (struct latency_summary){
		.count = count,
		.mean_ns = moments->count ? moments->mean : NAN,
		.stddev_ns = moments_stddev(moments),
		.min_ns = count ? (int64_t)moments->minimum : INT64_MIN,
		.max_ns = count ? max_ns : INT64_MIN,
		.p50_ns = supported(histogram, 5000, max_ns),
		.p90_ns = supported(histogram, 9000, max_ns),
		.p99_ns = supported(histogram, 9900, max_ns),
		.p99_9_ns = supported(histogram, 9990, max_ns),
		.p99_99_ns = supported(histogram, 9999, max_ns),
	};
}

static int compare_doubles(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return (a > b) - (a < b);
}

static double middle(const double *sorted, size_t count)
{
	return count % 2 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/*
 * Up to five values IGT takes the mean, up to nine the median, from ten on Tukey's trimean of
 * the hinges; a hinge is the median of a half, and both halves keep the middle of an odd count.
 */
double igt_trimean_or_mean(const double *values, size_t count)
{
	double *sorted, result, mean = 0;
	size_t half = (count + 1) / 2;

	if (!count)
		return NAN;
	if (count <= 5) {
		for (size_t i = 0; i < count; i++)
			mean += (values[i] - mean) / (i + 1);
		return mean;
	}
	sorted = malloc(count * sizeof(*sorted));
	if (!sorted)
		return NAN;
	memcpy(sorted, values, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), compare_doubles);
	result = middle(sorted, count);
	if (count > 9)
		result = (middle(sorted, half) + 2 * result + middle(sorted + count - half, half)) /
			 4;
	free(sorted);
	return result;
}
