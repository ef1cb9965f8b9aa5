/* SPDX-License-Identifier: MIT */
#include "loads/load_run.h"

#include "base/clock.h"

static void rate_is_kept(void **state)
{
	struct load_settings settings = {.ops = load_find("null"), .rate_per_s = 200};
	struct load_run run;

	run_prepare(&run, 0, 0);
	assert_int_equal(run_start(&run, &settings, NS_PER_S, NULL), 0);
	run_measure(&run, NS_PER_S);
	run_show(&run);
	assert_true(run_stat(&run, "ops_per_s") > 180 && run_stat(&run, "ops_per_s") < 220);
	assert_true(run_stat(&run, "offered_per_s") == 200);
	assert_true(run_stat(&run, "bytes") == 0);
	run_end(&run);
	assert_false(run.process.died);
	assert_true(run.stop_ns < 500 * NS_PER_MS);
}

static void without_a_rate_none_was_offered(void **state)
{
	struct load_settings settings = {.ops = load_find("null")};
	struct load_run run;

	run_prepare(&run, 0, 0);
	assert_int_equal(run_start(&run, &settings, NS_PER_S, NULL), 0);
	run_measure(&run, NS_PER_S / 2);
	assert_true(json_is_null(json_object_get(run.stats, "offered_per_s")));
	assert_true(run_stat(&run, "ops") > 100);
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rate_is_kept),
		cmocka_unit_test(without_a_rate_none_was_offered),
	};

	return cmocka_run_group_tests_name("load null", tests, NULL, NULL);
}
