/* SPDX-License-Identifier: MIT */
#ifndef STATS_RANK_EXACT_H
#define STATS_RANK_EXACT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Exact tails of the sum of @chosen scores drawn without replacement from @count scores
 * (@scores ascending, integers): the permutation distribution of a rank sum, ties and all.
 * Natural logarithms of P(sum >= @sum) and P(sum <= @sum), relative error about 1e-12 however
 * small. 1 <= chosen < count; @sum within reach. -ENOMEM.
 */
int rank_exact_tails(const int64_t *scores, size_t count, size_t chosen, int64_t sum,
		     double *ret_log_at_least, double *ret_log_at_most);

/*
 * Without ties: P(U <= u) for u = 0 to n x m, into an array of n x m + 1 that the caller frees.
 * For sizes up to about 60 a side (a recursion over all smaller sizes: Mann & Whitney 1947).
 */
int rank_null_distribution(size_t count_a, size_t count_b, double **ret_at_most);

#endif
