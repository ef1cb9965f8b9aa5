/* SPDX-License-Identifier: MIT */
#ifndef STATS_SERIES_H
#define STATS_SERIES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * A series is an array of finite doubles, one value a run. Functions whose arguments are named
 * "sorted" want them ascending and check it in one pass: -EINVAL for NaN, infinity or disorder.
 */

/*
 * Sort ascending, in place. -0.0 becomes 0.0, so that equal values are equal bits. -EINVAL, and the
 * array as it was, when a value is NaN or infinite. count 0 is well.
 */
int series_sort(double *values, size_t count);

/* 0, or -EINVAL: a value is not finite (or, with @ascending, smaller than the one before it). */
int series_check(const double *values, size_t count, bool ascending);

/* Sorted copy; the caller frees *ret_sorted. -EINVAL as above, -ENOMEM. Count 0 gives NULL. */
int series_sorted_copy(const double *values, size_t count, double **ret_sorted);

/* Natural logarithms of ascending positive values, in place: -ERANGE and nothing done when one
 * is zero or negative (its ratio does not exist). */
int series_log(double *values, size_t count);

/* Median of an ascending series (mean of the middle two when even); NaN when empty. */
double series_median(const double *sorted, size_t count);

/*
 * Correlation of each value with the one before it, in order of time (NOT sorted): drift or
 * memory between runs. NaN below three values or when all are equal. Under independence it lies
 * within about +-2 / sqrt(n) in 95% of series.
 */
double series_lag1(const double *values, size_t count);

#endif
