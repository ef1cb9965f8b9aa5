/* SPDX-License-Identifier: MIT */
#include "loads/load_run.h"

#include "base/clock.h"

static void default_is_beyond_what_the_limit_leaves(void **state)
{
	const struct load_ops *swap = load_find("swap");
	struct load_settings settings = {.ops = swap, .in_memcg = true, .limit_bytes = 1000 * MIB};

	assert_int_equal(swap->default_budget(&settings) / MIB, 1400);
	settings.footprint_bytes = 500 * MIB;
	assert_int_equal(swap->default_budget(&settings) / MIB, 700);
}

static void swaps_and_scans_the_anonymous_lru(void **state)
{
	struct load_settings settings = {
		.ops = load_find("swap"), .budget_bytes = 96 * MIB, .limit_bytes = 64 * MIB};
	struct message message = {""};
	struct load_run run;
	int64_t swapped, stored, compressed;
	int error;

	run_prepare(&run, 64 * MIB, 256 * MIB);
	error = run_start(&run, &settings, 30 * NS_PER_S, &message);
	if (error < 0)
		print_message("# %s\n", message.text);
	assert_int_equal(error, 0);
	run_measure(&run, 2 * NS_PER_S);
	run_show(&run);
	swapped = run_delta(&run, "vmstat.pswpout");
	print_message("# swapped out %lld pages, scanned %lld anonymous\n", (long long)swapped,
		      (long long)run_delta(&run, "vmstat.pgscan_anon"));
	assert_true(swapped > 1024);
	if (run_level(&run, "vmstat.pgscan_anon") >= 0)
		assert_true(run_delta(&run, "vmstat.pgscan_anon") > 1024);
	assert_true(run_stat(&run, "working_set_pages") == 96 * 256);
	assert_true(run_stat(&run, "pages_touched") > 4096);
	/* Each turn reads in what the last one drove out. */
	assert_true(run_stat(&run, "major_faults") > run_stat(&run, "pages_touched") / 10);
	assert_true(run_level(&run, "memcg.usage_bytes") > (int64_t)(48 * MIB));

	/* Nothing of it is zero or easy: zram stores as much as it was given. */
	stored = run_level(&run, "zram.zram0.original_bytes");
	compressed = run_level(&run, "zram.zram0.compressed_bytes");
	print_message("# zram holds %lld bytes in %lld\n", (long long)stored,
		      (long long)compressed);
	if (stored > 0 && strcmp(run.swap.device, "zram0") == 0)
		assert_true((double)compressed > 0.95 * (double)stored);
	run_end(&run);
	assert_true(run.stop_ns < 3 * NS_PER_S);
}

static void rate_is_kept(void **state)
{
	struct load_settings settings = {
		.ops = load_find("swap"), .budget_bytes = 8 * MIB, .rate_per_s = 1000};
	struct load_run run;

	run_prepare(&run, 64 * MIB, 0);
	assert_int_equal(run_start(&run, &settings, 10 * NS_PER_S, NULL), 0);
	run_measure(&run, NS_PER_S);
	assert_true(run_stat(&run, "ops_per_s") > 900 && run_stat(&run, "ops_per_s") < 1100);
	run_end(&run);
}

static void without_swap_it_says_so_at_once(void **state)
{
	struct load_settings settings = {
		.ops = load_find("swap"), .budget_bytes = 96 * MIB, .limit_bytes = 64 * MIB};
	struct message message = {""};
	uint64_t total, available;
	struct load_run run;
	int64_t begin_ns;

	run_prepare(&run, 64 * MIB, 0);
	if (swap_total(&total, &available) < 0 || available > 32 * MIB)
		run_skip(&run, "this machine has swap");
	begin_ns = clock_now_ns();
	assert_int_equal(run_start(&run, &settings, 30 * NS_PER_S, &message), -ENOTSUP);
	assert_true(clock_now_ns() - begin_ns < 5 * NS_PER_S);
	assert_non_null(strstr(message.text, "--swap zram:SIZE"));
	run_end(&run);
}

static void a_size_below_a_page_is_refused(void **state)
{
	struct load_settings settings = {.ops = load_find("swap"), .budget_bytes = 100};
	struct message message = {""};
	struct load_run run;

	run_prepare(&run, 0, 0);
	assert_int_equal(run_start(&run, &settings, 5 * NS_PER_S, &message), -EINVAL);
	assert_non_null(strstr(message.text, "page"));
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(default_is_beyond_what_the_limit_leaves),
		cmocka_unit_test(swaps_and_scans_the_anonymous_lru),
		cmocka_unit_test(rate_is_kept),
		cmocka_unit_test(without_swap_it_says_so_at_once),
		cmocka_unit_test(a_size_below_a_page_is_refused),
	};

	return cmocka_run_group_tests_name("load swap", tests, NULL, NULL);
}
