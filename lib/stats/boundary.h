/* SPDX-License-Identifier: MIT */
#ifndef STATS_BOUNDARY_H
#define STATS_BOUNDARY_H

#include <stddef.h>

/*
 * Boundary of a two-sided group sequential Mann-Whitney test with a look after every run an arm
 * from @first_look to @max_runs, spending alpha x sqrt(n / max_runs). ret_log_bound[n], n = 0 to
 * max_runs: the largest exact p (logarithm) that decides at look n, -INFINITY where none does.
 * @ret_spent (may be NULL): the chance of a false decision that the recursion arrives at. -ENOMEM.
 */
int boundary_compute(double alpha, size_t first_look, size_t max_runs, double *ret_log_bound,
		     double *ret_spent);

#endif
