/* SPDX-License-Identifier: MIT */
/* Loads that end as they should not: what the supervisor sees, when, and in which words. */
#include <signal.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "loads/load_run.h"

static const char *const extras[] = {"count_things", "=level_bytes", NULL};

static int works(struct load *load)
{
	atomic_store(&load->shared->extra[0], 100);
	atomic_store(&load->shared->extra[1], 100);
	atomic_store(&load->shared->ops, 1000);
	atomic_store(&load->shared->state, LOAD_STEADY);
	while (!load_stopping(load)) {
		clock_sleep_for(NS_PER_MS);
		atomic_fetch_add(&load->shared->ops, 1);
		atomic_fetch_add(&load->shared->extra[0], 2);
		atomic_store(&load->shared->extra[1], 7);
	}
	return 0;
}

static int fails_with_words(struct load *load)
{
	return message_set(&load->shared->message, -ENODEV, "no such thing as %s", "a thing");
}

static int fails_without_words(struct load *load)
{
	return -ENOSPC;
}

static int crashes(struct load *load)
{
	atomic_store(&load->shared->state, LOAD_STEADY);
	signal(SIGSEGV, SIG_DFL);
	raise(SIGSEGV);
	return 0;
}

static int ends_early(struct load *load)
{
	return 0;
}

static int never_steady(struct load *load)
{
	while (!load_stopping(load))
		clock_sleep_for(NS_PER_MS);
	return 0;
}

static __attribute__((noreturn)) int deaf(struct load *load)
{
	atomic_store(&load->shared->state, LOAD_STEADY);
	for (;;)
		clock_sleep_for(NS_PER_S);
}

