/* SPDX-License-Identifier: MIT */
#include "clean_run.h"

static const struct claim swap_claim = {
	.name = "swap is written",
	.witness = "counters.vmstat.pswpout",
	.test = CLAIM_AT_LEAST,
	.bound = 1024,
	.why = "memory was not short",
	.advice = "lower --limit",
};

#define SCANNED                                                                 \
	.name = "anon is scanned",                                              \
	.reference = "counters.vmstat.pgscan_anon+counters.vmstat.pgscan_file", \
	.test = CLAIM_RATIO_AT_LEAST, .bound = 0.5, .why = "w", .advice = "a",  \
	.failure = CLAIM_CASTS_DOUBT

static const struct claim scanned_claim = {SCANNED, .witness = "counters.vmstat.pgscan_anon"};
static const struct claim fallback_claim = {SCANNED, .witness = "counters.vmstat.not_here",
					    .fallback = "counters.vmstat.pgscan_anon"};
static const struct claim zeros_claim = {.name = "few zeros",
					 .witness = "counters.vmstat.swpout_zero",
					 .reference = "derived.swapped_out_pages",
					 .test = CLAIM_RATIO_AT_MOST,
					 .bound = 0.00001,
					 .why = "w",
					 .advice = "a"};

#define OFF "settings.counters=\"off\";"
#define OTHER(cpu) "per_cpu." cpu ".policy=\"other\";"
#define WORST(stolen) "worst=[{\"cpu\": 0, \"late_us\": 40800, \"steal_ms\": " stolen "}]"

