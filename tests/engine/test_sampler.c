/* SPDX-License-Identifier: MIT */
/* The sampler as a process, for real: what a run rests on. */
#include "engine/sampler.h"

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
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "engine/samples.h"
#include "sys/rt.h"

extern const struct measure_ops measure_wakeup, measure_thp;

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define UNDER_SANITIZER true
#else
#define UNDER_SANITIZER false
#endif

static bool fifo_permitted(void)
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

static void settings_fixed(struct sampler_settings *settings, int64_t interval_ns)
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

static struct sampler *start(struct sampler_settings *settings)
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
static void poll_until(struct sampler *sampler, int64_t end_ns)
{
	while (clock_now_ns() < end_ns) {
		int64_t left_ns = end_ns - clock_now_ns();

		assert_int_equal(sampler_poll(sampler), 0);
		clock_sleep_for(left_ns < 100 * NS_PER_MS ? left_ns : 100 * NS_PER_MS);
	}
}

static void run_for(struct sampler *sampler, int64_t duration_ns)
{
	int64_t begin_ns = clock_now_ns() + 5 * NS_PER_MS;

	assert_int_equal(sampler_begin(sampler, begin_ns), 0);
	poll_until(sampler, begin_ns + duration_ns);
}

/* The process that a sampling thread belongs to, as its /proc says. */
static pid_t process_of(const struct sampling_thread *thread)
{
	char path[64], *text;
	int64_t pid = 0;

	snprintf(path, sizeof(path), "/proc/%d/status", atomic_load(&thread->tid));
	assert_int_equal(machine_read(path, &text, NULL), 0);
	assert_int_equal(text_find_int64(text, "Tgid", &pid), 0);
	free(text);
	return (pid_t)pid;
}

static int64_t stop_sampler(struct sampler *sampler)
{
	int64_t stall_ns = -1, before_ns = clock_now_ns();

	assert_int_equal(sampler_stop(sampler, &stall_ns), 0);
	assert_true(clock_now_ns() - before_ns < 1500 * NS_PER_MS);
	return stall_ns;
}

static void threads_get_what_was_asked(void **state)
{
	struct sampler_settings settings;
	const struct sampling_thread *threads;
	struct sampler *sampler;
	size_t count, allowed, notes;
	int64_t before_ns;
	int first;

	if (!fifo_permitted()) {
		print_message("# skipped: SCHED_FIFO is not permitted\n");
		skip();
	}
	settings_fixed(&settings, 5 * NS_PER_MS);
	settings.priority = 41;
	allowed = settings.cpus.count;
	first = settings.cpus.cpus[0];
	sampler = start(&settings);
	threads = sampler_threads(sampler, &count);
	assert_int_equal(count, allowed);
	assert_int_equal(threads[0].cpu, first);
	before_ns = clock_now_ns();
	run_for(sampler, 300 * NS_PER_MS);
	assert_int_equal(stop_sampler(sampler), 0);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(threads[i].policy, SCHED_FIFO);
		assert_int_equal(threads[i].priority, 41);
		assert_true(threads[i].memory_locked);
		assert_int_equal(threads[i].migrations, 0);
		assert_int_equal(atomic_load(&threads[i].state), SAMPLING_DONE);
		assert_in_range(atomic_load(&threads[i].count) + atomic_load(&threads[i].missed),
				50, 2 + (clock_now_ns() - before_ns) / (5 * NS_PER_MS));
	}
	assert_null(sampler_thread(sampler, count));
	sampler_notes(sampler, &notes);
	sampler_free(sampler);
}

static void no_page_fault_in_the_steady_state(void **state)
{
	uint64_t minor = 1, major = 1;

	if (UNDER_SANITIZER) {
		print_message("# skipped: a sanitizer has memory of its own\n");
		skip();
	}
	/* A page that the kernel moves (compaction) may fault once; a fault of the tool's comes
	 * every time. */
	for (int attempt = 0; attempt < 3 && minor + major > 0; attempt++) {
		struct sampler_settings settings;
		const struct sampling_thread *threads;
		struct sampler *sampler;
		size_t count;

		settings_fixed(&settings, NS_PER_MS);
		sampler = start(&settings);
		run_for(sampler, NS_PER_S);
		stop_sampler(sampler);
		threads = sampler_threads(sampler, &count);
		minor = major = 0;
		for (size_t i = 0; i < count; i++) {
			assert_true(atomic_load(&threads[i].count) > 100);
			minor += threads[i].faults_minor;
			major += threads[i].faults_major;
		}
		sampler_free(sampler);
	}
	assert_int_equal(minor, 0);
	assert_int_equal(major, 0);
}

