/* SPDX-License-Identifier: MIT */
#ifndef STATS_PLACEMENT_H
#define STATS_PLACEMENT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Placement of a value: how many values of the other series are below it, plus half of those
 * equal to it. Twice a placement is a whole number; sums of them and of their squares are exact
 * (128 bits hold them up to 10^9 values a side).
 */
struct placement_sums {
	unsigned __int128 twice, twice_squared;
};

/* What the merged order of two ascending series says. */
struct merged_order {
	struct placement_sums a, b;
	double tie_term; /* sum over groups of equal values, in both together, of t^3 - t */
	/* Ways in which a can hold the lowest, the highest places (a group of equal values may
	 * lie across the boundary), as logarithms. */
	double log_ways_low, log_ways_high;
};

/* One walk through both; no checks. */
void merged_order_walk(const double *a, size_t count_a, const double *b, size_t count_b,
		       struct merged_order *ret_order);

/* P(a > b) + P(a = b) / 2 of two series that were checked and walked; 0 < confidence < 1. */
struct interval;
void superiority_of_order(const struct merged_order *order, size_t count_a, size_t count_b,
			  double confidence, struct interval *ret_interval);

#endif
