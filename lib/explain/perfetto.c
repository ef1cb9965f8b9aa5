/* SPDX-License-Identifier: MIT */
/*
 * Chrome's JSON trace format ("Trace Event Format", Google 2016), which ui.perfetto.dev and
 * chrome://tracing read. Times in microseconds since the begin of the measured window.
 */
#include "explain/explain_internal.h"

#include <errno.h>
#include <stdlib.h>

#include "base/json.h"

#define PID_CPUS 1
#define PID_TASKS 2
#define PID_DELAYS 3

struct writer {
	FILE *stream;
	int64_t begin_ns;
	bool comma;
	int error;
};

static json_t *event_json(const char *phase, const char *name, int pid, int64_t tid)
{
	json_t *object = json_object();

	json_put(object, "ph", json_string(phase));
	json_put(object, "pid", json_integer(pid));
	json_put(object, "tid", json_integer(tid));
	json_put(object, "name", json_string_or_null(name));
	return object;
}

static void write_event(struct writer *writer, json_t *object)
{
	fputs(writer->comma ? ",\n" : "\n", writer->stream);
	writer->comma = true;
	if (json_dumpf(object, writer->stream, JSON_COMPACT | JSON_REAL_PRECISION(15)) < 0)
		writer->error = -EIO;
	json_decref(object);
}

static void write_instant(struct writer *writer, const char *phase, const char *name, int pid,
			  int64_t tid, int64_t when_ns)
{
	json_t *object = event_json(phase, name, pid, tid);

	json_put(object, "ts", json_real((double)(when_ns - writer->begin_ns) / 1e3));
	write_event(writer, object);
}

static void write_span(struct writer *writer, const char *name, int pid, int64_t tid,
		       int64_t from_ns, int64_t to_ns)
{
	json_t *object = event_json("X", name, pid, tid);

	json_put(object, "ts", json_real((double)(from_ns - writer->begin_ns) / 1e3));
	json_put(object, "dur", json_real((double)(to_ns - from_ns) / 1e3));
	write_event(writer, object);
}

static void name_row(struct writer *writer, const char *what, int pid, int64_t tid,
		     const char *name)
{
	json_t *object = event_json("M", what, pid, tid);

	json_put(object, "args", json_pack("{s:s}", "name", name));
	write_event(writer, object);
}

static bool in_windows(const struct explain_window *windows, size_t count, int64_t when_ns)
{
	for (size_t i = 0; i < count; i++)
		if (when_ns >= windows[i].when_ns - EXPLAIN_LEAD_NS &&
		    when_ns <= windows[i].when_ns + windows[i].late_ns + EXPLAIN_TAIL_NS)
			return true;
	return false;
}

/* Who ran on each CPU, from switch to switch. */
static int write_tasks(struct writer *writer, const struct trace_event *events, size_t count,
		       const struct explain_window *windows, size_t window_count, int32_t highest)
{
	const struct trace_event **last = calloc((size_t)highest + 1, sizeof(*last));

	if (!last)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct trace_event *event = &events[i];
		const struct trace_event **before = &last[event->cpu];
		char name[64];

		if (event->kind == TRACE_LOST || !in_windows(windows, window_count, event->when_ns))
			*before = NULL;
		if (event->kind != TRACE_SWITCH)
			continue;
		if (*before && (*before)->other != 0) {
			snprintf(name, sizeof(name), "%s (%d)",
				 (*before)->other_comm ? (*before)->other_comm : "?",
				 (*before)->other);
			write_span(writer, name, PID_CPUS, 2 * event->cpu, (*before)->when_ns,
				   event->when_ns);
		}
		*before = event;
	}
	free(last);
	return 0;
}

static void write_nests(struct writer *writer, const struct trace_event *event)
{
	bool irq = event->kind == TRACE_IRQ_ENTER || event->kind == TRACE_IRQ_LEAVE;
	bool enter = event->kind == TRACE_ENTER || event->kind == TRACE_IRQ_ENTER;
	bool leave = event->kind == TRACE_LEAVE || event->kind == TRACE_IRQ_LEAVE;
	const char *phase = enter ? "B" : leave ? "E" : "i", *name = event->name;
	int pid = (enter || leave) && !irq ? PID_TASKS : PID_CPUS;
	int64_t row = pid == PID_TASKS ? event->tid : 2 * event->cpu + irq;
	char text[80];

	if (enter || leave)
		snprintf(text, sizeof(text), "%s%s%s", cause_name(event->cause),
			 event->name ? " " : "", event->name ? event->name : "");
	else if (event->kind == TRACE_WAKING)
		snprintf(text, sizeof(text), "wakes %s (%d)",
			 event->other_comm ? event->other_comm : "?", event->other);
	else if (event->kind == TRACE_LOST)
		snprintf(text, sizeof(text), "events lost");
	else if (event->kind != TRACE_STACK)
		return;
	write_instant(writer, phase, event->kind == TRACE_STACK ? name : text, pid, row,
		      event->when_ns);
}

static void name_rows(struct writer *writer, int32_t highest)
{
	char name[64];

	name_row(writer, "process_name", PID_CPUS, 0, "CPUs");
	name_row(writer, "process_name", PID_TASKS, 0, "Regions of tasks");
	name_row(writer, "process_name", PID_DELAYS, 0, "Delays");
	for (int32_t cpu = 0; cpu <= highest; cpu++) {
		snprintf(name, sizeof(name), "CPU %d", cpu);
		name_row(writer, "thread_name", PID_CPUS, 2 * cpu, name);
		name_row(writer, "thread_name", PID_DELAYS, cpu, name);
		snprintf(name, sizeof(name), "CPU %d interrupts", cpu);
		name_row(writer, "thread_name", PID_CPUS, 2 * cpu + 1, name);
	}
}

int explain_write_perfetto(FILE *stream, const struct trace_event *events, size_t count,
			   const struct explain_window *windows, size_t window_count,
			   int64_t begin_ns)
{
	struct writer writer = {.stream = stream, .begin_ns = begin_ns};
	int32_t highest = explain_highest_cpu(events, count, 0);
	int error;

	for (size_t i = 0; i < window_count; i++)
		if (windows[i].cpu > highest)
			highest = windows[i].cpu;
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", stream);
	name_rows(&writer, highest);
	for (size_t i = 0; i < window_count; i++)
		write_span(&writer, windows[i].subject == SUBJECT_WAKEUP ? "late wakeup" : "sample",
			   PID_DELAYS, windows[i].cpu, windows[i].when_ns,
			   windows[i].when_ns + windows[i].late_ns);
	error = write_tasks(&writer, events, count, windows, window_count, highest);
	for (size_t i = 0; i < count && !error; i++)
		if (in_windows(windows, window_count, events[i].when_ns))
			write_nests(&writer, &events[i]);
	fputs("\n]}\n", stream);
	if (error)
		return error;
	return writer.error || ferror(stream) ? -EIO : 0;
}