/* Reads the samples file and fills in missed deadlines by the definition. */
static void correct_by_hand(const char *path, uint32_t thread, int64_t period_ns,
			    struct histogram *ret_corrected, uint64_t *ret_long,
			    uint64_t *ret_count)
{
	const struct sample_file_header *header;
	const struct sample_file_record *record;
	char *text;
	size_t size;

	memset(ret_corrected, 0, sizeof(*ret_corrected));
	*ret_long = *ret_count = 0;
	assert_int_equal(file_read(path, &text, &size), 0);
	header = (const struct sample_file_header *)text;
	for (record = (const struct sample_file_record *)(text + header->header_bytes);
	     record->thread != SAMPLE_FILE_END; record++) {
		if (record->thread != thread)
			continue;
		*ret_count += 1;
		*ret_long += record->late_ns >= NS_PER_S;
		for (int64_t late_ns = record->late_ns; late_ns >= 0; late_ns -= period_ns)
			histogram_record(ret_corrected, late_ns);
	}
	free(text);
}

/* Returns how long the process was stopped at least, by the clock beside the two signals. */
static int64_t freeze(struct sampler *sampler, int64_t frozen_ns)
{
	pid_t pid = process_of(sampler_thread(sampler, 0));
	int64_t stopped_ns, until_ns, lasted_ns;
	size_t index;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	stopped_ns = clock_now_ns();
	until_ns = stopped_ns + frozen_ns;
	poll_until(sampler, until_ns - 300 * NS_PER_MS);
	/* told while it lasts */
	assert_true(sampler_stalled_ns(sampler, clock_now_ns(), &index) >
		    frozen_ns - 900 * NS_PER_MS);
	poll_until(sampler, until_ns);
	lasted_ns = clock_now_ns() - stopped_ns;
	assert_int_equal(kill(pid, SIGCONT), 0);
	return lasted_ns;
}

static void frozen_two_seconds_of_six(void **state)
{
	const int64_t period_ns = 10 * NS_PER_MS, frozen_ns = 2 * NS_PER_S;
	char path[] = "/tmp/syslatency-frozen-XXXXXX";
	struct histogram *expected = calloc(1, sizeof(*expected));
	struct sampler_settings settings;
	const struct sampling_thread *threads;
	struct sampler *sampler;
	uint64_t long_samples, samples, deadlines, over;
	int64_t begin_ns, lasted_ns;
	size_t count;

	close(mkstemp(path));
	settings_fixed(&settings, period_ns);
	settings.samples_path = path;
	sampler = start(&settings);
	begin_ns = clock_now_ns() + 5 * NS_PER_MS;
	sampler_begin(sampler, begin_ns);
	poll_until(sampler, begin_ns + 2 * NS_PER_S);
	lasted_ns = freeze(sampler, frozen_ns);
	poll_until(sampler, begin_ns + 6 * NS_PER_S);
	deadlines = (uint64_t)((clock_now_ns() - begin_ns) / period_ns);
	assert_int_equal(stop_sampler(sampler), 0);
	assert_int_equal(sampler_samples_lost(sampler), 0);
	threads = sampler_threads(sampler, &count);
	for (size_t i = 0; i < count; i++) {
		const struct sampling_thread *thread = &threads[i];

		correct_by_hand(path, (uint32_t)i, period_ns, expected, &long_samples, &samples);
		assert_int_equal(long_samples, 1); /* observed: one */
		assert_int_equal(atomic_load(&thread->count), samples);
		/* the stop may take hold, and the waking last, longer on a busy machine */
		assert_in_range(thread->max_ns, lasted_ns - period_ns - 20 * NS_PER_MS,
				lasted_ns + 500 * NS_PER_MS);
		assert_true(atomic_load(&thread->missed) >= (uint64_t)(thread->max_ns / period_ns));
		/* corrected: what the arithmetic says, bucket by bucket */
		assert_memory_equal(&thread->corrected, expected, sizeof(*expected));
		assert_int_equal(thread->corrected.total, samples + atomic_load(&thread->missed));
		/* of 600 deadlines about 100 were late by a second and more; whole buckets: 0.8% */
		over = (uint64_t)((thread->max_ns - NS_PER_S) / period_ns) + 1;
		assert_in_range(histogram_count_above(&thread->corrected, NS_PER_S), over - 2,
				over);
		assert_in_range(thread->corrected.total, deadlines - 10, deadlines + 10);
		assert_int_equal(atomic_load(&thread->early), 0);
	}
	sampler_free(sampler);
	unlink(path);
	free(expected);
}

