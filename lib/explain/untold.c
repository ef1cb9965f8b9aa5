/* SPDX-License-Identifier: MIT */
/*
 * Switches that the kernel did not tell. There are kernels on whose secondary CPUs sched_switch is
 * silent when the idle task leaves (seen: 6.18 under PVM): replayed as they are, such events have
 * the CPU idle for as long as the task runs. But each event names the task that was current.
 */
#include "explain/explain_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

/* A switch to put in after events[after]. */
struct untold {
	size_t after;
	struct trace_event event;
};

struct untold_list {
	struct untold *items;
	size_t count, room;
};

/* What is known of a CPU on the way through the events. */
struct cpu_state {
	bool known; /* current is */
	int32_t current;
	size_t since; /* the event since which that is so */
	size_t last;  /* its last event */
};

static int add_untold(struct untold_list *list, size_t after, const struct trace_event *event)
{
	if (list->count == list->room) {
		size_t room = list->room ? 2 * list->room : 64;
		struct untold *grown = realloc(list->items, room * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		list->items = grown;
		list->room = room;
	}
	list->items[list->count++] = (struct untold){after, *event};
	return 0;
}

/* The waking of @tid that it has not run since, after events[@first]; @index: none. */
static size_t waking_of(const struct trace_event *events, size_t first, size_t index, int32_t tid)
{
	for (size_t i = index; i-- > first;) {
		if (events[i].kind == TRACE_WAKING && events[i].other == tid)
			return i;
		if (events[i].tid == tid)
			break;
	}
	return index;
}

/* For a name alone it is not looked further. */
#define COMM_SEARCHED 10000

static const char *comm_of(const struct trace_event *events, size_t count, size_t index,
			   int32_t tid)
{
	size_t end = count - index > COMM_SEARCHED ? index + COMM_SEARCHED : count;

	for (size_t i = index; i < end; i++) {
		if (events[i].kind == TRACE_SWITCH && events[i].tid == tid && events[i].comm)
			return events[i].comm;
		if (events[i].kind == TRACE_SWITCH && events[i].other == tid)
			return events[i].other_comm;
	}
	return NULL;
}

/*
 * Did this event on the idle CPU make it switch, so that it needs no waking? The interrupt that
 * asks for a switch did, or for a waking (ttwu_queue_wakelist(), kernel/sched/core.c, by a function
 * call); another one may have, when the task is seen at once. (An idle CPU that polls is woken
 * without any.)
 */
static bool ends_idle(const struct trace_event *event, const struct trace_event *next)
{
	if (event->kind != TRACE_IRQ_LEAVE)
		return false;
	if (event->name &&
	    (strcmp(event->name, "reschedule") == 0 || strcmp(event->name, "call function") == 0))
		return true;
	return next->when_ns - event->when_ns < NS_PER_MS;
}

/*
 * When did the task of events[@index] come, and after which event? An idle CPU switches as soon as
 * it is woken: after the waking, where that is told, and the interrupt. Else nothing says it before
 * the event.
 */
static int64_t place(const struct trace_event *events, size_t index, const struct cpu_state *cpu,
		     size_t *ret_after)
{
	size_t waking;

	*ret_after = index - 1;
	if (cpu->current != 0)
		return events[index].when_ns;
	waking = waking_of(events, cpu->since, index, events[index].tid);
	if (waking == index && !ends_idle(&events[cpu->last], &events[index]))
		return events[index].when_ns;
	*ret_after = waking < index && waking > cpu->last ? waking : cpu->last;
	return events[*ret_after].when_ns;
}

static int note_untold(struct untold_list *list, const struct trace_event *events, size_t count,
		       size_t index, const struct cpu_state *cpu)
{
	int32_t tid = events[index].tid;
	size_t after;
	struct trace_event event = {
		.when_ns = place(events, index, cpu, &after),
		.cpu = events[index].cpu,
		.tid = cpu->current,
		.kind = TRACE_SWITCH,
		/* Who leaves for idle does not want to run; of others nothing is known. */
		.value = STATE_SLEEPING,
		.other = tid,
		.other_comm = comm_of(events, count, index, tid),
		.priority = PRIORITY_UNKNOWN,
		.inferred = true,
	};

	return add_untold(list, after, &event);
}

static int find_untold(struct untold_list *list, const struct trace_event *events, size_t count,
		       struct cpu_state *cpus)
{
	int error = 0;

	for (size_t i = 0; i < count && !error; i++) {
		const struct trace_event *event = &events[i];
		struct cpu_state *cpu = &cpus[event->cpu];

		if (event->kind == TRACE_LOST) {
			cpu->known = false;
			continue;
		}
		if (cpu->known && event->tid != cpu->current)
			error = note_untold(list, events, count, i, cpu);
		if (!cpu->known || event->tid != cpu->current || event->kind == TRACE_SWITCH)
			cpu->since = i;
		cpu->known = true;
		cpu->current = event->kind == TRACE_SWITCH ? event->other : event->tid;
		cpu->last = i;
	}
	return error;
}

static int in_order(const void *a, const void *b)
{
	const struct untold *left = a, *right = b;

	if (left->after != right->after)
		return left->after < right->after ? -1 : 1;
	/* On two CPUs: one with the event that it follows, one just before the next. */
	return left->event.when_ns < right->event.when_ns   ? -1
	       : left->event.when_ns > right->event.when_ns ? 1
							    : 0;
}

static struct trace_event *merge(const struct trace_event *events, size_t count,
				 const struct untold_list *list)
{
	struct trace_event *merged = malloc((count + list->count) * sizeof(*merged));
	size_t used = 0, next = 0;

	for (size_t i = 0; merged && i < count; i++) {
		merged[used++] = events[i];
		while (next < list->count && list->items[next].after == i)
			merged[used++] = list->items[next++].event;
	}
	return merged;
}

int explain_add_untold(struct trace_event **events, size_t *count, size_t *ret_added)
{
	struct untold_list list = {0};
	struct trace_event *merged = NULL;
	struct cpu_state *cpus;
	int32_t highest = 0;
	int error;

	*ret_added = 0;
	for (size_t i = 0; i < *count; i++)
		if ((*events)[i].cpu > highest)
			highest = (*events)[i].cpu;
	cpus = calloc((size_t)highest + 1, sizeof(*cpus));
	error = cpus ? find_untold(&list, *events, *count, cpus) : -ENOMEM;
	free(cpus);
	if (!error && list.count > 0) {
		qsort(list.items, list.count, sizeof(*list.items), in_order);
		merged = merge(*events, *count, &list);
		error = merged ? 0 : -ENOMEM;
	}
	if (merged) {
		free(*events);
		*events = merged;
		*count += list.count;
		*ret_added = list.count;
	}
	free(list.items);
	return error;
}
