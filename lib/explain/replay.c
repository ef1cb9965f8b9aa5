/* SPDX-License-Identifier: MIT */
/*
 * From events to labels: an interrupt nest for each CPU, a stack of regions for each task.
 *
 * The events are read twice. First for what no event tells directly: where the events of a CPU are
 * lost, and regions that are left without having been entered. Such a region was entered before the
 * events begin, or, when events of its task were lost, at the latest when the loss was over. Then
 * they are applied one by one.
 */
#include "explain/explain_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

/* Regions by the name of a kernel thread, which needs no event to be known. */
static enum cause_kind kernel_thread(const char *comm)
{
	if (strncmp(comm, "kswapd", 6) == 0)
		return CAUSE_KSWAPD;
	if (strncmp(comm, "khugepaged", 10) == 0)
		return CAUSE_KHUGEPAGED;
	if (strncmp(comm, "kcompactd", 9) == 0)
		return CAUSE_COMPACTION;
	return CAUSE_TASK;
}

/* ---- nests ---- */

static const struct nest_level *top(const struct nest *nest)
{
	size_t depth = nest->depth < NEST_DEPTH ? nest->depth : NEST_DEPTH;

	return depth ? &nest->levels[depth - 1] : NULL;
}

/*
 * Leaves the innermost level of this kind, of a lock with an address that lock; levels above it
 * whose end was not seen go with it. False: there is none.
 */
static bool pop(struct nest *nest, const struct trace_event *event)
{
	if (nest->depth > NEST_DEPTH) {
		nest->depth--;
		return true;
	}
	for (size_t i = nest->depth; i-- > 0;)
		if (nest->levels[i].cause == event->cause && nest->levels[i].lock == event->lock) {
			nest->depth = i;
			return true;
		}
	return false;
}

static void push(struct nest *nest, const struct trace_event *event)
{
	/* A mutex tells each change between spinning and sleeping as one more begin. */
	if (event->lock && nest->depth <= NEST_DEPTH)
		pop(nest, event);
	if (nest->depth < NEST_DEPTH)
		nest->levels[nest->depth] =
			(struct nest_level){event->cause, event->name, event->lock};
	nest->depth++;
}

/* Puts a level below all others. */
static void put_below(struct nest *nest, const struct nest_level *level)
{
	size_t depth = nest->depth < NEST_DEPTH ? nest->depth : NEST_DEPTH - 1;

	memmove(&nest->levels[1], &nest->levels[0], depth * sizeof(nest->levels[0]));
	nest->levels[0] = *level;
	nest->depth = depth + 1;
}

static bool is_irq(const struct trace_event *event)
{
	return event->kind == TRACE_IRQ_ENTER || event->kind == TRACE_IRQ_LEAVE;
}

/* The nest that the event changes; false: it leaves what was not seen to be entered. */
static bool apply_to_nest(struct replay_cpu *cpu, struct replay_task *task,
			  const struct trace_event *event)
{
	struct nest *nest = is_irq(event) ? &cpu->nest : &task->nest;

	if (event->kind == TRACE_LEAVE || event->kind == TRACE_IRQ_LEAVE)
		return pop(nest, event);
	if (event->kind == TRACE_ENTER || event->kind == TRACE_IRQ_ENTER)
		push(nest, event);
	else if (event->kind == TRACE_SWITCH)
		cpu->nest.depth = 0; /* no interrupt spans a switch: its end was lost */
	return true;
}

/* ---- CPUs and tasks ---- */

struct replay_task *replay_task(const struct replay *replay, int32_t tid)
{
	for (size_t i = 0; i < replay->task_count; i++)
		if (replay->tasks[i].tid == tid)
			return &replay->tasks[i];
	return NULL;
}

static struct replay_cpu *cpu_of(const struct replay *replay, int32_t cpu)
{
	return cpu >= 0 && (size_t)cpu < replay->cpu_count ? &replay->cpus[cpu] : NULL;
}

/* Made when it is new. */
static int add_task(struct replay *replay, int32_t tid, const char *comm, int32_t priority)
{
	struct replay_task *task = replay_task(replay, tid);

	if (!task) {
		int error = array_reserve(&replay->tasks, &replay->task_capacity,
					  replay->task_count + 1);

		if (error)
			return error;
		task = &replay->tasks[replay->task_count++];
		*task = (struct replay_task){.tid = tid, .priority = PRIORITY_UNKNOWN};
	}
	if (comm)
		task->comm = comm;
	if (priority != PRIORITY_UNKNOWN)
		task->priority = priority;
	return 0;
}

