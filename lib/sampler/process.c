/* SPDX-License-Identifier: MIT */
#include "sampler/process.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "sampler/sample_file.h"
#include "sys/rt.h"

/* Of the 256 KiB that a thread may cost; doubled while the C library wants more (sanitizers). */
#define STACK_BYTES ((size_t)64 << 10)
#define STACK_MOST_BYTES ((size_t)16 << 20)

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif

struct worker {
	struct measure_thread measure;
	struct sampler_process *process;
	pthread_t thread;
	bool started;
};

void futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns)
{
	struct timespec timeout = ns_to_timespec(timeout_ns);

	syscall(SYS_futex, word, FUTEX_WAIT, value, &timeout, NULL, 0);
}

void futex_wake_all(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

static void emit_to_ring(struct measure_thread *thread, int64_t when_ns, int64_t late_ns)
{
	sample_ring_put(thread->emit_data, when_ns, late_ns);
}

/* Ends a sleep; that it was sent is all that matters. */
static void on_stop_signal(int signal_number)
{
}

static int take_stop_signal(void)
{
	struct sigaction action = {.sa_handler = on_stop_signal}; /* no SA_RESTART */
	sigset_t set;

	if (sigaction(MEASURE_STOP_SIGNAL, &action, NULL) < 0)
		return -errno;
	sigemptyset(&set);
	sigaddset(&set, MEASURE_STOP_SIGNAL);
	return -pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

/* All that a thread needs before it may sample; -errno when it cannot do without. */
static int worker_set_up(struct worker *worker)
{
	const struct sampler_settings *settings = worker->process->settings;
	struct sampling_thread *shared = worker->measure.shared;
	struct rt_status status;
	struct sched_param scheduling = {0};
	int error = 0;

	prctl(PR_SET_NAME, "sampling");
	if (shared->cpu >= 0)
		error = cpu_pin(0, shared->cpu);
	if (error < 0)
		return error;
	rt_set_timer_slack();
	/* Refused: goes on with what it has, read back here and told by the process. */
	if (settings->fifo)
		rt_set_fifo(settings->priority, &status, NULL);
	else /* what the program was started under is not what was asked for */
		sched_setscheduler(0, SCHED_OTHER, &scheduling);
	shared->policy = sched_getscheduler(0);
	if (sched_getparam(0, &scheduling) == 0)
		shared->priority = scheduling.sched_priority;
	if (settings->measure->prepare)
		error = settings->measure->prepare(&worker->measure);
	clock_now_ns(); /* maps the page of the clock */
	return error;
}

/*
 * Until the thread's own turn of the schedule begins: were all to wake at the start itself,
 * hundreds of them would stand in line there, and find their first deadlines missed.
 */
static void wait_for_start(const struct measure_thread *measure, struct sampler_shared *shared)
{
	struct timespec start;

	while (atomic_load(&shared->begun) == 0)
		futex_wait(&shared->begun, 0, 10 * NS_PER_S);
	start = ns_to_timespec(atomic_load(&shared->start_ns) + measure->offset_ns);
	while (atomic_load(&shared->stop) == 0 &&
	       clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &start, NULL) == EINTR)
		;
}

static void *worker_run(void *argument)
{
	struct worker *worker = argument;
	struct sampler_process *process = worker->process;
	struct sampling_thread *shared = worker->measure.shared;
	struct rusage before, after;
	int error;

	atomic_store(&shared->tid, gettid());
	error = worker_set_up(worker);
	atomic_store(&shared->error, error);
	atomic_store(&shared->state, error < 0 ? SAMPLING_FAILED : SAMPLING_READY);
	atomic_fetch_add(&process->shared->ready, 1);
	futex_wake_all(&process->shared->ready);
	if (error < 0)
		return NULL;

	wait_for_start(&worker->measure, process->shared);
	atomic_store(&shared->state, SAMPLING_RUNNING);
	getrusage(RUSAGE_THREAD, &before);
	if (atomic_load(&process->shared->stop) == 0)
		process->settings->measure->loop(&worker->measure);
	getrusage(RUSAGE_THREAD, &after);
	shared->faults_minor = (uint64_t)(after.ru_minflt - before.ru_minflt);
	shared->faults_major = (uint64_t)(after.ru_majflt - before.ru_majflt);
	atomic_store(&shared->state, SAMPLING_DONE);
	return NULL;
}

static int worker_start(struct worker *worker)
{
	pthread_attr_t attributes;
	size_t stack = STACK_BYTES;
	int error;

	pthread_attr_init(&attributes);
	do {
		pthread_attr_setstacksize(&attributes, stack);
		error = pthread_create(&worker->thread, &attributes, worker_run, worker);
		stack *= 2;
	} while (error == EINVAL && stack <= STACK_MOST_BYTES);
	pthread_attr_destroy(&attributes);
	worker->started = error == 0;
	return -error;
}

/*
 * Deadlines of the threads are spread evenly over the period: threads that wake together on one
 * CPU would wait for each other, and the tool would measure itself.
 */
static void worker_prepare(struct worker *worker, struct sampler_process *process, size_t index,
			   void *scratch)
{
	const struct measure_settings *settings = &process->settings->measure_settings;
	struct measure_thread *measure = &worker->measure;

	worker->process = process;
	measure->settings = settings;
	measure->shared = &process->threads[index];
	measure->stop = &process->shared->stop;
	measure->start_ns = &process->shared->start_ns;
	measure->offset_ns =
		(int64_t)((double)settings->interval_ns * (double)index / (double)process->count);
	random_seed(&measure->random, settings->seed + index * UINT64_C(0x9e3779b97f4a7c15));
	random_seed(&measure->random, random_next(&measure->random));
	measure->scratch = scratch;
	if (process->sink) {
		measure->emit = emit_to_ring;
		measure->emit_data = sample_sink_ring(process->sink, index);
	}
}

static void note(struct sampler_shared *shared, const char *text)
{
	if (shared->note_count < SAMPLER_NOTES)
		message_set(&shared->notes[shared->note_count++], 0, "%s", text);
}

static bool lock_stack(const struct worker *worker)
{
	pthread_attr_t attributes;
	void *address;
	size_t size;
	bool locked;

	if (pthread_getattr_np(worker->thread, &attributes) != 0)
		return false;
	pthread_attr_getstack(&attributes, &address, &size);
	pthread_attr_destroy(&attributes);
	locked = mlock(address, size) == 0;
	return locked;
}

/*
 * Without a lock on it, the code is at least mapped before the loop runs through it, and what the
 * fork left to copy on write is copied. Kernels before 5.14 refuse; then the loop faults a few
 * times.
 */
static void make_present(void)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512], mode[5];
	unsigned long from, to;

	while (maps && fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %4s", &from, &to, mode) != 3 || mode[0] != 'r' ||
		    mode[3] != 'p')
			continue;
		madvise((void *)from, to - from,
			mode[1] == 'w' ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
	}
	if (maps)
		fclose(maps);
}

