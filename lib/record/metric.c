/* SPDX-License-Identifier: MIT */
#include "record/record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "record/fields.h"

/* "p99_9_us" of the JSON is the metric p99.9. */
static bool is_metric_of(const char *key, const char *name)
{
	for (; *name; key++, name++)
		if (*key != *name && !(*key == '_' && *name == '.'))
			return false;
	return strcmp(key, "_us") == 0;
}

/* -ENOENT: no such field. */
static int latency_field(const struct latency_summary *summary, const char *name, double *ret_us)
{
	for (size_t i = 0; i < LATENCY_FIELDS; i++) {
		const struct field *field = &latency_fields[i];
		const void *at = (const char *)summary + field->offset;

		if (!is_metric_of(field->key, name))
			continue;
		if (field->kind == FIELD_REAL_US)
			*ret_us = *(const double *)at / 1000.0;
		else if (*(const int64_t *)at == field->none)
			*ret_us = NAN;
		else
			*ret_us = (double)*(const int64_t *)at / 1000.0;
		return 0;
	}
	return -ENOENT;
}

static int igt_field(const struct record *record, const char *name, double *ret_value)
{
	if (strcmp(name, "igt-mean") == 0)
		*ret_value = record->igt_mean_us;
	else if (strcmp(name, "igt-max") == 0)
		*ret_value = record->igt_max_us;
	else
		return -ENOENT;
	return 0;
}

/* Every key carries its unit: the last word of it. */
static const char *unit_of_key(const char *path)
{
	static const struct {
		const char *suffix, *unit;
	} suffixes[] = {
		{"_per_s", "1/s"}, {"_us", "us"},   {"_ns", "ns"},  {"_ms", "ms"},
		{"_s", "s"},	   {"_bytes", "B"}, {"_kb", "KiB"}, {"_pct", "%"},
	};
	size_t length = strlen(path);

	for (size_t i = 0; i < ARRAY_SIZE(suffixes); i++) {
		size_t suffix = strlen(suffixes[i].suffix);

		if (length > suffix && strcmp(path + length - suffix, suffixes[i].suffix) == 0)
			return suffixes[i].unit;
	}
	return strstr(path, "psi_us.") ? "us" : "count";
}

static int value_of(const json_t *json, double *ret_value)
{
	if (json_is_null(json))
		*ret_value = NAN;
	else if (json_is_number(json))
		*ret_value = json_number_value(json);
	else
		return -ENOENT;
	return 0;
}

/* A path whose first step is one of the JSON members: no need to build the whole record. */
static int shared_path(const struct record *record, const char *path, double *ret_value)
{
	const struct {
		const char *name;
		const json_t *object;
	} members[] = {
		{"counters", record->counters},	      {"load_stats", record->load_stats},
		{"environment", record->environment}, {"settings", record->settings},
		{"metrics", record->metrics},
	};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++) {
		size_t length = strlen(members[i].name);
		const json_t *found;

		if (strncmp(path, members[i].name, length) != 0 || path[length] != '.')
			continue;
		found = json_at(members[i].object, path + length + 1);
		return found ? value_of(found, ret_value) : -ENOENT;
	}
	return -ENODATA;
}

static int any_path(const struct record *record, const char *path, double *ret_value)
{
	int error = shared_path(record, path, ret_value);
	json_t *json, *found;

	if (error != -ENODATA)
		return error;
	json = record_to_json(record);
	if (!json)
		return -ENOMEM;
	found = json_at(json, path);
	error = found ? value_of(found, ret_value) : -ENOENT;
	json_decref(json);
	return error;
}

int record_metric(const struct record *record, const char *name, double *ret_value,
		  const char **ret_unit)
{
	const json_t *metric = json_object_get(record->metrics, name);
	double value;
	int error;

	if (metric) {
		*ret_value = json_get_number(metric, "value", NAN);
		*ret_unit = json_get_string(metric, "unit", "");
		return 0;
	}
	if (record->has_latency && latency_field(&record->latency, name, &value) == 0) {
		*ret_value = value;
		*ret_unit = "us";
		return 0;
	}
	if (igt_field(record, name, &value) == 0 && !isnan(value)) {
		*ret_value = value;
		*ret_unit = "us";
		return 0;
	}
	if (!strchr(name, '.') && !strchr(name, '_'))
		return -ENOENT;
	error = any_path(record, name, &value);
	if (error)
		return error;
	*ret_value = value;
	*ret_unit = unit_of_key(name);
	return 0;
}

bool record_metric_higher_is_better(const struct record *record, const char *name)
{
	const json_t *metric = json_object_get(record->metrics, name);
	size_t length = strlen(name);

	if (metric)
		return strcmp(json_get_string(metric, "better", "lower"), "higher") == 0;
	return length > 6 && strcmp(name + length - 6, "_per_s") == 0;
}