static int add_tasks(struct replay *replay)
{
	int error = add_task(replay, replay->window->tid, NULL, PRIORITY_UNKNOWN);

	for (size_t i = 0; i < replay->count && !error; i++) {
		const struct trace_event *event = &replay->events[i];
		bool is_switch = event->kind == TRACE_SWITCH;

		error = add_task(replay, event->tid, is_switch ? event->comm : NULL,
				 PRIORITY_UNKNOWN);
		if (!error && (is_switch || event->kind == TRACE_WAKING))
			error = add_task(replay, event->other, event->other_comm,
					 is_switch ? event->priority : PRIORITY_UNKNOWN);
	}
	return error;
}

/* How everything stands before the first event: whoever has the first event of a CPU ran on it. */
static void go_to_begin(struct replay *replay)
{
	replay->at = 0;
	for (size_t i = 0; i < replay->cpu_count; i++) {
		struct replay_cpu *cpu = &replay->cpus[i];

		*cpu = (struct replay_cpu){.first = cpu->first};
		if (cpu->first && cpu->first->kind != TRACE_LOST) {
			cpu->known = true;
			cpu->tid = cpu->first->tid;
		}
	}
	for (size_t i = 0; i < replay->task_count; i++) {
		replay->tasks[i].nest.depth = 0;
		replay->tasks[i].cpu = -1;
		replay->tasks[i].known_from = 0;
	}
}

static void see_task(const struct replay *replay, const struct trace_event *event)
{
	struct replay_task *task = replay_task(replay, event->tid);

	if (task->cpu < 0)
		task->known_from = replay->cpus[event->cpu].known_from;
	else if (task->known_from > replay->at)
		task->known_from = replay->at; /* it left the CPU whose events are lost */
	task->cpu = event->cpu;
}

/* From here to the event @loss nothing is known of the CPU and of the tasks that were on it. */
static void begin_gap(struct replay *replay, int32_t cpu, size_t loss)
{
	replay->cpus[cpu].known = false;
	replay->cpus[cpu].nest.depth = 0;
	replay->cpus[cpu].switched = false;
	replay->cpus[cpu].known_from = loss;
	for (size_t i = 0; i < replay->task_count; i++)
		if (replay->tasks[i].cpu == cpu) {
			replay->tasks[i].nest.depth = 0;
			replay->tasks[i].known_from = loss;
		}
}

/* ---- what no event tells directly ---- */

static int find_gaps(struct replay *replay)
{
	size_t *last = calloc(replay->cpu_count, sizeof(*last));

	replay->gap_end = calloc(replay->count + 1, sizeof(*replay->gap_end));
	for (size_t i = 0; last && replay->gap_end && i < replay->count; i++) {
		const struct trace_event *event = &replay->events[i];
		struct replay_cpu *cpu = &replay->cpus[event->cpu];

		if (!cpu->first)
			cpu->first = event;
		else if (event->kind == TRACE_LOST)
			replay->gap_end[last[event->cpu]] = i;
		last[event->cpu] = i;
	}
	free(last);
	return last && replay->gap_end ? 0 : -ENOMEM;
}

static int note_unseen_entry(struct replay *replay, const struct trace_event *event)
{
	const struct replay_cpu *cpu = &replay->cpus[event->cpu];
	bool irq = is_irq(event);
	size_t from = irq ? cpu->known_from : replay_task(replay, event->tid)->known_from;
	int error;

	if (irq && cpu->switched)
		return 0;
	error = array_reserve(&replay->unseen, &replay->unseen_capacity, replay->unseen_count + 1);
	if (error)
		return error;
	replay->unseen[replay->unseen_count++] = (struct unseen_entry){
		.from = from,
		.to = replay->at,
		.irq = irq,
		.owner = irq ? event->cpu : event->tid,
		.level = {event->cause, event->name, event->lock},
	};
	return 0;
}

/* Those of one task or CPU in the order in which they are left: the innermost first. */
static int by_from(const void *a, const void *b)
{
	const struct unseen_entry *left = a, *right = b;

	if (left->from != right->from)
		return left->from < right->from ? -1 : 1;
	return left->to < right->to ? -1 : left->to > right->to ? 1 : 0;
}

static int find_unseen_entries(struct replay *replay)
{
	int error = 0;

	for (size_t i = 0; i < replay->count && !error; i++) {
		const struct trace_event *event = &replay->events[i];
		struct replay_cpu *cpu = &replay->cpus[event->cpu];

		replay->at = i;
		if (event->kind != TRACE_LOST) {
			see_task(replay, event);
			if (!apply_to_nest(cpu, replay_task(replay, event->tid), event))
				error = note_unseen_entry(replay, event);
			cpu->switched |= event->kind == TRACE_SWITCH;
		}
		if (replay->gap_end[i])
			begin_gap(replay, event->cpu, replay->gap_end[i]);
	}
	if (replay->unseen_count)
		qsort(replay->unseen, replay->unseen_count, sizeof(*replay->unseen), by_from);
	return error;
}

