/* SPDX-License-Identifier: MIT */
/* The loop itself, in a thread of the test: schedules, early wakes, the end. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "ops.h"

extern const struct measure_ops measure_wakeup;

struct emitted {
	int64_t when_ns, late_ns;
};

struct probe {
	struct measure_settings settings;
	struct measure_thread measure;
	struct sampling_thread *shared;
	_Atomic int32_t stop;
	_Atomic int64_t start_ns;
	_Atomic int32_t tid;
	int prepared;
	pthread_t thread;
	struct emitted emitted[20000];
	size_t emitted_count;
};

static void keep_emitted(struct measure_thread *thread, int64_t when_ns, int64_t late_ns)
{
	struct probe *probe = thread->emit_data;

	if (probe->emitted_count < 20000) {
		probe->emitted[probe->emitted_count].when_ns = when_ns;
		probe->emitted[probe->emitted_count++].late_ns = late_ns;
	}
}

static void on_signal(int number)
{
}

static void *run(void *argument)
{
	struct probe *probe = argument;

	probe->prepared = measure_wakeup.prepare(&probe->measure);
	atomic_store(&probe->tid, gettid());
	if (probe->prepared == 0)
		measure_wakeup.loop(&probe->measure);
	return NULL;
}

static struct probe *probe_start_with(enum schedule schedule, int64_t interval_ns, double cost_ns)
{
	struct probe *probe = calloc(1, sizeof(*probe));
	struct sigaction action = {.sa_handler = on_signal};

	assert_non_null(probe);
	sigaction(MEASURE_STOP_SIGNAL, &action, NULL);
	probe->settings.schedule = schedule;
	probe->settings.interval_ns = interval_ns;
	probe->settings.clock_cost_ns = cost_ns;
	probe->shared = calloc(1, sizeof(*probe->shared));
	probe->shared->cpu = -1;
	probe->measure.settings = &probe->settings;
	probe->measure.shared = probe->shared;
	probe->measure.stop = &probe->stop;
	probe->measure.start_ns = &probe->start_ns;
	probe->measure.scratch = calloc(1, measure_wakeup.scratch_bytes);
	probe->measure.emit = keep_emitted;
	probe->measure.emit_data = probe;
	random_seed(&probe->measure.random, 1);
	atomic_store(&probe->start_ns, clock_now_ns());
	assert_int_equal(pthread_create(&probe->thread, NULL, run, probe), 0);
	while (atomic_load(&probe->tid) == 0)
		clock_sleep_for(NS_PER_MS);
	return probe;
}

static struct probe *probe_start(enum schedule schedule, int64_t interval_ns)
{
	return probe_start_with(schedule, interval_ns, 0);
}

static void signal_probe(struct probe *probe)
{
	syscall(SYS_tgkill, getpid(), atomic_load(&probe->tid), MEASURE_STOP_SIGNAL);
}

static void probe_stop(struct probe *probe)
{
	atomic_store(&probe->stop, 1);
	signal_probe(probe);
	pthread_join(probe->thread, NULL);
	assert_int_equal(atomic_load(&probe->shared->waiting_since_ns), 0);
}

static void probe_free(struct probe *probe)
{
	free(probe->measure.scratch);
	free(probe->shared);
	free(probe);
}

static void igt_schedule_draws_from_the_wake(void **state)
{
	struct probe *probe = probe_start(SCHEDULE_IGT, 0);
	int64_t least_ns = INT64_MAX, most_ns = 0;
	size_t n;

	clock_sleep_for(700 * NS_PER_MS);
	probe_stop(probe);
	n = probe->emitted_count;
	assert_true(n > 200);
	assert_int_equal(atomic_load(&probe->shared->count), n);
	for (size_t i = 1; i < n; i++) {
		int64_t wake_ns = probe->emitted[i - 1].when_ns + probe->emitted[i - 1].late_ns;
		int64_t drawn_ns = probe->emitted[i].when_ns - wake_ns;

		assert_in_range(drawn_ns, 100 * NS_PER_US, 1100 * NS_PER_US - 1);
		least_ns = drawn_ns < least_ns ? drawn_ns : least_ns;
		most_ns = drawn_ns > most_ns ? drawn_ns : most_ns;
	}
	/* Uniform over the whole span: by chance missed with (0.9)^200 at most. */
	assert_true(least_ns < 200 * NS_PER_US && most_ns > 1000 * NS_PER_US);
	assert_int_equal(probe->shared->corrected.total, 0);
	probe_free(probe);
}

