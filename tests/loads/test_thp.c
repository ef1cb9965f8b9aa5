/* SPDX-License-Identifier: MIT */
#include <sys/prctl.h>

#include "base/clock.h"
#include "loads/load_run.h"

static bool huge_pages_enabled(void)
{
	char word[32];

	return machine_read_choice("/sys/kernel/mm/transparent_hugepage/enabled", word,
				   sizeof(word)) == 0 &&
	       strcmp(word, "never") != 0;
}

static void window_is_bounded_by_default(void **state)
{
	const struct load_ops *thp = load_find("thp");
	struct load_settings settings = {.ops = thp, .in_memcg = true, .limit_bytes = 512 * MIB};

	assert_int_equal(thp->default_budget(&settings), 64 * MIB);
	settings.limit_bytes = 64 * 1024 * MIB;
	assert_int_equal(thp->default_budget(&settings), 256 * MIB);
}

static void huge_pages_are_consumed(void **state)
{
	struct load_settings settings = {
		.ops = load_find("thp"), .budget_bytes = 32 * MIB, .limit_bytes = 128 * MIB};
	struct load_run run;
	double hits, misses;

	run_prepare(&run, 128 * MIB, 0);
	if (!huge_pages_enabled())
		run_skip(&run, "transparent huge pages are set to never");
	assert_int_equal(run_start(&run, &settings, 20 * NS_PER_S, NULL), 0);
	run_measure(&run, NS_PER_S);
	run_show(&run);
	hits = run_stat(&run, "thp_hits");
	misses = run_stat(&run, "thp_misses");
	assert_true(hits + misses > 10);
	/* The kernel counts the same: others may add to it. */
	assert_true((double)run_delta(&run, "vmstat.thp_fault_alloc") >= hits * 0.95);
	assert_true(hits == 0 || run_level(&run, "memcg.usage_bytes") > (int64_t)(24 * MIB));
	assert_true(run_level(&run, "memcg.usage_bytes") < (int64_t)(64 * MIB));
	assert_true(run_stat(&run, "window_bytes") == 32 * MIB);
	run_end(&run);
	assert_true(run.stop_ns < NS_PER_S);
}

/* A process that may not have huge pages: every mapping is a miss, and none is called a hit. */
static int thp_without_huge_pages(struct load *load)
{
	prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
	return load_find("thp")->run(load);
}

static void misses_are_told_from_hits(void **state)
{
	struct load_ops ops = *load_find("thp");
	struct load_settings settings = {.ops = &ops, .budget_bytes = 8 * MIB};
	struct load_run run;

	ops.run = thp_without_huge_pages;
	run_prepare(&run, 128 * MIB, 0);
	assert_int_equal(run_start(&run, &settings, 20 * NS_PER_S, NULL), 0);
	run_measure(&run, NS_PER_S / 2);
	run_show(&run);
	assert_true(run_stat(&run, "thp_hits") == 0);
	assert_true(run_stat(&run, "thp_misses") > 1);
	run_end(&run);
}

static void rate_is_kept(void **state)
{
	struct load_settings settings = {
		.ops = load_find("thp"), .budget_bytes = 4 * MIB, .rate_per_s = 50};
	struct load_run run;

	run_prepare(&run, 128 * MIB, 0);
	assert_int_equal(run_start(&run, &settings, 10 * NS_PER_S, NULL), 0);
	run_measure(&run, NS_PER_S);
	assert_true(run_stat(&run, "ops_per_s") > 40 && run_stat(&run, "ops_per_s") < 60);
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(window_is_bounded_by_default),
		cmocka_unit_test(huge_pages_are_consumed),
		cmocka_unit_test(misses_are_told_from_hits),
		cmocka_unit_test(rate_is_kept),
	};

	return cmocka_run_group_tests_name("load thp", tests, NULL, NULL);
}
