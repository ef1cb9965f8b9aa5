/* SPDX-License-Identifier: MIT */
/*
 * A thread of ordinary priority that empties the kernel's buffers into the ring forty times a
 * second. 2 MiB a CPU last for a second at the rate of full tracing, so it may well wait its turn.
 */
#include "causes/tracefs_internal.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

#define DRAIN_NS (25 * NS_PER_MS)
#define PAGES_AT_ONCE 64 /* while the supervisor is kept out */

/* The header of a page begins with the time of its first event. */
static int64_t page_start(const unsigned char *page)
{
	uint64_t when_ns;

	memcpy(&when_ns, page, sizeof(when_ns));
	return (int64_t)when_ns;
}

/* At most PAGES_AT_ONCE pages of one CPU; false when there are no more. */
static bool drain_cpu(struct drain *drain, size_t cpu)
{
	static const size_t most = PAGES_AT_ONCE;
	struct ring *ring = drain->ring;
	bool more = true;

	pthread_mutex_lock(&drain->lock);
	for (size_t i = 0; i < most && more; i++) {
		unsigned char *page = ring_next(ring);
		ssize_t got =
			page ? read(drain->instance->raw_fds[cpu], page, ring->page_bytes) : 0;

		more = got > 0;
		if (!more)
			break;
		drain->bytes += (uint64_t)got;
		ring_put(ring, (int32_t)cpu, page_start(page));
	}
	pthread_mutex_unlock(&drain->lock);
	return more;
}

static void drain_all(struct drain *drain)
{
	for (size_t cpu = 0; cpu < drain->instance->cpu_count; cpu++) {
		if (drain->instance->raw_fds[cpu] < 0)
			continue;
		while (drain_cpu(drain, cpu))
			;
	}
	pthread_mutex_lock(&drain->lock);
	steal_log_poll(drain->steal_log, clock_now_ns());
	pthread_mutex_unlock(&drain->lock);
}

static void *drain_run(void *data)
{
	struct drain *drain = data;

	pthread_setname_np(pthread_self(), "trace-drain");
	/* Of the thread alone: the supervisor that made it has a higher one. */
	setpriority(PRIO_PROCESS, (id_t)gettid(), 0);
	while (!atomic_load(&drain->stop)) {
		drain_all(drain);
		clock_sleep_for(DRAIN_NS);
	}
	return NULL;
}

int drain_start(struct drain *drain)
{
	sigset_t all, before;
	int error;

	pthread_mutex_init(&drain->lock, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	error = pthread_create(&drain->thread, NULL, drain_run, drain);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	drain->running = error == 0;
	return -error;
}

void drain_stop(struct drain *drain)
{
	if (!drain->running)
		return;
	atomic_store(&drain->stop, true);
	pthread_join(drain->thread, NULL);
	drain->running = false;
	drain_all(drain);
}
