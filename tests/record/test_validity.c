/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <math.h>

#include "base/json.h"
#include "record/claim.h"
#include "record/record.h"

/* A clean run of the quick matrix: 1 GiB held as "stock" under 2 GiB beside the swap load. */
#define PAGES 262144

static json_t *parse(const char *text)
{
	json_error_t error;
	json_t *value = json_loads(text, 0, &error);

	if (!value)
		fail_msg("%s at column %d", error.text, error.column);
	return value;
}

static struct record *clean_run(void)
{
	struct record *record = record_new("gem_syslatency");

	record->measure = strdup("wakeup");
	record->variant = strdup("stock");
	record->backend = strdup("shm");
	record->scope = strdup("memcg");
	record->loads = calloc(3, sizeof(char *));
	record->loads[0] = strdup("gem");
	record->loads[1] = strdup("swap");
	record->duration_s = 4;
	record->has_latency = true;
	record->latency.count = 13000;
	record->pinned_bytes = INT64_C(1) << 30;
	record->throttle_gaps = record->throttle_total_us = 0;
	record->per_cpu_count = 2;
	record->per_cpu = calloc(2, sizeof(*record->per_cpu));
	for (int cpu = 0; cpu < 2; cpu++)
		record->per_cpu[cpu] = (struct record_cpu){.cpu = cpu,
							   .count = 6500,
							   .mean_us = 50,
							   .max_us = 900,
							   .policy = "fifo",
							   .priority = 99};
	record->settings =
		parse("{\"sched\": \"fifo\", \"priority\": 99, \"limit_bytes\": 2147483648,"
		      " \"limit_set_bytes\": 2147483648, \"footprint_bytes\": 1073741824,"
		      " \"swap_made_bytes\": 4294967296}");
	record->environment = parse("{\"mglru\": null, \"swap_bytes\": 0, \"thp\": {\"enabled\": "
				    "\"madvise\"}}");
	record->counters = parse(
		"{\"vmstat\": {\"pgscan_anon\": 980000, \"pgscan_file\": 2000, \"pswpout\": 150000,"
		" \"swpout_zero\": 10, \"nr_unevictable\": 0, \"nr_mlock\": 0, \"oom_kill\": 0},"
		" \"memcg\": {\"limit_hits\": 5000, \"oom_kills\": 0},"
		" \"swap\": {\"total_bytes\": 4294967296, \"used_bytes\": 900000000},"
		" \"sampler\": {\"memory_locked\": true, \"migrations\": 0, \"thp_hits\": 0, "
		"\"thp_misses\": 0},"
		" \"clock\": {\"elapsed_ms\": 4001, \"suspended_ms\": 0, \"wall_jump_ms\": 0},"
		" \"cpu\": {\"busy_ms\": 7000, \"neighbours_ms\": 40},"
		" \"kmsg\": [], \"steal_ms\": 0, \"steal_ms_per_cpu\": []}");
	record->load_stats =
		parse("{\"gem\": {\"died\": false, \"observed_pages\": 262144, "
		      "\"observed_unevictable_pages\": 30, \"observed_mlock_pages\": 2},"
		      " \"swap\": {\"died\": false}}");
	record->worst = json_array();
	return record;
}

/* Sets a number (or removes, with NaN) at a dotted path below @object. */
static void set(json_t *object, const char *path, double value)
{
	const char *dot = strrchr(path, '.');
	char parent[128];

	if (dot) {
		snprintf(parent, sizeof(parent), "%.*s", (int)(dot - path), path);
		object = json_at(object, parent);
		path = dot + 1;
	}
	assert_non_null(object);
	if (isnan(value))
		json_object_del(object, path);
	else
		json_object_set_new(object, path, json_real(value));
}

static void set_text(char **member, const char *text)
{
	free(*member);
	*member = strdup(text);
}

static bool has_reason(const struct record *record, const char *part)
{
	for (size_t i = 0; i < json_array_size(record->reasons); i++)
		if (strstr(json_string_value(json_array_get(record->reasons, i)), part))
			return true;
	return false;
}

/* Judges and frees @record; the verdict and (unless NULL) a part of one reason must be as told. */
static void expect_with(struct record *record, const struct claim *claim, enum verdict verdict,
			const char *reason)
{
	const struct claim *claims[] = {claim};

	record_judge(record, claims, claim ? 1 : 0);
	if (record->verdict != verdict || (reason && !has_reason(record, reason)) ||
	    (!reason && json_array_size(record->reasons) > 0)) {
		char *seen = json_dumps(record->reasons, 0);

		print_error("wanted %s with \"%s\", got %s with %s\n", verdict_name(verdict),
			    reason ? reason : "no reason", verdict_name(record->verdict), seen);
		free(seen);
		fail();
	}
	record_free(record);
}

static void expect(struct record *record, enum verdict verdict, const char *reason)
{
	expect_with(record, NULL, verdict, reason);
}

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
	record->pinned_bytes = 0;
	set(record->settings, "footprint_bytes", 0);
	set(record->settings, "limit_set_bytes", 1073741824);
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

