/* SPDX-License-Identifier: MIT */
#ifndef STATS_COUNT_H
#define STATS_COUNT_H

#include <stdint.h>

#include "stats/interval.h"

struct count_test {
	double p;	  /* two-sided: sum over tables no likelier than the one seen (as R) */
	double p_greater; /* a has more */
	double p_less;
	struct interval ratio; /* of the rates a / b; high may be INFINITY (b has none), all NaN
				* when both have none */
};

/*
 * Fisher's exact test: @hits of @total runs in which something happened (a maximum over 1 s), a
 * against b. ratio: odds, conditional maximum likelihood, exact interval. -EINVAL: hits > total,
 * total 0.
 */
int count_fisher(uint64_t hits_a, uint64_t total_a, uint64_t hits_b, uint64_t total_b,
		 double confidence, struct count_test *ret_test);

/*
 * Conditional test of two Poisson rates (Przyborowski & Wilenski 1940): @events in @exposure
 * (samples, or seconds). Given their sum, the events of a are binomial. As R's poisson.test().
 * Events that come in bursts are not Poisson: then count runs, by Fisher.
 */
int count_poisson(uint64_t events_a, double exposure_a, uint64_t events_b, double exposure_b,
		  double confidence, struct count_test *ret_test);

/* Clopper-Pearson interval of a proportion. -EINVAL: hits > total, total 0. */
int count_proportion(uint64_t hits, uint64_t total, double confidence,
		     struct interval *ret_interval);

#endif
