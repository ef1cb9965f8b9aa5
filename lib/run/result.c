/* SPDX-License-Identifier: MIT */
#include "run/state.h"

#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/json.h"

/* A series gathered over the threads. */
struct merged {
	struct histogram *histogram;
	struct moments moments;
};

static int merged_open(struct merged *merged)
{
	*merged = (struct merged){.histogram = calloc(1, sizeof(*merged->histogram))};
	return merged->histogram ? 0 : -ENOMEM;
}

static void merged_add(struct merged *merged, const struct histogram *histogram,
		       const struct moments *moments)
{
	moments_merge(&merged->moments, moments);
	histogram_merge(merged->histogram, histogram);
}

static void merged_summary(const struct merged *merged, struct latency_summary *ret_summary)
{
	latency_summary_from(merged->histogram, &merged->moments, ret_summary);
}

static int fill_latency(struct run *run)
{
	struct record *record = run->record;
	uint64_t early = 0, missed = 0;
	struct merged observed;
	size_t count;
	int error = merged_open(&observed);

	if (error)
		return error;
	sampler_threads(run->sampler, &count);
	for (size_t i = 0; i < count; i++) {
		const struct sampling_thread *thread = sampler_thread(run->sampler, i);

		merged_add(&observed, &thread->observed, &thread->moments);
		early += thread->early;
		missed += thread->missed;
	}
	merged_summary(&observed, &record->latency);
	record->latency.early = early;
	record->latency.missed = missed;
	record->latency.stall_ns = run->stall_ns;
	record->has_latency = true;
	record->histogram = observed.histogram;
	return 0;
}

static int fill_corrected(struct run *run)
{
	struct merged corrected;
	size_t count;
	int error;

	if (run->settings->measure_settings.schedule != SCHEDULE_FIXED ||
	    !(run->settings->measure->flags & MEASURE_SCHEDULES))
		return 0;
	error = merged_open(&corrected);
	if (error)
		return error;
	sampler_threads(run->sampler, &count);
	for (size_t i = 0; i < count; i++) {
		const struct sampling_thread *thread = sampler_thread(run->sampler, i);

		merged_add(&corrected, &thread->corrected, &thread->corrected_moments);
	}
	merged_summary(&corrected, &run->record->corrected);
	run->record->corrected.early = run->record->latency.early;
	run->record->corrected.missed = run->record->latency.missed;
	run->record->corrected.stall_ns = run->stall_ns;
	run->record->has_corrected = true;
	free(corrected.histogram);
	return 0;
}

static int fill_phases(struct run *run)
{
	const char *const *names = run->settings->measure->phases;
	struct latency_summary summary;
	size_t count;

	sampler_threads(run->sampler, &count);
	if (names)
		run->record->phases = json_object();
	for (int phase = 0; names && names[phase] && phase < SAMPLING_PHASES; phase++) {
		struct merged merged;
		int error = merged_open(&merged);

		if (error)
			return error;
		for (size_t i = 0; i < count; i++) {
			const struct sampling_thread *thread = sampler_thread(run->sampler, i);

			merged_add(&merged, &thread->phases[phase], &thread->phase_moments[phase]);
		}
		merged_summary(&merged, &summary);
		free(merged.histogram);
		if (json_put(run->record->phases, names[phase], record_latency_json(&summary)))
			return -ENOMEM;
	}
	return 0;
}

/* The drop-in line's three numbers by IGT's own rules: unweighted over the threads. */
static int fill_igt(struct run *run)
{
	struct record *record = run->record;
	double *maxima, mean_sum = 0, operations = 0;
	size_t count, used = 0;

	sampler_threads(run->sampler, &count);
	maxima = calloc(count ? count : 1, sizeof(*maxima));
	if (!maxima)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const struct sampling_thread *thread = sampler_thread(run->sampler, i);

		if (thread->count == 0)
			continue;
		maxima[used++] = thread->moments.maximum / 1e3;
		mean_sum += thread->moments.mean / 1e3;
	}
	if (used > 0) {
		record->igt_mean_us = mean_sum / (double)used;
		record->igt_max_us = igt_trimean_or_mean(maxima, used);
	}
	for (size_t i = 0; i < run->load_count; i++)
		if (run->loads[i].load.settings.ops->flags & LOAD_HOLDS_BUFFERS)
			operations = (double)atomic_load(&run->loads[i].load.shared->ops);
	record->igt_cycles =
		run->settings->cpus.count ? operations / (double)run->settings->cpus.count : 0;
	free(maxima);
	return 0;
}

