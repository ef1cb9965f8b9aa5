/* SPDX-License-Identifier: MIT */
/* One delay: replayed, cut into segments at the events of its CPU, summed up, put into words. */
#include "explain/explain.h"

#include <stdlib.h>
#include <string.h>

#include "explain/explain_internal.h"

static void gather_evidence(const struct replay *replay, const struct trace_event *event,
			    struct explanation *explanation)
{
	const struct subject *subject = &replay->subject;

	if (event->kind == TRACE_RECLAIMED && event->cpu == subject->cpu) {
		*(event->value < 0 ? &explanation->file_pages : &explanation->anon_pages) +=
			event->value < 0 ? -event->value : event->value;
		explanation->scanned_pages += event->other;
	} else if (event->kind == TRACE_STACK && event->cpu == subject->cpu && event->name &&
		   event->tid != subject->tid) {
		explanation->stack_tid = event->tid;
		snprintf(explanation->stack, sizeof(explanation->stack), "%s", event->name);
	} else if (event->kind == TRACE_SWITCH && event->other == subject->tid) {
		*(event->inferred ? &explanation->switch_inferred : &explanation->switched_in) =
			true;
	} else if (event->kind == TRACE_SWITCH && event->tid == subject->tid &&
		   event->value == STATE_RUNNABLE && event->priority >= 100 &&
		   is_real_time(replay_task(replay, subject->tid)->priority)) {
		explanation->displacer_tid = event->other;
	}
}

/* Does it change what the subject's time is charged to? */
static bool concerns(const struct replay *replay, const struct trace_event *event)
{
	const struct subject *subject = &replay->subject;

	return event->cpu == subject->cpu || event->tid == subject->tid ||
	       ((event->kind == TRACE_WAKING || event->kind == TRACE_SWITCH) &&
		event->other == subject->tid);
}

/*
 * A sleep that no region of the sampler explains is charged to what its waker was in: a page that
 * compaction moves, or reclaim holds, makes whoever touches it wait.
 */
static void charge_waker(const struct replay *replay, struct segments *segments, size_t first)
{
	struct explain_slice doing;

	if (!replay->subject.woken_from_block || replay->subject.waker_in_irq)
		return;
	replay_label_task(replay, replay->subject.waker_tid, &doing);
	if (doing.cause == CAUSE_TASK || doing.cause == CAUSE_IDLE)
		return;
	for (size_t i = first; i < segments->count; i++) {
		struct explain_slice *label = &segments->items[i].label;

		if (label->cause != CAUSE_BLOCKED)
			continue;
		doing.phase = label->phase;
		doing.outer = CAUSE_BLOCKED;
		*label = doing;
	}
}

/* Applies what comes before the window; returns the index of the first event in it. */
static size_t replay_until_window(struct replay *replay)
{
	struct subject *subject = &replay->subject;
	size_t i = 0;

	for (; i < replay->count && replay->events[i].when_ns < replay->window->when_ns; i++)
		replay_apply(replay, &replay->events[i]);
	subject->has_run = subject->state == SUBJECT_ON_CPU;
	subject->waker_tid = 0;
	subject->woken_from_block = false;
	return i;
}

/* Walks the window; what a segment is charged to is what held when it began. */
static int cut(struct replay *replay, struct segments *segments, struct explanation *explanation)
{
	const struct explain_window *window = replay->window;
	int64_t at_ns = window->when_ns, end_ns = window->when_ns + window->late_ns;
	size_t i = replay_until_window(replay), slept = 0; /* segments before the last sleep */
	struct explain_slice label;
	bool whole = true;
	int error = 0;

	for (; i < replay->count && replay->events[i].when_ns < end_ns && !error; i++) {
		const struct trace_event *event = &replay->events[i];

		if (concerns(replay, event)) {
			bool own = event->cpu == window->cpu;

			replay_label(replay, &label);
			error = segments_add(segments, event->when_ns - at_ns, whole && own,
					     &label);
			at_ns = event->when_ns;
			whole = own;
		}
		gather_evidence(replay, event, explanation);
		replay_apply(replay, event);
		if (event->kind == TRACE_SWITCH && event->tid == window->tid)
			slept = segments->count;
		if (event->kind == TRACE_WAKING && event->other == window->tid)
			charge_waker(replay, segments, slept);
		replay->subject.has_run |= replay->subject.state == SUBJECT_ON_CPU;
	}
	replay_label(replay, &label);
	return error ? error : segments_add(segments, end_ns - at_ns, whole, &label);
}

int explain_delay(const struct trace_event *events, size_t count,
		  const struct explain_window *window, const struct explain_settings *settings,
		  struct explanation *ret_explanation)
{
	struct explanation explanation = {.window = *window};
	struct segments segments = {0};
	struct replay replay;
	int error = replay_start(&replay, events, count, window);

	if (error)
		return error;
	error = cut(&replay, &segments, &explanation);
	for (size_t i = 0; i < segments.count; i++)
		if (segments.items[i].whole && segments.items[i].ns > explanation.silent_ns)
			explanation.silent_ns = segments.items[i].ns;
	if (!error)
		error = explain_wait(&replay, &explanation);
	if (!error)
		error = segments_take_stolen(&segments, window, settings);
	if (!error)
		error = segments_sum_up(&segments, &explanation);
	free(segments.items);
	replay_end(&replay);
	if (error)
		return error;
	explain_in_words(&explanation, settings);
	*ret_explanation = explanation;
	return 0;
}

size_t explain_pick(const struct sampling_thread *threads, size_t count,
		    enum explain_subject subject, struct explain_window *windows, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < count * SAMPLING_WORST; i++) {
		const struct sampling_thread *thread = &threads[i / SAMPLING_WORST];
		/* A copy: the thread may be replacing it. */
		struct sampling_worst worst = thread->worst[i % SAMPLING_WORST];
		size_t at = used;

		if (worst.late_ns <= 0)
			continue;
		while (at > 0 && windows[at - 1].late_ns < worst.late_ns)
			at--;
		if (at >= room)
			continue;
		if (used < room)
			used++;
		memmove(&windows[at + 1], &windows[at], (used - at - 1) * sizeof(*windows));
		windows[at] = (struct explain_window){
			.when_ns = worst.when_ns,
			.late_ns = worst.late_ns,
			.cpu = worst.cpu,
			.tid = atomic_load(&thread->tid),
			.subject = subject,
			.steal_ns = worst.steal_ns,
		};
	}
	return used;
}
