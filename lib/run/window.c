/* SPDX-License-Identifier: MIT */
#include "run/state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/parse.h"

#define POLL_NS (100 * NS_PER_MS)
#define TICK_NS (1 * NS_PER_S)
/* Longest wait for the loads' working sets (a footprint of some GiB, a swap that fills). */
#define STEADY_NS (60 * NS_PER_S)
/* A wait this long past its time is told while it lasts. */
#define STALL_TOLD_NS (1 * NS_PER_S)

static bool interrupted(struct run *run)
{
	if (run->settings->interrupted && *run->settings->interrupted)
		run->interrupted = true;
	return run->interrupted;
}

static void tell_progress(struct run *run, enum run_stage stage, int64_t left_ns)
{
	struct run_progress progress = {
		.stage = stage, .left_ns = left_ns, .p50_ns = -1, .p99_ns = -1, .max_ns = -1};
	size_t count, stalled;

	if (!run->settings->progress)
		return;
	if (run->sampler && stage == RUN_MEASURING) {
		struct histogram *merged = calloc(1, sizeof(*merged));

		sampler_threads(run->sampler, &count);
		for (size_t i = 0; merged && i < count; i++) {
			const struct sampling_thread *thread = sampler_thread(run->sampler, i);

			histogram_merge(merged, &thread->observed);
			if (thread->count && (int64_t)thread->moments.maximum > progress.max_ns)
				progress.max_ns = (int64_t)thread->moments.maximum;
		}
		if (merged && merged->total) {
			progress.samples = merged->total;
			progress.p50_ns = histogram_percentile(merged, 0.5, progress.max_ns);
			progress.p99_ns = histogram_percentile(merged, 0.99, progress.max_ns);
		}
		free(merged);
		progress.stalled_ns = sampler_stalled_ns(run->sampler, clock_now_ns(), &stalled);
		if (progress.stalled_ns < STALL_TOLD_NS)
			progress.stalled_ns = 0;
		else
			progress.stalled_cpu = sampler_thread(run->sampler, stalled)->cpu;
	}
	run->settings->progress(run->settings->progress_data, &progress);
}

/* As loads_wait_steady, in steps that see an interruption. */
static int wait_steady(struct run *run)
{
	int64_t deadline_ns = clock_now_ns() + STEADY_NS;

	for (;;) {
		int64_t now_ns = clock_now_ns();
		int64_t step_ns = now_ns + POLL_NS < deadline_ns ? now_ns + POLL_NS : deadline_ns;
		int error = loads_wait_steady(run->loads, run->load_count, step_ns, run->message);

		if (interrupted(run))
			return message_set(run->message, -EINTR,
					   "interrupted while starting: nothing was measured");
		if (error != -ETIMEDOUT || step_ns == deadline_ns)
			return error;
		tell_progress(run, RUN_STARTING, INT64_MAX);
	}
}

int run_start_loads(struct run *run)
{
	const struct cgroup *group = run->group.version == CGROUP_NONE ? NULL : &run->group;
	int error = run->settings->counters_off ? 0 : snapshot_take(group, &run->origin);

	if (error)
		return message_set_errno(run->message, error, "cannot read the kernel's counters");
	for (size_t i = 0; i < run->plan.load_count; i++) {
		struct load_settings *load = &run->plan.loads[i];

		load->transaction = run->transaction;
		load->backend_settings.transaction = run->transaction;
		error = load_start(load, group, &run->loads[run->load_count], run->message);
		if (error)
			return error;
		run->load_count++;
	}
	error = wait_steady(run);
	if (error == -ETIMEDOUT) {
		record_note(run->record, "%s", run->message->text);
		error = 0;
	}
	return error;
}

static int start_sampler(struct run *run)
{
	const struct run_settings *settings = run->settings;
	const struct cgroup *group = run->group.version == CGROUP_NONE ? NULL : &run->group;
	struct sampler_settings sampler = {
		.measure = settings->measure,
		.measure_settings = settings->measure_settings,
		.cpus = settings->cpus,
		.threads = settings->threads,
		.fifo = settings->fifo,
		.priority = settings->priority,
		.cgroup = settings->measure->flags & MEASURE_IN_GROUP ? group : NULL,
		.samples_path = settings->samples_path,
		.transaction = run->transaction,
	};
	const struct message *notes;
	size_t count;
	int error = sampler_start(&sampler, &run->sampler, run->message);

	if (error)
		return error;
	notes = sampler_notes(run->sampler, &count);
	for (size_t i = 0; i < count; i++)
		record_note(run->record, "%s", notes[i].text);
	sampler_threads(run->sampler, &count);
	run->context_count = count * SAMPLING_WORST;
	run->contexts = calloc(run->context_count ? run->context_count : 1, sizeof(*run->contexts));
	return run->contexts ? 0 : -ENOMEM;
}

/* Sleeps until @deadline_ns in steps that see an interruption. -EINTR when there was one. */
static int wait_until(struct run *run, enum run_stage stage, int64_t deadline_ns)
{
	while (!interrupted(run)) {
		int64_t now_ns = clock_now_ns();

		if (now_ns >= deadline_ns)
			return 0;
		tell_progress(run, stage, deadline_ns - now_ns);
		clock_sleep_until(deadline_ns < now_ns + POLL_NS ? deadline_ns : now_ns + POLL_NS);
	}
	return -EINTR;
}

int run_warm_up(struct run *run)
{
	int error = wait_until(run, RUN_WARMING_UP, clock_now_ns() + run->settings->warmup_ns);

	if (error == -EINTR)
		return message_set(run->message, -EINTR,
				   "interrupted while warming up: nothing was measured");
	return start_sampler(run);
}

