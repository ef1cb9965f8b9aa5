/* SPDX-License-Identifier: MIT */
#include "record/metric_table.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "stats/interval.h"
#include "stats/series.h"
#include "stats/summary.h"

const struct metric_series *metric_table_find(const struct metric_table *table, const char *name)
{
	for (size_t i = 0; i < table->count; i++)
		if (strcmp(table->series[i].name, name) == 0)
			return &table->series[i];
	return NULL;
}

static struct metric_series *add_series(struct metric_table *table, const struct metric_kind *kind)
{
	struct metric_series *series;

	if (table->count == table->capacity) {
		size_t capacity = table->capacity ? 2 * table->capacity : 32;
		struct metric_series *grown = reallocarray(table->series, capacity, sizeof(*grown));

		if (!grown)
			return NULL;
		table->series = grown;
		table->capacity = capacity;
	}
	series = &table->series[table->count];
	*series = (struct metric_series){
		.name = strdup(kind->name),
		.title = strdup(kind->title),
		.unit = kind->unit,
		.higher_is_better = kind->higher_is_better,
	};
	if (!series->name || !series->title) {
		free(series->name);
		free(series->title);
		return NULL;
	}
	table->count++;
	return series;
}

static bool make_room(struct metric_series *series)
{
	size_t capacity = series->capacity ? 2 * series->capacity : 8;
	double *values;
	unsigned int *groups;
	bool *left_out;

	if (series->count < series->capacity)
		return true;
	values = reallocarray(series->values, capacity, sizeof(*values));
	if (!values)
		return false;
	series->values = values;
	groups = reallocarray(series->groups, capacity, sizeof(*groups));
	if (!groups)
		return false;
	series->groups = groups;
	left_out = reallocarray(series->left_out, capacity, sizeof(*left_out));
	if (!left_out)
		return false;
	series->left_out = left_out;
	series->capacity = capacity;
	return true;
}

void metric_table_add(struct metric_table *table, const struct metric_kind *kind, double value)
{
	struct metric_series *series = (struct metric_series *)metric_table_find(table, kind->name);

	if (!series)
		series = add_series(table, kind);
	if (!series || !make_room(series)) {
		table->failed = true;
		return;
	}
	series->values[series->count] = value;
	series->groups[series->count] = table->group;
	series->left_out[series->count++] = false;
}

void metric_table_leave_out(struct metric_table *table, unsigned int group)
{
	for (size_t i = 0; i < table->count; i++)
		for (size_t k = 0; k < table->series[i].count; k++)
			if (table->series[i].groups[k] == group)
				table->series[i].left_out[k] = true;
}

static size_t count_left_out(const struct metric_series *series)
{
	size_t count = 0;

	for (size_t i = 0; i < series->count; i++)
		count += series->left_out[i];
	return count;
}

double *metric_series_sorted(const struct metric_series *series, size_t *ret_count)
{
	bool all = count_left_out(series) == series->count;
	double *sorted = malloc(series->count * sizeof(*sorted) + 1);
	size_t count = 0;

	*ret_count = 0;
	if (!sorted)
		return NULL;
	for (size_t i = 0; i < series->count; i++)
		if ((all || !series->left_out[i]) && isfinite(series->values[i]))
			sorted[count++] = series->values[i];
	if (count == 0 || series_sort(sorted, count) < 0) {
		free(sorted);
		return NULL;
	}
	*ret_count = count;
	return sorted;
}

static json_t *interval_json(const double *sorted, size_t count)
{
	struct interval interval;
	json_t *json;

	if (!sorted || percentile_interval(sorted, count, 0.5, 0.95, &interval) < 0)
		return json_null();
	json = json_array();
	json_array_append_new(json, json_number_or_null(interval.low));
	json_array_append_new(json, json_number_or_null(interval.high));
	return json;
}

static json_t *values_json(const struct metric_series *series)
{
	json_t *json = json_array();

	for (size_t i = 0; i < series->count; i++)
		json_array_append_new(json, json_number_or_null(series->values[i]));
	return json;
}

static double mean_of(const double *values, size_t count)
{
	struct moments moments = {0};

	for (size_t i = 0; i < count; i++)
		moments_add(&moments, values[i]);
	return moments.mean;
}

static json_t *series_json(const struct metric_series *series)
{
	size_t count;
	double *sorted = metric_series_sorted(series, &count);
	double p99 = count >= 100 ? sorted[count * 99 / 100] : NAN;
	json_t *json = json_object();
	int error = 0;

	error |= json_put(json, "value",
			  json_number_or_null(sorted ? series_median(sorted, count) : NAN));
	error |= json_put(json, "unit", json_string(series->unit));
	error |= json_put(json, "better",
			  json_string(series->higher_is_better ? "higher" : "lower"));
	error |= json_put(json, "title", json_string_or_null(series->title));
	error |= json_put(json, "mean", json_number_or_null(sorted ? mean_of(sorted, count) : NAN));
	error |= json_put(json, "min", json_number_or_null(sorted ? sorted[0] : NAN));
	error |= json_put(json, "max", json_number_or_null(sorted ? sorted[count - 1] : NAN));
	error |= json_put(json, "p99", json_number_or_null(p99));
	error |= json_put(json, "median_ci", interval_json(sorted, count));
	error |= json_put(json, "count", json_integer((json_int_t)count));
	error |= json_put(json, "left_out", json_integer((json_int_t)count_left_out(series)));
	if (series->count <= METRIC_VALUES_MOST)
		error |= json_put(json, "values", values_json(series));
	free(sorted);
	if (error) {
		json_decref(json);
		return NULL;
	}
	return json;
}

json_t *metric_table_json(const struct metric_table *table)
{
	json_t *json = json_object();

	if (table->failed) {
		json_decref(json);
		return NULL;
	}
	for (size_t i = 0; i < table->count; i++)
		if (json_put(json, table->series[i].name, series_json(&table->series[i])) < 0) {
			json_decref(json);
			return NULL;
		}
	return json;
}

void metric_table_free(struct metric_table *table)
{
	for (size_t i = 0; i < table->count; i++) {
		free(table->series[i].name);
		free(table->series[i].title);
		free(table->series[i].values);
		free(table->series[i].groups);
		free(table->series[i].left_out);
	}
	free(table->series);
	*table = (struct metric_table){0};
}
