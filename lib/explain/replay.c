/* SPDX-License-Identifier: MIT */
/* From events to slices: an interrupt nest for each CPU, a stack of regions for each task. */
#include "explain/explain_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

struct replay_task *replay_task(struct replay *replay, int32_t tid)
{
	struct replay_task *grown;

	for (size_t i = 0; i < replay->task_count; i++)
		if (replay->tasks[i].tid == tid)
			return &replay->tasks[i];
	if (replay->task_count == replay->task_room) {
		size_t room = replay->task_room ? 2 * replay->task_room : 64;

		grown = realloc(replay->tasks, room * sizeof(*grown));
		if (!grown)
			return NULL;
		replay->tasks = grown;
		replay->task_room = room;
	}
	grown = &replay->tasks[replay->task_count++];
	memset(grown, 0, sizeof(*grown));
	grown->tid = tid;
	grown->priority = PRIORITY_UNKNOWN;
	return grown;
}

static struct replay_cpu *cpu_of(struct replay *replay, int32_t cpu)
{
	return cpu >= 0 && (size_t)cpu < replay->cpu_count ? &replay->cpus[cpu] : NULL;
}

static void push(struct nest *nest, enum cause_kind cause, const char *name)
{
	if (nest->depth < NEST_DEPTH) {
		nest->levels[nest->depth].cause = cause;
		nest->levels[nest->depth].name = name;
	}
	nest->depth++;
}

/* Leaves the innermost level of this kind; levels above it whose end was not seen go with it. */
static void pop(struct nest *nest, enum cause_kind cause)
{
	for (size_t i = nest->depth < NEST_DEPTH ? nest->depth : NEST_DEPTH; i-- > 0;)
		if (nest->levels[i].cause == cause) {
			nest->depth = i;
			return;
		}
}

static const struct nest_level *top(const struct nest *nest)
{
	size_t depth = nest->depth < NEST_DEPTH ? nest->depth : NEST_DEPTH;

	return depth ? &nest->levels[depth - 1] : NULL;
}

static void name_task(struct replay *replay, int32_t tid, const char *comm, int32_t priority)
{
	struct replay_task *task = replay_task(replay, tid);

	if (!task)
		return;
	if (comm)
		task->comm = comm;
	if (priority != PRIORITY_UNKNOWN)
		task->priority = priority;
}

/* Puts a level below all others: it was entered before the events begin. */
static void entered_before(struct nest *nest, enum cause_kind cause, const char *name)
{
	size_t depth = nest->depth < NEST_DEPTH ? nest->depth : NEST_DEPTH - 1;

	memmove(&nest->levels[1], &nest->levels[0], depth * sizeof(nest->levels[0]));
	nest->levels[0] = (struct nest_level){cause, name};
	nest->depth = depth + 1;
}

/*
 * What was so before the first event, as later events tell it: who leaves a CPU ran on it, and a
 * region that is left without having been entered was entered before. Walks forward with the depth
 * that the events themselves have built; ends without a begin go to the bottom of the start.
 */
static void find_beginnings(struct replay *replay, const struct trace_event *events, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct trace_event *event = &events[i];
		struct replay_cpu *cpu = cpu_of(replay, event->cpu);
		struct replay_task *task = replay_task(replay, event->tid);
		bool irq = event->kind == TRACE_IRQ_ENTER || event->kind == TRACE_IRQ_LEAVE;
		bool enter = event->kind == TRACE_ENTER || event->kind == TRACE_IRQ_ENTER;
		bool leave = event->kind == TRACE_LEAVE || event->kind == TRACE_IRQ_LEAVE;
		struct nest *nest = !cpu || !task ? NULL : irq ? &cpu->nest : &task->nest;
		int *open = nest ? &nest->open[event->cause] : NULL;

		if (!cpu || !task)
			continue;
		if (!cpu->known && event->kind != TRACE_LOST) {
			cpu->known = true;
			cpu->tid = event->tid;
		}
		if (event->kind == TRACE_SWITCH) {
			name_task(replay, event->tid, event->comm, PRIORITY_UNKNOWN);
			name_task(replay, event->other, event->other_comm, event->priority);
		} else if (event->kind == TRACE_WAKING) {
			name_task(replay, event->other, event->other_comm, PRIORITY_UNKNOWN);
		} else if (enter) {
			(*open)++;
		} else if (leave && *open > 0) {
			(*open)--;
		} else if (leave) {
			/* With events lost between, the begin may lie in the gap. */
			if (!(irq ? cpu->lost : false))
				entered_before(nest, event->cause, event->name);
		} else if (event->kind == TRACE_LOST) {
			cpu->lost = true;
		}
	}
}

