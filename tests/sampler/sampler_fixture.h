/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_SAMPLER_FIXTURE_H
#define ENGINE_SAMPLER_FIXTURE_H

/* What the programs that test the sampler share. */
#include <errno.h>
#include <inttypes.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "sampler/sampler.h"
#include "sys/rt.h"

extern const struct measure_ops measure_wakeup, measure_thp;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER true
#else
#define UNDER_SANITIZER false
#endif

static inline bool fifo_permitted(void)
{
	struct rlimit limit;
	struct rt_status status;
	bool permitted;
	struct sched_param ordinary = {0};

	getrlimit(RLIMIT_RTPRIO, &limit);
	permitted = rt_set_fifo(99, &status, NULL) == 0;
	sched_setscheduler(0, SCHED_OTHER, &ordinary);
	return permitted;
}

static inline void settings_fixed(struct sampler_settings *settings, int64_t interval_ns)
{
	memset(settings, 0, sizeof(*settings));
	settings->measure = &measure_wakeup;
	settings->measure_settings.schedule = SCHEDULE_FIXED;
	settings->measure_settings.interval_ns = interval_ns;
	settings->measure_settings.count_steal = true;
	settings->measure_settings.seed = 1;
	settings->fifo = true;
	settings->priority = 99;
	assert_int_equal(cpu_list_allowed(0, &settings->cpus), 0);
}

static inline struct sampler *start(struct sampler_settings *settings)
{
	struct sampler *sampler = NULL;
	struct message message = {""};
	int error = sampler_start(settings, &sampler, &message);

	if (error < 0)
		print_message("# %s\n", message.text);
	assert_int_equal(error, 0);
	cpu_list_free(&settings->cpus);
	return sampler;
}

/* Polls as the engine does, until @end_ns. */
static inline void poll_until(struct sampler *sampler, int64_t end_ns)
{
	while (clock_now_ns() < end_ns) {
		int64_t left_ns = end_ns - clock_now_ns();

		assert_int_equal(sampler_poll(sampler, NULL), 0);
		clock_sleep_for(left_ns < 100 * NS_PER_MS ? left_ns : 100 * NS_PER_MS);
	}
}

static inline void run_for(struct sampler *sampler, int64_t duration_ns)
{
	int64_t begin_ns = clock_now_ns() + sampler_lead_ns(sampler);

	sampler_begin(sampler, begin_ns);
	poll_until(sampler, begin_ns + duration_ns);
}

/* The process that a sampling thread belongs to, as its /proc says. */
static inline pid_t process_of(const struct sampling_thread *thread)
{
	char path[64], *text;
	int64_t pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", atomic_load(&thread->tid));
	assert_int_equal(machine_read(path, &text, NULL), 0);
	assert_int_equal(text_find_int64(text, "Tgid", &pid), 0);
	free(text);
	return (pid_t)pid;
}

static inline int64_t stop_sampler(struct sampler *sampler)
{
	int64_t stall_ns = -1, before_ns = clock_now_ns();

	assert_int_equal(sampler_stop(sampler, &stall_ns), 0);
	assert_true(clock_now_ns() - before_ns < 1500 * NS_PER_MS);
	return stall_ns;
}

#endif
