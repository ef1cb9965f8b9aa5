/* SPDX-License-Identifier: MIT */
/*
 * Switches that the kernel did not report. There are kernels on whose secondary CPUs sched_switch
 * is silent when the idle task leaves (seen: 6.18 under PVM): replayed as they are, such events
 * have the CPU idle for as long as the task runs. But each event names the task that was current.
 */
#include "explain/explain_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"

/* A switch that comes after events[after]. */
struct inferred_switch {
	size_t after;
	struct trace_event event;
};

struct inference {
	const struct trace_event *events;
	size_t count;
	struct inferred_switch *switches;
	size_t switch_count, capacity;
};

/* What is known of a CPU on the way through the events. */
struct cpu_state {
	bool known; /* current is */
	int32_t current;
	size_t since; /* the event since which that is so */
	size_t last;  /* its last event */
};

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

static const char *comm_of(const struct inference *inference, size_t index, int32_t tid)
{
	for (size_t i = index; i < inference->count && i - index < COMM_SEARCHED; i++) {
		const struct trace_event *event = &inference->events[i];

		if (event->kind == TRACE_SWITCH && event->tid == tid && event->comm)
			return event->comm;
		if (event->kind == TRACE_SWITCH && event->other == tid)
			return event->other_comm;
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
 * it is woken: after the waking, where that is reported, and the interrupt. Else nothing says it
 * before the event.
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

static int add_switch(struct inference *inference, size_t index, const struct cpu_state *cpu)
{
	const struct trace_event *event = &inference->events[index];
	struct inferred_switch *added;
	int error = array_reserve(&inference->switches, &inference->capacity,
				  inference->switch_count + 1);

	if (error)
		return error;
	added = &inference->switches[inference->switch_count++];
	added->event = (struct trace_event){
		.when_ns = place(inference->events, index, cpu, &added->after),
		.cpu = event->cpu,
		.tid = cpu->current,
		.kind = TRACE_SWITCH,
		/* Who leaves for idle does not want to run; of others nothing is known. */
		.value = STATE_SLEEPING,
		.other = event->tid,
		.other_comm = comm_of(inference, index, event->tid),
		.priority = PRIORITY_UNKNOWN,
		.inferred = true,
	};
	return 0;
}

static int find_switches(struct inference *inference, struct cpu_state *cpus)
{
	int error = 0;

	for (size_t i = 0; i < inference->count && !error; i++) {
		const struct trace_event *event = &inference->events[i];
		struct cpu_state *cpu = &cpus[event->cpu];

		if (event->kind == TRACE_LOST) {
			cpu->known = false;
			continue;
		}
		if (cpu->known && event->tid != cpu->current)
			error = add_switch(inference, i, cpu);
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
	const struct inferred_switch *left = a, *right = b;

	if (left->after != right->after)
		return left->after < right->after ? -1 : 1;
	/* On two CPUs: one with the event that it follows, one just before the next. */
	return left->event.when_ns < right->event.when_ns   ? -1
	       : left->event.when_ns > right->event.when_ns ? 1
							    : 0;
}

/* NULL without memory. */
static struct trace_event *merge(const struct inference *inference)
{
	struct trace_event *merged =
		malloc((inference->count + inference->switch_count) * sizeof(*merged));
	size_t used = 0, next = 0;

	qsort(inference->switches, inference->switch_count, sizeof(*inference->switches), in_order);
	for (size_t i = 0; merged && i < inference->count; i++) {
		merged[used++] = inference->events[i];
		while (next < inference->switch_count && inference->switches[next].after == i)
			merged[used++] = inference->switches[next++].event;
	}
	return merged;
}

int explain_infer_switches(struct trace_event **events, size_t *count, size_t *ret_added)
{
	struct inference inference = {.events = *events, .count = *count};
	struct cpu_state *cpus =
		calloc((size_t)explain_highest_cpu(*events, *count, 0) + 1, sizeof(*cpus));
	int error = cpus ? find_switches(&inference, cpus) : -ENOMEM;
	struct trace_event *merged = NULL;

	if (!error && inference.switch_count > 0) {
		merged = merge(&inference);
		error = merged ? 0 : -ENOMEM;
	}
	if (merged) {
		free(*events);
		*events = merged;
		*count += inference.switch_count;
	}
	if (!error)
		*ret_added = inference.switch_count;
	free(inference.switches);
	free(cpus);
	return error;
}
