/* SPDX-License-Identifier: MIT */
/* One delay: cut into segments at the events of its CPU, stolen time first, then summed up. */
#include "explain/explain.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "explain/explain_internal.h"

/* A timer late by less than this is not looked at for theft: kernels keep interrupts off so long.
 */
#define STEAL_LEAST_NS NS_PER_MS
/* Clearing a huge page takes less than this on any machine. */
#define STEAL_LEAST_SELF_NS (2 * NS_PER_MS)
/* An idle CPU keeps nothing off, and leaves its deepest state in less than a millisecond. */
#define STEAL_LEAST_IDLE_NS (200 * NS_PER_US)
#define STEAL_LEAST_LEAVE_IDLE_NS NS_PER_MS

struct segment {
	int64_t ns;
	bool whole; /* between two events of the CPU: nothing happened on it meanwhile */
	struct explain_slice label;
};

struct segments {
	struct segment *items;
	size_t count, room;
};

static const char *const names[CAUSE_KINDS] = {
	[CAUSE_UNKNOWN] = "unknown",
	[CAUSE_STEAL] = "steal",
	[CAUSE_POSSIBLE_STEAL] = "possibly-stolen",
	[CAUSE_IRQ] = "irq",
	[CAUSE_SOFTIRQ] = "softirq",
	[CAUSE_IDLE] = "idle",
	[CAUSE_TASK] = "task",
	[CAUSE_DIRECT_RECLAIM] = "direct-reclaim",
	[CAUSE_MEMCG_RECLAIM] = "memcg-reclaim",
	[CAUSE_SHRINKER] = "shrinker",
	[CAUSE_COMPACTION] = "compaction",
	[CAUSE_LOCK] = "lock",
	[CAUSE_WRITEBACK] = "writeback",
	[CAUSE_SWAP_IO] = "swap-io",
	[CAUSE_KSWAPD] = "kswapd",
	[CAUSE_KHUGEPAGED] = "khugepaged",
	[CAUSE_STOPPED] = "stopped",
	[CAUSE_BLOCKED] = "blocked",
	[CAUSE_SELF] = "self",
};

const char *cause_name(enum cause_kind kind)
{
	return kind >= 0 && kind < CAUSE_KINDS ? names[kind] : "unknown";
}

const char *explain_phase_name(enum explain_phase phase)
{
	static const char *const phases[EXPLAIN_PHASES] = {
		[EXPLAIN_TIMER] = "timer",     [EXPLAIN_DISPATCH] = "dispatch",
		[EXPLAIN_RETURN] = "return",   [EXPLAIN_ON_CPU] = "on_cpu",
		[EXPLAIN_OFF_CPU] = "off_cpu",
	};

	return phases[phase];
}

