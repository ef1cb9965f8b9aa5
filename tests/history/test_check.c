/* SPDX-License-Identifier: MIT */
#include "noise.h"

#include <math.h>

#include "history/check.h"
#include "stats/sequential.h"

static double tip[120];
static const struct check_settings defaults = CHECK_SETTINGS_DEFAULT;

struct series {
	struct history_point points[4096];
	size_t count;
};

static void add_commit(struct series *series, struct random *random, uint32_t commit, int runs,
		       double factor, enum run_purpose purpose)
{
	for (int i = 0; i < runs; i++)
		series->points[series->count++] =
			(struct history_point){.commit = commit,
					       .state = RUN_VALID,
					       .purpose = (uint8_t)purpose,
					       .value = factor * tip[random_below(random, 120)]};
}

static void check(const struct series *series, bool higher, struct check_result *result)
{
	struct sequential *sequential;

	assert_int_equal(check_sequential(&defaults, &sequential), 0);
	assert_int_equal(
		check_points(series->points, series->count, &defaults, sequential, higher, result),
		0);
	sequential_free(sequential);
}

/* 1,000 series of 200 commits without change: at most 1% raise a suspicion (0.5% by design). */
static void null_series_stay_quiet(void **state)
{
	struct sequential *sequential;
	struct random random;
	int alarms = 0;

	assert_int_equal(check_sequential(&defaults, &sequential), 0);
	random_seed(&random, 8);
	for (int trial = 0; trial < 1000; trial++) {
		struct series series = {.count = 0};
		struct check_result result;

		for (uint32_t commit = 0; commit < 200; commit++)
			add_commit(&series, &random, commit, 7, 1, PURPOSE_HISTORY);
		assert_int_equal(check_points(series.points, series.count, &defaults, sequential,
					      false, &result),
				 0);
		alarms += result.count > 0;
		check_result_clear(&result);
	}
	sequential_free(sequential);
	print_message("%d of 1000 series without change raise a suspicion\n", alarms);
	assert_in_range(alarms, 0, 10);
}

struct outcome {
	int found, confirmed, located;
	size_t fresh;
};

/* A step after 200 commits, looked for after each new one until five lie after it; then fresh
 * runs of both sides by turns until they decide. */
static void one_step(struct random *random, const struct sequential *sequential, double factor,
		     struct outcome *outcome)
{
	struct series series = {.count = 0};
	struct check_result result;
	const struct check_change *last = NULL;

	for (uint32_t commit = 0; commit < 200; commit++)
		add_commit(&series, random, commit, 7, 1, PURPOSE_HISTORY);
	for (uint32_t commit = 200; commit < 205 && !last; commit++) {
		add_commit(&series, random, commit, 7, factor, PURPOSE_HISTORY);
		assert_int_equal(check_points(series.points, series.count, &defaults, sequential,
					      false, &result),
				 0);
		if (result.count && result.changes[result.count - 1].at >= 197)
			last = &result.changes[result.count - 1];
		else
			check_result_clear(&result);
	}
	if (!last)
		return;
	outcome->found++;
	outcome->located += last->last_good < 200 && last->first_bad >= 200;
	while (last->confirmation == CHECK_NEEDED && last->confirm_after < 40) {
		uint32_t good = last->last_good, bad = last->first_bad;

		add_commit(&series, random, good, 4, good >= 200 ? factor : 1, PURPOSE_CONFIRM);
		add_commit(&series, random, bad, 4, bad >= 200 ? factor : 1, PURPOSE_CONFIRM);
		check_result_clear(&result);
		assert_int_equal(check_points(series.points, series.count, &defaults, sequential,
					      false, &result),
				 0);
		last = &result.changes[result.count - 1];
	}
	outcome->confirmed += last->confirmation == CHECK_CONFIRMED && last->worse;
	outcome->fresh += last->confirm_after;
	check_result_clear(&result);
}

