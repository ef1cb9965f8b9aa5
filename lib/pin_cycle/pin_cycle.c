/* SPDX-License-Identifier: MIT */
#include "pin_cycle/pin_cycle.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/parse.h"
#include "pin_cycle/state.h"
#include "run/plan.h"
#include "run/put_back.h"
#include "sys/environment.h"
#include "undo/transaction.h"
#include "sys/snapshot.h"

/* Shares of the time: the rest goes into starting, laying out and putting back. */
#define SHARE_COLD 0.5
#define SHARE_PRESSURE 0.3
#define SHARE_PAGEOUT 0.2
#define LIMIT_LEAST (UINT64_C(32) << 20)
/* Buffers under pressure take at most so much of the limit: a turn of one that fills more of it
 * takes seconds, most of them the kernel's search for what it can still swap. */
#define PRESSURE_SHARE 8
/* Of the limit, and at most: reclaim looks at a held page for tens of microseconds. */
#define PAGEOUT_SHARE 4
#define PAGEOUT_MOST (UINT64_C(16) << 20)
#define NEIGHBOURS_MOST 0.10

static int check_sizes(const struct pin_cycle *cycle, struct message *message)
{
	const struct pin_cycle_settings *settings = cycle->settings;
	struct machine_memory memory;
	uint64_t room, group_room = cgroup_room();
	char text[32], room_text[32];
	int error = machine_memory_read(&memory);

	if (error)
		return message_set_errno(message, error, "cannot read /proc/meminfo");
	room = memory.available_bytes < group_room ? memory.available_bytes : group_room;
	for (size_t i = 0; i < settings->size_count; i++) {
		format_size(settings->sizes[i], text, sizeof(text));
		if (settings->sizes[i] < 64 * 1024)
			return message_set(message, -EINVAL,
					   "--sizes: %s is too small to time: give at least 64K",
					   text);
		if ((double)settings->sizes[i] > 0.8 * (double)room)
			return message_set(message, -ENOMEM,
					   "--sizes: %s is more than fits into the %s that is "
					   "available: lower it",
					   text, format_size(room, room_text, sizeof(room_text)));
	}
	if (settings->parts & PIN_CYCLE_PRESSURE && settings->limit_bytes < LIMIT_LEAST)
		return message_set(message, -EINVAL, "--limit: give at least 32M");
	if (settings->parts & (PIN_CYCLE_PRESSURE | PIN_CYCLE_PAGEOUT) &&
	    (double)settings->limit_bytes > 0.5 * (double)room)
		return message_set(message, -ENOMEM,
				   "--limit %s is more than half of the %s that is available: "
				   "lower it",
				   format_size(settings->limit_bytes, text, sizeof(text)),
				   format_size(room, room_text, sizeof(room_text)));
	return 0;
}

static int run_cold(struct pin_cycle *cycle, struct message *message)
{
	const struct pin_cycle_settings *settings = cycle->settings;
	int error = pin_workers_start(cycle, NULL, message);

	for (size_t i = 0; i < settings->size_count && !error; i++)
		error = pin_cycle_rounds(cycle, "cold_", settings->sizes[i], false,
					 (int64_t)(SHARE_COLD * (double)settings->time_ns) /
						 (int64_t)settings->size_count,
					 message);
	pin_workers_stop(cycle);
	return error;
}

/* Without swap nothing anonymous is reclaimed, and neither part says anything. */
static int need_swap(struct pin_cycle *cycle, struct message *why)
{
	uint64_t total_bytes = 0, free_bytes = 0, wanted = 2 * cycle->settings->limit_bytes;
	int error;

	if (cycle->has_swap)
		return 0;
	if (swap_total(&total_bytes, &free_bytes) == 0 && free_bytes >= wanted) {
		cycle->has_swap = true;
		record_note(cycle->record, "swap: the machine's own");
		return 0;
	}
	if (!cycle->transaction)
		return message_set(why, -EPERM, "needs swap, which root alone can make");
	error = swap_make_zram(cycle->transaction, wanted, &cycle->swap, why);
	cycle->has_swap = error == 0;
	return error;
}

static bool reclaimed(const json_t *deltas)
{
	return json_get_number(json_object_get(deltas, "vmstat"), "pswpout", 0) > 0;
}

static int start_reclaimer(struct pin_cycle *cycle, struct load_process *load, struct message *why)
{
	struct load_settings settings = {
		.ops = load_find("swap"),
		.in_memcg = true,
		.limit_bytes = cycle->settings->limit_bytes,
		.seed = random_fresh_seed(),
		.transaction = cycle->transaction,
	};
	int error = load_start(&settings, &cycle->group, load, why);

	if (error)
		return error;
	error = loads_wait_steady(load, 1, clock_now_ns() + 20 * NS_PER_S, why);
	return error == -ETIMEDOUT ? 0 : error;
}