/* More than the group holds, and no swap that would take it: locked. */
static __attribute__((noreturn)) int hog(struct load *load)
{
	for (;;) {
		void *memory =
			mmap(NULL, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		mlock(memory, MIB);
		memset(memory, 1, MIB);
	}
}

static struct load_ops ops_of(int (*run)(struct load *load))
{
	struct load_ops ops = {.name = "test", .extra_names = extras, .run = run};

	return ops;
}

static int start(struct load_ops *ops, struct load_run *run, struct message *message)
{
	struct load_settings settings = {.ops = ops};

	return run_start(run, &settings, 5 * NS_PER_S, message);
}

static void statistics_are_of_the_window(void **state)
{
	struct load_ops ops = ops_of(works);
	struct load_run run;

	run_prepare(&run, 0, 0);
	assert_int_equal(start(&ops, &run, NULL), 0);
	run_measure(&run, NS_PER_S / 4);
	run_show(&run);
	assert_true(run_stat(&run, "ops") > 10 && run_stat(&run, "ops") < 500);
	/* A count is what the window added, a level is what there is. */
	assert_true(run_stat(&run, "count_things") <= 2 * run_stat(&run, "ops") + 2);
	assert_true(run_stat(&run, "count_things") >= 2 * run_stat(&run, "ops") - 2);
	assert_true(run_stat(&run, "level_bytes") == 7);
	assert_null(json_object_get(run.stats, "=level_bytes"));
	assert_true(json_is_false(json_object_get(run.stats, "died")));
	run_end(&run);
	assert_false(run.process.died);
}

static void expect_failure(int (*body)(struct load *load), int error, const char *words)
{
	struct load_ops ops = ops_of(body);
	struct message message = {""};
	struct load_run run;
	int64_t begin_ns;
	json_t *all;

	run_prepare(&run, 0, 0);
	begin_ns = clock_now_ns();
	assert_int_equal(start(&ops, &run, &message), error);
	assert_true(clock_now_ns() - begin_ns < 2 * NS_PER_S);
	assert_non_null(strstr(message.text, words));
	all = loads_statistics(&run.process, 1, 1);
	assert_true(json_is_true(json_at(all, "test.died")));
	json_decref(all);
	run_end(&run);
	assert_true(run.process.died);
}

static void failures_are_noticed_with_words(void **state)
{
	expect_failure(fails_with_words, -ENODEV, "no such thing as a thing");
	expect_failure(fails_without_words, -ENOSPC, "test load: No space left");
	expect_failure(ends_early, -ECHILD, "ended by itself with status 0");
}

static void a_crash_in_the_window_is_noticed(void **state)
{
	struct load_ops ops = ops_of(crashes);
	struct message message = {""};
	struct load_run run;

	run_prepare(&run, 0, 0);
	start(&ops, &run, &message);
	for (int i = 0; i < 500 && loads_poll(&run.process, 1, &message) == 0; i++)
		clock_sleep_for(10 * NS_PER_MS);
	assert_int_equal(loads_poll(&run.process, 1, &message), -ECHILD);
	assert_non_null(strstr(message.text, "signal 11"));
	run_end(&run);
}

static void want_of_memory_is_named(void **state)
{
	struct load_ops ops = ops_of(hog);
	struct message message = {""};
	struct load_run run;

	run_prepare(&run, 32 * MIB, 0);
	assert_int_equal(start(&ops, &run, &message), -ECHILD);
	assert_non_null(strstr(message.text, "want of memory"));
	assert_non_null(strstr(message.text, "--limit"));
	run_end(&run);
}

static void waiting_goes_on_after_its_deadline(void **state)
{
	struct load_ops ops[] = {ops_of(works), ops_of(never_steady)};
	struct load_process processes[2];
	struct message message = {""};

	ops[1].name = "slow";
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(load_start(&(struct load_settings){.ops = &ops[i]}, NULL,
					    &processes[i], &message),
				 0);
	assert_int_equal(loads_wait_steady(processes, 1, clock_now_ns() + 20 * NS_PER_S, &message),
			 0);
	assert_int_equal(
		loads_wait_steady(processes, 2, clock_now_ns() + 100 * NS_PER_MS, &message),
		-ETIMEDOUT);
	assert_non_null(strstr(message.text, "slow"));
	assert_int_equal(loads_poll(processes, 2, &message), 0);
	loads_stop(processes, 2, clock_now_ns() + 5 * NS_PER_S, clock_now_ns() + 7 * NS_PER_S);
	assert_false(processes[0].died);
	assert_false(processes[1].died);
	loads_free(processes, 2);
}

static void a_deaf_load_is_killed_at_the_deadline(void **state)
{
	struct load_ops ops = ops_of(deaf);
	struct load_process process;
	struct message message = {""};
	int64_t begin_ns;
	pid_t pid;

	assert_int_equal(load_start(&(struct load_settings){.ops = &ops}, NULL, &process, &message),
			 0);
	pid = process.child.pid;
	begin_ns = clock_now_ns();
	loads_stop(&process, 1, begin_ns + 200 * NS_PER_MS, begin_ns + 2 * NS_PER_S);
	assert_in_range(clock_now_ns() - begin_ns, 190 * NS_PER_MS, 2 * NS_PER_S);
	assert_int_equal(kill(pid, 0), -1);
	loads_free(&process, 1);
}

static void the_supervisors_list_of_cpus_is_copied(void **state)
{
	struct load_ops ops = ops_of(works);
	struct load_settings settings = {.ops = &ops};
	struct load_process process;

	assert_int_equal(cpu_list_parse("0-1", &settings.cpus, NULL), 0);
	assert_int_equal(load_start(&settings, NULL, &process, NULL), 0);
	cpu_list_free(&settings.cpus);
	assert_int_equal(process.load.settings.cpus.count, 2);
	assert_int_equal(process.load.settings.cpus.cpus[1], 1);
	loads_free(&process, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(statistics_are_of_the_window),
		cmocka_unit_test(failures_are_noticed_with_words),
		cmocka_unit_test(a_crash_in_the_window_is_noticed),
		cmocka_unit_test(want_of_memory_is_named),
		cmocka_unit_test(waiting_goes_on_after_its_deadline),
		cmocka_unit_test(a_deaf_load_is_killed_at_the_deadline),
		cmocka_unit_test(the_supervisors_list_of_cpus_is_copied),
	};

	return cmocka_run_group_tests_name("loads", tests, NULL, NULL);
}
