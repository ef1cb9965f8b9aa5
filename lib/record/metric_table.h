/* SPDX-License-Identifier: MIT */
#ifndef RECORD_METRIC_TABLE_H
#define RECORD_METRIC_TABLE_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/*
 * Metrics that are measured several times in one run of a program: one value a repetition, and in
 * the record's "metrics" the median, with range and values beside it.
 */
struct metric_series {
	char *name, *title;
	const char *unit; /* static text */
	bool higher_is_better;
	double *values;
	unsigned int *groups; /* of each value: what it was measured with */
	bool *left_out;	      /* of each value */
	size_t count, capacity;
};

struct metric_table {
	struct metric_series *series; /* in the order of their first values */
	size_t count, capacity;
	unsigned int group; /* given to each value that is added; set by the caller */
	bool failed;	    /* memory ended: the table is not whole */
};

/* What a metric is, whatever its values. */
struct metric_kind {
	const char *name;
	const char *title;
	const char *unit; /* static text */
	bool higher_is_better;
};

/* Adds one value; name and title are copied. NaN is kept as null. */
void metric_table_add(struct metric_table *table, const struct metric_kind *kind, double value);

/* Leaves the values of @group out of medians: the conditions of their measurement were not met. */
void metric_table_leave_out(struct metric_table *table, unsigned int group);

const struct metric_series *metric_table_find(const struct metric_table *table, const char *name);

/* Ascending copy of the finite values that count (all of them when all were left out); the caller
 * frees. NULL and *ret_count 0: none, or no memory. */
double *metric_series_sorted(const struct metric_series *series, size_t *ret_count);

/* Longer series are described by their numbers alone: a record is a line of some KB. */
#define METRIC_VALUES_MOST 32

/*
 * {name: {"value": median, "unit", "better", "title", "mean", "min", "max", "p99", "median_ci",
 * "count", "left_out", "values": [...]}}. "p99": null below 100 values. "median_ci": 95%, from
 * order statistics; null below 6. "values": in order of time, those left out too, of up to
 * METRIC_VALUES_MOST. NULL without memory.
 */
json_t *metric_table_json(const struct metric_table *table);

void metric_table_free(struct metric_table *table);

#endif
