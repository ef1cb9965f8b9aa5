/* SPDX-License-Identifier: MIT */
#include "record/record.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* The parts of record_to_json: what fails for want of memory makes the whole fail. */

static json_t *microseconds(int64_t ns, int64_t none)
{
	return ns == none ? json_null() : json_real((double)ns / 1000.0);
}

static json_t *nanoseconds_as_us(double ns)
{
	return json_number_or_null(ns / 1000.0);
}

static json_t *integer_or_null(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

/* Objects that others built: shared, not copied. */
static json_t *shared_or(json_t *value, json_t *otherwise)
{
	if (!value)
		return otherwise;
	json_decref(otherwise);
	return json_incref(value);
}

static json_t *latency_to_json(const struct latency_summary *latency)
{
	json_t *object = json_object();
	int error = 0;

	error |= json_put(object, "count", json_integer((json_int_t)latency->count));
	error |= json_put(object, "mean_us", nanoseconds_as_us(latency->mean_ns));
	error |= json_put(object, "stddev_us", nanoseconds_as_us(latency->stddev_ns));
	error |= json_put(object, "min_us", microseconds(latency->min_ns, INT64_MIN));
	error |= json_put(object, "max_us", microseconds(latency->max_ns, INT64_MIN));
	error |= json_put(object, "p50_us", microseconds(latency->p50_ns, -1));
	error |= json_put(object, "p90_us", microseconds(latency->p90_ns, -1));
	error |= json_put(object, "p99_us", microseconds(latency->p99_ns, -1));
	error |= json_put(object, "p99_9_us", microseconds(latency->p99_9_ns, -1));
	error |= json_put(object, "p99_99_us", microseconds(latency->p99_99_ns, -1));
	error |= json_put(object, "early", json_integer((json_int_t)latency->early));
	error |= json_put(object, "missed", json_integer((json_int_t)latency->missed));
	error |= json_put(object, "stall_us", microseconds(latency->stall_ns, INT64_MIN));
	if (error) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *latency_or_null(const struct latency_summary *latency, bool has)
{
	return has ? latency_to_json(latency) : json_null();
}

static json_t *igt_to_json(const struct record *record)
{
	json_t *object;
	int error = 0;

	if (isnan(record->igt_cycles) && isnan(record->igt_mean_us) && isnan(record->igt_max_us))
		return json_null();
	object = json_object();
	error |= json_put(object, "cycles", json_number_or_null(record->igt_cycles));
	error |= json_put(object, "mean_us", json_number_or_null(record->igt_mean_us));
	error |= json_put(object, "max_us", json_number_or_null(record->igt_max_us));
	if (error) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *cpu_to_json(const struct record_cpu *cpu)
{
	json_t *object = json_object();
	int error = 0;

	error |= json_put(object, "cpu", json_integer(cpu->cpu));
	error |= json_put(object, "count", json_integer((json_int_t)cpu->count));
	error |= json_put(object, "mean_us", json_number_or_null(cpu->mean_us));
	error |= json_put(object, "max_us", json_number_or_null(cpu->max_us));
	error |= json_put(object, "steal_ms", integer_or_null(cpu->steal_ms));
	error |= json_put(object, "minflt", integer_or_null(cpu->minflt));
	error |= json_put(object, "majflt", integer_or_null(cpu->majflt));
	error |= json_put(object, "policy", json_string_or_null(cpu->policy));
	error |= json_put(object, "priority", json_integer(cpu->priority));
	if (error) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *per_cpu_to_json(const struct record *record)
{
	json_t *array = json_array();

	for (size_t i = 0; i < record->per_cpu_count; i++) {
		if (json_array_append_new(array, cpu_to_json(&record->per_cpu[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *histogram_to_json(const struct histogram *histogram)
{
	json_t *object, *buckets;
	int error = 0;

	if (!histogram)
		return json_null();
	object = json_object();
	buckets = json_array();
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		if (!histogram->counts[i])
			continue;
		error |= json_array_append_new(buckets,
					       json_pack("[I, I]", (json_int_t)histogram_lowest(i),
							 (json_int_t)histogram->counts[i]));
	}
	error |= json_put(object, "unit", json_string("ns"));
	error |= json_put(object, "sub_bucket_bits", json_integer(HISTOGRAM_SUB_BUCKET_BITS));
	error |= json_put(object, "buckets", buckets);
	if (error) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *loads_to_json(char **loads)
{
	json_t *array = json_array();

	for (size_t i = 0; loads && loads[i]; i++) {
		if (json_array_append_new(array, json_string_or_null(loads[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *phases_to_json(const struct record *record)
{
	static const char *const names[3] = {"map", "populate", "unmap"};
	json_t *object;
	int error = 0;

	if (!record->phases[0].count && !record->phases[1].count && !record->phases[2].count)
		return json_null();
	object = json_object();
	for (size_t i = 0; i < 3; i++)
		error |= json_put(object, names[i],
				  latency_or_null(&record->phases[i], record->phases[i].count > 0));
	if (error) {
		json_decref(object);
		return NULL;
	}
	return object;
}

static json_t *throttle_to_json(const struct record *record)
{
	if (record->throttle_gaps < 0)
		return json_null();
	return json_pack("{s:I, s:o}", "count", (json_int_t)record->throttle_gaps, "total_us",
			 integer_or_null(record->throttle_total_us));
}

static json_t *validity_to_json(const struct record *record)
{
	return json_pack("{s:s, s:o}", "verdict", verdict_name(record->verdict), "reasons",
			 shared_or(record->reasons, json_array()));
}

static int put_identity(json_t *json, const struct record *record)
{
	int error = 0;

	error |= json_put(json, "schema", json_string(RECORD_SCHEMA));
	error |= json_put(json, "id", json_string_or_null(record->id));
	error |= json_put(json, "benchmark", json_string_or_null(record->benchmark));
	error |= json_put(json, "arm", json_string_or_null(record->arm));
	error |= json_put(json, "variant", json_string_or_null(record->variant));
	error |= json_put(json, "backend", json_string_or_null(record->backend));
	error |= json_put(json, "measure", json_string_or_null(record->measure));
	error |= json_put(json, "loads", loads_to_json(record->loads));
	error |= json_put(json, "scope", json_string_or_null(record->scope));
	error |= json_put(json, "started", json_string_or_null(record->started));
	error |= json_put(json, "duration_s", json_number_or_null(record->duration_s));
	error |= json_put(json, "interrupted", json_boolean(record->interrupted));
	return error;
}

static int put_latencies(json_t *json, const struct record *record)
{
	int error = 0;

	error |= json_put(json, "latency", latency_or_null(&record->latency, record->has_latency));
	error |= json_put(json, "latency_corrected",
			  latency_or_null(&record->corrected, record->has_corrected));
	error |= json_put(json, "igt", igt_to_json(record));
	error |= json_put(json, "per_cpu", per_cpu_to_json(record));
	error |= json_put(json, "histogram", histogram_to_json(record->histogram));
	return error;
}

static int put_conditions(json_t *json, const struct record *record)
{
	int error = 0;

	error |= json_put(json, "load_stats", shared_or(record->load_stats, json_object()));
	error |= json_put(json, "pinned_bytes", integer_or_null(record->pinned_bytes));
	error |= json_put(json, "pin_method", json_string_or_null(record->pin_method));
	error |= json_put(json, "release_context", json_string_or_null(record->release_context));
	error |= json_put(json, "counters", shared_or(record->counters, json_null()));
	error |= json_put(json, "environment", shared_or(record->environment, json_null()));
	error |= json_put(json, "validity", validity_to_json(record));
	error |= json_put(json, "trace_level", json_string_or_null(record->trace_level));
	error |= json_put(json, "causes", shared_or(record->causes, json_null()));
	error |= json_put(json, "worst", shared_or(record->worst, json_null()));
	error |= json_put(json, "thp_phases", phases_to_json(record));
	error |= json_put(json, "throttle_gaps", throttle_to_json(record));
	return error;
}

static int put_bookkeeping(json_t *json, const struct record *record)
{
	int error = 0;

	error |= json_put(json, "status", json_string_or_null(record->status));
	error |= json_put(json, "stderr_tail", json_string_or_null(record->stderr_tail));
	error |= json_put(json, "block", integer_or_null(record->block));
	error |= json_put(json, "order", integer_or_null(record->order));
	error |= json_put(json, "machine_key",
			  json_string_or_null(record->machine_key[0] ? record->machine_key : NULL));
	error |= json_put(json, "metrics", shared_or(record->metrics, json_object()));
	error |= json_put(json, "settings", shared_or(record->settings, json_null()));
	error |= json_put(json, "command", shared_or(record->command, json_null()));
	error |= json_put(json, "notes", shared_or(record->notes, json_array()));
	return error;
}

json_t *record_to_json(const struct record *record)
{
	json_t *json = json_object();

	if (!json)
		return NULL;
	if (put_identity(json, record) || put_latencies(json, record) ||
	    put_conditions(json, record) || put_bookkeeping(json, record)) {
		json_decref(json);
		return NULL;
	}
	return json;
}