/*
 * Present to the kernel is not yet present to a hypervisor that shadows page tables: there the
 * first touch of a page from user mode costs an exit, and hundreds of threads at their first sample
 * would keep each other from their deadlines. The or with 0 is safe beside threads that write.
 */
static void touch_samples(struct sampler_process *process)
{
	char *memory = process->memory;

	for (size_t i = 0; i < process->memory_bytes; i += 4096)
		__atomic_fetch_or(&memory[i], 0, __ATOMIC_RELAXED);
}

/*
 * Everything that exists by now: stacks, histograms, code. Where the limit forbids it, the memory
 * that the loop writes is locked alone; where that does not fit either, it is at least made
 * present.
 */
static void lock_memory(struct sampler_process *process, struct worker *workers, void *scratch,
			size_t scratch_bytes)
{
	struct sampler_shared *shared = process->shared;
	struct message why;
	bool all = rt_lock_memory(&why) == 0;
	bool locked = all;

	touch_samples(process);
	if (!all) {
		locked = mlock(process->memory, process->memory_bytes) == 0 &&
			 mlock(workers, process->count * sizeof(*workers)) == 0 &&
			 mlock(scratch, scratch_bytes) == 0;
		for (size_t i = 0; locked && i < process->count; i++)
			locked = lock_stack(&workers[i]);
		make_present();
		message_set(&shared->notes[shared->note_count++], 0, "%.360s; %s", why.text,
			    locked ? "the samples and stacks are locked, the code is not"
				   : "nothing is locked: page faults may delay the sampler itself");
	}
	for (size_t i = 0; i < process->count; i++)
		process->threads[i].memory_locked = locked;
}

