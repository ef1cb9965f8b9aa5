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
	double z;	      /* standardised score of the split, the largest over all places */
	double p;	      /* chance of so large a z somewhere in a segment without change */
};

/* Shortest segment: a change is seen once this many points lie after it. */
#define CHANGEPOINT_MIN 3

/*
 * One split, its place unknown: the largest |z| over all places, where z standardises the sum
 * of the normal scores of the ranks (van der Waerden 1952; the scan: Pettitt 1979) after the place.
 * Only ranks count, so the null distribution holds for any independent points, however heavy their
 * tail; p is from critical values simulated for it, below 0.001 an extrapolation.
 * -ERANGE below 2 x CHANGEPOINT_MIN points; -EINVAL not finite; -ENOMEM.
 */
int changepoint_scan(const double *values, size_t count, struct changepoint *ret_change);

/*
 * Binary segmentation (Scott & Knott 1974) with that test, each segment at @alpha: the
 * chance that a series without any change raises any alarm is at most @alpha. Writes at most
 * @capacity changes, ascending by index; ret_count says how many there are. -EINVAL, -ENOMEM; a
 * series too short to be tested has no changes.
 */
int changepoint_find(const double *values, size_t count, double alpha, struct changepoint *changes,
		     size_t capacity, size_t *ret_count);

#endif
