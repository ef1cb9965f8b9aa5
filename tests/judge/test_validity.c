/* SPDX-License-Identifier: MIT */
#include "clean_run.h"

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
	/* locked all the same: the other cause, and its remedy */
	record = clean_run();
	record->per_cpu[0].minflt = 3;
	expect(record, VERDICT_SUSPECT, "vm.compact_unevictable_allowed=0");
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

static void test_emulated_machine(void **state)
{
	struct record *record = clean_run();

	if (!record->environment)
		record->environment = json_object();
	json_object_set_new(record->environment, "hypervisor", json_string("TCGTCGTCGTCG"));
	expect(record, VERDICT_SUSPECT, "emulated");
	/* Instructions counted: the times are what they say, and it is said what that is. */
	record = clean_run();
	if (!record->environment)
		record->environment = json_object();
	json_object_set_new(record->environment, "hypervisor", json_string("TCGTCGTCGTCG"));
	json_object_set_new(record->environment, "clock", json_string("virtual"));
	json_object_set_new(record->environment, "ns_per_instruction", json_integer(2));
	expect(record, VERDICT_VALID, NULL);
	record = clean_run();
	if (!record->environment)
		record->environment = json_object();
	json_object_set_new(record->environment, "hypervisor", json_string("KVMKVMKVM"));
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
	judge(record, NULL);
	assert_int_equal(record->verdict, VERDICT_INVALID);
	assert_int_equal(json_array_size(record->reasons), 3);
	assert_true(has_reason(record, "said before"));
	record_free(record);
}

/* Nothing is proved: with loads that is the end of it, whatever the other numbers say. */
static void test_counters_off(void **state)
{
	struct record *record = clean_run();

	json_object_set_new(record->settings, "counters", json_string("off"));
	expect(record, VERDICT_INVALID, "--counters off");
	record = clean_run();
	json_object_set_new(record->settings, "counters", json_string("off"));
	set_text(&record->loads[0], "null");
	free(record->loads[1]);
	record->loads[1] = NULL;
	expect(record, VERDICT_SUSPECT, "--counters off");
	record = clean_run(); /* the sampler is judged all the same */
	json_object_set_new(record->settings, "counters", json_string("off"));
	record->per_cpu[1].policy = "other";
	expect(record, VERDICT_INVALID, "not as SCHED_FIFO");
	record = clean_run();
	json_object_set_new(record->settings, "counters", json_string("on"));
	expect(record, VERDICT_VALID, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sampler_without_fifo),
		cmocka_unit_test(test_counters_off),
		cmocka_unit_test(test_sampler_faults_and_lock),
		cmocka_unit_test(test_stolen_cpu),
		cmocka_unit_test(test_clock_jump),
		cmocka_unit_test(test_neighbour),
		cmocka_unit_test(test_emulated_machine),
		cmocka_unit_test(test_throttled_and_interrupted),
		cmocka_unit_test(test_outcomes_are_kept),
		cmocka_unit_test(test_load_that_failed),
		cmocka_unit_test(test_claims_at_least),
		cmocka_unit_test(test_claims_ratio_sum_fallback_doubt),
		cmocka_unit_test(test_reasons_add_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
