/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "judge/validity_internal.h"

/* Thresholds; docs/method.md says why each is what it is. */
#define STEAL_SHARE 0.01      /* of the sampled CPUs' time */
#define STEAL_TICK_MS 10.0    /* resolution of /proc/stat */
#define WORST_LEAST_US 1000.0 /* delays below a millisecond are below what steal can tell */
#define SUSPENDED_MS 100.0
#define WALL_JUMP_MS 500.0
#define WALL_JUMP_SHARE 0.001 /* a slewed clock moves at most 500 ppm */
#define NEIGHBOUR_SHARE 0.10  /* of one CPU */

static void judge_scheduling(const struct judgement *judgement)
{
	struct record *record = judgement->record;
	const char *asked = view_text(judgement->view, "settings.sched");
	double priority = view_number_or(judgement->view, "settings.priority", 0);

	if (!asked || strcmp(asked, "fifo") != 0)
		return;
	for (size_t i = 0; i < record->per_cpu_count; i++) {
		const struct record_cpu *cpu = &record->per_cpu[i];

		if (!cpu->policy || strcmp(cpu->policy, "fifo") != 0) {
			record_reason(
				record, VERDICT_INVALID,
				"the sampler on CPU %d ran as SCHED_%s, not as SCHED_FIFO: its "
				"delays are the scheduler's choice among ordinary tasks; run as "
				"root, raise RLIMIT_RTPRIO (ulimit -r), or ask for --sched other",
				cpu->cpu,
				cpu->policy && strcmp(cpu->policy, "other") == 0 ? "OTHER"
				: cpu->policy					 ? cpu->policy
										 : "unknown");
			return;
		}
		if (priority > 0 && cpu->priority != (int)priority) {
			record_reason(
				record, VERDICT_SUSPECT,
				"the sampler on CPU %d ran at priority %d, not at %d as asked",
				cpu->cpu, cpu->priority, (int)priority);
			return;
		}
	}
}

/* A fault in the loop is part of the delay that the loop then measures. */
static void judge_faults(const struct judgement *judgement)
{
	struct record *record = judgement->record;
	bool locked = json_is_true(json_at(judgement->view, "counters.sampler.memory_locked"));
	int64_t minor = 0, major = 0;

	if (judgement->subject->measure_flags & MEASURE_FAULTS)
		return;
	for (size_t i = 0; i < record->per_cpu_count; i++) {
		minor += record->per_cpu[i].minflt > 0 ? record->per_cpu[i].minflt : 0;
		major += record->per_cpu[i].majflt > 0 ? record->per_cpu[i].majflt : 0;
	}
	if (major > 0)
		record_reason(
			record, VERDICT_INVALID,
			"the sampling threads had %lld major page faults: they waited for a disk "
			"themselves; raise RLIMIT_MEMLOCK (ulimit -l) or run as root",
			(long long)major);
	else if (minor > 0)
		record_reason(
			record, VERDICT_SUSPECT,
			"the sampling threads had %lld minor page faults in the steady state: "
			"some delays are their own; %s",
			(long long)minor,
			locked ? "their memory is locked, but compaction moves locked pages: "
				 "sysctl -w vm.compact_unevictable_allowed=0"
			       : "raise RLIMIT_MEMLOCK (ulimit -l) or run as root");
}

void judge_sampler(const struct judgement *judgement)
{
	struct record *record = judgement->record;
	double migrations = view_number_or(judgement->view, "counters.sampler.migrations", 0);

	judge_scheduling(judgement);
	judge_faults(judgement);
	if (json_is_false(json_at(judgement->view, "counters.sampler.memory_locked")))
		record_reason(
			record, VERDICT_SUSPECT,
			"the sampler's memory was not locked: reclaim may have taken its pages; "
			"raise RLIMIT_MEMLOCK (ulimit -l) or run as root");
	if (migrations > 0)
		record_reason(record, VERDICT_SUSPECT,
			      "sampling threads left their CPU %g times (CPU hotplug or a changed "
			      "cpuset): the numbers of a CPU are not all its own",
			      migrations);
	if (record->throttle_gaps > 0)
		record_reason(
			record, VERDICT_SUSPECT,
			"the sampler was throttled %lld times, %lld ms in all (RT throttling or the "
			"fair server, a limit on real-time tasks): max shows the pause, not memory; "
			"pace the probe: --pace 2ms",
			(long long)record->throttle_gaps,
			(long long)record->throttle_total_us / 1000);
	if (record->interrupted)
		record_reason(
			record, VERDICT_SUSPECT,
			"the run was interrupted after %.3g s: a short window sees fewer rare "
			"delays; compare it with no whole run",
			record->duration_s);
}

