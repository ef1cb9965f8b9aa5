/* SPDX-License-Identifier: MIT */
/*
 * Causes from counters alone: what moved between the looks before and after a delay. They say what
 * went on at the time and not whose fault it was, but they need no privilege and cost little.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/proc.h"
#include "ops.h"
#include "record/record.h"
#include "sys/steal.h"

#define WINDOWS 10

static const char *const vmstat_names[] = {
	"pgscan_anon",
	"pgscan_file",
	"pgscan_direct",
	"pgscan_kswapd",
	"pgsteal_anon",
	"pgsteal_file",
	"pswpin",
	"pswpout",
	"compact_stall",
	"compact_migrate_scanned",
	"allocstall_movable",
	"slabs_scanned",
	"thp_fault_fallback",
	"oom_kill",
};
#define VMSTATS ARRAY_SIZE(vmstat_names)

static const char *const pressures[] = {"memory", "io", "cpu"};
#define PRESSURES ARRAY_SIZE(pressures)

/* -1: this kernel does not tell. */
struct look {
	int64_t when_ns;
	int64_t vmstat[VMSTATS];
	int64_t some_us[PRESSURES], full_us[PRESSURES];
};

struct noted {
	struct explain_window window;
	struct look before, after; /* after.when_ns 0: not yet */
};

struct counters {
	unsigned int worst;
	enum explain_subject subject;
	bool guest;
	struct look last;
	struct steal_log *steal_log;
	struct noted noted[WINDOWS];
	size_t count;
};

static void take_look(struct look *look)
{
	look->when_ns = clock_now_ns();
	if (proc_read_vmstat(vmstat_names, VMSTATS, look->vmstat) < 0)
		for (size_t i = 0; i < VMSTATS; i++)
			look->vmstat[i] = -1;
	for (size_t i = 0; i < PRESSURES; i++) {
		struct proc_pressure pressure = {-1, -1};

		proc_read_pressure(pressures[i], &pressure);
		look->some_us[i] = pressure.some_us;
		look->full_us[i] = pressure.full_us;
	}
}

static int counters_start(const struct cause_settings *settings, void **ret_state,
			  struct message *message)
{
	struct counters *counters = calloc(1, sizeof(*counters));

	if (!counters)
		return message_set_errno(message, -ENOMEM, "counters");
	counters->worst = settings->worst < WINDOWS ? settings->worst : WINDOWS;
	counters->subject = settings->subject;
	counters->guest = settings->guest;
	counters->steal_log = steal_log_new();
	steal_log_poll(counters->steal_log, clock_now_ns());
	take_look(&counters->last);
	*ret_state = counters;
	return 0;
}

static const struct noted *find_noted(const struct counters *counters,
				      const struct explain_window *window)
{
	for (size_t i = 0; i < counters->count; i++)
		if (counters->noted[i].window.when_ns == window->when_ns &&
		    counters->noted[i].window.late_ns == window->late_ns &&
		    counters->noted[i].window.tid == window->tid)
			return &counters->noted[i];
	return NULL;
}

/* Counted late, so not known at the look that sees the delay first; the run's end knows it too. */
static void note_steal(const struct counters *counters, struct explain_window *window)
{
	int64_t steal_ns = steal_log_around(counters->steal_log, window->cpu, window->when_ns,
					    window->late_ns);

	if (steal_ns >= 0)
		window->steal_ns = steal_ns;
}

/* Delays that ended since the last look get what moved since then. */
static void counters_poll(void *state, const struct sampling_thread *threads, size_t count)
{
	struct counters *counters = state;
	struct explain_window windows[WINDOWS];
	struct noted noted[WINDOWS];
	struct look now;
	size_t used;

	take_look(&now);
	steal_log_poll(counters->steal_log, now.when_ns);
	used = explain_pick(threads, count, counters->subject, windows, WINDOWS);
	for (size_t i = 0; i < used; i++) {
		const struct noted *known = find_noted(counters, &windows[i]);

		noted[i] = known ? *known : (struct noted){windows[i], counters->last, now};
		if (noted[i].window.steal_ns < 0)
			noted[i].window.steal_ns = windows[i].steal_ns;
		note_steal(counters, &noted[i].window);
	}
	memcpy(counters->noted, noted, used * sizeof(noted[0]));
	counters->count = used;
	counters->last = now;
}

static void put_moved(json_t *object, const char *name, int64_t before, int64_t after)
{
	if (before >= 0 && after > before)
		json_put(object, name, json_integer(after - before));
}

