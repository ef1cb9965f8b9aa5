/* SPDX-License-Identifier: MIT */
/*
 * How late a task runs after its timer expired. Two schedules: IGT's (the next expiry is drawn
 * from the wake, so that a stall is one sample) and a fixed one (t0 + k x period, never rebased).
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/profile_mark.h"
#include "ops.h"

/* glibc 2.36 has no name for the member that the kernel reads. */
#ifndef sigev_notify_thread_id
#define sigev_notify_thread_id _sigev_un._tid
#endif

/* Uniform, as gem_syslatency of IGT draws it. */
#define IGT_LEAST_NS (100 * NS_PER_US)
#define IGT_SPAN_NS NS_PER_MS

struct wakeup_scratch {
	timer_t timer;
	sigset_t signals;
};

static inline bool stopping(const struct measure_thread *thread)
{
	return atomic_load_explicit(thread->stop, memory_order_relaxed) != 0;
}

/* The mark is the begin of a sample. */
static inline void wait_begins(struct measure_thread *thread, int64_t expiry_ns)
{
	profile_mark(PROFILE_MARK_BEGIN);
	atomic_store_explicit(&thread->shared->waiting_since_ns, expiry_ns, memory_order_relaxed);
}

static inline void count_early(struct sampling_thread *shared)
{
	atomic_store_explicit(&shared->early,
			      atomic_load_explicit(&shared->early, memory_order_relaxed) + 1,
			      memory_order_relaxed);
}

/*
 * IGT's schedule wakes by a signal to this thread and sigwait, as IGT does: that path is in the
 * number. The timer is made here, where a failure can still be told.
 */
static int wakeup_prepare(struct measure_thread *thread)
{
	struct wakeup_scratch *scratch = thread->scratch;
	struct sigevent event;

	if (thread->settings->schedule != SCHEDULE_IGT)
		return 0;
	sigemptyset(&scratch->signals);
	sigaddset(&scratch->signals, MEASURE_STOP_SIGNAL);
	pthread_sigmask(SIG_BLOCK, &scratch->signals, NULL);
	memset(&event, 0, sizeof(event));
	event.sigev_notify = SIGEV_THREAD_ID;
	event.sigev_signo = MEASURE_STOP_SIGNAL;
	event.sigev_notify_thread_id = gettid();
	return timer_create(CLOCK_MONOTONIC, &event, &scratch->timer) < 0 ? -errno : 0;
}

static void loop_igt(struct measure_thread *thread)
{
	struct wakeup_scratch *scratch = thread->scratch;
	int64_t cost_ns = llrint(thread->settings->clock_cost_ns);
	int64_t now_ns = clock_now_ns();

	while (!stopping(thread)) {
		int64_t expiry_ns =
			now_ns + IGT_LEAST_NS + (int64_t)random_below(&thread->random, IGT_SPAN_NS);
		struct itimerspec timer = {.it_value = ns_to_timespec(expiry_ns)};
		int signal_number;

		wait_begins(thread, expiry_ns);
		timer_settime(scratch->timer, TIMER_ABSTIME, &timer, NULL);
		sigwait(&scratch->signals, &signal_number);
		now_ns = clock_now_ns();
		profile_mark(PROFILE_MARK_END);
		if (now_ns < expiry_ns) {
			if (stopping(thread))
				break; /* woken by the stop, not by the timer */
			count_early(thread->shared);
		}
		sampling_add(thread->shared, expiry_ns, now_ns - expiry_ns - cost_ns);
		if (thread->emit)
			thread->emit(thread, expiry_ns, now_ns - expiry_ns - cost_ns);
	}
	atomic_store_explicit(&thread->shared->waiting_since_ns, 0, memory_order_relaxed);
	timer_delete(scratch->timer);
}

/* Sleeps by the absolute clock; a signal that is not the stop does not end the wait. */
static inline void sleep_until_or_stop(struct measure_thread *thread, int64_t deadline_ns)
{
	struct timespec deadline = ns_to_timespec(deadline_ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR &&
	       !stopping(thread))
		;
}

static void loop_fixed(struct measure_thread *thread)
{
	int64_t cost_ns = llrint(thread->settings->clock_cost_ns);
	int64_t period_ns = thread->settings->interval_ns;
	int64_t deadline_ns = atomic_load(thread->start_ns) + thread->offset_ns + period_ns;

	while (!stopping(thread)) {
		int64_t now_ns, late_ns;
		uint64_t missed;

		wait_begins(thread, deadline_ns);
		sleep_until_or_stop(thread, deadline_ns);
		now_ns = clock_now_ns();
		profile_mark(PROFILE_MARK_END);
		late_ns = now_ns - deadline_ns;
		if (late_ns < 0) {
			if (stopping(thread))
				break;
			count_early(thread->shared);
		}
		missed = sampling_add_scheduled(thread->shared, deadline_ns, late_ns - cost_ns,
						late_ns, period_ns);
		if (thread->emit)
			thread->emit(thread, deadline_ns, late_ns - cost_ns);
		deadline_ns += (int64_t)(missed + 1) * period_ns;
	}
	atomic_store_explicit(&thread->shared->waiting_since_ns, 0, memory_order_relaxed);
}

static void wakeup_loop(struct measure_thread *thread)
{
	profile_mark(PROFILE_MARK_LOOP);
	if (thread->settings->schedule == SCHEDULE_IGT)
		loop_igt(thread);
	else
		loop_fixed(thread);
}

static int wakeup_check(const struct measure_settings *settings, struct message *message)
{
	if (settings->schedule == SCHEDULE_FIXED && settings->interval_ns < 10 * NS_PER_US)
		return message_set(message, -EINVAL,
				   "an interval below 10us is shorter than a wakeup takes");
	return 0;
}

static const struct claim wakeup_claims[] = {
	{.name = "the wakeup probe sampled",
	 .witness = "latency.count",
	 .test = CLAIM_AT_LEAST,
	 .bound = 1,
	 .why = "no timer wakeup was measured",
	 .advice = "measure longer than the interval"},
	{.name = NULL},
};

const struct measure_ops measure_wakeup = {
	.name = "wakeup",
	.summary = "delay from the expiry of a timer to the running of the task that waits for it",
	.claims = wakeup_claims,
	.flags = MEASURE_DEFAULT | MEASURE_SCHEDULES,
	.scratch_bytes = sizeof(struct wakeup_scratch),
	.check = wakeup_check,
	.prepare = wakeup_prepare,
	.loop = wakeup_loop,
};
