/* SPDX-License-Identifier: MIT */
/*
 * Causes from the kernel's trace events: a private instance, a thread that empties it into locked
 * memory, pages kept around the worst delays, and everything else after the run.
 */
#include "causes/tracefs_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/parse.h"
#include "ops.h"
#include "record/record.h"
#include "sys/snapshot.h"

/* Delays whose pages are kept: the worst of all threads. */
#define KEPT_WINDOWS 64
/* A wait under way is kept too once it is so long. */
#define WAIT_KEPT_NS NS_PER_MS

struct tracefs {
	int level;
	unsigned int worst;
	enum explain_subject subject;
	bool guest;
	int64_t wanted_kib;
	char *perfetto_path;
	struct instance instance;
	struct event_table table;
	struct ring ring;
	struct drain drain;
	struct explain_window windows[KEPT_WINDOWS]; /* the longest first */
	size_t window_count, kept_whole;
	struct trace_event *events; /* at the end */
	size_t event_count, inferred_switches;
	struct explanation *explanations; /* of each window */
};

static void tracefs_free(struct tracefs *tracefs)
{
	if (!tracefs)
		return;
	drain_stop(&tracefs->drain);
	instance_close(&tracefs->instance);
	ring_close(&tracefs->ring);
	steal_log_free(tracefs->drain.steal_log);
	event_table_close(&tracefs->table);
	free(tracefs->events);
	free(tracefs->explanations);
	free(tracefs->perfetto_path);
	free(tracefs);
}

static int start_collecting(struct tracefs *tracefs, const struct cause_settings *settings,
			    struct message *message)
{
	int page_bytes = tep_get_sub_buffer_size(tracefs->table.tep);
	int error;

	tracefs->wanted_kib = settings->buffer_kib > 0 ? settings->buffer_kib : BUFFER_DEFAULT_KIB;
	error = instance_make(&tracefs->instance, settings->transaction, tracefs->wanted_kib,
			      message);
	if (error)
		return error;
	error = ring_open(&tracefs->ring, page_bytes > 0 ? (size_t)page_bytes : 4096,
			  tracefs->instance.cpu_count);
	tracefs->drain.steal_log = steal_log_new();
	if (error || !tracefs->drain.steal_log)
		return message_set_errno(message, -ENOMEM, "memory for events");
	tracefs->drain.instance = &tracefs->instance;
	tracefs->drain.ring = &tracefs->ring;
	error = instance_enable(&tracefs->instance, &tracefs->table, settings->level,
				settings->subject, settings->threads, settings->thread_count,
				message);
	if (error)
		return error;
	error = drain_start(&tracefs->drain);
	return error ? message_set_errno(message, error, "cannot start the collecting thread") : 0;
}

static int tracefs_start(const struct cause_settings *settings, void **ret_state,
			 struct message *message)
{
	struct tracefs *tracefs = calloc(1, sizeof(*tracefs));
	int error;

	if (!tracefs)
		return -ENOMEM;
	tracefs->level = settings->level;
	tracefs->worst = settings->worst;
	tracefs->subject = settings->subject;
	tracefs->guest = settings->guest;
	if (settings->perfetto_path)
		tracefs->perfetto_path = strdup(settings->perfetto_path);
	error = instance_find(&tracefs->instance, settings->transaction, message);
	if (!error)
		error = event_table_open(&tracefs->table, tracefs->instance.directory,
					 settings->level, message);
	if (!error && settings->threads)
		error = start_collecting(tracefs, settings, message);
	if (error) {
		tracefs_free(tracefs);
		return error;
	}
	*ret_state = tracefs;
	return 0;
}

/* Waits under way go first: when they end they may be the worst of all. */
static size_t add_waits(struct tracefs *tracefs, const struct sampling_thread *threads,
			size_t count, struct explain_window *windows)
{
	int64_t now_ns = clock_now_ns();
	size_t used = 0;

	for (size_t i = 0; i < count && used < KEPT_WINDOWS; i++) {
		int64_t since_ns =
			atomic_load_explicit(&threads[i].waiting_since_ns, memory_order_relaxed);

		if (since_ns <= 0 || now_ns - since_ns < WAIT_KEPT_NS)
			continue;
		windows[used++] = (struct explain_window){
			.when_ns = since_ns,
			.late_ns = now_ns - since_ns,
			.cpu = threads[i].cpu,
			.tid = atomic_load(&threads[i].tid),
			.subject = tracefs->subject,
			.steal_ns = -1,
		};
	}
	return used;
}