static void note_scheduling(struct sampler_process *process)
{
	struct message why;
	char text[sizeof(why.text) + 32];

	if (!process->settings->fifo)
		return;
	for (size_t i = 0; i < process->count; i++) {
		if (process->threads[i].policy == SCHED_FIFO)
			continue;
		rt_explain_denied(process->settings->priority, &why);
		snprintf(text, sizeof(text), "%.470s; measured as SCHED_OTHER", why.text);
		note(process->shared, text);
		return;
	}
}

static int start_all(struct sampler_process *process, struct worker *workers, char *scratch,
		     size_t scratch_each)
{
	size_t started = 0;
	uint32_t ready;
	int error = 0;

	for (size_t i = 0; i < process->count && error == 0; i++) {
		worker_prepare(&workers[i], process, i, scratch + i * scratch_each);
		error = worker_start(&workers[i]);
		started += error == 0;
	}
	if (error < 0)
		return message_set_errno(&process->shared->message, error,
					 "sampling thread %zu of %zu could not be made",
					 started + 1, process->count);
	while ((ready = atomic_load(&process->shared->ready)) < started)
		futex_wait(&process->shared->ready, ready, NS_PER_S);
	for (size_t i = 0; i < process->count && error == 0; i++) {
		error = atomic_load(&process->threads[i].error);
		if (error < 0)
			message_set_errno(&process->shared->message, error,
					  "sampling thread of CPU %d could not be set up",
					  process->threads[i].cpu);
	}
	return error;
}

static void end_all(struct sampler_process *process, struct worker *workers)
{
	for (size_t i = 0; i < process->count; i++)
		if (workers[i].started)
			pthread_join(workers[i].thread, NULL);
}

int sampler_process_run(void *argument)
{
	struct sampler_process *process = argument;
	struct sampler_shared *shared = process->shared;
	size_t scratch_each = (process->settings->measure->scratch_bytes + 63) & ~(size_t)63;
	size_t scratch_bytes = process->count * (scratch_each ? scratch_each : 64);
	struct worker *workers = calloc(process->count, sizeof(*workers));
	char *scratch = aligned_alloc(64, scratch_bytes);
	int error = take_stop_signal();

	if (error == 0 && (!workers || !scratch))
		error = -ENOMEM;
	if (error < 0) {
		message_set_errno(&shared->message, error, "sampler");
	} else {
		memset(scratch, 0, scratch_bytes);
		error = start_all(process, workers, scratch, scratch_each);
	}
	if (error < 0) {
		shared->error = error;
		atomic_store(&shared->stop, 1);
		atomic_store(&shared->begun, 1);
		futex_wake_all(&shared->begun);
	} else {
		lock_memory(process, workers, scratch, scratch_bytes);
		note_scheduling(process);
	}
	atomic_store(&shared->state, error < 0 ? 2 : 1);
	futex_wake_all(&shared->state);
	if (workers)
		end_all(process, workers);
	free(scratch);
	free(workers);
	return error;
}
