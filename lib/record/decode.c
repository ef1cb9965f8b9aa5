/* SPDX-License-Identifier: MIT */
#include "record/record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"

/*
 * Each reader takes the value of one key where it is there and not null, and says which key is
 * wrong when its type or unit is not what the schema wants. @where prefixes nested keys
 * ("latency.").
 */

static int wrong(struct message *message, const char *where, const char *key, const char *wanted)
{
	return message_set(message, -EINVAL, "record: %s%s: expected %s", where, key, wanted);
}

static const json_t *given(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_null(value) ? NULL : value;
}

static int read_text(const json_t *object, const char *key, char **ret_text,
		     struct message *message)
{
	const json_t *value = given(object, key);

	if (!value)
		return 0;
	if (!json_is_string(value))
		return wrong(message, "", key, "a string or null");
	free(*ret_text);
	*ret_text = strdup(json_string_value(value));
	return *ret_text ? 0 : -ENOMEM;
}

static int read_fixed(const json_t *object, const char *key, char *buffer, size_t size,
		      struct message *message)
{
	const json_t *value = given(object, key);

	if (!value)
		return 0;
	if (!json_is_string(value) || json_string_length(value) >= size)
		return wrong(message, "", key, "a short string or null");
	memcpy(buffer, json_string_value(value), json_string_length(value) + 1);
	return 0;
}

static int read_number(const json_t *object, const char *where, const char *key, double *ret_value,
		       struct message *message)
{
	const json_t *value = given(object, key);

	if (!value)
		return 0;
	if (!json_is_number(value))
		return wrong(message, where, key, "a number or null");
	*ret_value = json_number_value(value);
	return 0;
}

static int read_count(const json_t *object, const char *where, const char *key, int64_t *ret_value,
		      struct message *message)
{
	const json_t *value = given(object, key);

	if (!value)
		return 0;
	if (!json_is_integer(value) || json_integer_value(value) < 0)
		return wrong(message, where, key, "a whole number, 0 or more, or null");
	*ret_value = json_integer_value(value);
	return 0;
}

/* Microseconds in the JSON, nanoseconds here; null leaves @ret_ns as it is. */
static int read_us(const json_t *object, const char *where, const char *key, int64_t *ret_ns,
		   struct message *message)
{
	double us = NAN;
	int error = read_number(object, where, key, &us, message);

	if (error || isnan(us))
		return error;
	if (fabs(us) > (double)INT64_MAX / 1000.0 * 0.999)
		return wrong(message, where, key, "microseconds below 2^63 ns");
	*ret_ns = llround(us * 1000.0);
	return 0;
}

static int read_latency_tail(const json_t *object, const char *where,
			     struct latency_summary *summary, struct message *message)
{
	int64_t early = 0, missed = 0;
	int error;

	if ((error = read_us(object, where, "p50_us", &summary->p50_ns, message)) ||
	    (error = read_us(object, where, "p90_us", &summary->p90_ns, message)) ||
	    (error = read_us(object, where, "p99_us", &summary->p99_ns, message)) ||
	    (error = read_us(object, where, "p99_9_us", &summary->p99_9_ns, message)) ||
	    (error = read_us(object, where, "p99_99_us", &summary->p99_99_ns, message)) ||
	    (error = read_us(object, where, "stall_us", &summary->stall_ns, message)) ||
	    (error = read_count(object, where, "early", &early, message)) ||
	    (error = read_count(object, where, "missed", &missed, message)))
		return error;
	summary->early = (uint64_t)early;
	summary->missed = (uint64_t)missed;
	return 0;
}

/* *ret_has is false for null. The keys carry the unit: without mean_us this is no latency of ours.
 */
static int read_latency(const json_t *parent, const char *key, const char *where,
			struct latency_summary *summary, bool *ret_has, struct message *message)
{
	const json_t *object = given(parent, key);
	double mean_us = NAN, stddev_us = NAN;
	int64_t count = 0;
	int error;

	*ret_has = false;
	if (!object)
		return 0;
	if (!json_is_object(object))
		return wrong(message, "", key, "an object or null");
	if (!json_object_get(object, "mean_us"))
		return wrong(message, where, "mean_us", "microseconds; the key is missing");
	*summary = (struct latency_summary){
		.min_ns = INT64_MIN,
		.max_ns = INT64_MIN,
		.p50_ns = -1,
		.p90_ns = -1,
		.p99_ns = -1,
		.p99_9_ns = -1,
		.p99_99_ns = -1,
	};
	if ((error = read_count(object, where, "count", &count, message)) ||
	    (error = read_number(object, where, "mean_us", &mean_us, message)) ||
	    (error = read_number(object, where, "stddev_us", &stddev_us, message)) ||
	    (error = read_us(object, where, "min_us", &summary->min_ns, message)) ||
	    (error = read_us(object, where, "max_us", &summary->max_ns, message)) ||
	    (error = read_latency_tail(object, where, summary, message)))
		return error;
	summary->count = (uint64_t)count;
	summary->mean_ns = mean_us * 1000.0;
	summary->stddev_ns = stddev_us * 1000.0;
	*ret_has = true;
	return 0;
}

