/* SPDX-License-Identifier: MIT */
/*
 * Chrome's JSON trace format ("Trace Event Format", Google 2016), which ui.perfetto.dev and
 * chrome://tracing read. Times in microseconds since the begin of the measured window.
 */
#include "explain/explain_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PID_CPUS 1
#define PID_TASKS 2
#define PID_DELAYS 3

struct writer {
	FILE *stream;
	int64_t begin_ns;
	bool comma;
};

static void put_text(FILE *stream, const char *text)
{
	fputc('"', stream);
	for (; text && *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte < 0x20 || byte >= 0x7f)
			fprintf(stream, "\\u%04x", byte);
		else if (byte == '"' || byte == '\\')
			fprintf(stream, "\\%c", byte);
		else
			fputc(byte, stream);
	}
	fputc('"', stream);
}

/* The head of one event, left open for more members. */
static void begin_event(struct writer *writer, const char *phase, const char *name, int pid,
			int64_t tid)
{
	fprintf(writer->stream,
		"%s\n{\"ph\":\"%s\",\"pid\":%d,\"tid\":%lld,\"name\":", writer->comma ? "," : "",
		phase, pid, (long long)tid);
	put_text(writer->stream, name);
	writer->comma = true;
}

static void put_time(struct writer *writer, const char *key, int64_t ns)
{
	fprintf(writer->stream, ",\"%s\":%lld.%03lld", key, (long long)(ns / 1000),
		(long long)(ns % 1000 < 0 ? -(ns % 1000) : ns % 1000));
}

static void name_row(struct writer *writer, const char *what, int pid, int64_t tid,
		     const char *name)
{
	begin_event(writer, "M", what, pid, tid);
	fputs(",\"args\":{\"name\":", writer->stream);
	put_text(writer->stream, name);
	fputs("}}", writer->stream);
}

static void put_span(struct writer *writer, const char *name, int pid, int64_t tid, int64_t from_ns,
		     int64_t to_ns)
{
	begin_event(writer, "X", name, pid, tid);
	put_time(writer, "ts", from_ns - writer->begin_ns);
	put_time(writer, "dur", to_ns - from_ns);
	fputc('}', writer->stream);
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
static int put_tasks(struct writer *writer, const struct trace_event *events, size_t count,
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
			put_span(writer, name, PID_CPUS, 2 * event->cpu, (*before)->when_ns,
				 event->when_ns);
		}
		*before = event;
	}
	free(last);
	return 0;
}

static void put_nests(struct writer *writer, const struct trace_event *event)
{
	bool irq = event->kind == TRACE_IRQ_ENTER || event->kind == TRACE_IRQ_LEAVE;
	bool enter = event->kind == TRACE_ENTER || event->kind == TRACE_IRQ_ENTER;
	bool leave = event->kind == TRACE_LEAVE || event->kind == TRACE_IRQ_LEAVE;
	char name[80];

	if (enter || leave) {
		snprintf(name, sizeof(name), "%s%s%s", cause_name(event->cause),
			 event->name ? " " : "", event->name ? event->name : "");
		begin_event(writer, enter ? "B" : "E", name, irq ? PID_CPUS : PID_TASKS,
			    irq ? 2 * event->cpu + 1 : event->tid);
	} else if (event->kind == TRACE_WAKING) {
		snprintf(name, sizeof(name), "wakes %s (%d)",
			 event->other_comm ? event->other_comm : "?", event->other);
		begin_event(writer, "i", name, PID_CPUS, 2 * event->cpu);
	} else if (event->kind == TRACE_STACK) {
		begin_event(writer, "i", event->name, PID_CPUS, 2 * event->cpu);
	} else if (event->kind == TRACE_LOST) {
		begin_event(writer, "i", "events lost", PID_CPUS, 2 * event->cpu);
	} else {
		return;
	}
	put_time(writer, "ts", event->when_ns - writer->begin_ns);
	fputc('}', writer->stream);
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
	struct writer writer = {stream, begin_ns, false};
	int32_t highest = 0;
	int error;

	for (size_t i = 0; i < count; i++)
		if (events[i].cpu > highest)
			highest = events[i].cpu;
	for (size_t i = 0; i < window_count; i++)
		if (windows[i].cpu > highest)
			highest = windows[i].cpu;
	fputs("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[", stream);
	name_rows(&writer, highest);
	for (size_t i = 0; i < window_count; i++)
		put_span(&writer, windows[i].subject == SUBJECT_WAKEUP ? "late wakeup" : "sample",
			 PID_DELAYS, windows[i].cpu, windows[i].when_ns,
			 windows[i].when_ns + windows[i].late_ns);
	error = put_tasks(&writer, events, count, windows, window_count, highest);
	for (size_t i = 0; i < count && !error; i++)
		if (in_windows(windows, window_count, events[i].when_ns))
			put_nests(&writer, &events[i]);
	fputs("\n]}\n", stream);
	if (!error && ferror(stream))
		error = -EIO;
	return error;
}