static const char *policy_name(int policy)
{
	switch (policy) {
	case SCHED_FIFO:
		return "fifo";
	case SCHED_RR:
		return "rr";
	case SCHED_OTHER:
		return "other";
	default:
		return "unknown";
	}
}

static int fill_per_cpu(struct run *run)
{
	struct record *record = run->record;
	json_t *steal = json_at(record->counters, "steal_ms_per_cpu");
	size_t count;

	sampler_threads(run->sampler, &count);
	record->per_cpu = calloc(count ? count : 1, sizeof(*record->per_cpu));
	if (!record->per_cpu)
		return -ENOMEM;
	record->per_cpu_count = count;
	for (size_t i = 0; i < count; i++) {
		const struct sampling_thread *thread = sampler_thread(run->sampler, i);
		json_t *cpu_steal =
			thread->cpu < 0 ? NULL : json_array_get(steal, (size_t)thread->cpu);

		record->per_cpu[i] = (struct record_cpu){
			.cpu = thread->cpu,
			.count = thread->count,
			.mean_us = thread->count ? thread->moments.mean / 1e3 : NAN,
			.max_us = thread->count ? thread->moments.maximum / 1e3 : NAN,
			.steal_ms = json_is_integer(cpu_steal) ? json_integer_value(cpu_steal) : -1,
			.minflt = (int64_t)thread->faults_minor,
			.majflt = (int64_t)thread->faults_major,
			.policy = policy_name(thread->policy),
			.priority = thread->priority,
		};
	}
	return 0;
}

/* What the sampler got, for the judgement of the run: sums over the threads. */
static int fill_sampler(struct run *run)
{
	uint64_t migrations = 0, hits = 0, misses = 0;
	json_t *sampler = json_object();
	bool locked = true;
	size_t count;

	sampler_threads(run->sampler, &count);
	for (size_t i = 0; i < count; i++) {
		const struct sampling_thread *thread = sampler_thread(run->sampler, i);

		locked &= thread->memory_locked;
		migrations += thread->migrations;
		hits += thread->thp_hits;
		misses += thread->thp_misses;
	}
	if (json_put(run->record->counters, "supervisor_cpu_ms",
		     json_real((double)run->cpu_ns / 1e6)) ||
	    json_put(run->record->counters, "sampler", sampler) ||
	    json_put(sampler, "memory_locked", json_boolean(locked)) ||
	    json_put(sampler, "migrations", json_integer((json_int_t)migrations)) ||
	    json_put(sampler, "thp_hits", json_integer((json_int_t)hits)) ||
	    json_put(sampler, "thp_misses", json_integer((json_int_t)misses)))
		return -ENOMEM;
	return 0;
}

static int fill_loads(struct run *run)
{
	struct record *record = run->record;
	double window_s = (double)(run->end_ns - run->begin_ns) / 1e9;
	int64_t pinned_bytes = 0;

	record->load_stats = loads_statistics(run->loads, run->load_count, window_s);
	record->loads = calloc(run->load_count + 1, sizeof(*record->loads));
	if (!record->load_stats || !record->loads)
		return -ENOMEM;
	for (size_t i = 0; i < run->load_count; i++) {
		const struct load_shared *shared = run->loads[i].load.shared;
		const struct load_settings *settings = &run->loads[i].load.settings;

		record->loads[i] = strdup(settings->ops->name);
		pinned_bytes += (int64_t)atomic_load(&shared->pinned_bytes);
		if (shared->note.text[0])
			record_note(record, "%s: %s", settings->ops->name, shared->note.text);
		if (shared->pin_method[0])
			record->pin_method = strdup(shared->pin_method);
		if (shared->release_context[0])
			record->release_context = strdup(shared->release_context);
		if (settings->backend)
			record->backend = strdup(settings->backend->name);
	}
	record->pinned_bytes = pinned_bytes;
	return 0;
}

/* What --samples should hold and does not: "counters.samples", and a note. */
static int fill_samples(struct run *run)
{
	json_t *samples = json_object();
	struct message why = {""};
	uint64_t lost;
	int error;

	if (!run->settings->samples_path) {
		json_decref(samples);
		return 0;
	}
	error = sampler_samples(run->sampler, &lost, &why);
	if (error == 0 && lost > 0)
		message_set(&why, 0, "%llu samples came faster than the samples file took them",
			    (unsigned long long)lost);
	if (why.text[0])
		record_note(run->record, "--samples %s: %s", run->settings->samples_path, why.text);
	if (json_put(run->record->counters, "samples", samples) ||
	    json_put(samples, "lost", json_integer((json_int_t)lost)) ||
	    json_put(samples, "failed", json_boolean(error < 0)) ||
	    json_put(samples, "why", why.text[0] ? json_string_or_null(why.text) : json_null()))
		return -ENOMEM;
	return 0;
}

