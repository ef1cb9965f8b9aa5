/* SPDX-License-Identifier: MIT */
#include "clean_run.h"

static void test_clean_run(void **state)
{
	expect(clean_run(), VERDICT_VALID, NULL);
}

static void test_empty_record(void **state)
{
	expect(record_new("x"), VERDICT_VALID, NULL);
}

static void test_no_swap(void **state)
{
	struct record *record = clean_run();

	set(record->counters, "vmstat.pgscan_anon", 0);
	set(record->counters, "vmstat.pswpout", 0);
	set(record->counters, "swap.total_bytes", 0);
	set(record->counters, "swap.used_bytes", 0);
	expect(record, VERDICT_INVALID, "there is no swap");
}

static void test_page_cache_shields_anon(void **state)
{
	struct record *record = clean_run();

	set(record->counters, "vmstat.pgscan_anon", 0);
	set(record->counters, "vmstat.pgscan_file", 500000);
	expect(record, VERDICT_INVALID,
	       "Δpgscan_anon 0 for 262144 pinned pages; page cache shielded them");
	/* a few pages are no proof either, whatever the variant */
	record = clean_run();
	set_text(&record->variant, "mapping");
	set(record->load_stats, "gem.observed_unevictable_pages", PAGES);
	set(record->counters, "vmstat.pgscan_anon", 9000);
	set(record->counters, "vmstat.pgscan_file", 500000);
	expect(record, VERDICT_INVALID, "hardly scanned");
}

static void test_stock_needs_one_whole_pass(void **state)
{
	struct record *record = clean_run();

	set(record->counters, "vmstat.pgscan_anon", PAGES - 1);
	expect(record, VERDICT_INVALID, "once whole");
	record = clean_run();
	set(record->counters, "vmstat.pgscan_anon", PAGES);
	expect(record, VERDICT_VALID, NULL);
}

/* The seed's own trouble: the plain call on a machine with plenty of memory. */
static void test_nothing_presses(void **state)
{
	struct record *record = clean_run();

	set_text(&record->scope, "machine");
	set_text(&record->loads[1], "file-cache");
	set(record->settings, "footprint_bytes", 0);
	set(record->counters, "vmstat.pgscan_anon", 0);
	set(record->counters, "vmstat.pgscan_file", 0);
	set(record->counters, "vmstat.pswpout", 0);
	expect(record, VERDICT_INVALID, "memory was not short");
	/* GEM load alone claims nothing about reclaim */
	record = clean_run();
	free(record->loads[1]);
	record->loads[1] = NULL;
	set(record->settings, "footprint_bytes", 0);
	set(record->counters, "vmstat.pgscan_anon", 0);
	set(record->counters, "vmstat.pswpout", 0);
	expect(record, VERDICT_VALID, NULL);
}

static void test_kernel_without_pgscan_anon(void **state)
{
	struct record *record = clean_run();

	set(record->counters, "vmstat.pgscan_anon", NAN);
	set(record->counters, "vmstat.pgscan_file", NAN);
	expect(record, VERDICT_VALID, "not provable here: that the anon lists were scanned whole");
	record = clean_run();
	set(record->counters, "vmstat.pgscan_anon", NAN);
	set(record->counters, "vmstat.pswpout", 0);
	set(record->counters, "vmstat.swpout_zero", NAN);
	expect(record, VERDICT_VALID, "nothing was swapped out");
	record = clean_run();
	set(record->counters, "vmstat.pgscan_anon", NAN);
	set(record->counters, "vmstat.pswpout", 0);
	set(record->counters, "vmstat.swpout_zero", 0);
	set(record->counters, "swap.total_bytes", 0);
	expect(record, VERDICT_INVALID, "there is no swap");
}

static void test_multi_generational_lru(void **state)
{
	struct record *record = clean_run();

	json_object_set_new(record->environment, "mglru", json_string("0x0007"));
	set(record->counters, "vmstat.pgscan_anon", 5000);
	expect(record, VERDICT_VALID, "not provable here: that the pinned pages were scanned once");
	record = clean_run(); /* built in, but off: the counters mean what they always meant */
	json_object_set_new(record->environment, "mglru", json_string("0x0000"));
	set(record->counters, "vmstat.pgscan_anon", 5000);
	expect(record, VERDICT_INVALID, "once whole");
}