/* The worst delay that steal covers by half or more, when its own steal was read. */
static bool worst_was_stolen(const struct judgement *judgement)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (judgement->record->worst, i, entry) {
		double late_us = json_get_number(entry, "late_us", 0);
		double steal_ms = json_get_number(entry, "steal_ms", 0);

		/* A tick that was charged may have been stolen in any part of it. */
		if (late_us >= WORST_LEAST_US && steal_ms > 0 && steal_ms * 1000 >= late_us / 2) {
			record_reason(
				judgement->record, VERDICT_SUSPECT,
				"a delay of %.3g ms on CPU %d may be the host's: %.3g ms of it were "
				"stolen (ticks of 10 ms); repeat on a quieter host or on real "
				"hardware",
				late_us / 1000, (int)json_get_int64(entry, "cpu", -1), steal_ms);
			return true;
		}
	}
	return false;
}

/* Without steal of the delay itself: of the CPU over the whole window. */
static bool maximum_may_be_stolen(const struct judgement *judgement)
{
	struct record *record = judgement->record;

	if (json_array_size(record->worst) > 0)
		return false; /* each was looked at */
	for (size_t i = 0; i < record->per_cpu_count; i++) {
		const struct record_cpu *cpu = &record->per_cpu[i];

		if (cpu->steal_ms <= 0 || !(cpu->max_us >= WORST_LEAST_US) ||
		    ((double)cpu->steal_ms + STEAL_TICK_MS) * 1000 < cpu->max_us / 2)
			continue;
		record_reason(
			record, VERDICT_SUSPECT,
			"the longest delay of CPU %d (%.3g ms) may be the host's: %lld ms were "
			"stolen from that CPU in the window; repeat on a quieter host or on "
			"real hardware",
			cpu->cpu, cpu->max_us / 1000, (long long)cpu->steal_ms);
		return true;
	}
	return false;
}

static void judge_steal(const struct judgement *judgement)
{
	struct record *record = judgement->record;
	double window_ms = record->duration_s * 1000, share;
	double stolen_ms = 0, sampled_ms = 0;

	for (size_t i = 0; i < record->per_cpu_count; i++) {
		if (record->per_cpu[i].steal_ms > 0)
			stolen_ms += (double)record->per_cpu[i].steal_ms;
		sampled_ms += window_ms;
	}
	if (record->per_cpu_count == 0) {
		stolen_ms = view_number_or(judgement->view, "counters.steal_ms", 0);
		sampled_ms = window_ms;
	}
	share = sampled_ms > 0 ? stolen_ms / sampled_ms : 0;
	if (share > STEAL_SHARE)
		record_reason(
			record, VERDICT_SUSPECT,
			"the host took %.3g%% of the sampled CPUs' time (%.0f ms): mean and high "
			"percentiles hold its pauses; repeat on a quieter host or on real hardware",
			share * 100, stolen_ms);
	if (!worst_was_stolen(judgement))
		maximum_may_be_stolen(judgement);
}

static void judge_clocks(const struct judgement *judgement)
{
	const json_t *view = judgement->view;
	double suspended_ms = view_number_or(view, "counters.clock.suspended_ms", 0);
	double jump_ms = fabs(view_number_or(view, "counters.clock.wall_jump_ms", 0));
	double elapsed_ms = view_number_or(view, "counters.clock.elapsed_ms", 0);

	if (suspended_ms >= SUSPENDED_MS)
		record_reason(
			judgement->record, VERDICT_INVALID,
			"the machine was suspended for %.3g s inside the window: run it again "
			"with sleep inhibited (systemd-inhibit)",
			suspended_ms / 1000);
	if (jump_ms >= fmax(WALL_JUMP_MS, elapsed_ms * WALL_JUMP_SHARE))
		record_reason(
			judgement->record, VERDICT_SUSPECT,
			"the wall clock jumped by %.3g s against the monotonic one: it was set, or "
			"a virtual machine was paused and its pause is not in the delays; run it "
			"again",
			jump_ms / 1000);
}