static void apply_unseen_entries(struct replay *replay)
{
	while (replay->unseen_next < replay->unseen_count &&
	       replay->unseen[replay->unseen_next].from <= replay->at) {
		const struct unseen_entry *entry = &replay->unseen[replay->unseen_next++];

		put_below(entry->irq ? &replay->cpus[entry->owner].nest
				     : &replay_task(replay, entry->owner)->nest,
			  &entry->level);
	}
}

/* ---- the events, one by one ---- */

static void apply_to_subject(struct replay *replay, const struct trace_event *event)
{
	struct subject *subject = &replay->subject;

	if (event->kind == TRACE_WAKING && event->other == subject->tid) {
		if (subject->state == SUBJECT_ON_CPU)
			return;
		subject->woken_from_block = subject->state == SUBJECT_BLOCKED ||
					    replay->window->subject == SUBJECT_INTERVAL ||
					    subject->has_run;
		subject->state = SUBJECT_RUNNABLE;
		if (event->value >= 0)
			subject->cpu = event->value;
		subject->waker_tid = event->tid;
		subject->waker_in_irq = top(&replay->cpus[event->cpu].nest) != NULL;
		subject->woken_at_ns = event->when_ns;
		subject->waited_since_ns = subject->slept_at_ns;
		subject->left_runnable = false;
	} else if (event->kind == TRACE_SWITCH && event->other == subject->tid) {
		subject->state = SUBJECT_ON_CPU;
		subject->cpu = event->cpu;
		subject->left_runnable = false;
	} else if (event->kind == TRACE_SWITCH && event->tid == subject->tid) {
		subject->state = event->value == STATE_RUNNABLE	 ? SUBJECT_RUNNABLE
				 : event->value == STATE_BLOCKED ? SUBJECT_BLOCKED
				 : event->value == STATE_STOPPED ? SUBJECT_STOPPED
								 : SUBJECT_SLEEPING;
		subject->slept_at_ns = event->when_ns;
		subject->left_runnable = event->value == STATE_RUNNABLE;
	}
}

void replay_apply(struct replay *replay, const struct trace_event *event)
{
	struct replay_cpu *cpu = &replay->cpus[event->cpu];

	replay->at = (size_t)(event - replay->events);
	apply_unseen_entries(replay);
	if (event->kind != TRACE_LOST) {
		see_task(replay, event);
		apply_to_nest(cpu, replay_task(replay, event->tid), event);
		cpu->known = true;
		cpu->tid = event->kind == TRACE_SWITCH ? event->other : event->tid;
	}
	cpu->inferred = event->inferred;
	cpu->inferred_ns = event->when_ns;
	apply_to_subject(replay, event);
	if (replay->gap_end[replay->at])
		begin_gap(replay, event->cpu, replay->gap_end[replay->at]);
}

/* ---- labels ---- */

static void label_task(const struct replay *replay, int32_t tid, struct explain_slice *label)
{
	const struct replay_task *task = replay_task(replay, tid);
	/* The idle tasks of all CPUs have one number; what one is in says nothing of the others. */
	const struct nest_level *level = task && tid != 0 ? top(&task->nest) : NULL;
	size_t depth = level ? (size_t)(level - task->nest.levels) : 0;

	label->tid = tid;
	label->priority = task ? task->priority : PRIORITY_UNKNOWN;
	if (task && task->comm)
		snprintf(label->comm, sizeof(label->comm), "%s", task->comm);
	if (tid == 0)
		label->cause = CAUSE_IDLE;
	else if (level)
		label->cause = level->cause;
	else
		label->cause = kernel_thread(label->comm);
	/* Contention for a lock that has a name of its own around it. */
	while (depth > 0 && level->cause == CAUSE_LOCK &&
	       task->nest.levels[depth - 1].cause == CAUSE_LOCK)
		level = &task->nest.levels[--depth];
	if (level && level->name)
		snprintf(label->name, sizeof(label->name), "%s", level->name);
	if (depth > 0)
		label->outer = task->nest.levels[depth - 1].cause;
}

void replay_label_task(const struct replay *replay, int32_t tid, struct explain_slice *label)
{
	memset(label, 0, sizeof(*label));
	label_task(replay, tid, label);
}

/* The innermost thing on a CPU. */
static void label_cpu(const struct replay *replay, int32_t number, struct explain_slice *label)
{
	const struct replay_cpu *cpu = cpu_of(replay, number);
	const struct nest_level *level = cpu ? top(&cpu->nest) : NULL;

	if (!cpu || !cpu->known) {
		label->cause = CAUSE_UNKNOWN;
		return;
	}
	label_task(replay, cpu->tid, label);
	if (!level)
		return;
	label->outer = label->cause;
	label->cause = level->cause;
	snprintf(label->name, sizeof(label->name), "%s", level->name ? level->name : "");
}

