/* SPDX-License-Identifier: MIT */
#include "sampler/sampler.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "sampler/process.h"
#include "sampler/sample_file.h"
#include "undo/transaction.h"
#include "sys/steal.h"

#define START_LIMIT_NS (20 * NS_PER_S)
#define STOP_LIMIT_NS (750 * NS_PER_MS)
#define KILL_GRACE_NS (200 * NS_PER_MS)
#define SINK_LIMIT_NS (1100 * NS_PER_MS) /* from the request to stop on */

/* Delays below are not worth a look at steal: it comes in ticks of 10 ms. */
#define STEAL_LEAST_NS NS_PER_MS

/* Found for one of the worst delays of a thread; kept here, because the thread may replace its
 * slot. */
struct steal_note {
	int64_t when_ns, late_ns, steal_ns;
};

struct sampler {
	struct sampler_settings settings;
	struct sampler_process process;
	struct child child;
	struct sample_sink *sink;
	struct steal_log *steal_log;
	struct steal_note *steal_notes; /* SAMPLING_WORST a thread */
	struct message notes[SAMPLER_NOTES + 2];
	size_t note_count;
	bool stopped;
	int64_t stall_ns;
	int sink_error;
	struct message sink_message;
};

static size_t round_up(size_t bytes)
{
	return (bytes + 4095) & ~(size_t)4095;
}

/*
 * One block, present before anything forks: control words, threads and, for a measure with phases,
 * their histograms.
 */