static void judge_neighbours(const struct judgement *judgement)
{
	const json_t *view = judgement->view;
	double neighbours_ms = view_number_or(view, "counters.cpu.neighbours_ms", 0);
	double busiest_ms = view_number_or(view, "counters.cpu.busiest_neighbour_ms", 0);
	double elapsed_ms = view_number_or(view, "counters.clock.elapsed_ms",
					   judgement->record->duration_s * 1000);
	const char *name = view_text(view, "counters.cpu.busiest_neighbour");

	/* Below some ticks the share of a short window is noise. */
	if (!(elapsed_ms > 0) || neighbours_ms <= 2 * STEAL_TICK_MS ||
	    neighbours_ms / elapsed_ms <= NEIGHBOUR_SHARE)
		return;
	record_reason(
		judgement->record, VERDICT_SUSPECT,
		"other programs used %.3g of a CPU beside the run (most: %s, pid %.0f, %.0f ms): "
		"stop them, or keep them off with taskset or a cpuset",
		neighbours_ms / elapsed_ms, name ? name : "unknown",
		view_number_or(view, "counters.cpu.busiest_neighbour_pid", -1), busiest_ms);
}

/* QEMU without KVM: CPUs take turns on the host's, instructions are translated. */
static void judge_emulation(const struct judgement *judgement)
{
	const char *hypervisor = view_text(judgement->view, "environment.hypervisor");
	const char *clock = view_text(judgement->view, "environment.clock");

	if (clock && strcmp(clock, "virtual") == 0)
		record_note(judgement->record,
			    "times are virtual: %g ns for each instruction that the CPU executes; "
			    "no caches, no TLB, no memory bandwidth, no second CPU",
			    view_number_or(judgement->view, "environment.ns_per_instruction", 0));
	else if (hypervisor && strncmp(hypervisor, "TCGTCG", 6) == 0)
		record_reason(
			judgement->record, VERDICT_SUSPECT,
			"the machine is emulated (QEMU without KVM): what is counted holds, "
			"every time is the emulator's; repeat on a real machine or under KVM");
}

void judge_machine(const struct judgement *judgement)
{
	judge_emulation(judgement);
	judge_steal(judgement);
	judge_clocks(judgement);
	judge_neighbours(judgement);
}

static bool oom_happened(const struct judgement *judgement)
{
	const json_t *log = json_at(judgement->view, "counters.kmsg"), *entry;
	size_t i;

	json_array_foreach (log, i, entry) {
		if (strcmp(json_get_string(entry, "kind", ""), "oom") == 0)
			return true;
	}
	return view_number_or(judgement->view, "counters.memcg.oom_kills", 0) > 0 ||
	       view_number_or(judgement->view, "counters.vmstat.oom_kill", 0) > 0;
}

/* An OOM kill is what the load did to the machine; a load that failed by itself was never there. */
static void judge_dead_loads(const struct judgement *judgement)
{
	struct record *record = judgement->record;
	const json_t *statistics;
	const char *name;
	bool oom = oom_happened(judgement);

	json_object_foreach (record->load_stats, name, statistics) {
		if (!json_is_true(json_object_get(statistics, "died")))
			continue;
		if (oom)
			record_reason(
				record, VERDICT_VALID,
				"result, kept: the %s load was killed for want of memory; raise "
				"--limit or lower its size if that was not the question",
				name);
		else
			record_reason(
				record, VERDICT_INVALID,
				"the %s load ended by itself before the window did: the rest was "
				"measured without it; see the notes for why",
				name);
	}
}

void judge_results(const struct judgement *judgement)
{
	static const char *const kinds[] = {"hung-task", "soft-lockup",	     "hard-lockup",
					    "rcu-stall", "workqueue-lockup", "allocation-failure"};
	const json_t *log = json_at(judgement->view, "counters.kmsg"), *entry;
	struct record *record = judgement->record;

	judge_dead_loads(judgement);
	for (size_t k = 0; k < ARRAY_SIZE(kinds); k++) {
		size_t i, seen = 0;

		json_array_foreach (log, i, entry) {
			seen += strcmp(json_get_string(entry, "kind", ""), kinds[k]) == 0;
		}
		if (seen)
			record_reason(record, VERDICT_VALID,
				      "result, kept: the kernel reported %s (%zu times)", kinds[k],
				      seen);
	}
	if (record->has_latency && record->latency.stall_ns > 0)
		record_reason(
			record, VERDICT_VALID,
			"result, kept: a thread still waited at the end; its delay is at least "
			"%.3g ms",
			(double)record->latency.stall_ns / 1e6);
}
