/* SPDX-License-Identifier: MIT */
/* The sampler as a process, for real: what a run rests on. */
#include "sampler/sampler_fixture.h"

#include "base/clock.h"

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

static void stuck_loop(struct measure_thread *thread)
{
	atomic_store(&thread->shared->waiting_since_ns, clock_now_ns());
	for (;;)
		clock_sleep_for(10 * NS_PER_MS);
}

static void death_of_the_process_is_noticed(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler;
	struct message message = {""};
	int64_t stall_ns;
	int seen = 0;

	settings_fixed(&settings, NS_PER_MS);
	sampler = start(&settings);
	run_for(sampler, 100 * NS_PER_MS);
	kill(process_of(sampler_thread(sampler, 0)), SIGKILL);
	for (int i = 0; i < 200 && seen == 0; i++) {
		clock_sleep_for(10 * NS_PER_MS);
		seen = sampler_poll(sampler, &message);
	}
	assert_int_equal(seen, -ECHILD);
	assert_non_null(strstr(message.text, "ended by signal 9"));
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
	struct message message = {""};
	int64_t stall_ns;

	settings_fixed(&settings, NS_PER_MS);
	settings.measure = &measure_giving_up;
	sampler = start(&settings);
	sampler_begin(sampler, clock_now_ns());
	clock_sleep_for(300 * NS_PER_MS);
	assert_int_equal(sampler_poll(sampler, &message), -ENOMEM);
	assert_non_null(strstr(message.text, "the sampling thread of CPU"));
	assert_non_null(strstr(message.text, strerror(ENOMEM)));
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
		assert_int_equal(threads[i].phases[1].total, atomic_load(&threads[i].count));
		assert_int_equal(threads[i].faults_major, 0);
	}
	sampler_free(sampler);
}

/* --sched other is SCHED_OTHER, whatever the program was started under. */
static void ordinary_when_asked_for(void **state)
{
	struct sched_param ordinary = {0};
	struct sampler_settings settings;
	const struct sampling_thread *threads;
	struct sampler *sampler;
	struct rt_status status;
	size_t count;

	if (!fifo_permitted()) {
		print_message("# skipped: SCHED_FIFO is not permitted\n");
		skip();
	}
	settings_fixed(&settings, NS_PER_MS);
	settings.fifo = false;
	assert_int_equal(rt_set_fifo(42, &status, NULL), 0);
	sampler = start(&settings);
	sched_setscheduler(0, SCHED_OTHER, &ordinary);
	threads = sampler_threads(sampler, &count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(threads[i].policy, SCHED_OTHER);
		assert_int_equal(threads[i].priority, 0);
	}
	stop_sampler(sampler);
	sampler_free(sampler);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(threads_get_what_was_asked),
		cmocka_unit_test(ordinary_when_asked_for),
		cmocka_unit_test(no_page_fault_in_the_steady_state),
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