static void test_sampler_without_fifo(void **state)
{
	struct record *record = clean_run();

	record->per_cpu[1].policy = "other";
	record->per_cpu[1].priority = 0;
	expect(record, VERDICT_INVALID, "not as SCHED_FIFO");
	/* asked for and got */
	record = clean_run();
	record->per_cpu[0].policy = record->per_cpu[1].policy = "other";
	json_object_set_new(record->settings, "sched", json_string("other"));
	expect(record, VERDICT_VALID, NULL);
	record = clean_run();
	record->per_cpu[0].priority = 50;
	expect(record, VERDICT_SUSPECT, "priority 50");
}

static void test_sampler_faults_and_lock(void **state)
{
	struct record *record = clean_run();

	record->per_cpu[0].minflt = 3;
	expect(record, VERDICT_SUSPECT, "3 minor page faults");
	record = clean_run();
	record->per_cpu[1].majflt = 1;
	expect(record, VERDICT_INVALID, "1 major page faults");
	record = clean_run();
	json_object_set_new(json_object_get(record->counters, "sampler"), "memory_locked",
			    json_false());
	expect(record, VERDICT_SUSPECT, "not locked");
	record = clean_run();
	set(record->counters, "sampler.migrations", 2);
	expect(record, VERDICT_SUSPECT, "left their CPU");
}

static void test_stolen_cpu(void **state)
{
	struct record *record = clean_run();

	/* one tick in 8 s of CPU time, and no delay that it could explain */
	record->per_cpu[0].steal_ms = 10;
	expect(record, VERDICT_VALID, NULL);
	/* one tick, and a delay of 9 ms on that CPU */
	record = clean_run();
	record->per_cpu[0].steal_ms = 10;
	record->per_cpu[0].max_us = 9000;
	expect(record, VERDICT_SUSPECT, "may be the host's");
	/* the delay is far longer than all that was stolen */
	record = clean_run();
	record->per_cpu[0].steal_ms = 10;
	record->per_cpu[0].max_us = 90000;
	expect(record, VERDICT_VALID, NULL);
	/* 300 ms of 8 s */
	record = clean_run();
	record->per_cpu[0].steal_ms = 300;
	expect(record, VERDICT_SUSPECT, "of the sampled CPUs' time");
	/* what is known of the delay itself goes before the sum of the window */
	record = clean_run();
	record->per_cpu[0].steal_ms = 40;
	record->per_cpu[0].max_us = 40800;
	record->worst = (json_decref(record->worst),
			 parse("[{\"cpu\": 0, \"late_us\": 40800, \"steal_ms\": 40}]"));
	expect(record, VERDICT_SUSPECT, "40 ms of it were");
	record = clean_run();
	record->per_cpu[0].steal_ms = 40;
	record->per_cpu[0].max_us = 40800;
	record->worst = (json_decref(record->worst),
			 parse("[{\"cpu\": 0, \"late_us\": 40800, \"steal_ms\": 0}]"));
	expect(record, VERDICT_VALID, NULL);
}

static void test_clock_jump(void **state)
{
	struct record *record = clean_run();

	set(record->counters, "clock.suspended_ms", 5000);
	expect(record, VERDICT_INVALID, "suspended for 5 s");
	record = clean_run();
	set(record->counters, "clock.wall_jump_ms", -3600000);
	expect(record, VERDICT_SUSPECT, "jumped by 3.6e+03 s");
	record = clean_run(); /* slewing over an hour is no jump */
	set(record->counters, "clock.elapsed_ms", 3600000);
	set(record->counters, "clock.wall_jump_ms", 1800);
	expect(record, VERDICT_VALID, NULL);
}

static void test_neighbour(void **state)
{
	struct record *record = clean_run();

	set(record->counters, "cpu.neighbours_ms", 4000);
	set(record->counters, "cpu.busiest_neighbour_ms", 3900);
	set(record->counters, "cpu.busiest_neighbour_pid", 77);
	json_object_set_new(json_object_get(record->counters, "cpu"), "busiest_neighbour",
			    json_string("cc1"));
	expect(record, VERDICT_SUSPECT, "cc1, pid 77");
	record = clean_run(); /* no list of processes: nothing is said */
	json_object_set_new(json_object_get(record->counters, "cpu"), "neighbours_ms", json_null());
	expect(record, VERDICT_VALID, NULL);
}

static void test_throttled_and_interrupted(void **state)
{
	struct record *record = clean_run();

	record->throttle_gaps = 4;
	record->throttle_total_us = 200000;
	expect(record, VERDICT_SUSPECT, "throttled 4 times, 200 ms");
	record = clean_run();
	record->interrupted = true;
	expect(record, VERDICT_SUSPECT, "interrupted");
}