static const struct judged rows[] = {
	{"sampler without FIFO", OTHER("1") "per_cpu.1.priority=0", VERDICT_INVALID,
	 "not as SCHED_FIFO"},
	{"asked for and got", OTHER("0") OTHER("1") "settings.sched=\"other\"", VERDICT_VALID},
	{"lower priority", "per_cpu.0.priority=50", VERDICT_SUSPECT, "priority 50"},

	{"minor faults", "per_cpu.0.minflt=3", VERDICT_SUSPECT, "3 minor page faults"},
	/* locked all the same: the other cause, and its remedy */
	{"minor faults of locked memory", "per_cpu.0.minflt=3", VERDICT_SUSPECT,
	 "vm.compact_unevictable_allowed=0"},
	{"major faults", "per_cpu.1.majflt=1", VERDICT_INVALID, "1 major page faults"},
	{"memory not locked", "counters.sampler.memory_locked=false", VERDICT_SUSPECT,
	 "not locked"},
	{"migrations", "counters.sampler.migrations=2", VERDICT_SUSPECT, "left their CPU"},

	{"one stolen tick in 8 s, and no delay that it could explain", "per_cpu.0.steal_ms=10",
	 VERDICT_VALID},
	{"one stolen tick, and a delay of 9 ms", "per_cpu.0.steal_ms=10; per_cpu.0.max_us=9000",
	 VERDICT_SUSPECT, "may be the host's"},
	{"a delay far longer than all that was stolen",
	 "per_cpu.0.steal_ms=10; per_cpu.0.max_us=90000", VERDICT_VALID},
	{"300 ms of 8 s", "per_cpu.0.steal_ms=300", VERDICT_SUSPECT, "of the sampled CPUs' time"},
	/* what is known of the delay itself goes before the sum of the window */
	{"a stolen delay", "per_cpu.0.steal_ms=40; per_cpu.0.max_us=40800;" WORST("40"),
	 VERDICT_SUSPECT, "40 ms of it were"},
	{"stolen elsewhere", "per_cpu.0.steal_ms=40; per_cpu.0.max_us=40800;" WORST("0"),
	 VERDICT_VALID},

	{"suspended", "counters.clock.suspended_ms=5000", VERDICT_INVALID, "suspended for 5 s"},
	{"clock jumped", "counters.clock.wall_jump_ms=-3600000", VERDICT_SUSPECT,
	 "jumped by 3.6e+03 s"},
	{"slewing over an hour is no jump",
	 "counters.clock.elapsed_ms=3600000; counters.clock.wall_jump_ms=1800", VERDICT_VALID},

	{"neighbour",
	 "counters.cpu.neighbours_ms=4000; counters.cpu.busiest_neighbour_ms=3900;"
	 "counters.cpu.busiest_neighbour_pid=77; counters.cpu.busiest_neighbour=\"cc1\"",
	 VERDICT_SUSPECT, "cc1, pid 77"},
	{"no list of processes: nothing is said", "counters.cpu.neighbours_ms=null", VERDICT_VALID},
	{"emulated machine", "environment.hypervisor=\"TCGTCGTCGTCG\"", VERDICT_SUSPECT,
	 "emulated"},
	/* Instructions counted: the times are what they say, and it is said what that is. */
	{"emulated machine in virtual time",
	 "environment.hypervisor=\"TCGTCGTCGTCG\"; environment.clock=\"virtual\";"
	 "environment.ns_per_instruction=2",
	 VERDICT_VALID},
	{"virtual machine", "environment.hypervisor=\"KVMKVMKVM\"", VERDICT_VALID},
	{"throttled", "throttle_gaps={\"count\": 4, \"total_us\": 200000}", VERDICT_SUSPECT,
	 "throttled 4 times, 200 ms"},
	{"interrupted", "interrupted=true", VERDICT_SUSPECT, "interrupted"},

	/* Outcomes: told, kept, and never held against the run. */
	{"killed for want of memory", "load_stats.swap.died=true; counters.memcg.oom_kills=1",
	 VERDICT_VALID, "result, kept: the swap load was killed for want of memory"},
	{"hung tasks",
	 "counters.kmsg=[{\"kind\": \"hung-task\"}, {\"kind\": \"rcu-stall\"},"
	 "{\"kind\": \"hung-task\"}]",
	 VERDICT_VALID, "result, kept: the kernel reported hung-task (2 times)"},
	{"stall", "latency.stall_us=675000000; latency.missed=100000; per_cpu.0.max_us=675000000",
	 VERDICT_VALID, "result, kept: a thread still waited"},
	/* But a load that was never there is a condition. */
	{"load that failed", "load_stats.swap.died=true", VERDICT_INVALID,
	 "the swap load ended by itself"},

	{"claim at least", NULL, VERDICT_VALID, NULL, &swap_claim},
	{"claim not so", "counters.vmstat.pswpout=1023", VERDICT_INVALID,
	 "not so: swap is written: pswpout is 1023, at least 1024 is wanted: memory was not short; "
	 "lower --limit",
	 &swap_claim},
	{"claim not provable", "-counters.vmstat.pswpout", VERDICT_VALID,
	 "not provable here: swap is written: this machine or record has no pswpout", &swap_claim},
	{"claim of a ratio", NULL, VERDICT_VALID, NULL, &scanned_claim},
	{"claim in doubt", "counters.vmstat.pgscan_file=2000000", VERDICT_SUSPECT,
	 "not so: anon is scanned", &scanned_claim},
	{"a term of the sum that the kernel lacks", "-counters.vmstat.pgscan_file", VERDICT_VALID,
	 "not provable here: anon is scanned", &scanned_claim},
	{"another witness", NULL, VERDICT_VALID, NULL, &fallback_claim},
	{"claim at most", NULL, VERDICT_INVALID, "at most 1e-05 x swapped_out_pages (150010)",
	 &zeros_claim},

	/* Nothing is proved: with loads that is the end of it, whatever the other numbers say. */
	{"counters off", OFF, VERDICT_INVALID, "--counters off"},
	{"counters off without loads", OFF "loads=[\"null\"]", VERDICT_SUSPECT, "--counters off"},
	{"the sampler is judged all the same", OFF OTHER("1"), VERDICT_INVALID,
	 "not as SCHED_FIFO"},
	{"counters on", "settings.counters=\"on\"", VERDICT_VALID},
};

/* The worst of several reasons names the verdict; all are told. */
static void test_reasons_add_up(void **state)
{
	struct record *record = changed_run("per_cpu.0.minflt=1; counters.vmstat.pgscan_anon=0");

	record_reason(record, VERDICT_SUSPECT, "said before");
	judge(record, NULL);
	assert_int_equal(record->verdict, VERDICT_INVALID);
	assert_int_equal(json_array_size(record->reasons), 3);
	assert_true(has_reason(record, "said before"));
	record_free(record);
}

int main(void)
{
	const struct CMUnitTest more[] = {cmocka_unit_test(test_reasons_add_up)};

	return judge_all(rows, ARRAY_SIZE(rows), more, ARRAY_SIZE(more));
}