/* The log of the drainer is denser than that of the sampler, and forgets sooner. */
static void note_steal(struct tracefs *tracefs, struct explain_window *window)
{
	int64_t steal_ns;

	for (size_t i = 0; i < tracefs->window_count; i++) {
		const struct explain_window *known = &tracefs->windows[i];

		if (known->when_ns == window->when_ns && known->late_ns == window->late_ns &&
		    known->cpu == window->cpu && known->steal_ns >= 0) {
			window->steal_ns = known->steal_ns;
			return;
		}
	}
	steal_ns = steal_log_around(tracefs->drain.steal_log, window->cpu, window->when_ns,
				    window->late_ns);
	if (steal_ns >= 0)
		window->steal_ns = steal_ns;
}

static void tracefs_poll(void *state, const struct sampling_thread *threads, size_t count)
{
	struct explain_window all[KEPT_WINDOWS];
	struct tracefs *tracefs = state;
	size_t waits, used;

	if (!tracefs->drain.running)
		return;
	waits = add_waits(tracefs, threads, count, all);
	used = waits +
	       explain_pick(threads, count, tracefs->subject, &all[waits], KEPT_WINDOWS - waits);
	pthread_mutex_lock(&tracefs->drain.lock);
	for (size_t i = waits; i < used; i++)
		note_steal(tracefs, &all[i]);
	ring_keep(&tracefs->ring, all, used);
	pthread_mutex_unlock(&tracefs->drain.lock);
	tracefs->window_count = used - waits;
	memcpy(tracefs->windows, &all[waits], tracefs->window_count * sizeof(all[0]));
}

/* A host that has never told of any steal does not tell. */
static bool host_tells_steal(size_t cpu_count)
{
	for (size_t cpu = 0; cpu < cpu_count; cpu++)
		if (snapshot_cpu_steal_ns((int)cpu) > 0)
			return true;
	return false;
}

/* After the drainer has ended: the last list of the worst, its pages, its explanations. */
static int explain_all(struct tracefs *tracefs, const struct cause_end *end,
		       const struct symbols *symbols, struct string_pool *pool)
{
	struct explain_settings settings = {.guest = tracefs->guest,
					    .tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK)};
	struct explain_window all[KEPT_WINDOWS];
	bool told = host_tells_steal(tracefs->instance.cpu_count);
	size_t used =
		explain_pick(end->threads, end->thread_count, tracefs->subject, all, KEPT_WINDOWS);
	int error;

	for (size_t i = 0; i < used; i++) {
		note_steal(tracefs, &all[i]);
		if (!told)
			all[i].steal_ns = -1;
	}
	tracefs->window_count = used;
	memcpy(tracefs->windows, all, used * sizeof(all[0]));
	tracefs->kept_whole = ring_keep(&tracefs->ring, all, used);
	error = parse_ring(&tracefs->ring, &tracefs->table, symbols, pool, &tracefs->events,
			   &tracefs->event_count);
	if (!error)
		error = explain_infer_switches(&tracefs->events, &tracefs->event_count,
					       &tracefs->inferred_switches);
	tracefs->explanations = calloc(used + 1, sizeof(*tracefs->explanations));
	if (!error && !tracefs->explanations)
		error = -ENOMEM;
	for (size_t i = 0; i < used && !error; i++)
		error = explain_delay(tracefs->events, tracefs->event_count, &all[i], &settings,
				      &tracefs->explanations[i]);
	return error;
}

/* What the counters said about the same delay stays beside. */
static void keep_counters(json_t *entry, const json_t *before)
{
	const json_t *old;
	size_t i;

	json_array_foreach (before, i, old) {
		json_t *around = json_object_get(old, "around");

		if (around &&
		    json_get_number(old, "when_us", -1) == json_get_number(entry, "when_us", -2) &&
		    json_get_int64(old, "cpu", -1) == json_get_int64(entry, "cpu", -2))
			json_object_set(entry, "around", around);
	}
}

static void put_causes(struct tracefs *tracefs, int64_t begin_ns, struct record *record)
{
	json_t *list = json_array();

	for (size_t i = 0; i < tracefs->window_count && i < tracefs->worst; i++) {
		json_t *entry = explanation_json(&tracefs->explanations[i], begin_ns);

		keep_counters(entry, record->causes);
		json_array_append_new(list, entry);
	}
	json_decref(record->causes);
	record->causes = list;
	free(record->trace_level);
	record->trace_level = strdup(tracefs->level >= 2 ? "full" : "light");
}

static json_t *missing_list(const char *names)
{
	json_t *list = json_array();

	while (*names) {
		size_t length = strcspn(names, " ");

		json_array_append_new(list, json_stringn(names, length));
		names += length + (names[length] == ' ');
	}
	return list;
}

