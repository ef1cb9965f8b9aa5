/* SPDX-License-Identifier: MIT */
#include "record/fields.h"

#include <stdint.h>

#include "base/array.h"
#include "record/record.h"

#define AT(member) offsetof(struct latency_summary, member)

const struct field latency_fields[LATENCY_FIELDS] = {
	{"count", FIELD_TALLY, AT(count)},
	{"mean_us", FIELD_REAL_US, AT(mean_ns)},
	{"stddev_us", FIELD_REAL_US, AT(stddev_ns)},
	{"min_us", FIELD_US, AT(min_ns), .none = INT64_MIN},
	{"max_us", FIELD_US, AT(max_ns), .none = INT64_MIN},
	{"p50_us", FIELD_US, AT(p50_ns), .none = -1},
	{"p90_us", FIELD_US, AT(p90_ns), .none = -1},
	{"p99_us", FIELD_US, AT(p99_ns), .none = -1},
	{"p99_9_us", FIELD_US, AT(p99_9_ns), .none = -1},
	{"p99_99_us", FIELD_US, AT(p99_99_ns), .none = -1},
	{"early", FIELD_TALLY, AT(early)},
	{"missed", FIELD_TALLY, AT(missed)},
	{"stall_us", FIELD_US, AT(stall_ns), .none = INT64_MIN},
};

#undef AT
#define AT(member) offsetof(struct record_cpu, member)

const struct field cpu_fields[CPU_FIELDS] = {
	{"cpu", FIELD_INT, AT(cpu)},
	{"count", FIELD_TALLY, AT(count)},
	{"mean_us", FIELD_NUMBER, AT(mean_us)},
	{"max_us", FIELD_NUMBER, AT(max_us)},
	{"steal_ms", FIELD_COUNT, AT(steal_ms)},
	{"minflt", FIELD_COUNT, AT(minflt)},
	{"majflt", FIELD_COUNT, AT(majflt)},
	{"policy", FIELD_POLICY, AT(policy)},
	{"priority", FIELD_INT, AT(priority)},
};

#undef AT
#define AT(member) offsetof(struct record, member)

static const struct field igt[] = {
	{"cycles", FIELD_NUMBER, AT(igt_cycles)},
	{"mean_us", FIELD_NUMBER, AT(igt_mean_us)},
	{"max_us", FIELD_NUMBER, AT(igt_max_us)},
};

static const struct field throttle[] = {
	{"count", FIELD_COUNT, AT(throttle_gaps)},
	{"total_us", FIELD_COUNT, AT(throttle_total_us)},
};

static const struct field validity[] = {
	{"verdict", FIELD_VERDICT, AT(verdict), FIELD_WANTED},
	{"reasons", FIELD_ARRAY, AT(reasons), FIELD_EMPTY},
};

#define GROUP(name) .fields = (name), .field_count = ARRAY_SIZE(name)

const struct field record_fields[RECORD_FIELDS] = {
	{"schema", FIELD_SCHEMA, 0, FIELD_WANTED},
	{"id", FIELD_FIXED, AT(id), .size = sizeof(((struct record *)0)->id)},
	{"benchmark", FIELD_TEXT, AT(benchmark), FIELD_WANTED},
	{"arm", FIELD_TEXT, AT(arm)},
	{"variant", FIELD_TEXT, AT(variant)},
	{"backend", FIELD_TEXT, AT(backend)},
	{"measure", FIELD_TEXT, AT(measure)},
	{"loads", FIELD_LOADS, AT(loads)},
	{"scope", FIELD_TEXT, AT(scope)},
	{"started", FIELD_FIXED, AT(started), .size = sizeof(((struct record *)0)->started)},
	{"duration_s", FIELD_NUMBER, AT(duration_s)},
	{"interrupted", FIELD_BOOL, AT(interrupted)},
	{"latency", FIELD_LATENCY, AT(latency), .size = AT(has_latency)},
	{"latency_corrected", FIELD_LATENCY, AT(corrected), .size = AT(has_corrected)},
	{"igt", FIELD_GROUP, GROUP(igt)},
	{"per_cpu", FIELD_CPUS},
	{"histogram", FIELD_HISTOGRAM},
	{"load_stats", FIELD_OBJECT, AT(load_stats), FIELD_EMPTY},
	{"pinned_bytes", FIELD_COUNT, AT(pinned_bytes)},
	{"pin_method", FIELD_TEXT, AT(pin_method)},
	{"release_context", FIELD_TEXT, AT(release_context)},
	{"counters", FIELD_OBJECT, AT(counters), FIELD_LEFT_OUT},
	{"environment", FIELD_OBJECT, AT(environment), FIELD_SHARED},
	{"validity", FIELD_GROUP, GROUP(validity)},
	{"trace_level", FIELD_TEXT, AT(trace_level)},
	{"causes", FIELD_ARRAY, AT(causes), FIELD_LEFT_OUT},
	{"worst", FIELD_ARRAY, AT(worst), FIELD_LEFT_OUT},
	{"thp_phases", FIELD_OBJECT, AT(phases)},
	{"throttle_gaps", FIELD_GROUP, GROUP(throttle)},
	{"status", FIELD_TEXT, AT(status)},
	{"stderr_tail", FIELD_TEXT, AT(stderr_tail)},
	{"block", FIELD_COUNT, AT(block)},
	{"order", FIELD_COUNT, AT(order)},
	{"machine_key", FIELD_FIXED, AT(machine_key),
	 .size = sizeof(((struct record *)0)->machine_key)},
	{"metrics", FIELD_OBJECT, AT(metrics), FIELD_EMPTY},
	{"settings", FIELD_OBJECT, AT(settings), FIELD_SHARED},
	{"command", FIELD_ARRAY, AT(command), FIELD_SHARED},
	{"notes", FIELD_ARRAY, AT(notes), FIELD_EMPTY},
};