static void fill_throttling(struct run *run)
{
	uint64_t gaps = 0;
	int64_t total_ns = 0;
	size_t count;

	sampler_threads(run->sampler, &count);
	for (size_t i = 0; i < count; i++) {
		gaps += sampler_thread(run->sampler, i)->throttle_gaps;
		total_ns += sampler_thread(run->sampler, i)->throttle_total_ns;
	}
	run->record->throttle_gaps = (int64_t)gaps;
	run->record->throttle_total_us = total_ns / 1000;
	if (gaps > 0)
		record_note(
			run->record,
			"the sampler was throttled %llu times, %lld ms in all (RT throttling or the "
			"fair server): max shows that, not the memory; use --pace 2ms",
			(unsigned long long)gaps, (long long)(total_ns / NS_PER_MS));
}

static json_t *option_value(const struct option_row *row)
{
	const char *at = (const char *)row->settings + row->offset;
	const struct size_value *size = (const struct size_value *)(const void *)at;

	switch (row->kind) {
	case OPTION_FLAG:
		return *at ? json_true() : NULL;
	case OPTION_INT:
	case OPTION_DURATION:
		return *(const int64_t *)(const void *)at
			       ? json_integer(*(const int64_t *)(const void *)at)
			       : NULL;
	case OPTION_DOUBLE:
		return *(const double *)(const void *)at
			       ? json_number_or_null(*(const double *)(const void *)at)
			       : NULL;
	case OPTION_SIZE:
		return size->is_percent ? json_pack("{s:f}", "percent", size->percent)
		       : size->bytes	? json_integer((json_int_t)size->bytes)
					: NULL;
	case OPTION_STRING:
	case OPTION_CHOICE:
		return *(const char *const *)(const void *)at
			       ? json_string_or_null(*(const char *const *)(const void *)at)
			       : NULL;
	default:
		return NULL;
	}
}

/* A plugin's own options that are set, durations in nanoseconds. */
static void put_options(json_t *object, const struct option_row *rows)
{
	for (const struct option_row *row = rows; row && row->long_name; row++) {
		json_t *value = option_value(row);

		if (value)
			json_put(object, row->long_name, value);
	}
}

/* The options as data: what must agree before two records may be compared. */
static json_t *settings_object(const struct run *run)
{
	const struct run_settings *settings = run->settings;
	const struct run_plan *plan = &run->plan;
	json_t *object = json_object(), *budgets = json_object(), *rates = json_object(),
	       *options = json_object();
	char *cpus = cpu_list_format(&settings->cpus);
	size_t threads;

	sampler_threads(run->sampler, &threads);
	json_put(object, "duration_s", json_real((double)settings->duration_ns / 1e9));
	json_put(object, "warmup_s", json_real((double)settings->warmup_ns / 1e9));
	json_put(object, "schedule",
		 json_string(settings->measure_settings.schedule == SCHEDULE_FIXED ? "fixed"
										   : "igt"));
	json_put(object, "interval_us",
		 settings->measure_settings.interval_ns
			 ? json_real((double)settings->measure_settings.interval_ns / 1e3)
			 : json_null());
	json_put(object, "pace_us", json_real((double)settings->measure_settings.pace_ns / 1e3));
	json_put(object, "cpus", json_string_or_null(cpus));
	json_put(object, "threads", json_integer((json_int_t)threads));
	json_put(object, "sched", json_string(settings->fifo ? "fifo" : "other"));
	json_put(object, "priority", json_integer(settings->fifo ? settings->priority : 0));
	json_put(object, "limit_bytes",
		 plan->nominal_limit_bytes && plan->memcg
			 ? json_integer((json_int_t)plan->nominal_limit_bytes)
			 : json_null());
	/* As asked: the baseline holds nothing of it, and its limit is lowered instead. */
	json_put(object, "footprint_bytes",
		 json_integer((json_int_t)plan->nominal_footprint_bytes));
	json_put(object, "swap_made_bytes", json_integer((json_int_t)plan->swap_bytes));
	for (size_t i = 0; i < plan->asked_count; i++) {
		const struct load_settings *load = &plan->asked[i];

		json_put(budgets, load->ops->name, json_integer((json_int_t)load->budget_bytes));
		json_put(rates, load->ops->name,
			 load->rate_per_s > 0 ? json_real(load->rate_per_s) : json_null());
	}
	put_options(options, settings->measure->options);
	for (size_t i = 0; i < plan->load_count; i++) {
		put_options(options, plan->loads[i].ops->options);
		if (plan->loads[i].backend)
			put_options(options, plan->loads[i].backend->options);
	}
	/* Absent is none, as in records of before plugins had their own. */
	if (json_object_size(options) > 0)
		json_put(object, "options", options);
	else
		json_decref(options);
	json_put(object, "budget_bytes", budgets);
	json_put(object, "offered_per_s", rates);
	/* Absent is on: records of before there was a switch compare with those of after. */
	if (settings->counters_off)
		json_put(object, "counters", json_string("off"));
	json_put(object, "leak", json_boolean(settings->backend_settings.leak));
	json_put(object, "reset", json_boolean(settings->reset));
	json_put(object, "break_above_us",
		 settings->break_above_ns > 0 ? json_real((double)settings->break_above_ns / 1e3)
					      : json_null());
	json_put(object, "clock_read_ns",
		 json_number_or_null(settings->measure_settings.clock_cost_ns));
	free(cpus);
	return object;
}