/* Sizes that fit beside the other process; the rest would only be killed. */
static int pressure_rounds(struct pin_cycle *cycle, struct message *why)
{
	const struct pin_cycle_settings *settings = cycle->settings;
	uint64_t most = settings->limit_bytes / PRESSURE_SHARE;
	size_t fitting = 0;
	char text[32], most_text[32];
	int error = 0;

	for (size_t i = 0; i < settings->size_count; i++)
		fitting += settings->sizes[i] <= most;
	for (size_t i = 0; i < settings->size_count && !error; i++) {
		if (settings->sizes[i] > most) {
			record_note(cycle->record,
				    "pressure, %s: n/a: more than %s, an eighth of --limit",
				    format_size(settings->sizes[i], text, sizeof(text)),
				    format_size(most, most_text, sizeof(most_text)));
			continue;
		}
		error = pin_cycle_rounds(cycle, "pressure_", settings->sizes[i], false,
					 (int64_t)(SHARE_PRESSURE * (double)settings->time_ns) /
						 (int64_t)fitting,
					 why);
	}
	return error;
}

static int run_pressure(struct pin_cycle *cycle, struct message *why)
{
	struct load_process load = {.child = {.pidfd = -1}};
	struct snapshot *before = NULL, *after = NULL;
	json_t *deltas = NULL;
	int error;

	if (!cycle->transaction)
		return message_set(why, -EPERM, "needs a memory group and swap: run as root");
	error = need_swap(cycle, why);
	if (!error)
		error = cgroup_make(cycle->transaction, "pin_cycle", &cycle->group, why);
	if (!error)
		error = cgroup_set_limit(&cycle->group, cycle->settings->limit_bytes, why);
	if (!error)
		error = pin_workers_start(cycle, &cycle->group, why);
	if (error)
		return error;
	error = start_reclaimer(cycle, &load, why);
	if (!error) {
		snapshot_take(&cycle->group, &before);
		error = pressure_rounds(cycle, why);
		snapshot_take(&cycle->group, &after);
		if (before && after)
			deltas = snapshot_delta(before, after);
		if (loads_poll(&load, 1, why) < 0)
			record_reason(cycle->record, VERDICT_INVALID, "pressure: %s", why->text);
		else if (deltas && !reclaimed(deltas))
			record_reason(cycle->record, VERDICT_INVALID,
				      "pressure: nothing was swapped out in its window: memory "
				      "was not short");
	}
	json_decref(deltas);
	snapshot_free(before);
	snapshot_free(after);
	pin_workers_stop(cycle);
	loads_stop(&load, 1, clock_now_ns() + NS_PER_S, clock_now_ns() + 3 * NS_PER_S);
	loads_free(&load, 1);
	return error;
}

static int run_pageout(struct pin_cycle *cycle, struct message *why)
{
	uint64_t bytes = cycle->settings->limit_bytes / PAGEOUT_SHARE;
	int error = need_swap(cycle, why);

	if (bytes > PAGEOUT_MOST)
		bytes = PAGEOUT_MOST;
	/* Drivers' buffers cannot be mapped for reclaim; that is no reason to miss them later. */
	for (size_t i = 0; i < cycle->worker_count; i++)
		if (!cycle->workers[i].ops->map)
			cycle->workers[i].gone = true;
	if (!error)
		error = pin_workers_start(cycle, NULL, why);
	if (!error)
		error = pin_cycle_rounds(
			cycle, "pageout_", bytes, true,
			(int64_t)(SHARE_PAGEOUT * (double)cycle->settings->time_ns), why);
	pin_workers_stop(cycle);
	return error;
}

/* Runs each part that was asked for; a part that cannot be measured is told and left. */
static int run_parts(struct pin_cycle *cycle, struct message *message)
{
	static const struct {
		enum pin_cycle_part part;
		const char *name;
		int (*run)(struct pin_cycle *cycle, struct message *why);
	} parts[] = {
		{PIN_CYCLE_COLD, "cold", run_cold},
		{PIN_CYCLE_PRESSURE, "pressure", run_pressure},
		{PIN_CYCLE_PAGEOUT, "pageout", run_pageout},
	};
	int error = 0;

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++) {
		struct message why = {""};

		if (!(cycle->settings->parts & parts[i].part))
			continue;
		/* A worker that failed under pressure may well work without. */
		for (size_t k = 0; k < cycle->worker_count; k++)
			cycle->workers[k].gone = false;
		error = parts[i].run(cycle, &why);
		if (error == -EINTR)
			return error;
		if (error == -EINVAL || (error == -EBUSY && !cycle->metrics.count))
			return message_set(message, error, "%s", why.text);
		if (error)
			record_note(cycle->record, "%s: n/a: %s", parts[i].name,
				    why.text[0] ? why.text : strerrordesc_np(-error));
		if (error)
			message_set(message, error, "%s", why.text);
	}
	return cycle->metrics.count ? 0 : error;
}

