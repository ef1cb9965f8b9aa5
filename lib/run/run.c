/* SPDX-License-Identifier: MIT */
#include "run/run.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "run/put_back.h"
#include "run/state.h"
#include "sys/environment.h"
#include "sys/rt.h"

/* Appends to @list; without it only counts. Returns how many there are now. */
static size_t add_claims(const struct claim *claims, const struct claim **list, size_t used)
{
	for (const struct claim *claim = claims; claim && claim->name; claim++, used++)
		if (list)
			list[used] = claim;
	return used;
}

/* What ran, with the claims of the measure and of every load. */
static struct judge_subject subject_of(const struct run *run, const struct claim **list)
{
	const struct measure_ops *measure = run->settings->measure;
	struct judge_subject subject = {
		.measure_flags = measure->flags,
		.claims = list,
		.claim_count = add_claims(measure->claims, list, 0),
	};

	for (size_t i = 0; i < run->load_count; i++) {
		const struct load_ops *ops = run->loads[i].load.settings.ops;

		subject.load_flags |= ops->flags;
		subject.loaded |= !(ops->flags & LOAD_IDLES);
		subject.claim_count = add_claims(ops->claims, list, subject.claim_count);
	}
	return subject;
}

/* The claims are judged over the finished record. */
static int judge(struct run *run)
{
	struct judge_subject subject = subject_of(run, NULL);
	const struct claim **claims = calloc(subject.claim_count + 1, sizeof(*claims));

	if (!claims)
		return message_set_errno(run->message, -ENOMEM, "cannot judge the run");
	subject = subject_of(run, claims);
	record_judge(run->record, &subject);
	free(claims);
	return 0;
}

/*
 * A run ends within 2 s of its time, whatever is stuck. After the sampler's end (1.2 s at most, see
 * sampler/sampler.c) loads are asked, then killed, and the guardian answers or goes on alone. Where
 * the explanation of a trace took the time, each step still has a little.
 */
#define LOADS_ASKED_NS (1300 * NS_PER_MS)
#define LOADS_KILLED_NS (1500 * NS_PER_MS)
#define PUT_BACK_NS (1750 * NS_PER_MS)
#define LEAST_NS (100 * NS_PER_MS)

static int64_t end_of_step(const struct run *run, int64_t after_ns)
{
	int64_t least_ns = clock_now_ns() + LEAST_NS;

	return run->end_ns + after_ns > least_ns ? run->end_ns + after_ns : least_ns;
}

static void stop_everything(struct run *run)
{
	if (!run->end_ns) /* it came to no window: its time is over now */
		run->end_ns = clock_now_ns();
	loads_stop(run->loads, run->load_count, end_of_step(run, LOADS_ASKED_NS),
		   end_of_step(run, LOADS_KILLED_NS));
	for (size_t i = 0; i < run->load_count; i++)
		if (run->loads[i].stuck)
			record_note(
				run->record,
				"the %s load (pid %d) was killed and does not end (waits in the "
				"kernel): the guardian process goes on with it",
				run->loads[i].load.settings.ops->name,
				(int)run->loads[i].child.pid);
	sampler_free(run->sampler);
	run->sampler = NULL;
}

static void free_run(struct run *run)
{
	loads_free(run->loads, run->load_count);
	snapshot_free(run->origin);
	snapshot_free(run->before);
	snapshot_free(run->after);
	snapshot_free(run->tick);
	if (run->series)
		snapshot_series_close(run->series);
	for (size_t i = 0; i < run->context_count; i++)
		json_decref(run->contexts[i].deltas);
	free(run->contexts);
	if (run->kmsg)
		kmsg_close(run->kmsg);
	record_free(run->record);
}

static int open_kernel_log(struct run *run)
{
	int error = kmsg_open(&run->kmsg);

	if (error) {
		run->kmsg = NULL;
		record_note(
			run->record,
			"the kernel log cannot be read (%s): hung tasks and OOM kills are not seen",
			strerrordesc_np(-error));
	}
	return 0;
}

