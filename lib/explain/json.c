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

/* Only when there is one. */
static void put_text(json_t *object, const char *key, bool there, const char *text)
{
	if (there)
		json_put(object, key, json_string_or_null(text));
}

static void put_if_not_0(json_t *object, const char *key, int64_t pages)
{
	if (pages)
		json_put(object, key, json_integer(pages));
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
	put_text(object, "within", slice->outer != CAUSE_UNKNOWN, cause_name(slice->outer));
	put_text(object, "name", slice->name[0], slice->name);
	put_text(object, "task", slice->comm[0] && slice->tid != 0, slice->comm);
	put_if_not_0(object, "tid", slice->tid);
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
	put_if_not_0(object, "anon_pages_freed", explanation->anon_pages);
	put_if_not_0(object, "file_pages_freed", explanation->file_pages);
	put_if_not_0(object, "pages_scanned", explanation->scanned_pages);
	put_text(object, "woken_by", explanation->waker_tid, explanation->waker_comm);
	put_text(object, "held_by", explanation->holder_tid, explanation->holder_comm);
	if (explanation->doing != CAUSE_UNKNOWN) {
		json_put(object, "held_up_by", json_string(cause_name(explanation->doing)));
		json_put(object, "held_up_us", us(explanation->doing_ns));
	}
	put_text(object, "collapsed_by", explanation->collapser_tid, explanation->collapser_comm);
	put_text(object, "stack", explanation->stack[0], explanation->stack);
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
