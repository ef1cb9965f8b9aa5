/* SPDX-License-Identifier: MIT */
#ifndef STATS_RANK_H
#define STATS_RANK_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Mann-Whitney (Wilcoxon rank sum) test of two independent series: does a value of a tend to be
 * greater than one of b? Ties count half.
 */
enum rank_method {
	RANK_EXACT,  /* the permutation distribution of the midranks, ties included */
	RANK_NORMAL, /* normal approximation, variance corrected for ties, continuity 1/2 */
};

struct rank_test {
	size_t count_a, count_b;
	bool ties; /* equal values across or within the series */
	enum rank_method method;
	double u; /* pairs (x of a, y of b) with x > y, plus half of those with x = y */
	/* Natural logarithms of p, so that 1e-300 and below keep their digits; never above 0. */
	double log_p;	      /* two-sided: twice the smaller tail, at most 1 */
	double log_p_greater; /* one-sided: a tends to be greater */
	double log_p_less;
	double log_least_p; /* smallest two-sided p that sizes (and ties) allow */
};

/* The largest series for which rank_test() is exact; both must be at most this. */
#define RANK_EXACT_MAX 500

/*
 * Both series ascending (series_sort). Exact up to RANK_EXACT_MAX a side, beyond it the normal
 * approximation; @ret_test->method says which. -EINVAL: empty, not finite, not ascending;
 * -ENOMEM. All values equal: p = 1.
 */
int rank_test(const double *sorted_a, size_t count_a, const double *sorted_b, size_t count_b,
	      struct rank_test *ret_test);

/* The same, by the method given (RANK_EXACT: -E2BIG above RANK_EXACT_MAX a side). */
int rank_test_by(enum rank_method method, const double *sorted_a, size_t count_a,
		 const double *sorted_b, size_t count_b, struct rank_test *ret_test);

/* Two-sided least attainable p without ties, 2 / C(n + m, n), as a logarithm; 0 when one is 0. */
double rank_log_least_p(size_t count_a, size_t count_b);

/* Fewest runs a side (equal sizes) whose least attainable p is at or below @alpha. */
size_t rank_fewest_runs(double alpha);

/* "exact", "normal approximation" */
const char *rank_method_name(enum rank_method method);

#endif
