/* SPDX-License-Identifier: MIT */
/*
 * MADV_COLLAPSE over memory that is already huge, by length: what a call costs where there is
 * nothing to do, and what each further table adds. The lengths take turns of a millisecond or two,
 * so that all numbers come from the same time, and from all of it: a host that is slower for a
 * while is so for all of them, and for a part of each.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/parse.h"
#include "collapse/state.h"

#define SAMPLES_MOST 500000
#define ROUNDS_LEAST 11
#define TURN_CALLS_MOST 256
#define TURN_MOST_NS (2 * NS_PER_MS)
#define TIME_MOST_NS (8 * NS_PER_S) /* for all lengths in one run */
#define LENGTHS 4

/* One length of call. */
struct length {
	char label[32];
	uint64_t tables, bytes;
	uint64_t steps, step; /* calls that cover the region; the next one */
	struct collapse_samples samples;
	double p50_ns;
};

static void free_lengths(struct length *lengths, size_t count)
{
	for (size_t i = 0; i < count; i++)
		collapse_samples_free(&lengths[i].samples);
}

/* 2M, 32M and 512M where a table is 2M, as far as they fit, and the whole region. */
static int make_lengths(const struct collapse *collapse, struct length *lengths, size_t *ret_count)
{
	static const uint64_t tables[LENGTHS] = {1, 16, 256, 0};

	*ret_count = 0;
	for (size_t i = 0; i < LENGTHS; i++) {
		struct length *length = &lengths[*ret_count];

		if (tables[i] > collapse->tables)
			continue;
		*length = (struct length){.label = "whole",
					  .tables = tables[i] ? tables[i] : collapse->tables};
		length->bytes = length->tables * collapse->table_bytes;
		length->steps = collapse->bytes / length->bytes;
		if (tables[i])
			format_size(length->bytes, length->label, sizeof(length->label));
		++*ret_count;
		if (collapse_samples_make(&length->samples, SAMPLES_MOST) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int call_next(const struct collapse *collapse, struct length *length)
{
	char *at = (char *)collapse->region.memory + length->step * length->bytes;

	length->step = length->step + 1 < length->steps ? length->step + 1 : 0;
	return madvise(at, length->bytes, MADV_COLLAPSE) < 0 ? -errno : 0;
}

/* The first call of a turn finds the caches as the length before left them: not counted. */
static int take_turn(const struct collapse *collapse, struct length *length)
{
	int error = call_next(collapse, length);
	int64_t now_ns = clock_now_ns(), end_ns = now_ns + TURN_MOST_NS;

	for (int i = 0; i < TURN_CALLS_MOST && (i == 0 || now_ns < end_ns) && !error; i++) {
		int64_t begin_ns = clock_now_ns();

		error = call_next(collapse, length);
		collapse_samples_add(collapse, &length->samples, begin_ns);
		now_ns = clock_now_ns();
	}
	return error;
}

static int time_rounds(struct collapse *collapse, struct length *lengths, size_t count,
		       struct message *why)
{
	int64_t time_ns = collapse->settings->window_ns / 5 * 2, end_ns;

	if (time_ns > TIME_MOST_NS)
		time_ns = TIME_MOST_NS;
	end_ns = clock_now_ns() + time_ns;
	for (unsigned int round = 0; round < ROUNDS_LEAST || clock_now_ns() < end_ns; round++) {
		for (size_t i = 0; i < count; i++) {
			int error = take_turn(collapse, &lengths[i]);

			if (error)
				return message_set_errno(why, error,
							 "MADV_COLLAPSE of huge memory");
		}
		collapse_reference_time(collapse, REFERENCE_TURN_CALLS);
		if (collapse_stopping(collapse))
			return -EINTR;
	}
	return 0;
}

static void put_length(struct collapse *collapse, struct length *length)
{
	collapse_prefix(collapse, "%s_", length->label);
	collapse_put_samples(collapse, &length->samples, 0, "%s per call", length->label);
	length->p50_ns = collapse_samples_at(&length->samples, 0.5);
}

/* The mail's slope: from 2M to 512M; on smaller regions to the whole. */
static void put_slope(struct collapse *collapse, const struct length *lengths, size_t count)
{
	const struct length *first = &lengths[0], *longest = first;
	double slope_ns;

	for (size_t i = 1; i < count; i++)
		if (lengths[i].tables > longest->tables && longest->tables < 256)
			longest = &lengths[i];
	if (longest == first)
		return;
	slope_ns = (longest->p50_ns - first->p50_ns) / (double)(longest->tables - 1);
	collapse->prefix[0] = '\0';
	collapse_put(collapse, "slope_ns", "ns", slope_ns, "each further table of a call");
	collapse_put(collapse, "intercept_ns", "ns", first->p50_ns - slope_ns,
		     "a call of no table (intercept)");
}

int collapse_lengths_row(struct collapse *collapse, const struct collapse_row *row,
			 struct message *why)
{
	struct length lengths[LENGTHS];
	struct collapse_window window;
	size_t count;
	int error = make_lengths(collapse, lengths, &count);

	if (error)
		message_set_errno(why, error, "samples");
	if (!error) {
		collapse_region_check(collapse, "before");
		collapse_window_begin(collapse, &window);
		error = time_rounds(collapse, lengths, count, why);
		collapse_window_end(collapse, &window, 0);
		collapse_region_check(collapse, "after");
	}
	for (size_t i = 0; i < count && !error; i++)
		put_length(collapse, &lengths[i]);
	if (!error)
		put_slope(collapse, lengths, count);
	free_lengths(lengths, count);
	return error;
}