static int add_segment(struct segments *segments, int64_t ns, bool whole,
		       const struct explain_slice *label)
{
	if (ns <= 0)
		return 0;
	if (segments->count == segments->room) {
		size_t room = segments->room ? 2 * segments->room : 256;
		struct segment *grown = realloc(segments->items, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		segments->items = grown;
		segments->room = room;
	}
	segments->items[segments->count++] = (struct segment){ns, whole, *label};
	return 0;
}

/* Is the next event of the same CPU a loss? Then nothing is known from this one on. */
static bool loss_follows(const struct trace_event *events, size_t count, size_t index)
{
	for (size_t i = index + 1; i < count; i++)
		if (events[i].cpu == events[index].cpu)
			return events[i].kind == TRACE_LOST;
	return false;
}

static void forget_cpu(struct replay *replay, int32_t cpu)
{
	if (cpu >= 0 && (size_t)cpu < replay->cpu_count) {
		replay->cpus[cpu].known = false;
		replay->cpus[cpu].nest.depth = 0;
	}
}

static bool is_real_time(int32_t priority)
{
	return priority >= 0 && priority < 100;
}

static void gather_evidence(struct replay *replay, const struct trace_event *event,
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
		   event->value == STATE_RUNNABLE && event->priority >= 100) {
		const struct replay_task *task = replay_task(replay, subject->tid);

		if (task && is_real_time(task->priority))
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
static void charge_waker(struct replay *replay, struct segments *segments, size_t first)
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

/* Walks the window; what a segment is charged to is what held when it began. */
static int cut(struct replay *replay, const struct trace_event *events, size_t count,
	       struct segments *segments, struct explanation *explanation)
{
	const struct explain_window *window = replay->window;
	int64_t at_ns = window->when_ns, end_ns = window->when_ns + window->late_ns;
	struct explain_slice label;
	bool inside = false, whole = true;
	size_t i, slept = 0; /* segments before the last sleep of the subject */
	int error = 0;

	for (i = 0; i < count && events[i].kind == TRACE_LOST; i++)
		;
	/* A CPU whose first event tells of a loss is not known before it. */
	for (size_t k = 0; k < count; k++)
		if (events[k].kind == TRACE_LOST) {
			bool first = true;

			for (size_t j = 0; j < k && first; j++)
				first = events[j].cpu != events[k].cpu;
			if (first)
				forget_cpu(replay, events[k].cpu);
		}
	for (i = 0; i < count && events[i].when_ns < end_ns && !error; i++) {
		const struct trace_event *event = &events[i];

		if (event->when_ns >= window->when_ns) {
			if (!inside) {
				inside = true;
				replay->subject.has_run = replay->subject.state == SUBJECT_ON_CPU;
				replay->subject.waker_tid = 0;
				replay->subject.woken_from_block = false;
			}
			if (concerns(replay, event)) {
				replay_label(replay, &label);
				error = add_segment(segments, event->when_ns - at_ns,
						    whole && event->cpu == window->cpu, &label);
				at_ns = event->when_ns;
				whole = event->cpu == window->cpu;
			}
			gather_evidence(replay, event, explanation);
		}
		replay_apply(replay, event);
		if (event->kind == TRACE_SWITCH && event->tid == window->tid)
			slept = segments->count;
		if (inside && event->kind == TRACE_WAKING && event->other == window->tid)
			charge_waker(replay, segments, slept);
		if (inside && replay->subject.state == SUBJECT_ON_CPU)
			replay->subject.has_run = true;
		if (loss_follows(events, count, i))
			forget_cpu(replay, event->cpu);
	}
	if (!inside)
		replay->subject.has_run = replay->subject.state == SUBJECT_ON_CPU;
	replay_label(replay, &label);
	return error ? error : add_segment(segments, end_ns - at_ns, whole, &label);
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

static bool is_throttled(const struct explain_slice *label)
{
	return label->cause == CAUSE_IDLE && strcmp(label->name, EXPLAIN_THROTTLED) == 0;
}

/* The CPU idled, or what was put in there is not known to have run. */
static bool is_idle(const struct explain_slice *label)
{
	return (label->cause == CAUSE_IDLE && !is_throttled(label)) ||
	       (label->cause == CAUSE_SELF && label->outer == CAUSE_IDLE);
}

/* May time without an event on the CPU have been stolen? */
static bool may_be_stolen(const struct segment *segment, int64_t tick_ns)
{
	const struct explain_slice *label = &segment->label;

	if (!segment->whole || label->cause == CAUSE_STOPPED || label->cause == CAUSE_BLOCKED ||
	    is_throttled(label))
		return false;
	if (is_idle(label))
		return segment->ns >= (label->phase == EXPLAIN_TIMER ? STEAL_LEAST_IDLE_NS
								     : STEAL_LEAST_LEAVE_IDLE_NS);
	if (is_timer_handler(label))
		return segment->ns >= STEAL_LEAST_NS;
	/* The sampler's own code, which is known and short. */
	if (label->cause == CAUSE_SELF)
		return segment->ns >= STEAL_LEAST_SELF_NS;
	/* The interrupt of the timer itself did not come. */
	if (label->phase == EXPLAIN_TIMER)
		return segment->ns >= STEAL_LEAST_NS;
	/* Elsewhere a task may compute in silence: only what the counter resolves is believed. */
	return segment->ns >= tick_ns;
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
	return add_segment(segments, ns, false, &label);
}

/*
 * Steal comes first: a CPU that the host stopped must not be blamed on what it was stopped in.
 * The counter says how much was stolen around the window (to a tick), silence on the CPU where.
 */
static int take_stolen(struct segments *segments, const struct explain_window *window,
		       const struct explain_settings *settings)
{
	int64_t budget_ns = window->steal_ns > 0 ? window->steal_ns + settings->tick_ns : 0;
	size_t count = segments->count;
	int error = 0;

	qsort(segments->items, count, sizeof(*segments->items), longest_first);
	for (size_t i = 0; i < count && !error; i++) {
		struct segment *segment = &segments->items[i];
		int64_t stolen_ns = segment->ns < budget_ns ? segment->ns : budget_ns;

		if (!may_be_stolen(segment, settings->tick_ns))
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

static int longest_slice_first(const void *a, const void *b)
{
	int64_t left = ((const struct explain_slice *)a)->ns;
	int64_t right = ((const struct explain_slice *)b)->ns;

	return left < right ? 1 : left > right ? -1 : 0;
}

/* Sums equal labels; what is too much for the table becomes unknown, the shortest first. */
static int sum_up(const struct segments *segments, struct explanation *explanation)
{
	struct explain_slice *all = calloc(segments->count + 1, sizeof(*all));
	size_t used = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < segments->count; i++) {
		const struct segment *segment = &segments->items[i];
		size_t k = 0;

		explanation->phase_ns[segment->label.phase] += segment->ns;
		while (k < used && !same_slice(&all[k], &segment->label))
			k++;
		if (k == used) {
			all[used++] = segment->label;
			all[k].ns = 0;
		}
		all[k].ns += segment->ns;
	}
	qsort(all, used, sizeof(*all), longest_slice_first);
	for (size_t i = 0; i < used; i++) {
		struct explain_slice *last = &explanation->slices[EXPLAIN_SLICES - 1];

		if (i < EXPLAIN_SLICES) {
			explanation->slices[i] = all[i];
			explanation->slice_count = i + 1;
		} else if (i == EXPLAIN_SLICES) {
			int64_t ns = last->ns + all[i].ns;

			*last = (struct explain_slice){.phase = last->phase, .ns = ns};
		} else {
			last->ns += all[i].ns;
		}
	}
	free(all);
	explanation->explained_ns = explanation->window.late_ns;
	for (size_t i = 0; i < explanation->slice_count; i++)
		if (explanation->slices[i].cause == CAUSE_UNKNOWN)
			explanation->explained_ns -= explanation->slices[i].ns;
	return 0;
}

/* The events that may tell something about the window. */
static void narrow(const struct trace_event **events, size_t *count,
		   const struct explain_window *window)
{
	int64_t from_ns = window->when_ns - EXPLAIN_LEAD_NS;
	int64_t to_ns = window->when_ns + window->late_ns + EXPLAIN_TAIL_NS;

	while (*count > 0 && (*events)->when_ns < from_ns) {
		(*events)++;
		(*count)--;
	}
	while (*count > 0 && (*events)[*count - 1].when_ns > to_ns)
		(*count)--;
}

static void find_silence(const struct segments *segments, struct explanation *explanation)
{
	for (size_t i = 0; i < segments->count; i++)
		if (segments->items[i].whole && segments->items[i].ns > explanation->silent_ns)
			explanation->silent_ns = segments->items[i].ns;
}

int explain_delay(const struct trace_event *events, size_t count,
		  const struct explain_window *window, const struct explain_settings *settings,
		  struct explanation *ret_explanation)
{
	struct explanation explanation = {.window = *window};
	struct segments segments = {0};
	struct replay replay;
	int error;

	narrow(&events, &count, window);
	error = replay_start(&replay, events, count, window);
	if (error)
		return error;
	error = cut(&replay, events, count, &segments, &explanation);
	if (!error) {
		find_silence(&segments, &explanation);
		error = explain_wait(&replay, events, count, &explanation);
	}
	if (!error)
		error = take_stolen(&segments, window, settings);
	if (!error)
		error = sum_up(&segments, &explanation);
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
