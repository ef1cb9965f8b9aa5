/* SPDX-License-Identifier: MIT */
/* Do the runs of a row say whether another set would give the same? With planted spread and drift.
 */
#include "support/testing.h"

#include <math.h>

#include "base/random.h"
#include "collapse/judge.h"

#define ROW 3
#define RUNS 5

static const struct metric_kind passes = {"walked_passes", "full passes", "passes", true};
static const struct metric_kind call = {"walked_2M_p50_ns", "2M per call, p50", "ns", false};
static const struct metric_kind tail = {"walked_2M_p99_ns", "2M per call, p99", "ns", false};
static const struct metric_kind fast = {"walked_" REFERENCE_FAST_METRIC, "fastest", "ns", false};
static const struct metric_kind reference = {"walked_" REFERENCE_METRIC, "fixed work", "ns", false};

static void add(struct metric_table *table, const struct metric_kind *kind, unsigned int row,
		const double *values, unsigned int count)
{
	for (unsigned int run = 0; run < count; run++) {
		table->group = COLLAPSE_GROUP(run, row);
		metric_table_add(table, kind, values[run]);
	}
	assert_false(table->failed);
}

static const double steady[RUNS] = {100, 104, 97, 99, 101};
static const double steady_reference[RUNS] = {60, 61, 60, 59, 60};

static void runs_that_agree(void **state)
{
	struct message why = {""};
	struct metric_table table = {0};

	add(&table, &passes, ROW, steady, RUNS);
	add(&table, &reference, ROW, steady_reference, RUNS);
	assert_true(collapse_runs_agree(&table, ROW, "walked", true, &why));
	metric_table_free(&table);
}

static void a_planted_spread_is_told_with_what_the_reference_says(void **state)
{
	const double spread[RUNS] = {100, 124, 98, 99, 101}, drift[RUNS] = {60, 72, 60, 59, 60};
	struct message why = {""};
	struct metric_table table = {0};

	add(&table, &passes, ROW, steady, RUNS);
	add(&table, &call, ROW, spread, RUNS);
	add(&table, &reference, ROW, steady_reference, RUNS);
	assert_false(collapse_runs_agree(&table, ROW, "walked", true, &why));
	assert_non_null(strstr(why.text, "row walked: its runs differ by 26%"));
	assert_non_null(strstr(why.text, "2M per call, p50"));
	assert_non_null(strstr(why.text, "fixed work beside them by 3%"));
	assert_non_null(strstr(why.text, "not this machine's speed"));
	metric_table_free(&table);

	add(&table, &call, ROW, spread, RUNS);
	add(&table, &reference, ROW, drift, RUNS);
	assert_false(collapse_runs_agree(&table, ROW, "walked", true, &why));
	assert_non_null(strstr(why.text, "fixed work beside them by 22%"));
	assert_non_null(strstr(why.text, "changed its speed"));
	metric_table_free(&table);
}

static void drift_of_the_reference_alone_is_enough(void **state)
{
	const double drift[RUNS] = {60, 61, 60, 75, 74};
	struct message why = {""};
	struct metric_table table = {0};

	add(&table, &passes, ROW, steady, RUNS);
	add(&table, &reference, ROW, drift, RUNS);
	assert_false(collapse_runs_agree(&table, ROW, "walked", true, &why));
	assert_non_null(strstr(why.text, "fixed work beside its runs differs by 25%"));
	/* Not where the row's own work may be what slows it down. */
	assert_true(collapse_runs_agree(&table, ROW, "walked", false, &why));
	metric_table_free(&table);
}

/* Five runs on a host that is busy for four fifths of the time agree, and yet are too slow. */
static void a_machine_that_was_mostly_slow_is_told(void **state)
{
	const double slow[RUNS] = {80, 81, 80, 79, 80}, at_times[RUNS] = {79, 78, 61, 79, 60};
	struct message why = {""};
	struct metric_table table = {0};

	add(&table, &passes, ROW, steady, RUNS);
	add(&table, &reference, ROW, slow, RUNS);
	add(&table, &fast, ROW, at_times, RUNS);
	assert_false(collapse_runs_agree(&table, ROW, "walked", true, &why));
	assert_non_null(strstr(why.text, "took 33% longer than when it was fastest"));
	assert_true(collapse_runs_agree(&table, ROW, "walked", false, &why));
	metric_table_free(&table);

	add(&table, &passes, ROW, steady, RUNS);
	add(&table, &reference, ROW, steady_reference, RUNS);
	add(&table, &fast, ROW, (const double[]){58, 57, 58, 56, 58}, RUNS);
	assert_true(collapse_runs_agree(&table, ROW, "walked", true, &why));
	metric_table_free(&table);
}

