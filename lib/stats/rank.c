/* SPDX-License-Identifier: MIT */
#include "stats/rank.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "stats/distribution.h"
#include "stats/rank_exact.h"
#include "stats/series.h"

const char *rank_method_name(enum rank_method method)
{
	return method == RANK_EXACT ? "exact" : "normal approximation";
}

double rank_log_least_p(size_t count_a, size_t count_b)
{
	if (!count_a || !count_b)
		return 0;
	return fmin(0, log(2) - log_choose(count_a + count_b, count_a));
}

size_t rank_fewest_runs(double alpha)
{
	size_t runs = 1;

	if (!(alpha > 0))
		return SIZE_MAX;
	/* The choose of lgamma is right to about 1e-14, so that equality is not missed. */
	while (rank_log_least_p(runs, runs) > log(alpha) + 1e-12)
		runs++;
	return runs;
}

/* What the merged order of two series says. */
struct ranking {
	int64_t double_sum_a; /* twice the sum of a's midranks */
	double tie_term;      /* sum over groups of equal values of t^3 - t */
	/* Ways in which a can hold the lowest, the highest places (a group of equal values may
	 * lie across the boundary), as logarithms. */
	double log_ways_low, log_ways_high;
	int64_t *double_ranks; /* when asked for: ascending, one a value; NULL else */
};

static void rank_merge(const double *a, size_t count_a, const double *b, size_t count_b,
		       struct ranking *ranking)
{
	size_t i = 0, j = 0;

	while (i < count_a || j < count_b) {
		double value = j >= count_b || (i < count_a && a[i] <= b[j]) ? a[i] : b[j];
		size_t start = i + j, from_a = i, group;
		int64_t double_rank;

		while (i < count_a && a[i] == value)
			i++;
		while (j < count_b && b[j] == value)
			j++;
		group = i + j - start;
		double_rank = (int64_t)(2 * start + group + 1);
		ranking->double_sum_a += double_rank * (int64_t)(i - from_a);
		if (group > 1)
			ranking->tie_term += (double)group * ((double)group * (double)group - 1);
		if (start < count_a && count_a < start + group)
			ranking->log_ways_low = log_choose(group, count_a - start);
		if (start < count_b && count_b < start + group)
			ranking->log_ways_high = log_choose(group, count_b - start);
		for (size_t k = 0; ranking->double_ranks && k < group; k++)
			ranking->double_ranks[start + k] = double_rank;
	}
}

static void normal_tails(const struct ranking *ranking, struct rank_test *test)
{
	double n = (double)test->count_a, m = (double)test->count_b, total = n + m;
	double variance = n * m / 12 * (total + 1 - ranking->tie_term / (total * (total - 1)));
	double distance = test->u - n * m / 2, deviation = sqrt(variance);

	if (!(variance > n * m * 1e-12)) { /* all values are equal */
		test->log_p = test->log_p_greater = test->log_p_less = 0;
		return;
	}
	test->log_p_greater = normal_log_upper((distance - 0.5) / deviation);
	test->log_p_less = normal_log_upper((-distance - 0.5) / deviation);
}

static int exact_tails(const double *a, const double *b, struct ranking *ranking,
		       struct rank_test *test)
{
	size_t count = test->count_a + test->count_b;
	int error;

	ranking->double_ranks = malloc(count * sizeof(*ranking->double_ranks));
	if (!ranking->double_ranks)
		return -ENOMEM;
	ranking->double_sum_a = 0;
	rank_merge(a, test->count_a, b, test->count_b, ranking);
	error = rank_exact_tails(ranking->double_ranks, count, test->count_a, ranking->double_sum_a,
				 &test->log_p_greater, &test->log_p_less);
	free(ranking->double_ranks);
	return error;
}

int rank_test_by(enum rank_method method, const double *sorted_a, size_t count_a,
		 const double *sorted_b, size_t count_b, struct rank_test *ret_test)
{
	struct rank_test test = {.count_a = count_a, .count_b = count_b, .method = method};
	struct ranking ranking = {0};
	double log_ways;

	if (!count_a || !count_b || series_check(sorted_a, count_a, true) ||
	    series_check(sorted_b, count_b, true))
		return -EINVAL;
	rank_merge(sorted_a, count_a, sorted_b, count_b, &ranking);
	test.ties = ranking.tie_term > 0;
	test.u = (double)(ranking.double_sum_a - (int64_t)count_a * ((int64_t)count_a + 1)) / 2;
	log_ways = fmin(ranking.log_ways_low, ranking.log_ways_high);
	test.log_least_p = fmin(0, log(2) + log_ways - log_choose(count_a + count_b, count_a));
	if (method == RANK_EXACT) {
		int error;

		if (count_a > RANK_EXACT_MAX || count_b > RANK_EXACT_MAX)
			return -E2BIG;
		ranking = (struct ranking){0};
		error = exact_tails(sorted_a, sorted_b, &ranking, &test);
		if (error)
			return error;
	} else {
		normal_tails(&ranking, &test);
	}
	test.log_p_greater = fmin(test.log_p_greater, 0);
	test.log_p_less = fmin(test.log_p_less, 0);
	test.log_p = fmin(0, log(2) + fmin(test.log_p_greater, test.log_p_less));
	*ret_test = test;
	return 0;
}

int rank_test(const double *sorted_a, size_t count_a, const double *sorted_b, size_t count_b,
	      struct rank_test *ret_test)
{
	bool exact = count_a <= RANK_EXACT_MAX && count_b <= RANK_EXACT_MAX;

	return rank_test_by(exact ? RANK_EXACT : RANK_NORMAL, sorted_a, count_a, sorted_b, count_b,
			    ret_test);
}
