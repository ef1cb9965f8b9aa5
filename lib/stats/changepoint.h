/* SPDX-License-Identifier: MIT */
#ifndef STATS_CHANGEPOINT_H
#define STATS_CHANGEPOINT_H

#include <stddef.h>

/*
 * Changes of level in a history: one robust number a commit (the median of the logarithms of
 * its runs), in order of time. Ranks alone are used, so a heavy tail costs nothing.
 */
struct changepoint {
	size_t index;	      /* first point of the new level */
	double before, after; /* medians of the segments beside it, in the series' unit */
	double p;	      /* of its segment's test, adjusted for the splits tried (see below) */
};

/* Shortest segment: a change is seen once this many points lie after it. */
#define CHANGEPOINT_LEAST 3

/*
 * Rank CUSUM with the place unknown (Pettitt 1979, standardised at each place): the largest
 * |z| over all splits; p from critical values simulated for independent points. One split.
 * -ERANGE below 2 x CHANGEPOINT_LEAST points; -EINVAL not finite.
 */
int changepoint_scan(const double *values, size_t count, struct changepoint *ret_change);

/*
 * Binary segmentation (Scott & Knott 1974) with that test. @alpha is the chance that a series
 * without any change raises any alarm. Writes at most @capacity changes, ascending by index;
 * ret_count says how many there are. -EINVAL, -ENOMEM.
 */
int changepoint_find(const double *values, size_t count, double alpha, struct changepoint *changes,
		     size_t capacity, size_t *ret_count);

#endif