/* IGT's schedule starts anew from the wake: the same freeze is one sample and nothing is missed. */
static void frozen_on_igts_schedule_is_one_sample(void **state)
{
	struct sampler_settings settings;
	const struct sampling_thread *threads;
	struct sampler *sampler;
	size_t count;

	settings_fixed(&settings, 0);
	settings.measure_settings.schedule = SCHEDULE_IGT;
	sampler = start(&settings);
	run_for(sampler, 200 * NS_PER_MS);
	freeze(sampler, 1200 * NS_PER_MS);
	poll_until(sampler, clock_now_ns() + 200 * NS_PER_MS);
	stop_sampler(sampler);
	threads = sampler_threads(sampler, &count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(histogram_count_above(&threads[i].observed, NS_PER_S), 1);
		assert_int_equal(atomic_load(&threads[i].missed), 0);
		assert_int_equal(threads[i].corrected.total, 0);
	}
	sampler_free(sampler);
}

/* Frozen to the end: the run ends all the same, and the wait is told as "at least". */
static void frozen_to_the_end_is_at_least(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler;
	int64_t stall_ns, frozen_at_ns;
	pid_t pid;

	settings_fixed(&settings, 10 * NS_PER_MS);
	sampler = start(&settings);
	run_for(sampler, 200 * NS_PER_MS);
	pid = process_of(sampler_thread(sampler, 0));
	frozen_at_ns = clock_now_ns();
	assert_int_equal(kill(pid, SIGSTOP), 0);
	poll_until(sampler, clock_now_ns() + 500 * NS_PER_MS);
	stall_ns = stop_sampler(sampler);
	assert_true(stall_ns > 400 * NS_PER_MS);
	assert_true(stall_ns < clock_now_ns() - frozen_at_ns + 10 * NS_PER_MS);
	assert_int_equal(kill(pid, 0), -1); /* ended, and reaped */
	sampler_free(sampler);
}

static void stuck_loop(struct measure_thread *thread)
{
	atomic_store(&thread->shared->waiting_since_ns, clock_now_ns());
	for (;;)
		clock_sleep_for(10 * NS_PER_MS);
}

static const struct measure_ops measure_stuck = {.name = "stuck", .loop = stuck_loop};

static void stuck_thread_does_not_hold_the_end(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler;
	int64_t stall_ns, before_ns;

	settings_fixed(&settings, NS_PER_MS);
	settings.measure = &measure_stuck;
	sampler = start(&settings);
	run_for(sampler, 300 * NS_PER_MS);
	before_ns = clock_now_ns();
	assert_int_equal(sampler_stop(sampler, &stall_ns), 0);
	assert_true(clock_now_ns() - before_ns < 1100 * NS_PER_MS);
	assert_in_range(stall_ns, 300 * NS_PER_MS, 3 * NS_PER_S);
	sampler_free(sampler);
}

static void long_interval_stops_at_once(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler;
	int64_t before_ns, stall_ns;

	settings_fixed(&settings, 3600 * NS_PER_S);
	sampler = start(&settings);
	run_for(sampler, 100 * NS_PER_MS);
	before_ns = clock_now_ns();
	assert_int_equal(sampler_stop(sampler, &stall_ns), 0);
	assert_true(clock_now_ns() - before_ns < 900 * NS_PER_MS);
	assert_int_equal(stall_ns, 0); /* nobody was late */
	assert_int_equal(sampler_stop(sampler, &stall_ns), 0);
	sampler_free(sampler);
}

static void stop_before_the_begin(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler;
	size_t count;

	settings_fixed(&settings, NS_PER_MS);
	sampler = start(&settings);
	stop_sampler(sampler);
	assert_int_equal(atomic_load(&sampler_threads(sampler, &count)[0].count), 0);
	sampler_free(sampler);
	settings_fixed(&settings, NS_PER_MS);
	sampler = start(&settings);
	sampler_free(sampler); /* without a stop */
	sampler_free(NULL);
}

static void death_of_the_process_is_noticed(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler;
	int64_t stall_ns;
	int seen = 0;

	settings_fixed(&settings, NS_PER_MS);
	sampler = start(&settings);
	run_for(sampler, 100 * NS_PER_MS);
	kill(process_of(sampler_thread(sampler, 0)), SIGKILL);
	for (int i = 0; i < 200 && seen == 0; i++) {
		clock_sleep_for(10 * NS_PER_MS);
		seen = sampler_poll(sampler);
	}
	assert_int_equal(seen, -ECHILD);
	sampler_stop(sampler, &stall_ns);
	sampler_free(sampler);
}

