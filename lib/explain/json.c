/* SPDX-License-Identifier: MIT */
/* Explanations as data: entries of the record's "causes", and late time by cause. */
#include "explain/explain_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"

/* In a record, whose line stays small: so many, and none below a hundredth of the delay. */
#define SLICES_KEPT 6

static json_t *us(int64_t ns)
{
	/* Whole nanoseconds, so that a line stays short. */
	return json_real((double)ns / 1e3);
}

static json_t *split_json(const struct explanation *explanation)
{
	bool wakeup = explanation->window.subject == SUBJECT_WAKEUP;
	json_t *split = json_object();
	int first = wakeup ? EXPLAIN_TIMER : EXPLAIN_ON_CPU;
	int last = wakeup ? EXPLAIN_RETURN : EXPLAIN_OFF_CPU;

	for (int phase = first; phase <= last; phase++)
		json_put(split, explain_phase_name((enum explain_phase)phase),
			 us(explanation->phase_ns[phase]));
	return split;
}

static json_t *slice_json(const struct explain_slice *slice)
{
	json_t *object = json_object();

	json_put(object, "phase", json_string(explain_phase_name(slice->phase)));
	json_put(object, "cause", json_string(cause_name(slice->cause)));
	if (slice->outer != CAUSE_UNKNOWN)
		json_put(object, "within", json_string(cause_name(slice->outer)));
	if (slice->name[0])
		json_put(object, "name", json_string_or_null(slice->name));
	if (slice->comm[0] && slice->tid != 0)
		json_put(object, "task", json_string_or_null(slice->comm));
	if (slice->tid != 0)
		json_put(object, "tid", json_integer(slice->tid));
	json_put(object, "us", us(slice->ns));
	return object;
}

static json_t *evidence_json(const struct explanation *explanation)
{
	const struct explain_window *window = &explanation->window;
	json_t *object = json_object();

	json_put(object, "steal_us", window->steal_ns < 0 ? json_null() : us(window->steal_ns));
	if (window->steal_span_ns > 0)
		json_put(object, "steal_span_us", us(window->steal_span_ns));
	json_put(object, "silent_us", us(explanation->silent_ns));
	if (explanation->switch_inferred)
		json_put(object, "switch_inferred", json_true());
	if (explanation->anon_pages)
		json_put(object, "anon_pages_freed", json_integer(explanation->anon_pages));
	if (explanation->file_pages)
		json_put(object, "file_pages_freed", json_integer(explanation->file_pages));
	if (explanation->scanned_pages)
		json_put(object, "pages_scanned", json_integer(explanation->scanned_pages));
	if (explanation->waker_tid)
		json_put(object, "woken_by", json_string_or_null(explanation->waker_comm));
	if (explanation->holder_tid)
		json_put(object, "held_by", json_string_or_null(explanation->holder_comm));
	if (explanation->doing != CAUSE_UNKNOWN) {
		json_put(object, "held_up_by", json_string(cause_name(explanation->doing)));
		json_put(object, "held_up_us", us(explanation->doing_ns));
	}
	if (explanation->collapser_tid)
		json_put(object, "collapsed_by", json_string_or_null(explanation->collapser_comm));
	if (explanation->stack[0])
		json_put(object, "stack", json_string_or_null(explanation->stack));
	return object;
}

static const char *main_cause(const struct explanation *explanation)
{
	int64_t ns;
	const struct explain_slice *main = explain_main(explanation, &ns);

	return cause_name(main ? explain_base(main) : CAUSE_UNKNOWN);
}

json_t *explanation_json(const struct explanation *explanation, int64_t begin_ns)
{
	const struct explain_window *window = &explanation->window;
	json_t *object = json_object(), *slices = json_array();

	json_put(object, "when_us", us(window->when_ns - begin_ns));
	json_put(object, "cpu", json_integer(window->cpu));
	json_put(object, "tid", json_integer(window->tid));
	json_put(object, "late_us", us(window->late_ns));
	json_put(object, "cause", json_string(main_cause(explanation)));
	json_put(object, "sentence", json_string_or_null(explanation->sentence));
	json_put(object, "split_us", split_json(explanation));
	json_put(object, "explained_percent",
		 json_real(window->late_ns > 0 ? 100.0 * (double)explanation->explained_ns /
							 (double)window->late_ns
					       : 0));
	for (size_t i = 0; i < explanation->slice_count && i < SLICES_KEPT &&
			   explanation->slices[i].ns >= window->late_ns / 100;
	     i++)
		json_array_append_new(slices, slice_json(&explanation->slices[i]));
	json_put(object, "slices", slices);
	json_put(object, "evidence", evidence_json(explanation));
	return object;
}

json_t *explain_summary(const struct explanation *explanations, size_t count, int64_t least_ns)
{
	int64_t ns[CAUSE_KINDS] = {0}, total_ns = 0;
	json_t *array = json_array();

	for (size_t i = 0; i < count; i++) {
		if (explanations[i].window.late_ns < least_ns)
			continue;
		total_ns += explanations[i].window.late_ns;
		for (size_t k = 0; k < explanations[i].slice_count; k++)
			ns[explanations[i].slices[k].cause] += explanations[i].slices[k].ns;
	}
	for (;;) {
		json_t *object;
		int best = 0;

		for (int kind = 1; kind < CAUSE_KINDS; kind++)
			if (ns[kind] > ns[best])
				best = kind;
		if (ns[best] <= 0)
			return array;
		object = json_object();
		json_put(object, "cause", json_string(cause_name((enum cause_kind)best)));
		json_put(object, "late_us", us(ns[best]));
		json_put(object, "percent", json_real(100.0 * (double)ns[best] / (double)total_ns));
		json_array_append_new(array, object);
		ns[best] = 0;
	}
}
