/* SPDX-License-Identifier: MIT */
#include "record/record.h"

#include <math.h>

#include "base/json.h"
#include "record/fields.h"

/* What fails for want of memory makes the whole fail: NULL. */

static json_t *fields_to_json(const struct field *fields, size_t count, const void *from);

static json_t *integer_or_null(int64_t value)
{
	return value < 0 ? json_null() : json_integer(value);
}

/* Values that others built: shared, not copied. */
static json_t *shared_value(const struct field *field, json_t *value)
{
	if (value)
		return json_incref(value);
	if (!(field->flags & FIELD_EMPTY))
		return json_null();
	return field->kind == FIELD_ARRAY ? json_array() : json_object();
}

static json_t *latency_to_json(const struct field *field, const void *from)
{
	const struct latency_summary *latency = (const void *)((const char *)from + field->offset);
	bool has = field->size ? *(const bool *)((const char *)from + field->size)
			       : latency->count > 0;

	return has ? fields_to_json(latency_fields, LATENCY_FIELDS, latency) : json_null();
}

static json_t *group_to_json(const struct field *field, const void *from)
{
	json_t *json = fields_to_json(field->fields, field->field_count, from), *value;
	const char *key;

	json_object_foreach (json, key, value)
		if (!json_is_null(value))
			return json;
	if (!json)
		return NULL;
	json_decref(json);
	return json_null();
}

static json_t *cpus_to_json(const struct record *record)
{
	json_t *array = json_array();

	for (size_t i = 0; i < record->per_cpu_count; i++) {
		if (json_array_append_new(array, fields_to_json(cpu_fields, CPU_FIELDS,
								&record->per_cpu[i])) < 0) {
			json_decref(array);
			return NULL;
		}
	}
	return array;
}

static json_t *histogram_to_json(const struct histogram *histogram)
{
	json_t *buckets = json_array();
	int error = 0;

	if (!histogram) {
		json_decref(buckets);
		return json_null();
	}
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		if (histogram->counts[i])
			error |= json_array_append_new(
				buckets, json_pack("[I, I]", (json_int_t)histogram_lowest(i),
						   (json_int_t)histogram->counts[i]));
	if (error) {
		json_decref(buckets);
		return NULL;
	}
	return json_pack("{s:s, s:i, s:o}", "unit", "ns", "sub_bucket_bits",
			 HISTOGRAM_SUB_BUCKET_BITS, "buckets", buckets);
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

static json_t *field_to_json(const struct field *field, const void *from)
{
	const void *at = (const char *)from + field->offset;

	switch (field->kind) {
	case FIELD_SCHEMA:
		return json_string(RECORD_SCHEMA);
	case FIELD_TEXT:
	case FIELD_POLICY:
		return json_string_or_null(*(char *const *)at);
	case FIELD_FIXED:
		return json_string_or_null(*(const char *)at ? at : NULL);
	case FIELD_NUMBER:
		return json_number_or_null(*(const double *)at);
	case FIELD_COUNT:
		return integer_or_null(*(const int64_t *)at);
	case FIELD_TALLY:
		return json_integer((json_int_t) * (const uint64_t *)at);
	case FIELD_INT:
		return json_integer(*(const int *)at);
	case FIELD_US:
		return *(const int64_t *)at == field->none
			       ? json_null()
			       : json_real((double)*(const int64_t *)at / 1000.0);
	case FIELD_REAL_US:
		return json_number_or_null(*(const double *)at / 1000.0);
	case FIELD_BOOL:
		return json_boolean(*(const bool *)at);
	case FIELD_OBJECT:
	case FIELD_ARRAY:
		return shared_value(field, *(json_t *const *)at);
	case FIELD_GROUP:
		return group_to_json(field, from);
	case FIELD_LATENCY:
		return latency_to_json(field, from);
	case FIELD_VERDICT:
		return json_string(verdict_name(*(const enum verdict *)at));
	case FIELD_LOADS:
		return loads_to_json(*(char **const *)at);
	case FIELD_CPUS:
		return cpus_to_json(from);
	case FIELD_HISTOGRAM:
		return histogram_to_json(((const struct record *)from)->histogram);
	}
	return NULL;
}

static json_t *fields_to_json(const struct field *fields, size_t count, const void *from)
{
	json_t *json = json_object();

	for (size_t i = 0; i < count; i++) {
		if (json_put(json, fields[i].key, field_to_json(&fields[i], from)) < 0) {
			json_decref(json);
			return NULL;
		}
	}
	return json;
}

json_t *record_latency_json(const struct latency_summary *latency)
{
	return latency->count > 0 ? fields_to_json(latency_fields, LATENCY_FIELDS, latency)
				  : json_null();
}

json_t *record_to_json(const struct record *record)
{
	return fields_to_json(record_fields, RECORD_FIELDS, record);
}