/* Outcomes: told, kept, and never held against the run. */
static void test_outcomes_are_kept(void **state)
{
	struct record *record = clean_run();

	json_object_set_new(json_object_get(record->load_stats, "swap"), "died", json_true());
	set(record->counters, "memcg.oom_kills", 1);
	expect(record, VERDICT_VALID, "result, kept: the swap load was killed for want of memory");
	record = clean_run();
	json_object_set_new(record->counters, "kmsg",
			    parse("[{\"kind\": \"hung-task\"}, {\"kind\": \"rcu-stall\"}, "
				  "{\"kind\": \"hung-task\"}]"));
	expect(record, VERDICT_VALID, "result, kept: the kernel reported hung-task (2 times)");
	record = clean_run();
	record->latency.stall_ns = INT64_C(675000000000);
	record->latency.missed = 100000;
	record->per_cpu[0].max_us = 675e6;
	expect(record, VERDICT_VALID, "result, kept: a thread still waited");
}

/* But a load that was never there is a condition. */
static void test_load_that_failed(void **state)
{
	struct record *record = clean_run();

	json_object_set_new(json_object_get(record->load_stats, "swap"), "died", json_true());
	expect(record, VERDICT_INVALID, "the swap load ended by itself");
}

static const struct claim swap_claim = {
	.name = "swap is written",
	.witness = "counters.vmstat.pswpout",
	.test = CLAIM_AT_LEAST,
	.bound = 1024,
	.why = "memory was not short",
	.advice = "lower --limit",
};

static void test_claims_at_least(void **state)
{
	struct record *record = clean_run();

	expect_with(record, &swap_claim, VERDICT_VALID, NULL);
	record = clean_run();
	set(record->counters, "vmstat.pswpout", 1023);
	expect_with(
		record, &swap_claim, VERDICT_INVALID,
		"not so: swap is written: pswpout is 1023, at least 1024 is wanted: memory was not "
		"short; lower --limit");
	record = clean_run();
	set(record->counters, "vmstat.pswpout", NAN);
	expect_with(record, &swap_claim, VERDICT_VALID,
		    "not provable here: swap is written: this machine or record has no pswpout");
}

static void test_claims_ratio_sum_fallback_doubt(void **state)
{
	struct claim claim = {
		.name = "anon is scanned",
		.witness = "counters.vmstat.pgscan_anon",
		.reference = "counters.vmstat.pgscan_anon+counters.vmstat.pgscan_file",
		.test = CLAIM_RATIO_AT_LEAST,
		.bound = 0.5,
		.why = "w",
		.advice = "a",
		.failure = CLAIM_CASTS_DOUBT,
	};
	struct record *record = clean_run();

	expect_with(record, &claim, VERDICT_VALID, NULL);
	record = clean_run();
	set(record->counters, "vmstat.pgscan_file", 2000000);
	expect_with(record, &claim, VERDICT_SUSPECT, "not so: anon is scanned");
	/* a term of the sum that the kernel lacks */
	record = clean_run();
	set(record->counters, "vmstat.pgscan_file", NAN);
	expect_with(record, &claim, VERDICT_VALID, "not provable here: anon is scanned");
	/* another witness */
	claim.witness = "counters.vmstat.not_here";
	claim.fallback = "counters.vmstat.pgscan_anon";
	record = clean_run();
	expect_with(record, &claim, VERDICT_VALID, NULL);
	/* the other direction */
	claim = (struct claim){.name = "few zeros",
			       .witness = "counters.vmstat.swpout_zero",
			       .reference = "derived.swapped_out_pages",
			       .test = CLAIM_RATIO_AT_MOST,
			       .bound = 0.00001,
			       .why = "w",
			       .advice = "a"};
	record = clean_run();
	expect_with(record, &claim, VERDICT_INVALID, "at most 1e-05 x swapped_out_pages (150010)");
}

/* The worst of several reasons names the verdict; all are told. */
static void test_reasons_add_up(void **state)
{
	struct record *record = clean_run();

	record->per_cpu[0].minflt = 1;
	set(record->counters, "vmstat.pgscan_anon", 0);
	record_reason(record, VERDICT_SUSPECT, "said before");
	record_judge(record, NULL, 0);
	assert_int_equal(record->verdict, VERDICT_INVALID);
	assert_int_equal(json_array_size(record->reasons), 3);
	assert_true(has_reason(record, "said before"));
	record_free(record);
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
		cmocka_unit_test(test_sampler_without_fifo),
		cmocka_unit_test(test_sampler_faults_and_lock),
		cmocka_unit_test(test_stolen_cpu),
		cmocka_unit_test(test_clock_jump),
		cmocka_unit_test(test_neighbour),
		cmocka_unit_test(test_throttled_and_interrupted),
		cmocka_unit_test(test_outcomes_are_kept),
		cmocka_unit_test(test_load_that_failed),
		cmocka_unit_test(test_claims_at_least),
		cmocka_unit_test(test_claims_ratio_sum_fallback_doubt),
		cmocka_unit_test(test_reasons_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