static void steps_are_found_and_confirmed(void **state)
{
	static const struct {
		double factor;
		int least_found, least_confirmed;
	} cases[] = {{1.5, 75, 65}, {2, 95, 95}};
	struct sequential *sequential;
	struct random random;

	assert_int_equal(check_sequential(&defaults, &sequential), 0);
	random_seed(&random, 21);
	for (size_t i = 0; i < 2; i++) {
		struct outcome outcome = {0};

		for (int trial = 0; trial < 100; trial++)
			one_step(&random, sequential, cases[i].factor, &outcome);
		print_message("x%g: of 100 found within 5 commits %d, range right %d, confirmed %d "
			      "with %.1f runs a side\n",
			      cases[i].factor, outcome.found, outcome.located, outcome.confirmed,
			      (double)outcome.fresh / outcome.found);
		assert_true(outcome.found >= cases[i].least_found);
		assert_true(outcome.confirmed >= cases[i].least_confirmed);
		assert_true(outcome.located >= 0.9 * outcome.found);
	}
	sequential_free(sequential);
}

/* Fresh runs without a difference refute what the history seemed to show. */
static void fresh_runs_refute(void **state)
{
	struct series series = {.count = 0};
	struct check_result result;
	struct random random;

	random_seed(&random, 5);
	for (uint32_t commit = 0; commit < 40; commit++)
		add_commit(&series, &random, commit, 7, commit < 20 ? 1 : 3, PURPOSE_HISTORY);
	check(&series, false, &result);
	assert_int_equal(result.count, 1);
	assert_int_equal(result.changes[0].at, 20);
	assert_int_equal(result.changes[0].confirmation, CHECK_NEEDED);
	assert_false(check_alarms(&result.changes[0], &defaults));
	check_result_clear(&result);
	add_commit(&series, &random, 10, 40, 1, PURPOSE_CONFIRM);
	add_commit(&series, &random, 30, 40, 1, PURPOSE_CONFIRM);
	check(&series, false, &result);
	assert_int_equal(result.changes[0].confirmation, CHECK_REFUTED);
	assert_false(check_alarms(&result.changes[0], &defaults));
	check_result_clear(&result);
}

static void better_is_no_alarm_and_a_mended_one_neither(void **state)
{
	struct series series = {.count = 0};
	struct check_result result;
	struct random random;

	random_seed(&random, 6);
	for (uint32_t commit = 0; commit < 100; commit++)
		add_commit(&series, &random, commit, 7, commit < 60 || commit >= 80 ? 1 : 4,
			   PURPOSE_HISTORY);
	check(&series, false, &result);
	assert_int_equal(result.count, 2);
	assert_true(result.changes[0].worse && result.changes[0].mended);
	assert_false(result.changes[1].worse);
	check_result_clear(&result);
	check(&series, true, &result); /* where higher is better, the other way round */
	assert_false(result.changes[0].worse);
	assert_true(result.changes[1].worse);
	check_result_clear(&result);
}

/* Invalid and failed runs are counted and count for nothing; odd values are no fault. */
static void edges(void **state)
{
	struct series series = {.count = 0};
	struct check_result result;
	struct random random;

	check(&series, false, &result);
	assert_int_equal(result.points, 0);
	assert_true(isnan(result.level));
	check_result_clear(&result);
	random_seed(&random, 7);
	for (uint32_t commit = 0; commit < 12; commit++)
		add_commit(&series, &random, commit, 5, 1, PURPOSE_HISTORY);
	series.points[series.count++] =
		(struct history_point){.commit = 12, .state = RUN_INVALID, .value = 1e9};
	series.points[series.count++] =
		(struct history_point){.commit = 12, .state = RUN_FAILED, .value = NAN};
	check(&series, false, &result);
	assert_int_equal(result.points, 12);
	assert_int_equal(result.invalid, 1);
	assert_int_equal(result.failed, 1);
	assert_true(result.newest_invalid);
	assert_int_equal(result.count, 0);
	check_result_clear(&result);
	for (size_t i = 0; i < series.count; i++) /* zero and below: no logarithms */
		series.points[i].value = i < 30 ? -5.0 : 5.0;
	check(&series, false, &result);
	assert_int_equal(result.count, 1);
	assert_true(isnan(result.changes[0].ratio.estimate));
	assert_true(result.changes[0].before == -5 && result.changes[0].after == 5);
	check_result_clear(&result);
}

static int load(void **state)
{
	return load_noise("tip-mean", tip, 120) != 120;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(null_series_stay_quiet),
		cmocka_unit_test(steps_are_found_and_confirmed),
		cmocka_unit_test(fresh_runs_refute),
		cmocka_unit_test(better_is_no_alarm_and_a_mended_one_neither),
		cmocka_unit_test(edges),
	};

	return cmocka_run_group_tests_name("history/check", tests, load, NULL);
}
