/* SPDX-License-Identifier: MIT */
#ifndef STATS_SEQUENTIAL_H
#define STATS_SEQUENTIAL_H

#include <stdbool.h>
#include <stddef.h>

#include "stats/interval.h"

/*
 * Stopping an experiment as soon as its question is answered, with the error of the whole
 * experiment kept. After each block a pair is decided when its exact Mann-Whitney p is at or
 * below the boundary of that look. The boundary spends alpha x sqrt(n / N) by look n of N
 * (Lan & DeMets 1983; Brownian recursion of Armitage, McPherson & Rowe 1969), with what an exact
 * p at small n really attains; alpha is split over the pairs that are still open (Holm's way in
 * group sequential trials: Maurer & Bretz 2013). Skipping a look is safe, adding one is not.
 */
struct sequential_plan {
	double alpha;	   /* chance of any false decision in the whole experiment */
	size_t pairs;	   /* comparisons in the family, 1 to 64 */
	size_t max_runs;   /* N: blocks (runs an arm) at most, 2 to 500; fixed beforehand */
	size_t first_look; /* blocks before the first look; 0: 5 */
	double min_effect; /* a decision also needs an estimated ratio beyond 1 + this (or below
			    * 1 / (1 + this)); 0: any. Shifts (no ratio): not asked. */
	size_t approximate_above; /* for planning only: looks at more runs than this go by the
				   * normal p, which is the larger one; 0: every decision is exact
				   */
};

struct sequential;

/* -EINVAL: a field out of range. The caller frees with sequential_free() (NULL is well). */
int sequential_new(const struct sequential_plan *plan, struct sequential **ret_sequential);
void sequential_free(struct sequential *sequential);

/*
 * Boundary (two-sided p, natural logarithm) for a look at @runs an arm with @open pairs still
 * undecided, this one among them. -INFINITY: no decision is possible at this look.
 */
double sequential_log_boundary(const struct sequential *sequential, size_t open, size_t runs);

enum sequential_verdict {
	SEQUENTIAL_UNDECIDED,
	SEQUENTIAL_SLOWER, /* a greater than b */
	SEQUENTIAL_FASTER,
};

struct sequential_look {
	enum sequential_verdict verdict;
	size_t runs;		    /* per arm; of unequal arms 2nm/(n+m), rounded down */
	size_t open;		    /* pairs that shared alpha at this look */
	double log_p, log_boundary; /* two-sided p of this look, and the bound it is held to */
	enum rank_method method;    /* of log_p: RANK_NORMAL where that shows already that this look
				     * cannot decide; see approximate_above */
	double log_least_p;	    /* above log_boundary: no data could decide at this look */
	double ratio;		    /* Hodges-Lehmann, NaN if there is none */
	bool small_effect;	    /* p is at or below the boundary, the effect below min_effect */
};

/* One pair of arms; series in order of time, one value a block, lost runs left out. */
struct sequential_pair {
	const double *a, *b;
	size_t count_a, count_b;
	bool decided;		     /* in and out: set once decided, then left as it is */
	struct sequential_look look; /* out: the latest look */
};

/*
 * The look after a block, over the whole family: decides what can be decided, hands the alpha
 * of decided pairs to the open ones, and looks again until nothing changes. Pairs whose arms were
 * dropped keep decided = true and are not read. The number of pairs is the plan's. ret_decided:
 * pairs decided so far. Before first_look: undecided, log_boundary -INFINITY. -EINVAL: not finite,
 * more runs than max_runs, @count not the plan's.
 */
int sequential_look_all(const struct sequential *sequential, struct sequential_pair *pairs,
			size_t count, size_t *ret_decided);

/* One pair by itself with @open pairs sharing alpha. */
int sequential_look(const struct sequential *sequential, size_t open, const double *a,
		    size_t count_a, const double *b, size_t count_b,
		    struct sequential_look *ret_look);

const char *sequential_verdict_name(enum sequential_verdict verdict); /* "slower", ... */

/*
 * Another rule, "--target-ci 5%": enough is measured when half the width of the interval is at most
 * @target x |estimate|. It stops on precision, never on an outcome, and claims no difference.
 * false while a bound is NaN.
 */
bool interval_precise(const struct interval *interval, double target);

#endif