static void absent_cpu_is_named(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler = NULL;
	struct message message = {""};
	int absent[] = {70000};

	settings_fixed(&settings, NS_PER_MS);
	cpu_list_free(&settings.cpus);
	settings.cpus = (struct cpu_list){.cpus = absent, .count = 1};
	assert_int_equal(sampler_start(&settings, &sampler, &message), -ENXIO);
	assert_non_null(strstr(message.text, "70000"));
	assert_null(sampler);
}

static int failing_prepare(struct measure_thread *thread)
{
	return thread->shared->index == 1 ? -EAGAIN : 0;
}

static const struct measure_ops measure_failing = {
	.name = "failing", .prepare = failing_prepare, .loop = stuck_loop};

static void thread_that_cannot_start_fails_the_start(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler = NULL;
	struct message message = {""};

	settings_fixed(&settings, NS_PER_MS);
	settings.measure = &measure_failing;
	settings.threads = 3;
	assert_int_equal(sampler_start(&settings, &sampler, &message), -EAGAIN);
	assert_non_null(strstr(message.text, "CPU"));
	assert_null(sampler);
	cpu_list_free(&settings.cpus);
}

static void loop_that_gives_up(struct measure_thread *thread)
{
	atomic_store(&thread->shared->error, -ENOMEM);
}

static const struct measure_ops measure_giving_up = {.name = "up", .loop = loop_that_gives_up};

static void thread_that_gives_up_is_an_error(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler;
	int64_t stall_ns;

	settings_fixed(&settings, NS_PER_MS);
	settings.measure = &measure_giving_up;
	sampler = start(&settings);
	sampler_begin(sampler, clock_now_ns());
	clock_sleep_for(300 * NS_PER_MS);
	assert_int_equal(sampler_poll(sampler), -ENOMEM);
	sampler_stop(sampler, &stall_ns);
	sampler_free(sampler);
}

static void unwritable_samples_file_fails_the_start(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler = NULL;
	struct message message;

	settings_fixed(&settings, NS_PER_MS);
	settings.samples_path = "/nonexistent/samples.bin";
	assert_int_equal(sampler_start(&settings, &sampler, &message), -ENOENT);
	assert_non_null(strstr(message.text, settings.samples_path));
	cpu_list_free(&settings.cpus);
}

/* What a user without privilege gets: ordinary scheduling, told and recorded; a number all the
 * same. */
static int unprivileged_run(void)
{
	struct rlimit none = {0, 0}, little = {65536, 65536};
	struct sampler_settings settings;
	struct sampler *sampler;
	const struct sampling_thread *threads;
	const struct message *notes;
	struct message message;
	bool told_policy = false, told_lock = false;
	int64_t stall_ns;
	size_t count;

	setrlimit(RLIMIT_RTPRIO, &none);
	setrlimit(RLIMIT_MEMLOCK, &little);
	if (setuid(65534) < 0)
		return 77;
	settings_fixed(&settings, 5 * NS_PER_MS);
	if (sampler_start(&settings, &sampler, &message) < 0)
		return 2;
	sampler_begin(sampler, clock_now_ns());
	clock_sleep_for(300 * NS_PER_MS);
	sampler_stop(sampler, &stall_ns);
	threads = sampler_threads(sampler, &count);
	notes = sampler_notes(sampler, &count);
	for (size_t i = 0; i < count; i++) {
		told_policy |= strstr(notes[i].text, "SCHED_OTHER") &&
			       strstr(notes[i].text, "RLIMIT_RTPRIO");
		told_lock |= strstr(notes[i].text, "RLIMIT_MEMLOCK") != NULL;
	}
	if (threads[0].policy != SCHED_OTHER || threads[0].priority != 0)
		return 3;
	if (!told_policy)
		return 4;
	if (!UNDER_SANITIZER && (!told_lock || threads[0].memory_locked))
		return 5;
	return atomic_load(&threads[0].count) > 10 ? 0 : 6;
}