/* Decides where buffers come from, and refuses what cannot show anything. */
static int choose_backends(struct run *run)
{
	for (size_t i = 0; i < run->plan.load_count; i++) {
		struct load_settings *load = &run->plan.loads[i];

		if (!(load->ops->flags & LOAD_HOLDS_BUFFERS))
			continue;
		load->backend = run_choose_backend(run->settings, run->record);
		if (load->backend && load->backend->flags & BACKEND_RELEASES_IN_SHRINKER &&
		    run->plan.memcg && load->backend_settings.leak)
			return message_set(
				run->message, -ENOTSUP,
				"-m leaks %s buffers to the driver's shrinker, which reclaim of a memory "
				"group does not call: nothing would be purged; use --scope machine",
				load->backend->name);
	}
	return 0;
}

/* A scope that nobody asked for by name is the machine's where this one can have no groups. */
static int run_plan(struct run *run)
{
	struct run_settings settings = *run->settings;
	bool asked =
		settings.scope == SCOPE_MEMCG || settings.limit.bytes || settings.limit.is_percent;
	struct machine_memory memory;
	struct message reason;
	struct cgroup parent;
	int error = machine_memory_read(&memory);

	if (error)
		return message_set_errno(run->message, error, "cannot read /proc/meminfo");
	error = run_plan_make(&settings, &memory, &run->plan, run->record, run->message);
	if (error || asked || !run->plan.memcg || cgroup_detect(&parent, &reason) == 0)
		return error;
	record_note(run->record, "machine scope, since no memory group can be made: %s",
		    reason.text);
	settings.scope = SCOPE_MACHINE;
	return run_plan_make(&settings, &memory, &run->plan, run->record, run->message);
}

/* Everything that may refuse before anything is changed. */
static int prepare(struct run *run)
{
	const struct run_settings *settings = run->settings;
	const struct measure_ops *measure = settings->measure;
	int error = run_plan(run);

	if (!error && measure->check)
		error = measure->check(&settings->measure_settings, run->message);
	if (!error)
		error = choose_backends(run);
	return error;
}

/* The flow of one run: each step is a function that leaves what it made in *run. */
static int execute(struct run *run)
{
	int error;

	error = prepare(run);
	if (error)
		return error;
	run->record->environment = environment_describe();
	environment_machine_key(run->record->environment, run->record->machine_key);
	error = transaction_open(&run->transaction, run->settings->benchmark, run->message);
	if (!error) {
		transaction_watch_interrupt(run->transaction, run->settings->interrupted);
		error = run_enter_scope(run);
	}
	if (!error)
		error = open_kernel_log(run);
	if (!error)
		error = run_start_loads(run);
	if (!error)
		error = run_warm_up(run);
	if (!error)
		error = run_measure(run);
	if (!error)
		error = run_fill_record(run);
	if (!error)
		run_finish_causes(run);
	run_abandon_causes(run);
	stop_everything(run);
	if (!error)
		error = judge(run);
	return error;
}

int run_execute(const struct run_settings *settings, struct record **ret_record,
		struct message *message)
{
	struct run run = {.settings = settings, .message = message};
	int nice_before = getpriority(PRIO_PROCESS, 0);
	int dma_latency_fd = -1;
	int error;

	run.record = record_new(settings->benchmark);
	if (!run.record)
		return -ENOMEM;
	/* The supervisor must get its turn between the loads to end the run in time. */
	setpriority(PRIO_PROCESS, 0, -20);
	dma_latency_fd = rt_hold_dma_latency();
	if (dma_latency_fd < 0)
		record_note(run.record, "idle states are not held off (/dev/cpu_dma_latency: %s)",
			    strerrordesc_np(-dma_latency_fd));

	error = execute(&run);

	transaction_end_by(run.transaction, end_of_step(&run, PUT_BACK_NS));
	run_put_back(run.transaction, error, run.record, message);
	if (dma_latency_fd >= 0)
		close(dma_latency_fd);
	setpriority(PRIO_PROCESS, 0, nice_before);
	if (!error) {
		*ret_record = run.record;
		run.record = NULL;
	}
	free_run(&run);
	return error;
}