static int describe(struct pin_cycle *cycle)
{
	const struct pin_cycle_settings *settings = cycle->settings;
	json_t *sizes = json_array();

	for (size_t i = 0; i < settings->size_count; i++)
		json_array_append_new(sizes, json_integer((json_int_t)settings->sizes[i]));
	cycle->record->settings = json_pack(
		"{s:o, s:I, s:I, s:o, s:i}", "sizes_bytes", sizes, "page_bytes",
		(json_int_t)cycle->page_bytes, "limit_bytes", (json_int_t)settings->limit_bytes,
		"rounds", settings->rounds ? json_integer(settings->rounds) : json_null(), "parts",
		settings->parts);
	return cycle->record->settings ? 0 : -ENOMEM;
}

/* The columns: ways that were measured. */
static int describe_columns(struct pin_cycle *cycle)
{
	json_t *labels = json_array();
	int error = 0;

	for (size_t i = 0; i < cycle->worker_count; i++)
		if (cycle->workers[i].turns > 0)
			error |=
				json_array_append_new(labels, json_string(cycle->workers[i].label));
	return json_put(cycle->record->settings, "lanes", labels) ?: error;
}

static void judge(struct pin_cycle *cycle, int64_t ours_ns)
{
	const json_t *cpu = json_object_get(cycle->record->counters, "cpu");
	double others_ms = json_get_number(cpu, "busy_ms", 0) - (double)ours_ns / 1e6;
	double steal_ms = json_get_number(cycle->record->counters, "steal_ms", 0);
	double window_ms = cycle->record->duration_s * 1e3;

	/* Turns are interleaved, so noise widens the intervals and does not favour a variant. */
	if (others_ms > NEIGHBOURS_MOST * window_ms)
		record_reason(
			cycle->record, VERDICT_SUSPECT,
			"others used %.0f%% of a CPU (%s among them): the times are too long, the "
			"differences less so",
			100 * others_ms / window_ms,
			json_get_string(cpu, "busiest_neighbour", "not known"));
	if (steal_ms > NEIGHBOURS_MOST * window_ms)
		record_reason(cycle->record, VERDICT_SUSPECT,
			      "the host took %.0f ms away from this machine", steal_ms);
}

static int measure(struct pin_cycle *cycle, struct message *message)
{
	struct record *record = cycle->record;
	struct snapshot *before = NULL, *after = NULL;
	int64_t begin_ns, ours_ns;
	int error = 0;

	if (geteuid() == 0)
		error = transaction_open(&cycle->transaction, "pin_cycle", message);
	/* Another program's swap goes away when that program ends: wait until there is none. */
	if (!error && cycle->transaction &&
	    cycle->settings->parts & (PIN_CYCLE_PRESSURE | PIN_CYCLE_PAGEOUT))
		error = transaction_lock(cycle->transaction, message);
	if (error)
		return error;
	snapshot_take(NULL, &before);
	ours_ns = clock_own_cpu_ns();
	begin_ns = clock_now_ns();
	error = run_parts(cycle, message);
	record->duration_s = (double)(clock_now_ns() - begin_ns) / 1e9;
	ours_ns = clock_own_cpu_ns() - ours_ns;
	snapshot_take(NULL, &after);
	if (before && after)
		record->counters = snapshot_delta(before, after);
	snapshot_free(before);
	snapshot_free(after);
	if (error == -EINTR) {
		record->interrupted = true;
		error = cycle->metrics.count ? 0
					     : message_set(message, -EINTR,
							   "stopped before anything was measured");
	}
	if (error)
		return error;
	judge(cycle, ours_ns);
	record->metrics = metric_table_json(&cycle->metrics);
	return record->metrics ? describe_columns(cycle) : -ENOMEM;
}

int pin_cycle_execute(const struct pin_cycle_settings *settings, struct record **ret_record,
		      struct message *message)
{
	struct pin_cycle cycle = {.settings = settings};
	int error;

	cycle.record = record_new("pin_cycle");
	if (!cycle.record)
		return -ENOMEM;
	cycle.page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	cycle.clock_cost_ns = clock_read_cost_ns();
	cycle.record->arm = settings->arm ? strdup(settings->arm) : NULL;
	error = pin_workers_choose(&cycle, message);
	if (!error)
		error = check_sizes(&cycle, message);
	if (!error) {
		cycle.record->environment = environment_describe();
		environment_machine_key(cycle.record->environment, cycle.record->machine_key);
		error = describe(&cycle);
	}
	if (!error)
		error = measure(&cycle, message);
	pin_workers_stop(&cycle);
	run_put_back(cycle.transaction, error, cycle.record, message);
	metric_table_free(&cycle.metrics);
	if (error)
		record_free(cycle.record);
	else
		*ret_record = cycle.record;
	return error;
}