static json_t *around_json(const struct noted *noted)
{
	json_t *object = json_object();
	char name[64];

	json_put(object, "span_ms",
		 json_integer((noted->after.when_ns - noted->before.when_ns) / NS_PER_MS));
	for (size_t i = 0; i < VMSTATS; i++)
		put_moved(object, vmstat_names[i], noted->before.vmstat[i], noted->after.vmstat[i]);
	for (size_t i = 0; i < PRESSURES; i++) {
		snprintf(name, sizeof(name), "psi_%s_some_us", pressures[i]);
		put_moved(object, name, noted->before.some_us[i], noted->after.some_us[i]);
		snprintf(name, sizeof(name), "psi_%s_full_us", pressures[i]);
		put_moved(object, name, noted->before.full_us[i], noted->after.full_us[i]);
	}
	return object;
}

static void say_around(const struct noted *noted, const json_t *around, char *text, size_t size)
{
	int64_t scanned =
		json_get_int64(around, "pgscan_anon", 0) + json_get_int64(around, "pgscan_file", 0);
	int64_t swapped = json_get_int64(around, "pswpout", 0);
	int64_t stalled_us = json_get_int64(around, "psi_memory_some_us", 0);
	size_t used = (size_t)snprintf(text, size,
				       "unknown without kernel events; in the %lld ms "
				       "around it",
				       (long long)json_get_int64(around, "span_ms", 0));

	if (noted->after.vmstat[0] < 0 && stalled_us == 0)
		snprintf(text + used, size - used, " no counter of reclaim could be read");
	else if (scanned == 0 && swapped == 0 && stalled_us == 0)
		snprintf(text + used, size - used, " no memory was reclaimed");
	else
		snprintf(text + used, size - used,
			 " %lld pages were scanned, %lld swapped out, and tasks waited %.1f ms for "
			 "memory",
			 (long long)scanned, (long long)swapped, (double)stalled_us / 1e3);
}

static json_t *cause_json(const struct noted *noted, int64_t begin_ns)
{
	const struct explain_window *window = &noted->window;
	json_t *entry = json_object(), *around = around_json(noted), *evidence = json_object();
	/* Counted over the time between two looks: only what could make up most of the delay. */
	bool stolen = window->steal_ns > 0 && window->steal_ns >= window->late_ns / 2 &&
		      window->late_ns >= NS_PER_S / 200;
	char sentence[256], steal[32];

	if (stolen)
		snprintf(sentence, sizeof(sentence),
			 "the host stopped CPU %d: steal of %s around it (from counters alone)",
			 window->cpu, format_duration(window->steal_ns, steal, sizeof(steal)));
	else
		say_around(noted, around, sentence, sizeof(sentence));
	json_put(entry, "when_us", json_real((double)(window->when_ns - begin_ns) / 1e3));
	json_put(entry, "cpu", json_integer(window->cpu));
	json_put(entry, "tid", json_integer(window->tid));
	json_put(entry, "late_us", json_real((double)window->late_ns / 1e3));
	json_put(entry, "cause", json_string(cause_name(stolen ? CAUSE_STEAL : CAUSE_UNKNOWN)));
	json_put(entry, "sentence", json_string(sentence));
	json_put(entry, "split_us", json_null());
	json_put(entry, "explained_percent", json_real(0));
	json_put(entry, "slices", json_array());
	json_put(evidence, "steal_us",
		 window->steal_ns < 0 ? json_null() : json_real((double)window->steal_ns / 1e3));
	json_put(entry, "evidence", evidence);
	json_put(entry, "around", around);
	return entry;
}

static int counters_finish(void *state, const struct cause_end *end, struct record *record,
			   struct message *message)
{
	struct counters *counters = state;

	if (end) {
		json_t *account = json_object();

		counters_poll(counters, end->threads, end->thread_count);
		json_decref(record->causes);
		record->causes = json_array();
		for (size_t i = 0; i < counters->count && i < counters->worst; i++)
			json_array_append_new(record->causes,
					      cause_json(&counters->noted[i], end->begin_ns));
		json_put(account, "from", json_string("counters"));
		json_put(record->counters, "causes", account);
	}
	steal_log_free(counters->steal_log);
	free(counters);
	return 0;
}

const struct cause_ops cause_counters = {
	.name = "counters",
	.summary = "what the kernel's counters said around each of the worst delays",
	.start = counters_start,
	.poll = counters_poll,
	.finish = counters_finish,
};