static int read_phases(const json_t *json, struct record *record, struct message *message)
{
	const json_t *object = given(json, "thp_phases");
	bool has;
	int error;

	if (!object)
		return 0;
	if (!json_is_object(object))
		return wrong(message, "", "thp_phases", "an object or null");
	if ((error = read_latency(object, "map", "thp_phases.map.", &record->phases[0], &has,
				  message)) ||
	    (error = read_latency(object, "populate", "thp_phases.populate.", &record->phases[1],
				  &has, message)) ||
	    (error = read_latency(object, "unmap", "thp_phases.unmap.", &record->phases[2], &has,
				  message)))
		return error;
	return 0;
}

static int read_igt(const json_t *json, struct record *record, struct message *message)
{
	const json_t *object = given(json, "igt");
	int error;

	if (!object)
		return 0;
	if (!json_is_object(object))
		return wrong(message, "", "igt", "an object or null");
	if ((error = read_number(object, "igt.", "cycles", &record->igt_cycles, message)) ||
	    (error = read_number(object, "igt.", "mean_us", &record->igt_mean_us, message)) ||
	    (error = read_number(object, "igt.", "max_us", &record->igt_max_us, message)))
		return error;
	return 0;
}

/* Policies are static strings in the struct; one that is not known stays null. */
static const char *static_policy(const char *name)
{
	static const char *const known[] = {"fifo", "rr", "deadline", "other", "batch", "idle"};

	for (size_t i = 0; name && i < ARRAY_SIZE(known); i++)
		if (strcmp(name, known[i]) == 0)
			return known[i];
	return NULL;
}

static int read_cpu(const json_t *object, struct record_cpu *cpu, struct message *message)
{
	int64_t number = -1, count = 0;
	int error;

	*cpu = (struct record_cpu){
		.mean_us = NAN, .max_us = NAN, .steal_ms = -1, .minflt = -1, .majflt = -1};
	if (!json_is_object(object))
		return wrong(message, "", "per_cpu", "an array of objects");
	if ((error = read_count(object, "per_cpu[].", "count", &count, message)) ||
	    (error = read_number(object, "per_cpu[].", "mean_us", &cpu->mean_us, message)) ||
	    (error = read_number(object, "per_cpu[].", "max_us", &cpu->max_us, message)) ||
	    (error = read_count(object, "per_cpu[].", "steal_ms", &cpu->steal_ms, message)) ||
	    (error = read_count(object, "per_cpu[].", "minflt", &cpu->minflt, message)) ||
	    (error = read_count(object, "per_cpu[].", "majflt", &cpu->majflt, message)))
		return error;
	number = json_get_int64(object, "cpu", -1);
	if (number < -1 || number > INT32_MAX)
		return wrong(message, "per_cpu[].", "cpu", "a CPU number, or -1: not pinned");
	cpu->cpu = (int)number;
	cpu->count = (uint64_t)count;
	cpu->policy = static_policy(json_get_string(object, "policy", NULL));
	cpu->priority = (int)json_get_int64(object, "priority", 0);
	return 0;
}

static int read_per_cpu(const json_t *json, struct record *record, struct message *message)
{
	const json_t *array = given(json, "per_cpu");
	size_t count = json_array_size(array);

	if (!array)
		return 0;
	if (!json_is_array(array))
		return wrong(message, "", "per_cpu", "an array");
	record->per_cpu = calloc(count ? count : 1, sizeof(*record->per_cpu));
	if (!record->per_cpu)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		int error = read_cpu(json_array_get(array, i), &record->per_cpu[i], message);

		if (error)
			return error;
		record->per_cpu_count = i + 1;
	}
	return 0;
}

