/* SPDX-License-Identifier: MIT */
/* /proc/vmstat counts the reclaim of all groups: what a neighbour's shows is not the run's. */
#include "clean_run.h"

#include "ops.h"

#include "base/array.h"

/* Load that has pages to hold, and none that judge_pressure() would look at. */
static struct record *run_beside_thp(const char *variant)
{
	struct record *record = clean_run();

	set_text(&record->loads[1], "thp");
	set_text(&record->variant, variant);
	if (strcmp(variant, "mapping") == 0)
		set(record->load_stats, "gem.observed_unevictable_pages", PAGES);
	return record;
}

/* A v1 group that was left alone: its counters are there, and none moved. */
static void leave_alone(struct record *record)
{
	set(record->counters, "memcg.limit_hits", 0);
	set(record->counters, "memcg.workingset_refault_anon", 0);
	set(record->counters, "memcg.workingset_refault_file", 0);
	set(record->counters, "memcg.swap_rise_bytes", 0);
}

static void test_v1_neighbour_stands_in(void **state)
{
	static const char *const variants[] = {"stock", "mapping"};
	struct record *record;

	for (size_t i = 0; i < 2; i++) {
		expect(run_beside_thp(variants[i]), VERDICT_VALID, NULL);
		record = run_beside_thp(variants[i]);
		leave_alone(record);
		expect(record, VERDICT_INVALID,
		       "Δpgscan_anon 980000 is the machine's, a neighbour's reclaim; the group "
		       "itself was not reclaimed (limit hit 0 times");
	}
	/* and the advice is the one for a group that was not short */
	record = run_beside_thp("stock");
	leave_alone(record);
	expect(record, VERDICT_INVALID, "memory was not short; lower --limit");
}

/* Each sign by itself is one: the limit, swap, pages that came back. */
static void test_v1_signs(void **state)
{
	static const char *const signs[] = {"memcg.limit_hits", "memcg.workingset_refault_anon",
					    "memcg.workingset_refault_file",
					    "memcg.swap_rise_bytes"};
	struct record *record;

	for (size_t i = 0; i < ARRAY_SIZE(signs); i++) {
		record = run_beside_thp("stock");
		leave_alone(record);
		set(record->counters, signs[i], 40960);
		expect(record, VERDICT_VALID, NULL);
	}
	/* swap that shrank is no sign */
	record = run_beside_thp("stock");
	leave_alone(record);
	set(record->counters, "memcg.swap_rise_bytes", -40960);
	expect(record, VERDICT_INVALID, "a neighbour's reclaim");
	/* nothing known of the group: nothing is held against it */
	record = run_beside_thp("stock");
	json_object_del(record->counters, "memcg");
	expect(record, VERDICT_VALID, NULL);
	/* in machine scope the machine's counters are the run's */
	record = run_beside_thp("stock");
	set_text(&record->scope, "machine");
	leave_alone(record);
	expect(record, VERDICT_VALID, NULL);
}

/* v2 counts the pages that were scanned in the group. */
static void test_v2_is_exact(void **state)
{
	struct record *record = run_beside_thp("stock");

	leave_alone(record);
	set(record->counters, "memcg.pgscan", PAGES);
	expect(record, VERDICT_VALID, NULL);
	record = run_beside_thp("stock");
	set(record->counters, "memcg.pgscan", PAGES - 1);
	expect(record, VERDICT_INVALID, "once whole: Δpgscan_anon 262143 for 262144 pinned pages");
	record = run_beside_thp("stock");
	set(record->counters, "memcg.pgscan", 0);
	expect(record, VERDICT_INVALID, "a neighbour's reclaim");
}

static const struct claim *claim_of(const char *load, const char *name)
{
	const struct claim *claim = load_find(load)->claims;

	while (claim->name && strcmp(claim->name, name) != 0)
		claim++;
	assert_non_null(claim->name);
	return claim;
}

/* Of the machine's swap-outs some must be the group's. */
static void test_swap_of_a_neighbour(void **state)
{
	const struct claim *written = claim_of("swap", "swap is written");
	struct record *record = clean_run();

	set(record->counters, "memcg.workingset_refault_anon", 0);
	set(record->counters, "memcg.swap_rise_bytes", 4096.0 * 255);
	expect_with(record, written, VERDICT_INVALID,
		    "pswpout is 150000, but the run's own group shows 255");
	record = clean_run(); /* a steady swap: what goes out has come in */
	set(record->counters, "memcg.workingset_refault_anon", 256);
	set(record->counters, "memcg.swap_rise_bytes", -4096000);
	expect_with(record, written, VERDICT_VALID, NULL);
	record = clean_run(); /* a kernel that does not count refaults by kind cannot tell */
	set(record->counters, "memcg.swap_rise_bytes", 0);
	expect_with(record, written, VERDICT_VALID, NULL);
	record = clean_run(); /* where v2 counts it, it is what counts */
	set(record->counters, "memcg.pswpout", 3);
	set(record->counters, "memcg.workingset_refault_anon", 5000);
	set(record->counters, "memcg.swap_rise_bytes", 4096000);
	expect_with(record, written, VERDICT_INVALID, "own group shows 3");
}

/* Every claim of a load that rests on the machine's reclaim or swap asks the group as well. */
static void test_claims_name_their_own_witness(void **state)
{
	size_t found = 0;

	for (size_t i = 0; loads[i]; i++)
		for (const struct claim *claim = loads[i]->claims; claim && claim->name; claim++) {
			if (strstr(claim->witness, "vmstat.") == NULL ||
			    claim->test == CLAIM_RATIO_AT_LEAST)
				continue;
			found++;
			if (!claim->own)
				fail_msg("%s: %s rests on the machine's %s alone", loads[i]->name,
					 claim->name, claim->witness);
		}
	assert_true(found >= 3);
}

static void test_page_cache_of_a_neighbour(void **state)
{
	const struct claim *claim = claim_of("file-cache", "the page cache is under pressure");
	struct record *record = clean_run();

	set(record->counters, "vmstat.pgscan_file", 100000);
	expect_with(record, claim, VERDICT_VALID, NULL);
	record = clean_run();
	set(record->counters, "vmstat.pgscan_file", 100000);
	set(record->counters, "vmstat.pgscan_anon", 1000000);
	leave_alone(record);
	expect_with(record, claim, VERDICT_INVALID, /* of the held pages; the claim itself: */
		    "pgscan_file is 100000, but the run's own group shows 0");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_v1_neighbour_stands_in),
		cmocka_unit_test(test_v1_signs),
		cmocka_unit_test(test_v2_is_exact),
		cmocka_unit_test(test_swap_of_a_neighbour),
		cmocka_unit_test(test_claims_name_their_own_witness),
		cmocka_unit_test(test_page_cache_of_a_neighbour),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