/* Counters of the window, levels since before the first load, the series, the kernel log. */
static int fill_counters(struct run *run)
{
	json_t *counters, *since_origin, *risen;
	static const char *const levels[] = {"nr_unevictable", "nr_mlock", "nr_shmem"};

	if (run->settings->counters_off) {
		run->record->counters = json_object();
		return run->record->counters ? 0 : -ENOMEM;
	}
	counters = snapshot_delta(run->before, run->after);
	since_origin = snapshot_delta(run->origin, run->after);
	risen = json_object();
	if (!counters || !since_origin || !risen) {
		json_decref(counters);
		json_decref(since_origin);
		json_decref(risen);
		return -ENOMEM;
	}
	for (size_t i = 0; i < ARRAY_SIZE(levels); i++) {
		json_t *vmstat = json_object_get(since_origin, "vmstat");
		json_t *value = json_object_get(vmstat, levels[i]);

		json_object_set(risen, levels[i], value ? value : json_null());
	}
	json_decref(since_origin);
	json_put(counters, "limit_set_bytes",
		 run->plan.limit_bytes ? json_integer((json_int_t)run->plan.limit_bytes)
				       : json_null());
	json_put(counters, "risen_since_before_loads", risen);
	json_put(counters, "series", snapshot_series_json(run->series));
	if (run->kmsg)
		json_put(counters, "kmsg", kmsg_collect(run->kmsg));
	run->record->counters = counters;
	return 0;
}

/*
 * How many anonymous pages reclaim looked at for each that it freed: the witness of what a variant
 * does to the lists (pinned pages that stay on the LRU are looked at and cannot be freed).
 */
static void fill_scan_metric(struct run *run)
{
	double scanned = json_number_value(json_at(run->record->counters, "vmstat.pgscan_anon"));
	double freed = json_number_value(json_at(run->record->counters, "vmstat.pgsteal_anon"));
	json_t *metric;

	if (freed <= 0)
		return;
	metric = json_object();
	json_put(metric, "value", json_real(scanned / freed));
	json_put(metric, "unit", json_string("pages/page"));
	json_put(metric, "better", json_string("lower"));
	run->record->metrics = json_object();
	json_put(run->record->metrics, "anon_scanned_per_freed", metric);
}

int run_fill_record(struct run *run)
{
	const struct run_settings *settings = run->settings;
	struct record *record = run->record;
	int error;

	record->duration_s = (double)(run->end_ns - run->begin_ns) / 1e9;
	record->interrupted = run->interrupted;
	record->measure = strdup(settings->measure->name);
	record->scope = strdup(run->plan.memcg ? "memcg" : "machine");
	record->variant = strdup(variant_name(settings->backend_settings.variant));
	record->arm = settings->arm ? strdup(settings->arm) : NULL;
	record->settings = settings_object(run);
	error = fill_counters(run);
	if (!error)
		error = fill_latency(run);
	if (!error)
		error = fill_corrected(run);
	if (!error)
		error = fill_phases(run);
	if (!error)
		error = fill_igt(run);
	if (!error)
		error = fill_per_cpu(run);
	if (!error)
		error = fill_sampler(run);
	if (!error)
		error = fill_samples(run);
	if (!error)
		error = run_fill_worst(run);
	if (!error)
		error = fill_loads(run);
	if (!error) {
		fill_throttling(run);
		fill_scan_metric(run);
	}
	return error;
}
