/* SPDX-License-Identifier: MIT */
#include "stats/series.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int series_sorted_copy(const double *values, size_t count, double **ret_sorted)
{
	double *copy = NULL;
	int error;

	if (count) {
		copy = malloc(count * sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		memcpy(copy, values, count * sizeof(*copy));
	}
	error = series_sort(copy, count);
	if (error) {
		free(copy);
		return error;
	}
	*ret_sorted = copy;
	return 0;
}

int series_log(double *values, size_t count)
{
	if (count && !(values[0] > 0))
		return -ERANGE;
	for (size_t i = 0; i < count; i++)
		values[i] = log(values[i]);
	return 0;
}

double series_median(const double *sorted, size_t count)
{
	if (!count)
		return NAN;
	if (count % 2)
		return sorted[count / 2];
	/* Halves first: the sum of two large values may overflow. */
	return sorted[count / 2 - 1] / 2 + sorted[count / 2] / 2;
}

double series_lag1(const double *values, size_t count)
{
	long double mean = 0, product = 0, square = 0;

	if (count < 3)
		return NAN;
	for (size_t i = 0; i < count; i++)
		mean += (values[i] - mean) / (i + 1);
	for (size_t i = 0; i < count; i++) {
		square += (values[i] - mean) * (values[i] - mean);
		if (i)
			product += (values[i] - mean) * (values[i - 1] - mean);
	}
	/* Equal values leave the rounding of their mean behind, not a correlation. */
	if (!(square > 0) || sqrtl(square / count) < 1e-15L * fabsl(mean))
		return NAN;
	return (double)(product / square);
}
