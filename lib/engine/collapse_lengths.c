/* SPDX-License-Identifier: MIT */
/*
 * MADV_COLLAPSE over memory that is already huge, by length: what a call costs where there is
 * nothing to do, and what each further table adds.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "engine/collapse_state.h"
#include "stats/series.h"

#define CALLS_MOST 200000
#define CALLS_LEAST 11
#define TIME_MOST_NS (4 * NS_PER_S) /* for one length in one run */

int collapse_samples_make(struct collapse_samples *samples, size_t capacity)
{
	*samples = (struct collapse_samples){.capacity = capacity};
	samples->values = malloc(capacity * sizeof(*samples->values));
	if (!samples->values)
		return -ENOMEM;
	/* Their pages shall exist before anything is timed. */
	for (size_t i = 0; i < capacity; i++)
		samples->values[i] = 0;
	return 0;
}

void collapse_samples_sort(struct collapse_samples *samples)
{
	series_sort(samples->values, samples->count);
}

double collapse_samples_at(const struct collapse_samples *samples, double fraction)
{
	double rarer = fraction < 0.5 ? fraction : 1 - fraction;

	if (samples->count == 0 || (rarer > 0 && (double)samples->count * rarer < 1))
		return NAN;
	return samples->values[fraction >= 1 ? samples->count - 1
					     : (size_t)((double)samples->count * fraction)];
}

void collapse_samples_free(struct collapse_samples *samples)
{
	free(samples->values);
	*samples = (struct collapse_samples){0};
}

/* Walks the region in steps of @bytes, round and round. */
static int time_calls(struct collapse *collapse, uint64_t bytes, struct collapse_samples *samples,
		      struct message *why)
{
	char *memory = collapse->region.memory;
	uint64_t steps = collapse->bytes / bytes, step = 0;
	int64_t limit_ns = collapse->settings->window_ns / 5, end_ns, begin_ns, now_ns;

	if (limit_ns > TIME_MOST_NS)
		limit_ns = TIME_MOST_NS;
	samples->count = 0;
	/* The first calls find cold caches. */
	for (uint64_t i = 0; i < steps && i < 16; i++)
		madvise(memory + i * bytes, bytes, MADV_COLLAPSE);
	now_ns = clock_now_ns();
	end_ns = now_ns + limit_ns;
	while (samples->count < samples->capacity &&
	       (samples->count < CALLS_LEAST || now_ns < end_ns)) {
		begin_ns = clock_now_ns();
		if (madvise(memory + step * bytes, bytes, MADV_COLLAPSE) < 0)
			return message_set_errno(why, -errno, "MADV_COLLAPSE of huge memory");
		now_ns = clock_now_ns();
		samples->values[samples->count++] =
			(double)(now_ns - begin_ns) - collapse->clock_cost_ns;
		step = step + 1 < steps ? step + 1 : 0;
		if (samples->count % 1024 == 0 && collapse_stopping(collapse))
			return -EINTR;
	}
	return 0;
}

static int measure_length(struct collapse *collapse, const char *label, uint64_t bytes,
			  struct collapse_samples *samples, double *ret_p50_ns, struct message *why)
{
	char name[64];
	int error = time_calls(collapse, bytes, samples, why);

	if (error)
		return error;
	collapse_samples_sort(samples);
	*ret_p50_ns = collapse_samples_at(samples, 0.5);
	snprintf(name, sizeof(name), "%s_p50_ns", label);
	collapse_put(collapse, name, "ns", false, *ret_p50_ns, "%s per call, p50", label);
	snprintf(name, sizeof(name), "%s_p99_ns", label);
	collapse_put(collapse, name, "ns", false, collapse_samples_at(samples, 0.99),
		     "%s per call, p99", label);
	return 0;
}

int collapse_lengths_row(struct collapse *collapse, const struct collapse_row *row,
			 struct message *why)
{
	/* 2M, 32M and 512M where a table is 2M; 0: the whole region. */
	static const uint64_t lengths[] = {1, 16, 256, 0};
	double p50_ns = NAN, first_ns = NAN, longest_ns = NAN;
	struct collapse_samples samples;
	struct collapse_window window;
	uint64_t longest = 1;
	int error = collapse_samples_make(&samples, CALLS_MOST);

	if (error)
		return message_set_errno(why, error, "samples");
	collapse_region_check(collapse, "before");
	collapse_window_begin(collapse, &window);
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]) && !error; i++) {
		uint64_t tables = lengths[i] ? lengths[i] : collapse->tables;
		char label[32] = "whole";

		if (tables > collapse->tables)
			continue;
		if (lengths[i])
			format_size(tables * collapse->table_bytes, label, sizeof(label));
		error = measure_length(collapse, label, tables * collapse->table_bytes, &samples,
				       &p50_ns, why);
		if (i == 0)
			first_ns = p50_ns;
		/* The mail's slope: from 2M to 512M; on smaller regions to the whole. */
		if (tables > longest && (lengths[i] || longest < 256)) {
			longest = tables;
			longest_ns = p50_ns;
		}
	}
	collapse_window_end(collapse, &window, 0);
	collapse_region_check(collapse, "after");
	if (!error && longest > 1) {
		double slope_ns = (longest_ns - first_ns) / (double)(longest - 1);

		collapse_put(collapse, "slope_ns", "ns", false, slope_ns,
			     "each further table of a call");
		collapse_put(collapse, "intercept_ns", "ns", false, first_ns - slope_ns,
			     "a call of no table (intercept)");
	}
	collapse_samples_free(&samples);
	return error;
}