static void only_what_counts_is_judged(void **state)
{
	const double wild[RUNS] = {1, 100, 3, 700, 2};
	struct message why = {""};
	struct metric_table table = {0};

	/* Another row's numbers, the first of which has a name that begins like ours. */
	add(&table, &passes, ROW, steady, RUNS);
	add(&table, &call, ROW + 1, wild, RUNS);
	assert_true(collapse_runs_agree(&table, ROW, "walked", true, &why));
	assert_false(collapse_runs_agree(&table, ROW + 1, "other", true, &why));
	/* Tails spread more than medians, and are no row of the table. */
	add(&table, &tail, ROW, wild, RUNS);
	assert_true(collapse_runs_agree(&table, ROW, "walked", true, &why));
	metric_table_free(&table);

	/* What was left out is told already. */
	const double one_off[RUNS] = {100, 104, 300, 99, 101};

	add(&table, &passes, ROW, one_off, RUNS);
	assert_false(collapse_runs_agree(&table, ROW, "walked", true, &why));
	metric_table_leave_out(&table, COLLAPSE_GROUP(2, ROW));
	assert_true(collapse_runs_agree(&table, ROW, "walked", true, &why));
	metric_table_free(&table);

	/* Two runs say nothing about a third. */
	add(&table, &passes, ROW, wild, 2);
	assert_true(collapse_runs_agree(&table, ROW, "walked", true, &why));
	metric_table_free(&table);
}

/* --- two sets of five --- */

static double normal(struct random *random)
{
	double u = random_unit(random), v = random_unit(random);

	return sqrt(-2 * log(1 - u)) * cos(2 * M_PI * v);
}

/* A set of runs that scatter by @sigma; its median, and whether it says that it can be trusted. */
static double one_set(struct random *random, double sigma, bool *ret_agrees)
{
	struct metric_table table = {0};
	struct message why = {""};
	double values[RUNS], *sorted, median;
	size_t count;

	for (int i = 0; i < RUNS; i++)
		values[i] = 100 * exp(sigma * normal(random));
	add(&table, &passes, ROW, values, RUNS);
	sorted = metric_series_sorted(&table.series[0], &count);
	assert_int_equal(count, RUNS);
	median = sorted[RUNS / 2];
	free(sorted);
	*ret_agrees = collapse_runs_agree(&table, ROW, "walked", true, &why);
	metric_table_free(&table);
	return median;
}

static void two_sets_agree_or_one_says_suspect(void **state)
{
	enum { PAIRS = 5000 };
	struct random random;

	random_seed(&random, 6);
	for (double sigma = 0.01; sigma < 0.5; sigma *= 1.5) {
		int silent = 0, suspect = 0;

		for (int i = 0; i < PAIRS; i++) {
			bool agrees[2];
			double one = one_set(&random, sigma, &agrees[0]);
			double other = one_set(&random, sigma, &agrees[1]);

			silent += agrees[0] && agrees[1] && fabs(log(one / other)) > log(1.2);
			suspect += !agrees[0];
		}
		assert_true(silent < PAIRS / 100);
		if (sigma < 0.04) /* a steady machine is not doubted */
			assert_true(suspect < PAIRS / 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_that_agree),
		cmocka_unit_test(a_planted_spread_is_told_with_what_the_reference_says),
		cmocka_unit_test(drift_of_the_reference_alone_is_enough),
		cmocka_unit_test(a_machine_that_was_mostly_slow_is_told),
		cmocka_unit_test(only_what_counts_is_judged),
		cmocka_unit_test(two_sets_agree_or_one_says_suspect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