/* What the kernel's buffers lost, and delays too many or too long for the pages that are kept. */
static void put_losses(const struct tracefs *tracefs, json_t *account, struct record *record)
{
	int64_t overrun = instance_statistic(&tracefs->instance, "overrun");
	int64_t commit_overrun = instance_statistic(&tracefs->instance, "commit overrun");
	int64_t dropped = instance_statistic(&tracefs->instance, "dropped events");
	size_t partly = tracefs->window_count - tracefs->kept_whole;

	json_put(account, "overrun_events", json_integer(overrun));
	json_put(account, "commit_overrun_events", json_integer(commit_overrun));
	json_put(account, "dropped_events", json_integer(dropped));
	if (overrun + commit_overrun + dropped > 0)
		record_note(record,
			    "%lld trace events were lost before they could be read: causes near "
			    "them may be unknown; a --trace-buffer above %lldK may hold them",
			    (long long)(overrun + commit_overrun + dropped),
			    (long long)tracefs->instance.buffer_kib);
	if (partly > 0)
		record_note(record,
			    "of %zu of the worst delays only the begin and the end were kept: "
			    "their causes may be unknown",
			    partly);
	if (tracefs->instance.buffer_kib < tracefs->wanted_kib)
		record_note(
			record, "the trace buffer holds %lldK a CPU: there was no memory for %lldK",
			(long long)tracefs->instance.buffer_kib, (long long)tracefs->wanted_kib);
}

/* How far the explanations can be relied on, and late time by cause beyond the 99.9th percentile.
 */
static void put_account(struct tracefs *tracefs, struct record *record)
{
	json_t *account = json_object(), *tail = json_object();
	int64_t least_ns = record->latency.p99_9_ns;
	size_t delays = 0;

	while (delays < tracefs->window_count && tracefs->windows[delays].late_ns > least_ns)
		delays++;
	json_put(account, "from", json_string("tracefs"));
	json_put(account, "read_bytes", json_integer((json_int_t)tracefs->drain.bytes));
	json_put(account, "buffer_kib", json_integer(tracefs->instance.buffer_kib));
	put_losses(tracefs, account, record);
	json_put(account, "inferred_switches",
		 json_integer((json_int_t)tracefs->inferred_switches));
	json_put(account, "missing_events", missing_list(tracefs->table.missing));
	json_put(account, "windows", json_integer((json_int_t)tracefs->window_count));
	json_put(account, "windows_kept_whole", json_integer((json_int_t)tracefs->kept_whole));
	json_put(account, "memory_locked", json_boolean(tracefs->ring.locked));
	json_put(tail, "above_us", json_real((double)least_ns / 1e3));
	json_put(tail, "delays", json_integer((json_int_t)delays));
	json_put(tail, "of",
		 record->histogram ? json_integer((json_int_t)histogram_count_above(
					     record->histogram, least_ns))
				   : json_null());
	json_put(tail, "by_cause",
		 explain_summary(tracefs->explanations, tracefs->window_count, least_ns + 1));
	json_put(account, "tail", tail);
	json_put(record->counters, "causes", account);
}

static int write_perfetto(const struct tracefs *tracefs, int64_t begin_ns, struct message *message)
{
	FILE *stream = fopen(tracefs->perfetto_path, "we");
	int error;

	if (!stream)
		return message_set_errno(message, -errno, "cannot write %s",
					 tracefs->perfetto_path);
	error = explain_write_perfetto(
		stream, tracefs->events, tracefs->event_count, tracefs->windows,
		tracefs->window_count < tracefs->worst ? tracefs->window_count : tracefs->worst,
		begin_ns);
	if (fclose(stream) == EOF && !error)
		error = -errno;
	return error ? message_set_errno(message, error, "cannot write %s", tracefs->perfetto_path)
		     : 0;
}

static int tracefs_finish(void *state, const struct cause_end *end, struct record *record,
			  struct message *message)
{
	struct tracefs *tracefs = state;
	struct string_pool *pool = NULL;
	struct symbols *symbols = NULL;
	int error = 0;

	if (end && tracefs->drain.running) {
		instance_write(&tracefs->instance, "tracing_on", "0");
		drain_stop(&tracefs->drain);
		pool = string_pool_new();
		symbols = symbols_read();
		error = pool ? explain_all(tracefs, end, symbols, pool) : -ENOMEM;
		if (error) {
			message_set_errno(message, error, "the events cannot be read");
		} else {
			put_causes(tracefs, end->begin_ns, record);
			put_account(tracefs, record);
			if (tracefs->perfetto_path)
				error = write_perfetto(tracefs, end->begin_ns, message);
		}
	}
	tracefs_free(tracefs);
	symbols_free(symbols);
	string_pool_free(pool);
	return error;
}

const struct cause_ops cause_tracefs = {
	.name = "tracefs",
	.summary = "what each CPU and task did during the worst delays, from the kernel's events",
	.cure = "mount -t tracefs tracefs /sys/kernel/tracing",
	.start = tracefs_start,
	.poll = tracefs_poll,
	.finish = tracefs_finish,
};
