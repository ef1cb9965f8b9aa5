/* SPDX-License-Identifier: MIT */
/* The segments of one window: what the host stole of them, and their sums. */
#include "explain/explain_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

/* A timer late by less than this is not looked at for theft: kernels keep interrupts off so long.
 */
#define STEAL_LEAST_NS NS_PER_MS
/* Clearing a huge page takes less than this on any machine. */
#define STEAL_LEAST_SELF_NS (2 * NS_PER_MS)
/* An idle CPU keeps nothing off, and leaves its deepest state in less than a millisecond. */
#define STEAL_LEAST_IDLE_NS (200 * NS_PER_US)
#define STEAL_LEAST_LEAVE_IDLE_NS NS_PER_MS

int segments_add(struct segments *segments, int64_t ns, bool whole,
		 const struct explain_slice *label)
{
	int error;

	if (ns <= 0)
		return 0;
	error = array_reserve(&segments->items, &segments->capacity, segments->count + 1);
	if (!error)
		segments->items[segments->count++] = (struct segment){ns, whole, *label};
	return error;
}

static int longest_first(const void *a, const void *b)
{
	int64_t left = ((const struct segment *)a)->ns, right = ((const struct segment *)b)->ns;

	return left < right ? 1 : left > right ? -1 : 0;
}

/* Handlers of the kernel's own timers take microseconds; in a device's anything may happen. */
static bool is_timer_handler(const struct explain_slice *label)
{
	return label->cause == CAUSE_IRQ &&
	       (strncmp(label->name, "timer ", 6) == 0 || strcmp(label->name, "local timer") == 0);
}

/* The CPU idled, or what was inferred is not known to have run. */
static bool is_idle(const struct explain_slice *label)
{
	return (label->cause == CAUSE_IDLE && !is_throttled(label)) ||
	       (label->cause == CAUSE_SELF && label->outer == CAUSE_IDLE);
}

/* From what length on may time without an event on the CPU have been stolen? */
static int64_t least_stolen_ns(const struct segment *segment, int64_t tick_ns)
{
	const struct explain_slice *label = &segment->label;
	bool timer = label->phase == EXPLAIN_TIMER;

	if (!segment->whole || label->cause == CAUSE_STOPPED || label->cause == CAUSE_BLOCKED ||
	    is_throttled(label))
		return INT64_MAX;
	if (is_idle(label))
		return timer ? STEAL_LEAST_IDLE_NS : STEAL_LEAST_LEAVE_IDLE_NS;
	/* The sampler's own code, which is known and short. */
	if (label->cause == CAUSE_SELF)
		return STEAL_LEAST_SELF_NS;
	/* The interrupt of the timer itself did not come, or its handler does not end. */
	if (timer || is_timer_handler(label))
		return STEAL_LEAST_NS;
	/* Elsewhere a task may compute in silence: only what the counter resolves is believed. */
	return tick_ns;
}

/*
 * Is silence a sign without the counter? Below a tick, or on a host that does not tell; of an idle
 * CPU at any length: a host that wakes it late has not taken it from anything that ran.
 */
static bool is_sign_of_theft(const struct segment *segment, const struct explain_window *window,
			     const struct explain_settings *settings)
{
	const struct explain_slice *label = &segment->label;

	if (!settings->guest)
		return false;
	if (is_idle(label))
		return true;
	if (window->steal_ns >= 0 && segment->ns > settings->tick_ns)
		return false;
	return label->phase == EXPLAIN_TIMER || label->cause == CAUSE_SELF ||
	       is_timer_handler(label);
}

/* Charges @ns of a segment to the host; items may move. */
static int split_off(struct segments *segments, size_t index, int64_t ns, enum cause_kind kind)
{
	struct explain_slice label = segments->items[index].label;

	segments->items[index].ns -= ns;
	label.cause = kind;
	label.outer = CAUSE_UNKNOWN;
	label.name[0] = '\0';
	return segments_add(segments, ns, false, &label);
}

int segments_take_stolen(struct segments *segments, const struct explain_window *window,
			 const struct explain_settings *settings)
{
	int64_t budget_ns = window->steal_ns > 0 ? window->steal_ns + settings->tick_ns : 0;
	size_t count = segments->count;
	int error = 0;

	if (count)
		qsort(segments->items, count, sizeof(*segments->items), longest_first);
	for (size_t i = 0; i < count && !error; i++) {
		struct segment *segment = &segments->items[i];
		int64_t stolen_ns = segment->ns < budget_ns ? segment->ns : budget_ns;

		if (segment->ns < least_stolen_ns(segment, settings->tick_ns))
			continue;
		budget_ns -= stolen_ns;
		error = split_off(segments, i, stolen_ns, CAUSE_STEAL);
		segment = &segments->items[i];
		/* Of what the counter tells of, no part is a mere sign; an idle CPU's is. */
		if (!error && (stolen_ns == 0 || is_idle(&segment->label)) &&
		    is_sign_of_theft(segment, window, settings))
			error = split_off(segments, i, segment->ns, CAUSE_POSSIBLE_STEAL);
	}
	return error;
}

static bool same_slice(const struct explain_slice *a, const struct explain_slice *b)
{
	return a->phase == b->phase && a->cause == b->cause && a->outer == b->outer &&
	       a->tid == b->tid && strcmp(a->name, b->name) == 0;
}

static void put_slices(const struct segment *sums, size_t count, struct explanation *explanation)
{
	struct explain_slice *slices = explanation->slices;

	explanation->explained_ns = explanation->window.late_ns;
	for (size_t i = 0; i < count; i++) {
		if (i < EXPLAIN_SLICES) {
			slices[i] = sums[i].label;
			slices[i].ns = sums[i].ns;
			explanation->slice_count = i + 1;
			continue;
		}
		slices[EXPLAIN_SLICES - 1] = (struct explain_slice){
			.phase = slices[EXPLAIN_SLICES - 1].phase,
			.ns = slices[EXPLAIN_SLICES - 1].ns + sums[i].ns,
		};
	}
	for (size_t i = 0; i < explanation->slice_count; i++)
		if (slices[i].cause == CAUSE_UNKNOWN)
			explanation->explained_ns -= slices[i].ns;
}

int segments_sum_up(const struct segments *segments, struct explanation *explanation)
{
	struct segments sums = {0};
	int error = 0;

	for (size_t i = 0; i < segments->count && !error; i++) {
		const struct segment *segment = &segments->items[i];
		size_t k = 0;

		explanation->phase_ns[segment->label.phase] += segment->ns;
		while (k < sums.count && !same_slice(&sums.items[k].label, &segment->label))
			k++;
		if (k < sums.count)
			sums.items[k].ns += segment->ns;
		else
			error = segments_add(&sums, segment->ns, false, &segment->label);
	}
	if (!error && sums.count) {
		qsort(sums.items, sums.count, sizeof(*sums.items), longest_first);
		put_slices(sums.items, sums.count, explanation);
	}
	free(sums.items);
	return error;
}