static int read_buckets(const json_t *buckets, struct histogram *histogram, struct message *message)
{
	for (size_t i = 0; i < json_array_size(buckets); i++) {
		const json_t *pair = json_array_get(buckets, i);
		const json_t *lowest = json_array_get(pair, 0), *count = json_array_get(pair, 1);
		size_t index;

		if (json_array_size(pair) != 2 || !json_is_integer(lowest) ||
		    !json_is_integer(count) || json_integer_value(lowest) < 0 ||
		    json_integer_value(count) < 0)
			return wrong(message, "histogram.", "buckets",
				     "[lowest_ns, count] pairs of whole numbers");
		index = histogram_index(json_integer_value(lowest));
		histogram->counts[index] += (uint64_t)json_integer_value(count);
		histogram->total += (uint64_t)json_integer_value(count);
	}
	return 0;
}

static int read_histogram(const json_t *json, struct record *record, struct message *message)
{
	const json_t *object = given(json, "histogram");
	const char *unit;

	if (!object)
		return 0;
	if (!json_is_object(object))
		return wrong(message, "", "histogram", "an object or null");
	unit = json_get_string(object, "unit", NULL);
	if (!unit || strcmp(unit, "ns") != 0)
		return wrong(message, "histogram.", "unit", "\"ns\"");
	if (json_get_int64(object, "sub_bucket_bits", -1) != HISTOGRAM_SUB_BUCKET_BITS)
		return wrong(message, "histogram.", "sub_bucket_bits", "7");
	if (!json_is_array(json_object_get(object, "buckets")))
		return wrong(message, "histogram.", "buckets", "an array");
	record->histogram = calloc(1, sizeof(*record->histogram));
	if (!record->histogram)
		return -ENOMEM;
	return read_buckets(json_object_get(object, "buckets"), record->histogram, message);
}

static int read_loads(const json_t *json, struct record *record, struct message *message)
{
	const json_t *array = given(json, "loads");
	size_t count = json_array_size(array);

	if (!array)
		return 0;
	if (!json_is_array(array))
		return wrong(message, "", "loads", "an array of strings");
	record->loads = calloc(count + 1, sizeof(*record->loads));
	if (!record->loads)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const char *name = json_string_value(json_array_get(array, i));

		if (!name)
			return wrong(message, "", "loads", "an array of strings");
		record->loads[i] = strdup(name);
		if (!record->loads[i])
			return -ENOMEM;
	}
	return 0;
}

/* Objects and arrays that are kept as JSON. They are shared with @json, not copied. */
static int read_shared(const json_t *json, const char *key, json_type type, json_t **ret_value,
		       struct message *message)
{
	json_t *value = json_object_get(json, key);

	if (!value || json_is_null(value))
		return 0;
	if (json_typeof(value) != type)
		return wrong(message, "", key, type == JSON_OBJECT ? "an object" : "an array");
	json_decref(*ret_value);
	*ret_value = json_incref(value);
	return 0;
}

static int read_all_shared(const json_t *json, struct record *record, struct message *message)
{
	int error;

	if ((error = read_shared(json, "load_stats", JSON_OBJECT, &record->load_stats, message)) ||
	    (error = read_shared(json, "counters", JSON_OBJECT, &record->counters, message)) ||
	    (error = read_shared(json, "environment", JSON_OBJECT, &record->environment,
				 message)) ||
	    (error = read_shared(json, "causes", JSON_ARRAY, &record->causes, message)) ||
	    (error = read_shared(json, "worst", JSON_ARRAY, &record->worst, message)) ||
	    (error = read_shared(json, "metrics", JSON_OBJECT, &record->metrics, message)) ||
	    (error = read_shared(json, "settings", JSON_OBJECT, &record->settings, message)) ||
	    (error = read_shared(json, "command", JSON_ARRAY, &record->command, message)) ||
	    (error = read_shared(json, "notes", JSON_ARRAY, &record->notes, message)))
		return error;
	return 0;
}

static int read_validity(const json_t *json, struct record *record, struct message *message)
{
	const json_t *object = given(json, "validity");
	const char *name = json_get_string(object, "verdict", NULL);

	if (!object)
		return 0;
	for (int i = VERDICT_VALID; name && i <= VERDICT_INVALID; i++) {
		if (strcmp(name, verdict_name((enum verdict)i)) == 0) {
			record->verdict = (enum verdict)i;
			return read_shared(object, "reasons", JSON_ARRAY, &record->reasons,
					   message);
		}
	}
	return wrong(message, "validity.", "verdict", "valid, suspect or invalid");
}

static int read_metrics_check(const struct record *record, struct message *message)
{
	const char *name;
	json_t *metric;

	json_object_foreach (record->metrics, name, metric) {
		const json_t *value = json_object_get(metric, "value");
		const char *better = json_get_string(metric, "better", "lower");

		if (!json_is_object(metric) ||
		    (value && !json_is_number(value) && !json_is_null(value)))
			return message_set(message, -EINVAL,
					   "record: metrics.%s: expected {value, unit, better}",
					   name);
		if (strcmp(better, "lower") != 0 && strcmp(better, "higher") != 0)
			return message_set(message, -EINVAL,
					   "record: metrics.%s.better: expected lower or higher",
					   name);
	}
	return 0;
}