static void mislabel(const char *variant, double unevictable, double mlocked, enum verdict verdict,
		     const char *reason)
{
	struct record *record = clean_run();

	set_text(&record->variant, variant);
	set(record->load_stats, "gem.observed_unevictable_pages", unevictable);
	set(record->load_stats, "gem.observed_mlock_pages", mlocked);
	expect(record, verdict, reason);
}

static void test_variant_labels(void **state)
{
	mislabel("stock", 0, 0, VERDICT_VALID, NULL);
	mislabel("mapping", PAGES, 100, VERDICT_VALID, NULL);
	mislabel("mlock", PAGES, PAGES, VERDICT_VALID, NULL);
	/* every wrong label, and what the pages really are */
	mislabel("stock", PAGES, 0, VERDICT_INVALID, "as with mapping");
	mislabel("stock", PAGES, PAGES, VERDICT_INVALID, "they are mlocked");
	mislabel("mapping", 0, 0, VERDICT_INVALID, "as with stock");
	mislabel("mapping", PAGES, PAGES, VERDICT_INVALID, "they are mlocked");
	mislabel("mlock", 0, 0, VERDICT_INVALID, "as with stock");
	mislabel("mlock", PAGES, 0, VERDICT_INVALID, "without mlock, as with mapping");
	/* the other processes' locked pages do not matter */
	mislabel("stock", 3000, 3000, VERDICT_VALID, NULL);
	mislabel("mapping", PAGES + 9000, 9000, VERDICT_VALID, NULL);
}

/* A driver that takes pages off the LRU when reclaim meets them: the whole run is the witness. */
static void test_variant_seen_late(void **state)
{
	struct record *record = clean_run();

	set_text(&record->variant, "mapping");
	json_object_set_new(record->counters, "risen_since_before_loads",
			    parse("{\"nr_unevictable\": 261000, \"nr_mlock\": 2000}"));
	expect(record, VERDICT_VALID, NULL);
	/* without the load's own look: the series' peak above its start */
	record = clean_run();
	set_text(&record->variant, "mapping");
	set(record->load_stats, "gem.observed_pages", NAN);
	json_object_set_new(
		record->counters, "series",
		parse("{\"nr_unevictable\": [5000, 266000, null, 5000], \"nr_mlock\": [1]}"));
	expect(record, VERDICT_VALID, NULL);
	record = clean_run();
	set(record->load_stats, "gem.observed_pages", NAN);
	json_object_set_new(record->counters, "risen_since_before_loads",
			    parse("{\"nr_unevictable\": 262200, \"nr_mlock\": 100}"));
	expect(record, VERDICT_INVALID, "as with mapping");
}

static void test_variant_too_small_to_see(void **state)
{
	struct record *record = clean_run();

	record->pinned_bytes = 8 << 20;
	set(record->settings, "footprint_bytes", 8 << 20);
	set(record->load_stats, "gem.observed_pages", 2048);
	set(record->load_stats, "gem.observed_unevictable_pages", 2048);
	expect(record, VERDICT_VALID, "too little to see");
}

static void test_footprint_not_pinned(void **state)
{
	struct record *record = clean_run();

	record->pinned_bytes = 512 << 20;
	expect(record, VERDICT_INVALID, "the footprint was not pinned: 512 MiB of the 1024 MiB");
	record = clean_run();
	record->pinned_bytes = -1;
	expect(record, VERDICT_INVALID, "the footprint was not pinned: 0 MiB");
}

static struct record *baseline(void)
{
	struct record *record = clean_run();

	set_text(&record->variant, "baseline");
	set_text(&record->loads[0], "null");
	record->pinned_bytes = 0; /* settings keep the footprint that every arm was asked for */
	set(record->counters, "limit_set_bytes", 1073741824);
	return record;
}

