/* SPDX-License-Identifier: MIT */
#include "collapse/judge.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), end_length = strlen(end);

	return length >= end_length && strcmp(text + length - end_length, end) == 0;
}

/* (highest - lowest) / median of the runs that count; 0 when they are too few to say. */
static double range_of(const struct metric_series *series)
{
	size_t count;
	double *sorted = metric_series_sorted(series, &count), range = 0;

	if (sorted && count >= COLLAPSE_RUNS_LEAST && sorted[count / 2] != 0)
		range = (sorted[count - 1] - sorted[0]) / fabs(sorted[count / 2]);
	free(sorted);
	return range;
}

struct ranges {
	const struct metric_series *worst; /* of what the row is about */
	const struct metric_series *reference, *reference_fast;
	double worst_range, reference_range;
	double slowness; /* of the reference: its median beside the fastest that it can be, less 1
			  */
};

static void look_at(const struct metric_series *series, struct ranges *ranges)
{
	double range = range_of(series);

	if (ends_with(series->name, "_" REFERENCE_METRIC)) {
		ranges->reference = series;
		ranges->reference_range = range;
	} else if (ends_with(series->name, "_" REFERENCE_FAST_METRIC)) {
		ranges->reference_fast = series;
	} else if (!ranges->worst) {
		ranges->worst = series;
		ranges->worst_range = range;
	} else if ((ends_with(series->name, "_passes") || ends_with(series->name, "_p50_ns")) &&
		   range > ranges->worst_range) {
		ranges->worst = series;
		ranges->worst_range = range;
	}
}

static void look_at_speed(struct ranges *ranges)
{
	size_t count, fast_count;
	double *sorted, *fast;

	if (!ranges->reference || !ranges->reference_fast)
		return;
	sorted = metric_series_sorted(ranges->reference, &count);
	fast = metric_series_sorted(ranges->reference_fast, &fast_count);
	if (sorted && fast && count >= COLLAPSE_RUNS_LEAST && fast[0] > 0)
		ranges->slowness = sorted[count / 2] / fast[0] - 1;
	free(sorted);
	free(fast);
}

static void tell_range(const struct ranges *ranges, const char *name, struct message *why)
{
	char reference[160] = "";

	if (ranges->reference)
		snprintf(reference, sizeof(reference), "; fixed work beside them by %.0f%%: %s",
			 100 * ranges->reference_range,
			 ranges->reference_range >= ranges->worst_range / 2
				 ? "this machine, or its host, changed its speed"
				 : "not this machine's speed, but its memory or what ran beside");
	message_set(why, 0,
		    "row %s: its runs differ by %.0f%% of the median (%s)%s; another set of runs "
		    "may give another median",
		    name, 100 * ranges->worst_range, ranges->worst->title, reference);
}

bool collapse_runs_agree(const struct metric_table *table, unsigned int row, const char *name,
			 bool reference_counts, struct message *why)
{
	struct ranges ranges = {0};

	for (size_t i = 0; i < table->count; i++) {
		const struct metric_series *series = &table->series[i];

		if (series->count > 0 && series->groups[0] % COLLAPSE_ROWS_MOST == row)
			look_at(series, &ranges);
	}
	look_at_speed(&ranges);
	if (ranges.worst && ranges.worst_range > COLLAPSE_RANGE_MOST)
		tell_range(&ranges, name, why);
	else if (!reference_counts)
		return true;
	else if (ranges.reference_range > COLLAPSE_RANGE_MOST)
		message_set(why, 0,
			    "row %s: fixed work beside its runs differs by %.0f%% of the median: "
			    "this machine, or its host, changed its speed; another set of runs "
			    "may give another median",
			    name, 100 * ranges.reference_range);
	else if (ranges.slowness > COLLAPSE_RANGE_MOST)
		message_set(
			why, 0,
			"row %s: fixed work beside its runs took %.0f%% longer than when it was "
			"fastest: this machine, or its host, was busy for most of the time; "
			"another set of runs may be faster",
			name, 100 * ranges.slowness);
	else
		return true;
	return false;
}