static int map_shared(struct sampler_process *process, bool phases)
{
	size_t control = round_up(sizeof(struct sampler_shared));
	size_t threads = round_up(process->count * sizeof(struct sampling_thread));
	size_t each = SAMPLING_PHASES * sizeof(struct histogram);
	char *memory;

	process->memory_bytes = control + threads + (phases ? process->count * each : 0);
	memory = mmap(NULL, process->memory_bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	process->memory = memory;
	process->shared = (struct sampler_shared *)memory;
	process->threads = (struct sampling_thread *)(memory + control);
	for (size_t i = 0; phases && i < process->count; i++)
		process->threads[i].phases =
			(struct histogram *)(memory + control + threads + i * each);
	return 0;
}

static int assign_cpus(struct sampler *sampler)
{
	const struct cpu_list *cpus = &sampler->settings.cpus;

	for (size_t i = 0; i < sampler->process.count; i++) {
		sampler->process.threads[i].index = (int32_t)i;
		sampler->process.threads[i].cpu = cpus->count ? cpus->cpus[i % cpus->count] : -1;
	}
	return 0;
}

static int open_sink(struct sampler *sampler, struct message *message)
{
	size_t count = sampler->process.count;
	int *cpus = calloc(count, sizeof(*cpus));
	int error;

	if (!cpus)
		return message_set_errno(message, -ENOMEM, "samples");
	for (size_t i = 0; i < count; i++)
		cpus[i] = sampler->process.threads[i].cpu;
	error = sample_sink_open(sampler->settings.samples_path, cpus, count,
				 sampler->settings.transaction, &sampler->sink, message);
	free(cpus);
	sampler->process.sink = sampler->sink;
	return error;
}

static void add_note(struct sampler *sampler, const char *text)
{
	if (sampler->note_count < ARRAY_SIZE(sampler->notes))
		message_set(&sampler->notes[sampler->note_count++], 0, "%s", text);
}

/* Until the process says that sampling may begin, or that it cannot. */
static int wait_until_ready(struct sampler *sampler, struct message *message)
{
	struct sampler_shared *shared = sampler->process.shared;
	int64_t deadline_ns = clock_now_ns() + START_LIMIT_NS;
	int status;

	while (atomic_load(&shared->state) == 0) {
		futex_wait(&shared->state, 0, 50 * NS_PER_MS);
		if (atomic_load(&shared->state) != 0)
			break;
		if (child_poll(&sampler->child, &status) <= 0)
			return message_set(message, -ECHILD,
					   "the sampler process ended while starting (status %#x): "
					   "killed, or out of memory",
					   status);
		if (clock_now_ns() > deadline_ns)
			return message_set(message, -ETIMEDOUT,
					   "the sampler did not start within %d s",
					   (int)(START_LIMIT_NS / NS_PER_S));
	}
	if (atomic_load(&shared->state) == 1)
		return 0;
	/* A CPU that went away says more than EINVAL. */
	if (shared->error == -EINVAL && sampler->settings.cpus.count &&
	    cpu_list_check(&sampler->settings.cpus, message) < 0)
		return -ENXIO;
	message_set(message, shared->error, "%s", shared->message.text);
	return shared->error;
}

static int start_process(struct sampler *sampler, struct message *message)
{
	struct child_settings child = {
		.name = "sampler",
		.oom_score_adj = -1000,
		.cgroup = sampler->settings.cgroup,
		.transaction = sampler->settings.transaction,
	};
	struct sampler_shared *shared = sampler->process.shared;
	int error = child_start(&child, sampler_process_run, &sampler->process, &sampler->child,
				message);

	if (error < 0)
		return error;
	/* Loads that fork later need no view of the samples. */
	madvise(sampler->process.memory, sampler->process.memory_bytes, MADV_DONTFORK);
	error = wait_until_ready(sampler, message);
	if (error < 0)
		return error;
	for (uint32_t i = 0; i < shared->note_count; i++)
		add_note(sampler, shared->notes[i].text);
	return 0;
}

static int copy_settings(struct sampler *sampler, const struct sampler_settings *settings)
{
	sampler->settings = *settings;
	sampler->settings.cpus = (struct cpu_list){0};
	sampler->process.settings = &sampler->settings;
	sampler->process.count = settings->threads ? settings->threads : settings->cpus.count;
	if (sampler->process.count == 0)
		sampler->process.count = 1;
	return cpu_list_copy(&settings->cpus, &sampler->settings.cpus);
}

int sampler_start(const struct sampler_settings *settings, struct sampler **ret_sampler,
		  struct message *message)
{
	struct sampler *sampler = calloc(1, sizeof(*sampler));
	int error;

	if (!sampler)
		return message_set_errno(message, -ENOMEM, "sampler");
	error = copy_settings(sampler, settings);
	if (error == 0)
		error = map_shared(&sampler->process, settings->measure->phases != NULL);
	if (error < 0) {
		message_set_errno(message, error, "memory of %zu sampling threads",
				  sampler->process.count);
		goto fail;
	}
	assign_cpus(sampler);
	if (settings->measure_settings.count_steal) {
		sampler->steal_log = steal_log_new();
		sampler->steal_notes = calloc(sampler->process.count * SAMPLING_WORST,
					      sizeof(*sampler->steal_notes));
	}
	if (settings->samples_path) {
		error = open_sink(sampler, message);
		if (error < 0)
			goto fail;
	}
	error = start_process(sampler, message);
	if (error < 0)
		goto fail;
	*ret_sampler = sampler;
	return 0;
fail:
	sampler_free(sampler);
	return error;
}

const struct message *sampler_notes(const struct sampler *sampler, size_t *ret_count)
{
	*ret_count = sampler->note_count;
	return sampler->notes;
}

int64_t sampler_lead_ns(const struct sampler *sampler)
{
	/* Waking one of many takes some 20 us, in virtual machines up to 100. */
	return NS_PER_MS + (int64_t)sampler->process.count * 200 * NS_PER_US;
}

void sampler_begin(struct sampler *sampler, int64_t start_ns)
{
	struct sampler_shared *shared = sampler->process.shared;

	steal_log_poll(sampler->steal_log, clock_now_ns());
	atomic_store(&shared->start_ns, start_ns);
	atomic_store(&shared->begun, 1);
	futex_wake_all(&shared->begun);
}

/* A slot for @worst among the notes of its thread: its own, or one that is no longer among the
 * worst. */
static struct steal_note *steal_note_for(const struct sampler *sampler, size_t thread,
					 const struct sampling_worst *worst)
{
	struct steal_note *notes = &sampler->steal_notes[thread * SAMPLING_WORST];
	struct steal_note *smallest = notes;

	for (int i = 0; i < SAMPLING_WORST; i++) {
		if (notes[i].when_ns == worst->when_ns && notes[i].late_ns == worst->late_ns)
			return &notes[i];
		if (notes[i].late_ns < smallest->late_ns)
			smallest = &notes[i];
	}
	return smallest;
}

/* Looks at each bad delay once, soon after its steal is counted, while the log still has polls near
 * it. */
static void note_steal(struct sampler *sampler, size_t thread, int64_t last_poll_ns)
{
	for (int i = 0; i < SAMPLING_WORST; i++) {
		struct sampling_worst worst = sampler->process.threads[thread].worst[i];
		struct steal_note *note;
		int64_t steal_ns;

		if (worst.late_ns < STEAL_LEAST_NS)
			continue;
		note = steal_note_for(sampler, thread, &worst);
		if (note->when_ns == worst.when_ns && note->late_ns == worst.late_ns)
			continue;
		steal_ns = steal_log_around(sampler->steal_log, worst.cpu, worst.when_ns,
					    worst.late_ns);
		/* The kernel counts it late: the next poll will know. */
		if (steal_ns < 0 && last_poll_ns < worst.when_ns + worst.late_ns + STEAL_COUNTED_NS)
			continue;
		*note = (struct steal_note){worst.when_ns, worst.late_ns, steal_ns};
	}
}

static void poll_steal(struct sampler *sampler)
{
	int64_t now_ns = clock_now_ns();

	if (!sampler->steal_log || !sampler->steal_notes)
		return;
	steal_log_poll(sampler->steal_log, now_ns);
	for (size_t i = 0; i < sampler->process.count; i++)
		note_steal(sampler, i, now_ns);
}

/* A delay near the end of the run has its steal counted after it. */
static void await_steal(const struct sampler *sampler)
{
	int64_t until_ns = 0;

	for (size_t i = 0; i < sampler->process.count; i++)
		for (int j = 0; j < SAMPLING_WORST; j++) {
			const struct sampling_worst *worst = &sampler->process.threads[i].worst[j];
			int64_t end_ns = worst->when_ns + worst->late_ns;

			if (worst->late_ns >= STEAL_LEAST_NS && end_ns > until_ns)
				until_ns = end_ns;
		}
	clock_sleep_until(until_ns + STEAL_COUNTED_NS);
}

/* Once no thread writes any more. */
static void fill_in_steal(struct sampler *sampler)
{
	if (!sampler->steal_log || !sampler->steal_notes)
		return;
	await_steal(sampler);
	poll_steal(sampler);
	for (size_t i = 0; i < sampler->process.count; i++)
		for (int j = 0; j < SAMPLING_WORST; j++) {
			struct sampling_worst *worst = &sampler->process.threads[i].worst[j];
			struct steal_note *note = steal_note_for(sampler, i, worst);

			if (worst->late_ns >= STEAL_LEAST_NS && note->when_ns == worst->when_ns &&
			    note->late_ns == worst->late_ns)
				worst->steal_ns = note->steal_ns;
		}
}

/* The process is gone, which it never is by its own will before it is stopped. */
static int say_how_it_ended(int status, struct message *message)
{
	if (WIFSIGNALED(status))
		return message_set(message, -ECHILD,
				   "the sampler process was ended by signal %d (%s): "
				   "the kernel log says more, if the kernel sent it",
				   WTERMSIG(status), strsignal(WTERMSIG(status)));
	return message_set(message, -ECHILD,
			   "the sampler process ended before its time with status %d: "
			   "a defect of this program",
			   WEXITSTATUS(status));
}

int sampler_poll(struct sampler *sampler, struct message *message)
{
	int status = 0, running;

	if (sampler->stopped)
		return 0;
	poll_steal(sampler);
	for (size_t i = 0; i < sampler->process.count; i++) {
		const struct sampling_thread *thread = &sampler->process.threads[i];
		int error = atomic_load(&thread->error);

		if (error < 0 && thread->cpu < 0)
			return message_set_errno(message, error, "sampling thread %zu gave up",
						 i + 1);
		if (error < 0)
			return message_set_errno(message, error,
						 "the sampling thread of CPU %d gave up",
						 thread->cpu);
	}
	running = child_poll(&sampler->child, &status);
	if (running < 0)
		return message_set(message, -ECHILD, "the sampler process is gone");
	return running == 0 ? say_how_it_ended(status, message) : 0;
}

const struct sampling_thread *sampler_threads(const struct sampler *sampler, size_t *ret_count)
{
	*ret_count = sampler->process.count;
	return sampler->process.threads;
}

const struct sampling_thread *sampler_thread(const struct sampler *sampler, size_t index)
{
	return index < sampler->process.count ? &sampler->process.threads[index] : NULL;
}

int64_t sampler_stalled_ns(const struct sampler *sampler, int64_t now_ns, size_t *ret_index)
{
	int64_t longest_ns = 0;

	for (size_t i = 0; i < sampler->process.count; i++) {
		int64_t since_ns = atomic_load_explicit(
			&sampler->process.threads[i].waiting_since_ns, memory_order_relaxed);

		if (since_ns != 0 && now_ns - since_ns > longest_ns) {
			longest_ns = now_ns - since_ns;
			if (ret_index)
				*ret_index = i;
		}
	}
	return longest_ns;
}

/* Ends the sleeps of threads that still run; false when none does. */
static bool wake_running(const struct sampler *sampler)
{
	bool running = false;

	for (size_t i = 0; i < sampler->process.count; i++) {
		const struct sampling_thread *thread = &sampler->process.threads[i];
		int state = atomic_load(&thread->state);

		if (state == SAMPLING_DONE || state == SAMPLING_FAILED)
			continue;
		running = true;
		if (sampler->child.pid > 0)
			syscall(SYS_tgkill, sampler->child.pid, atomic_load(&thread->tid),
				MEASURE_STOP_SIGNAL);
	}
	return running;
}

static int end_process(struct sampler *sampler)
{
	struct transaction *transaction = sampler->settings.transaction;
	pid_t pid = sampler->child.pid;
	int status;

	if (child_wait(&sampler->child, clock_now_ns() + KILL_GRACE_NS, &status) == -ETIMEDOUT)
		return child_kill(&sampler->child, KILL_GRACE_NS, transaction);
	if (transaction && pid > 0)
		transaction_disown_process(transaction, pid);
	return 0;
}

int sampler_stop(struct sampler *sampler, int64_t *ret_stall_ns)
{
	struct sampler_shared *shared = sampler->process.shared;
	int64_t begin_ns = clock_now_ns(), deadline_ns = begin_ns + STOP_LIMIT_NS;
	bool running = true;
	int status, error = 0;

	*ret_stall_ns = sampler->stall_ns;
	if (sampler->stopped)
		return 0;
	sampler->stopped = true;
	atomic_store(&shared->stop, 1);
	atomic_store(&shared->begun, 1);
	futex_wake_all(&shared->begun);
	while ((running = wake_running(sampler)) && clock_now_ns() < deadline_ns) {
		if (child_poll(&sampler->child, &status) <= 0)
			break;
		clock_sleep_for(2 * NS_PER_MS);
	}
	if (running) {
		sampler->stall_ns = sampler_stalled_ns(sampler, clock_now_ns(), NULL);
		error = child_kill(&sampler->child, KILL_GRACE_NS, sampler->settings.transaction);
	} else {
		error = end_process(sampler);
	}
	fill_in_steal(sampler);
	if (sampler->sink)
		sampler->sink_error = sample_sink_finish(sampler->sink, begin_ns + SINK_LIMIT_NS,
							 &sampler->sink_message);
	*ret_stall_ns = sampler->stall_ns;
	return error;
}

int sampler_samples(const struct sampler *sampler, uint64_t *ret_lost, struct message *message)
{
	*ret_lost = sampler->sink ? sample_sink_lost(sampler->sink) : 0;
	if (sampler->sink_error < 0 && message)
		*message = sampler->sink_message;
	return sampler->sink_error;
}

void sampler_free(struct sampler *sampler)
{
	if (!sampler)
		return;
	if (sampler->child.pid > 0)
		child_kill(&sampler->child, KILL_GRACE_NS, sampler->settings.transaction);
	sample_sink_free(sampler->sink);
	steal_log_free(sampler->steal_log);
	free(sampler->steal_notes);
	if (sampler->process.memory)
		munmap(sampler->process.memory, sampler->process.memory_bytes);
	cpu_list_free(&sampler->settings.cpus);
	free(sampler);
}