static void without_privilege_it_degrades_and_says_so(void **state)
{
	int status = -1;
	pid_t pid;

	if (geteuid() != 0) {
		print_message("# skipped: needs root to become nobody\n");
		skip();
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(unprivileged_run());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

/* Memory of the sampler process, private and shared, KiB. */
static int64_t resident_kib(struct sampler *sampler)
{
	char path[64], *text;
	int64_t kib = 0;

	snprintf(path, sizeof(path), "/proc/%d/smaps_rollup",
		 process_of(sampler_thread(sampler, 0)));
	assert_int_equal(machine_read(path, &text, NULL), 0);
	assert_int_equal(text_find_int64(text, "Rss", &kib), 0);
	free(text);
	return kib;
}

static int64_t resident_with(unsigned int threads)
{
	struct sampler_settings settings;
	struct sampler *sampler;
	int64_t kib;

	settings_fixed(&settings, 20 * NS_PER_MS);
	settings.threads = threads;
	sampler = start(&settings);
	run_for(sampler, 100 * NS_PER_MS);
	kib = resident_kib(sampler);
	stop_sampler(sampler);
	sampler_free(sampler);
	return kib;
}

static void thread_costs_at_most_256_kib(void **state)
{
	int64_t each_kib;

	if (UNDER_SANITIZER) {
		print_message("# skipped: a sanitizer has memory of its own\n");
		skip();
	}
	each_kib = (resident_with(130) - resident_with(2)) / 128;
	print_message("# %lld KiB a thread, besides the kernel's own\n", (long long)each_kib);
	/* the kernel adds its stack and task, less than 32 KiB */
	assert_in_range(each_kib, 100, 224);
}

/* 512 threads at 20 ms on few CPUs: in time from start to end, and the tool misses nothing. */
static void five_hundred_threads(void **state)
{
	uint64_t missed = 1, count_least = 0;

	if (UNDER_SANITIZER) {
		print_message("# skipped: 512 threads take a sanitizer too long\n");
		skip();
	}
	/* A hypervisor may take the CPU for longer than a period: then again. */
	for (int attempt = 0; attempt < 4 && missed > 0; attempt++) {
		struct sampler_settings settings;
		const struct sampling_thread *threads;
		int64_t before_ns = clock_now_ns();
		struct sampler *sampler;
		size_t count;

		settings_fixed(&settings, 20 * NS_PER_MS);
		settings.threads = 512;
		sampler = start(&settings);
		assert_true(clock_now_ns() - before_ns < 5 * NS_PER_S);
		run_for(sampler, NS_PER_S);
		assert_int_equal(stop_sampler(sampler), 0);
		threads = sampler_threads(sampler, &count);
		assert_int_equal(count, 512);
		missed = 0;
		count_least = UINT64_MAX;
		for (size_t i = 0; i < count; i++) {
			uint64_t had = atomic_load(&threads[i].count);

			missed += atomic_load(&threads[i].missed);
			count_least = had < count_least ? had : count_least;
		}
		sampler_free(sampler);
	}
	assert_int_equal(missed, 0);
	assert_true(count_least >= 45);
}

static void thp_runs_as_a_process(void **state)
{
	struct sampler_settings settings;
	const struct sampling_thread *threads;
	struct sampler *sampler;
	size_t count;

	settings_fixed(&settings, 0);
	settings.measure = &measure_thp;
	settings.measure_settings.pace_ns = 2 * NS_PER_MS;
	sampler = start(&settings);
	run_for(sampler, 500 * NS_PER_MS);
	assert_int_equal(stop_sampler(sampler), 0);
	threads = sampler_threads(sampler, &count);
	for (size_t i = 0; i < count; i++) {
		assert_true(atomic_load(&threads[i].count) > 20);
		assert_int_equal(threads[i].phases[PHASE_POPULATE].total,
				 atomic_load(&threads[i].count));
		assert_int_equal(threads[i].faults_major, 0);
	}
	sampler_free(sampler);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_get_what_was_asked),
		cmocka_unit_test(no_page_fault_in_the_steady_state),
		cmocka_unit_test(frozen_two_seconds_of_six),
		cmocka_unit_test(frozen_on_igts_schedule_is_one_sample),
		cmocka_unit_test(frozen_to_the_end_is_at_least),
		cmocka_unit_test(stuck_thread_does_not_hold_the_end),
		cmocka_unit_test(long_interval_stops_at_once),
		cmocka_unit_test(stop_before_the_begin),
		cmocka_unit_test(death_of_the_process_is_noticed),
		cmocka_unit_test(absent_cpu_is_named),
		cmocka_unit_test(thread_that_cannot_start_fails_the_start),
		cmocka_unit_test(thread_that_gives_up_is_an_error),
		cmocka_unit_test(unwritable_samples_file_fails_the_start),
		cmocka_unit_test(without_privilege_it_degrades_and_says_so),
		cmocka_unit_test(thread_costs_at_most_256_kib),
		cmocka_unit_test(five_hundred_threads),
		cmocka_unit_test(thp_runs_as_a_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