static void watch_loads(struct run *run)
{
	for (size_t i = 0; i < run->load_count; i++) {
		struct load_process *process = &run->loads[i];

		loads_poll(process, 1, NULL);
		if (process->died && !run->load_death_noted[i]) {
			run->load_death_noted[i] = true;
			record_note(run->record,
				    "the %s load ended by itself %.1f s into the window: %s",
				    process->load.settings.ops->name,
				    (double)(clock_now_ns() - run->begin_ns) / NS_PER_S,
				    process->load.shared->message.text[0]
					    ? process->load.shared->message.text
					    : "killed (out of memory?)");
		}
	}
}

/*
 * Once a second: what moved since the last tick belongs to the worst delays that came in it. A
 * delay longer than a tick gets the counters of the tick in which it ended.
 */
static void take_tick(struct run *run)
{
	struct snapshot *now;
	json_t *deltas = NULL;
	size_t count;

	if (snapshot_take(run->group.version == CGROUP_NONE ? NULL : &run->group, &now) < 0)
		return;
	sampler_threads(run->sampler, &count);
	for (size_t i = 0; i < run->context_count && run->tick; i++) {
		const struct sampling_worst *worst =
			&sampler_thread(run->sampler, i / SAMPLING_WORST)
				 ->worst[i % SAMPLING_WORST];
		struct worst_context *context = &run->contexts[i];

		if (worst->late_ns <= 0 || (context->when_ns == worst->when_ns && context->deltas))
			continue;
		if (!deltas)
			deltas = snapshot_delta(run->tick, now);
		json_decref(context->deltas);
		context->when_ns = worst->when_ns;
		context->late_ns = worst->late_ns;
		context->deltas = json_incref(deltas);
	}
	json_decref(deltas);
	snapshot_free(run->tick);
	run->tick = now;
}

static bool above_threshold(struct run *run)
{
	size_t count;

	if (run->settings->break_above_ns <= 0)
		return false;
	sampler_threads(run->sampler, &count);
	for (size_t i = 0; i < count; i++) {
		const struct sampling_thread *thread = sampler_thread(run->sampler, i);

		if (thread->count &&
		    (int64_t)thread->moments.maximum > run->settings->break_above_ns)
			return true;
	}
	return false;
}

static void note_break(struct run *run)
{
	char text[32];

	record_note(run->record, "ended at the first delay above %s, %.1f s into the window",
		    format_duration(run->settings->break_above_ns, text, sizeof(text)),
		    (double)(clock_now_ns() - run->begin_ns) / NS_PER_S);
}

static int watch(struct run *run, int64_t deadline_ns)
{
	int64_t next_tick_ns = run->begin_ns + TICK_NS;

	while (!interrupted(run)) {
		int64_t now_ns = clock_now_ns();
		int64_t wake_ns = now_ns + POLL_NS;
		int error;

		if (now_ns >= deadline_ns)
			break;
		clock_sleep_until(wake_ns < deadline_ns ? wake_ns : deadline_ns);
		error = sampler_poll(run->sampler, run->message);
		if (error)
			return error == -ECHILD ? -EIO : error;
		run_poll_causes(run);
		watch_loads(run);
		if (run->series)
			snapshot_series_sample(run->series, clock_now_ns());
		if (!run->settings->counters_off && clock_now_ns() >= next_tick_ns) {
			take_tick(run);
			next_tick_ns = clock_now_ns() + TICK_NS;
		}
		tell_progress(run, RUN_MEASURING, deadline_ns - clock_now_ns());
		if (above_threshold(run)) {
			run->broke_above = true;
			note_break(run);
			break;
		}
	}
	return 0;
}

static int64_t own_cpu_ns(void)
{
	struct timespec now;

	return clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now) < 0 ? 0 : timespec_to_ns(&now);
}

static int begin_counters(struct run *run, const struct cgroup *group)
{
	int error;

	if (run->settings->counters_off)
		return 0;
	error = snapshot_take(group, &run->before);
	if (!error)
		error = snapshot_take(group, &run->tick);
	return error ? error : snapshot_series_open(group, &run->series);
}

static int end_counters(struct run *run, const struct cgroup *group)
{
	int error = run->settings->counters_off ? 0 : snapshot_take(group, &run->after);

	if (!error && run->after)
		take_tick(run);
	return error;
}

int run_measure(struct run *run)
{
	const struct cgroup *group = run->group.version == CGROUP_NONE ? NULL : &run->group;
	int error = begin_counters(run, group);

	if (error)
		return message_set_errno(run->message, error, "cannot read the kernel's counters");
	run_start_causes(run);
	run->cpu_ns = -own_cpu_ns();
	run->begin_ns = clock_now_ns() + sampler_lead_ns(run->sampler);
	sampler_begin(run->sampler, run->begin_ns);
	loads_begin(run->loads, run->load_count);
	error = watch(run, run->settings->duration_ns < INT64_MAX - run->begin_ns
				   ? run->begin_ns + run->settings->duration_ns
				   : INT64_MAX);
	run->end_ns = clock_now_ns();
	run->cpu_ns += own_cpu_ns();
	tell_progress(run, RUN_STOPPING, 0);
	if (sampler_stop(run->sampler, &run->stall_ns) == -ETIMEDOUT)
		record_note(run->record,
			    "the sampler was killed and does not end (waits in the kernel): the "
			    "guardian process goes on with it");
	if (error)
		return error;
	return end_counters(run, group);
}