static int read_identity(const json_t *json, struct record *record, struct message *message)
{
	const json_t *interrupted = given(json, "interrupted");
	int error;

	if ((error = read_fixed(json, "id", record->id, sizeof(record->id), message)) ||
	    (error = read_text(json, "arm", &record->arm, message)) ||
	    (error = read_text(json, "variant", &record->variant, message)) ||
	    (error = read_text(json, "backend", &record->backend, message)) ||
	    (error = read_text(json, "measure", &record->measure, message)) ||
	    (error = read_text(json, "scope", &record->scope, message)) ||
	    (error = read_loads(json, record, message)) ||
	    (error = read_fixed(json, "started", record->started, sizeof(record->started),
				message)) ||
	    (error = read_number(json, "", "duration_s", &record->duration_s, message)))
		return error;
	if (interrupted && !json_is_boolean(interrupted))
		return wrong(message, "", "interrupted", "true or false");
	record->interrupted = json_is_true(interrupted);
	return 0;
}

static int read_measured(const json_t *json, struct record *record, struct message *message)
{
	int error;

	if ((error = read_latency(json, "latency", "latency.", &record->latency,
				  &record->has_latency, message)) ||
	    (error = read_latency(json, "latency_corrected", "latency_corrected.",
				  &record->corrected, &record->has_corrected, message)) ||
	    (error = read_igt(json, record, message)) ||
	    (error = read_per_cpu(json, record, message)) ||
	    (error = read_histogram(json, record, message)) ||
	    (error = read_phases(json, record, message)))
		return error;
	return 0;
}

static int read_throttle(const json_t *json, struct record *record, struct message *message)
{
	const json_t *object = given(json, "throttle_gaps");
	int error;

	if (!object)
		return 0;
	if (!json_is_object(object))
		return wrong(message, "", "throttle_gaps", "an object or null");
	error = read_count(object, "throttle_gaps.", "count", &record->throttle_gaps, message);
	if (error)
		return error;
	return read_count(object, "throttle_gaps.", "total_us", &record->throttle_total_us,
			  message);
}

static int read_bookkeeping(const json_t *json, struct record *record, struct message *message)
{
	int error;

	if ((error = read_count(json, "", "pinned_bytes", &record->pinned_bytes, message)) ||
	    (error = read_text(json, "pin_method", &record->pin_method, message)) ||
	    (error = read_text(json, "release_context", &record->release_context, message)) ||
	    (error = read_throttle(json, record, message)) ||
	    (error = read_validity(json, record, message)) ||
	    (error = read_text(json, "trace_level", &record->trace_level, message)) ||
	    (error = read_text(json, "status", &record->status, message)) ||
	    (error = read_text(json, "stderr_tail", &record->stderr_tail, message)) ||
	    (error = read_count(json, "", "block", &record->block, message)) ||
	    (error = read_count(json, "", "order", &record->order, message)) ||
	    (error = read_fixed(json, "machine_key", record->machine_key,
				sizeof(record->machine_key), message)))
		return error;
	if (strcmp(record->status, "ok") != 0 && strcmp(record->status, "failed") != 0)
		return wrong(message, "", "status", "ok or failed");
	return 0;
}

int record_from_json(const json_t *json, struct record **ret_record, struct message *message)
{
	const char *schema = json_get_string(json, "schema", NULL);
	const char *benchmark = json_get_string(json, "benchmark", NULL);
	struct record *record;
	int error;

	if (!json_is_object(json))
		return message_set(message, -EINVAL, "record: not a JSON object");
	if (!schema || strcmp(schema, RECORD_SCHEMA) != 0)
		return message_set(message, -EINVAL, "record: schema: expected \"%s\", found %s",
				   RECORD_SCHEMA, schema ? schema : "none");
	if (!benchmark)
		return wrong(message, "", "benchmark", "a string");
	record = record_new_blank(benchmark);
	if (!record)
		return -ENOMEM;
	if ((error = read_identity(json, record, message)) ||
	    (error = read_measured(json, record, message)) ||
	    (error = read_all_shared(json, record, message)) ||
	    (error = read_bookkeeping(json, record, message)) ||
	    (error = read_metrics_check(record, message))) {
		record_free(record);
		return error;
	}
	*ret_record = record;
	return 0;
}