/* The subject sleeps: what for is in its own regions. */
static void label_asleep(const struct replay *replay, struct explain_slice *label)
{
	const struct replay_task *task = replay_task(replay, replay->subject.tid);

	label_task(replay, replay->subject.tid, label);
	if (task->known_from > replay->at)
		label->cause = CAUSE_UNKNOWN;
	else if (replay->subject.state == SUBJECT_STOPPED)
		label->cause = CAUSE_STOPPED;
	else if (label->cause == CAUSE_TASK)
		label->cause = CAUSE_BLOCKED;
}

static void label_running(const struct replay *replay, struct explain_slice *label)
{
	const struct subject *subject = &replay->subject;
	bool wakeup = replay->window->subject == SUBJECT_WAKEUP;

	label->phase = wakeup ? EXPLAIN_RETURN : EXPLAIN_ON_CPU;
	label_cpu(replay, subject->cpu, label);
	if (label->cause == CAUSE_TASK && label->tid == subject->tid) {
		const struct replay_cpu *cpu = cpu_of(replay, subject->cpu);

		label->cause = CAUSE_SELF;
		/* Until its first event, or its interval, it may as well not have come. */
		if (cpu->inferred && (wakeup || cpu->inferred_ns >= replay->window->when_ns))
			label->outer = CAUSE_IDLE;
	}
}

void replay_label(const struct replay *replay, struct explain_slice *label)
{
	const struct subject *subject = &replay->subject;
	bool wakeup = replay->window->subject == SUBJECT_WAKEUP;

	memset(label, 0, sizeof(*label));
	label->priority = PRIORITY_UNKNOWN;
	if (subject->state == SUBJECT_ON_CPU) {
		label_running(replay, label);
	} else if (subject->state == SUBJECT_RUNNABLE) {
		label->phase = wakeup ? EXPLAIN_DISPATCH : EXPLAIN_OFF_CPU;
		label_cpu(replay, subject->cpu, label);
		if (label->cause == CAUSE_IDLE && subject->left_runnable)
			snprintf(label->name, sizeof(label->name), "%s", EXPLAIN_THROTTLED);
	} else if (subject->state == SUBJECT_SLEEPING && wakeup && !subject->has_run) {
		/* It waits for its timer: what the CPU does keeps the interrupt away. */
		label->phase = EXPLAIN_TIMER;
		label_cpu(replay, subject->cpu, label);
	} else {
		label->phase = !wakeup		  ? EXPLAIN_OFF_CPU
			       : subject->has_run ? EXPLAIN_RETURN
						  : EXPLAIN_TIMER;
		label_asleep(replay, label);
	}
}

/* ---- begin and end ---- */

/* The events that may tell something about the window. */
static void narrow(struct replay *replay)
{
	int64_t from_ns = replay->window->when_ns - EXPLAIN_LEAD_NS;
	int64_t to_ns = replay->window->when_ns + replay->window->late_ns + EXPLAIN_TAIL_NS;

	for (; replay->count > 0 && replay->events->when_ns < from_ns; replay->count--)
		replay->events++;
	while (replay->count > 0 && replay->events[replay->count - 1].when_ns > to_ns)
		replay->count--;
}

int replay_start(struct replay *replay, const struct trace_event *events, size_t count,
		 const struct explain_window *window)
{
	int error;

	*replay = (struct replay){.window = window, .events = events, .count = count};
	narrow(replay);
	replay->cpu_count = (size_t)explain_highest_cpu(replay->events, replay->count,
							window->cpu < 0 ? 0 : window->cpu) +
			    1;
	replay->cpus = calloc(replay->cpu_count, sizeof(*replay->cpus));
	replay->subject.tid = window->tid;
	replay->subject.cpu = window->cpu;
	replay->subject.state =
		window->subject == SUBJECT_WAKEUP ? SUBJECT_SLEEPING : SUBJECT_ON_CPU;
	error = replay->cpus ? add_tasks(replay) : -ENOMEM;
	if (!error)
		error = find_gaps(replay);
	if (!error) {
		go_to_begin(replay);
		error = find_unseen_entries(replay);
	}
	if (error) {
		replay_end(replay);
		return error;
	}
	go_to_begin(replay);
	apply_unseen_entries(replay);
	return 0;
}

void replay_end(struct replay *replay)
{
	free(replay->gap_end);
	free(replay->cpus);
	free(replay->tasks);
	free(replay->unseen);
	memset(replay, 0, sizeof(*replay));
}
