/* SPDX-License-Identifier: MIT */
#ifndef STATS_PLAN_H
#define STATS_PLAN_H

#include <stddef.h>
#include <stdint.h>

/* How many runs does a question need? Answered by drawing experiments from pilot series. */
struct plan_question {
	double alpha, power; /* 0.01, 0.99 */
	double ratio;	     /* suppose a = ratio x b's runs; 0: a and b as the pilots are */
	double min_effect;   /* as in struct sequential_plan */
	size_t pairs;	     /* comparisons that share alpha, 1 and more */
	size_t max_runs;     /* of the sequential plan, and of the search; 2 to 500 */
	size_t simulations;  /* experiments drawn; 0: 2000, fewer when max_runs > 120 */
	uint64_t seed;
};

struct plan_answer {
	size_t fixed_runs;  /* runs an arm of a fixed design; 0: more than max_runs */
	double fixed_power; /* found at fixed_runs (at max_runs when that is 0) */
	size_t sequential_median, sequential_p90, sequential_p99; /* runs an arm until it stops */
	double sequential_mean;
	double sequential_power; /* share decided, in the pilots' direction */
	double sequential_wrong; /* share decided in the other direction */
	size_t least_runs;	 /* below this no data can decide at alpha */
};

/*
 * Pilots in any order; each wants at least 4 values (-ERANGE): a plan cannot know more than its
 * pilot. With ratio > 0 pilot_b alone is used. -EINVAL: a field out of range, values not finite,
 * ratio wanted of values that are zero or negative. Seconds of one CPU at most.
 */
int plan_runs(const struct plan_question *question, const double *pilot_a, size_t count_a,
	      const double *pilot_b, size_t count_b, struct plan_answer *ret_answer);

#endif