static void fixed_schedule_is_never_rebased(void **state)
{
	struct probe *probe = probe_start(SCHEDULE_FIXED, 2 * NS_PER_MS);
	int64_t start_ns = atomic_load(&probe->start_ns), last_ns = start_ns;
	uint64_t missed = 0;

	clock_sleep_for(600 * NS_PER_MS);
	probe_stop(probe);
	assert_true(probe->emitted_count > 50);
	for (size_t i = 0; i < probe->emitted_count; i++) {
		int64_t when_ns = probe->emitted[i].when_ns;

		assert_int_equal((when_ns - start_ns) % (2 * NS_PER_MS), 0);
		assert_int_equal(when_ns, last_ns + 2 * NS_PER_MS);
		last_ns = when_ns;
		/* the deadlines that passed meanwhile are skipped, and are what was missed */
		if (probe->emitted[i].late_ns > 0) {
			uint64_t passed = (uint64_t)(probe->emitted[i].late_ns / (2 * NS_PER_MS));

			missed += passed;
			last_ns += (int64_t)passed * 2 * NS_PER_MS;
		}
	}
	assert_int_equal(atomic_load(&probe->shared->missed), missed);
	assert_int_equal(probe->shared->corrected.total, probe->emitted_count + missed);
	probe_free(probe);
}

/* Only a wake before the expiry is early; it keeps its sign. */
static void early_wake_is_counted_and_negative(void **state)
{
	struct probe *probe = probe_start(SCHEDULE_IGT, 0);

	for (int i = 0; i < 300; i++) {
		clock_sleep_for(300 * NS_PER_US);
		signal_probe(probe);
	}
	probe_stop(probe);
	assert_true(atomic_load(&probe->shared->early) > 0);
	assert_true(probe->shared->moments.minimum < 0);
	assert_true(probe->shared->moments.minimum > -2 * NS_PER_MS);
	probe_free(probe);
}

/* A stray signal does not end the sleep of the fixed schedule. */
static void stray_signals_do_not_wake_the_fixed_schedule(void **state)
{
	struct probe *probe = probe_start(SCHEDULE_FIXED, 50 * NS_PER_MS);

	for (int i = 0; i < 200; i++) {
		clock_sleep_for(NS_PER_MS);
		signal_probe(probe);
	}
	probe_stop(probe);
	assert_int_equal(atomic_load(&probe->shared->early), 0);
	assert_true(probe->shared->moments.minimum >= 0);
	assert_in_range(atomic_load(&probe->shared->count), 1, 12);
	probe_free(probe);
}

static void stop_ends_a_long_sleep_without_a_sample(void **state)
{
	struct probe *probe = probe_start(SCHEDULE_FIXED, 100 * NS_PER_S);
	int64_t before_ns;

	clock_sleep_for(50 * NS_PER_MS);
	assert_true(atomic_load(&probe->shared->waiting_since_ns) > clock_now_ns() + 90 * NS_PER_S);
	before_ns = clock_now_ns();
	probe_stop(probe);
	assert_true(clock_now_ns() - before_ns < 500 * NS_PER_MS);
	assert_int_equal(atomic_load(&probe->shared->count), 0);
	probe_free(probe);
}

/* IGT's leaves timer_create unchecked, and hangs when it fails. */
static void timer_that_cannot_be_made_is_an_error(void **state)
{
	struct measure_settings settings = {.schedule = SCHEDULE_IGT};
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct rlimit none = {0, 0};
		struct measure_thread measure = {.settings = &settings};

		measure.scratch = calloc(1, measure_wakeup.scratch_bytes);
		setrlimit(RLIMIT_SIGPENDING, &none);
		_exit(measure_wakeup.prepare(&measure) == -EAGAIN ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void interval_shorter_than_a_wakeup_is_refused(void **state)
{
	struct measure_settings settings = {.schedule = SCHEDULE_FIXED, .interval_ns = 9999};
	struct message message;

	assert_int_equal(measure_wakeup.check(&settings, &message), -EINVAL);
	settings.interval_ns = 10000;
	assert_int_equal(measure_wakeup.check(&settings, &message), 0);
}

/* A cost of 1 s leaves every sample about 1 s below zero, and makes none of them early. */
static void clock_cost_is_taken_off(void **state)
{
	struct probe *probe = probe_start_with(SCHEDULE_FIXED, 2 * NS_PER_MS, 1e9);

	clock_sleep_for(100 * NS_PER_MS);
	probe_stop(probe);
	assert_true(atomic_load(&probe->shared->count) > 0);
	assert_true(probe->shared->moments.minimum >= -NS_PER_S);
	assert_true(probe->shared->moments.minimum < -900 * NS_PER_MS);
	assert_int_equal(atomic_load(&probe->shared->early), 0);
	probe_free(probe);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(igt_schedule_draws_from_the_wake),
		cmocka_unit_test(fixed_schedule_is_never_rebased),
		cmocka_unit_test(early_wake_is_counted_and_negative),
		cmocka_unit_test(stray_signals_do_not_wake_the_fixed_schedule),
		cmocka_unit_test(stop_ends_a_long_sleep_without_a_sample),
		cmocka_unit_test(timer_that_cannot_be_made_is_an_error),
		cmocka_unit_test(interval_shorter_than_a_wakeup_is_refused),
		cmocka_unit_test(clock_cost_is_taken_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
