/* SPDX-License-Identifier: MIT */
#include "stats/rank.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "stats/distribution.h"
#include "stats/interval.h"
#include "stats/placement.h"
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

/* Twice the midrank of every value, ascending. */
static void double_ranks(const double *a, size_t count_a, const double *b, size_t count_b,
			 int64_t *ranks)
{
	size_t i = 0, j = 0;

	while (i < count_a || j < count_b) {
		double value = j >= count_b || (i < count_a && a[i] <= b[j]) ? a[i] : b[j];
		size_t start = i + j, group;

		while (i < count_a && a[i] == value)
			i++;
		while (j < count_b && b[j] == value)
			j++;
		group = i + j - start;
		for (size_t k = 0; k < group; k++)
			ranks[start + k] = (int64_t)(2 * start + group + 1);
	}
}

static void normal_tails(double tie_term, struct rank_test *test)
{
	double n = (double)test->count_a, m = (double)test->count_b, total = n + m;
	double variance = n * m / 12 * (total + 1 - tie_term / (total * (total - 1)));
	double distance = test->u - n * m / 2, deviation = sqrt(variance);

	if (!(variance > n * m * 1e-12)) { /* all values are equal */
		test->log_p_greater = test->log_p_less = 0;
		return;
	}
	test->log_p_greater = normal_log_upper((distance - 0.5) / deviation);
	test->log_p_less = normal_log_upper((-distance - 0.5) / deviation);
}

static int exact_tails(const double *a, const double *b, struct rank_test *test)
{
	size_t count = test->count_a + test->count_b;
	int64_t *ranks = malloc(count * sizeof(*ranks)), n = (int64_t)test->count_a;
	int error;

	if (!ranks)
		return -ENOMEM;
	double_ranks(a, test->count_a, b, test->count_b, ranks);
	error = rank_exact_tails(ranks, count, test->count_a, (int64_t)(2 * test->u) + n * (n + 1),
				 &test->log_p_greater, &test->log_p_less);
	free(ranks);
	return error;
}

static int check_pair(const double *a, size_t count_a, const double *b, size_t count_b)
{
	return !count_a || !count_b || series_check(a, count_a, true) ||
			       series_check(b, count_b, true)
		       ? -EINVAL
		       : 0;
}

/* Of series that were checked and walked. */
static int test_order(enum rank_method method, const double *a, const double *b,
		      const struct merged_order *order, struct rank_test *test)
{
	double log_ways = fmin(order->log_ways_low, order->log_ways_high);
	size_t count = test->count_a + test->count_b;

	test->method = method;
	test->ties = order->tie_term > 0;
	test->u = (double)order->a.twice / 2;
	test->log_least_p = fmin(0, log(2) + log_ways - log_choose(count, test->count_a));
	if (method == RANK_EXACT) {
		int error = exact_tails(a, b, test);

		if (error)
			return error;
	} else {
		normal_tails(order->tie_term, test);
	}
	test->log_p_greater = fmin(test->log_p_greater, 0);
	test->log_p_less = fmin(test->log_p_less, 0);
	test->log_p = fmin(0, log(2) + fmin(test->log_p_greater, test->log_p_less));
	return 0;
}

static enum rank_method method_for(size_t count_a, size_t count_b)
{
	return count_a <= RANK_EXACT_MAX && count_b <= RANK_EXACT_MAX ? RANK_EXACT : RANK_NORMAL;
}

int rank_test_by(enum rank_method method, const double *sorted_a, size_t count_a,
		 const double *sorted_b, size_t count_b, struct rank_test *ret_test)
{
	struct rank_test test = {.count_a = count_a, .count_b = count_b};
	struct merged_order order;
	int error = check_pair(sorted_a, count_a, sorted_b, count_b);

	if (error)
		return error;
	if (method == RANK_EXACT && method_for(count_a, count_b) != RANK_EXACT)
		return -E2BIG;
	merged_order_walk(sorted_a, count_a, sorted_b, count_b, &order);
	error = test_order(method, sorted_a, sorted_b, &order, &test);
	if (!error)
		*ret_test = test;
	return error;
}

int rank_test(const double *sorted_a, size_t count_a, const double *sorted_b, size_t count_b,
	      struct rank_test *ret_test)
{
	return rank_test_by(method_for(count_a, count_b), sorted_a, count_a, sorted_b, count_b,
			    ret_test);
}

int rank_and_superiority(const double *sorted_a, size_t count_a, const double *sorted_b,
			 size_t count_b, double confidence, struct rank_test *ret_test,
			 struct interval *ret_interval)
{
	struct rank_test test = {.count_a = count_a, .count_b = count_b};
	struct merged_order order;
	int error = check_pair(sorted_a, count_a, sorted_b, count_b);

	if (error || !(confidence > 0 && confidence < 1))
		return -EINVAL;
	merged_order_walk(sorted_a, count_a, sorted_b, count_b, &order);
	error = test_order(method_for(count_a, count_b), sorted_a, sorted_b, &order, &test);
	if (error)
		return error;
	superiority_of_order(&order, count_a, count_b, confidence, ret_interval);
	*ret_test = test;
	return 0;
}