static void apply_subject(struct replay *replay, const struct trace_event *event)
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
		subject->waker_in_irq = cpu_of(replay, event->cpu) &&
					top(&cpu_of(replay, event->cpu)->nest) != NULL;
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
	struct replay_cpu *cpu = cpu_of(replay, event->cpu);
	struct replay_task *task = replay_task(replay, event->tid);

	if (!cpu || !task)
		return;
	switch (event->kind) {
	case TRACE_LOST:
		cpu->nest.depth = 0;
		cpu->known = false;
		break;
	case TRACE_SWITCH:
		cpu->known = true;
		cpu->tid = event->other;
		/* No interrupt spans a switch: its end was lost. */
		cpu->nest.depth = 0;
		break;
	case TRACE_ENTER:
		push(&task->nest, event->cause, event->name);
		break;
	case TRACE_LEAVE:
		pop(&task->nest, event->cause);
		break;
	case TRACE_IRQ_ENTER:
		push(&cpu->nest, event->cause, event->name);
		break;
	case TRACE_IRQ_LEAVE:
		pop(&cpu->nest, event->cause);
		break;
	default:
		break;
	}
	if (event->kind != TRACE_LOST && event->kind != TRACE_SWITCH && !cpu->known) {
		cpu->known = true;
		cpu->tid = event->tid;
	}
	cpu->inferred = event->inferred;
	cpu->inferred_ns = event->when_ns;
	apply_subject(replay, event);
}

static void label_task(struct replay *replay, int32_t tid, struct explain_slice *label)
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

void replay_label_task(struct replay *replay, int32_t tid, struct explain_slice *label)
{
	memset(label, 0, sizeof(*label));
	label_task(replay, tid, label);
}

/* The innermost thing on a CPU. */
static void label_cpu(struct replay *replay, int32_t number, struct explain_slice *label)
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
static void label_asleep(struct replay *replay, struct explain_slice *label)
{
	label_task(replay, replay->subject.tid, label);
	if (replay->subject.state == SUBJECT_STOPPED)
		label->cause = CAUSE_STOPPED;
	else if (label->cause == CAUSE_TASK)
		label->cause = CAUSE_BLOCKED;
}

void replay_label(struct replay *replay, struct explain_slice *label)
{
	const struct subject *subject = &replay->subject;
	bool wakeup = replay->window->subject == SUBJECT_WAKEUP;

	memset(label, 0, sizeof(*label));
	label->priority = PRIORITY_UNKNOWN;
	switch (subject->state) {
	case SUBJECT_ON_CPU:
		label->phase = wakeup ? EXPLAIN_RETURN : EXPLAIN_ON_CPU;
		label_cpu(replay, subject->cpu, label);
		if (label->cause == CAUSE_TASK && label->tid == subject->tid) {
			const struct replay_cpu *cpu = cpu_of(replay, subject->cpu);

			label->cause = CAUSE_SELF;
			/* Until its first event, or its interval, it may as well not have come. */
			if (cpu->inferred &&
			    (wakeup || cpu->inferred_ns >= replay->window->when_ns))
				label->outer = CAUSE_IDLE;
		}
		break;
	case SUBJECT_RUNNABLE:
		label->phase = wakeup ? EXPLAIN_DISPATCH : EXPLAIN_OFF_CPU;
		label_cpu(replay, subject->cpu, label);
		if (label->cause == CAUSE_IDLE && subject->left_runnable)
			snprintf(label->name, sizeof(label->name), "%s", EXPLAIN_THROTTLED);
		break;
	case SUBJECT_SLEEPING:
		/* It waits for its timer: what the CPU does keeps the interrupt away. */
		if (wakeup && !subject->has_run) {
			label->phase = EXPLAIN_TIMER;
			label_cpu(replay, subject->cpu, label);
			break;
		}
		/* fall through */
	case SUBJECT_BLOCKED:
	case SUBJECT_STOPPED:
		label->phase = !wakeup		  ? EXPLAIN_OFF_CPU
			       : subject->has_run ? EXPLAIN_RETURN
						  : EXPLAIN_TIMER;
		label_asleep(replay, label);
		break;
	}
}

int replay_start(struct replay *replay, const struct trace_event *events, size_t count,
		 const struct explain_window *window)
{
	int32_t highest = window->cpu;

	memset(replay, 0, sizeof(*replay));
	replay->window = window;
	for (size_t i = 0; i < count; i++)
		if (events[i].cpu > highest)
			highest = events[i].cpu;
	replay->cpu_count = (size_t)(highest < 0 ? 0 : highest) + 1;
	replay->cpus = calloc(replay->cpu_count, sizeof(*replay->cpus));
	if (!replay->cpus || !replay_task(replay, window->tid)) {
		replay_end(replay);
		return -ENOMEM;
	}
	replay->subject.tid = window->tid;
	replay->subject.cpu = window->cpu;
	replay->subject.state =
		window->subject == SUBJECT_WAKEUP ? SUBJECT_SLEEPING : SUBJECT_ON_CPU;
	find_beginnings(replay, events, count);
	return 0;
}

void replay_end(struct replay *replay)
{
	free(replay->cpus);
	free(replay->tasks);
	memset(replay, 0, sizeof(*replay));
}