static void test_baseline(void **state)
{
	struct record *record = baseline();

	expect(record, VERDICT_VALID, NULL);
	record = baseline();
	record->pinned_bytes = 64 << 20;
	expect(record, VERDICT_INVALID, "the baseline held 64 MiB pinned");
	/* the same pressure as the others: its anon lists are scanned too */
	record = baseline();
	set(record->counters, "vmstat.pgscan_anon", 0);
	expect(record, VERDICT_INVALID, "the anon lists were not scanned");
	record = baseline();
	set(record->counters, "memcg.limit_hits", 0);
	expect(record, VERDICT_INVALID, "limit was never reached");
}

static void test_scopes_and_groups(void **state)
{
	struct record *record = clean_run();

	set(record->counters, "memcg.limit_hits", 0);
	expect(record, VERDICT_INVALID, "limit was never reached");
	/* no group's counters (neither v1 nor v2 readable) */
	record = clean_run();
	json_object_del(record->counters, "memcg");
	expect(record, VERDICT_VALID, "not provable here: that the group was at its limit");
	/* the machine as scope: there is no group to ask */
	record = clean_run();
	set_text(&record->scope, "machine");
	json_object_del(record->counters, "memcg");
	expect(record, VERDICT_VALID, NULL);
}

static void test_zero_pages_and_full_swap(void **state)
{
	struct record *record = clean_run();

	set(record->counters, "vmstat.swpout_zero", 100000);
	expect(record, VERDICT_INVALID, "held zeros");
	record = clean_run();
	set(record->counters, "swap.used_bytes", 4294967296.0 - 4096);
	expect(record, VERDICT_SUSPECT, "the swap was full");
}

static struct record *huge_page_run(double hits, double misses)
{
	struct record *record = clean_run();

	set_text(&record->measure, "thp");
	set(record->counters, "sampler.thp_hits", hits);
	set(record->counters, "sampler.thp_misses", misses);
	record->per_cpu[0].minflt = 5000; /* faults are what this measure times */
	return record;
}

static void test_huge_pages(void **state)
{
	struct record *record;

	expect(huge_page_run(95, 5), VERDICT_VALID, NULL);
	expect(huge_page_run(80, 20), VERDICT_SUSPECT, "80 of 100 samples (80.0%)");
	expect(huge_page_run(40, 60), VERDICT_INVALID, "512 small ones");
	record = huge_page_run(0, 100);
	json_object_set_new(json_object_get(record->environment, "thp"), "enabled",
			    json_string("never"));
	expect(record, VERDICT_INVALID, "echo madvise >");
	/* from the machine's counters when the threads' own are not there */
	record = huge_page_run(0, 0);
	json_object_del(record->counters, "sampler");
	set(record->counters, "vmstat.thp_fault_alloc", 10);
	set(record->counters, "vmstat.thp_fault_fallback", 90);
	expect(record, VERDICT_INVALID, "10 of 100 samples");
	record = huge_page_run(0, 0);
	json_object_del(record->counters, "sampler");
	expect(record, VERDICT_VALID, "not provable here: that the samples were huge pages");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clean_run),
		cmocka_unit_test(test_empty_record),
		cmocka_unit_test(test_no_swap),
		cmocka_unit_test(test_page_cache_shields_anon),
		cmocka_unit_test(test_stock_needs_one_whole_pass),
		cmocka_unit_test(test_nothing_presses),
		cmocka_unit_test(test_kernel_without_pgscan_anon),
		cmocka_unit_test(test_multi_generational_lru),
		cmocka_unit_test(test_variant_labels),
		cmocka_unit_test(test_variant_seen_late),
		cmocka_unit_test(test_variant_too_small_to_see),
		cmocka_unit_test(test_footprint_not_pinned),
		cmocka_unit_test(test_baseline),
		cmocka_unit_test(test_scopes_and_groups),
		cmocka_unit_test(test_zero_pages_and_full_swap),
		cmocka_unit_test(test_huge_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
