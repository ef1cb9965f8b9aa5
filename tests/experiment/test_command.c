/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/clock.h"
#include "experiment/command.h"

/* One command: what it prints, how it ends, and that nothing of it stays. */

static char folder[] = "/tmp/syslatency-test.XXXXXX";

static int make_folder(void **state)
{
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static struct command_result run_shell(const char *script, int64_t timeout_ns,
				       const volatile sig_atomic_t *interrupted)
{
	char *argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)script, NULL};
	struct command_settings settings = {
		.argv = argv,
		.working_directory = folder,
		.record_path = "/nonexistent/record.json",
		.timeout_ns = timeout_ns,
		.interrupted = interrupted,
	};
	struct command_result result = {0};
	struct message message = {""};

	assert_int_equal(command_execute(&settings, &result, &message), 0);
	return result;
}

/* The pid that a script wrote into the folder; waits for it up to two seconds. */
static pid_t pid_in(const char *name)
{
	char path[128], text[32] = "";

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	for (int i = 0; i < 200; i++) {
		int fd = open(path, O_RDONLY);
		ssize_t size = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

		if (fd >= 0)
			close(fd);
		if (size > 0 && text[size - 1] == '\n') {
			unlink(path);
			return (pid_t)atoi(text);
		}
		clock_sleep_for(10 * NS_PER_MS);
	}
	fail_msg("%s was not written", path);
	return -1;
}

/* Gone, or a zombie that only waits for its parent. */
static bool ended(pid_t pid)
{
	char path[64], text[256] = "", *after;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	fd = open(path, O_RDONLY);
	if (fd < 0)
		return true;
	if (read(fd, text, sizeof(text) - 1) <= 0)
		text[0] = '\0';
	close(fd);
	after = strrchr(text, ')');
	return !after || after[2] == 'Z';
}

static bool ends_within(pid_t pid, int64_t wait_ns)
{
	int64_t deadline_ns = clock_now_ns() + wait_ns;

	while (!ended(pid)) {
		if (clock_now_ns() > deadline_ns)
			return false;
		clock_sleep_for(5 * NS_PER_MS);
	}
	return true;
}

static void numbers_are_found_where_people_see_them(void **state)
{
	static const struct {
		const char *text;
		double value;
	} cases[] = {
		{"12.5\n", 12.5},
		{"gem_syslatency: cycles=0, latency mean=8.414us max=56us\n", 56},
		{"took 3 s.", 3},
		{"took 5.\n", 5},
		{"-4", -4},
		{"x=-4.5e-3 end", -4.5e-3},
		{"10-20", 20},
		{"1e5us", 1e5},
		{"5 p99", 5},
		{"5 v1.2.3", 5},
		{"5 1.2.3", 5},
		{"5 0x1f", 5},
		{".5", .5},
		{"5 nan", 5},
		{"7 inf -inf", 7},
		{"\033[32m8.5\033[0m\n", 8.5},
		{"8 e9", 8},
		{"\xff\xfe 3", 3},
		{"5 1e999", 5}, /* does not fit a double: no value */
	};
	double value;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(text_last_number(cases[i].text, &value), 0);
		if (value != cases[i].value)
			fail_msg("\"%s\": %g", cases[i].text, value);
	}
	assert_int_equal(text_last_number("", &value), -ENOENT);
	assert_int_equal(text_last_number("no number: p99, v1", &value), -ENOENT);
	assert_int_equal(text_last_number("- + . e5", &value), -ENOENT);
}

static void a_command_is_run_and_read(void **state)
{
	struct command_result result =
		run_shell("echo \"$SYSLATENCY_RECORD\"; pwd; echo bad >&2; exit 3", 0, NULL);
	char expected[128], how[64];

	snprintf(expected, sizeof(expected), "/nonexistent/record.json\n%s\n", folder);
	assert_string_equal(result.stdout_tail, expected);
	assert_string_equal(result.stderr_tail, "bad\n");
	assert_int_equal(WEXITSTATUS(result.wait_status), 3);
	assert_string_equal(command_describe(&result, how, sizeof(how)), "exit 3");
	assert_int_equal(result.exec_error, 0);
	assert_int_equal(result.left_behind, 0);
	assert_false(result.told);
	command_result_free(&result);
}

static void a_death_by_signal_is_named(void **state)
{
	struct command_result result = run_shell("kill -SEGV $$", 0, NULL);
	char how[64];

	assert_string_equal(command_describe(&result, how, sizeof(how)), "killed by SIGSEGV");
	command_result_free(&result);
}

static void what_cannot_be_executed_is_a_result(void **state)
{
	char *argv[] = {(char *)"/no/such/program", NULL};
	struct command_settings settings = {.argv = argv, .record_path = "x"};
	struct command_result result = {0};
	struct message message;

	assert_int_equal(command_execute(&settings, &result, &message), 0);
	assert_int_equal(result.exec_error, ENOENT);
	command_result_free(&result);
	settings.argv = (char *[]){(char *)"true", NULL};
	settings.working_directory = "/no/such/folder";
	assert_int_equal(command_execute(&settings, &result, &message), 0);
	assert_int_equal(result.exec_error, ENOENT);
	command_result_free(&result);
}

/* 50 MB go through 64 KiB of memory, and the number at the end is still seen. */
static void huge_output_is_bounded(void **state)
{
	struct command_result result = run_shell(
		"yes aaaaaaa | head -c 50000000; yes bbbbbbb | head -c 5000000 >&2; echo 42", 0,
		NULL);
	double value = 0;

	assert_int_equal(result.stdout_bytes, 50000003);
	assert_int_equal(result.stderr_bytes, 5000000);
	assert_int_equal(strlen(result.stdout_tail), COMMAND_STDOUT_KEPT);
	assert_int_equal(strlen(result.stderr_tail), COMMAND_STDERR_KEPT);
	assert_int_equal(text_last_number(result.stdout_tail, &value), 0);
	assert_true(value == 42);
	command_result_free(&result);
}

static void zero_bytes_hide_nothing(void **state)
{
	struct command_result result = run_shell("printf 'a\\0b 7\\n'", 0, NULL);

	assert_string_equal(result.stdout_tail, "a?b 7\n");
	command_result_free(&result);
}

/* Standard input is empty, not ours. */
static void nobody_waits_for_input(void **state)
{
	struct command_result result = run_shell("cat; echo 1", 10 * NS_PER_S, NULL);

	assert_false(result.timed_out);
	assert_string_equal(result.stdout_tail, "1\n");
	command_result_free(&result);
}

/* A child in the background holds the pipe: nobody waits for it, and it is ended. */
static void a_background_child_is_ended(void **state)
{
	int64_t begin_ns = clock_now_ns();
	struct command_result result =
		run_shell("sh -c 'trap \"\" TERM; echo $$ >child; sleep 60' & "
			  "while [ ! -s child ]; do sleep 0.01; done; echo 9",
			  0, NULL);
	pid_t pid = pid_in("child");

	assert_true(clock_now_ns() - begin_ns < 20 * NS_PER_S);
	assert_string_equal(result.stdout_tail, "9\n");
	assert_true(result.left_behind >= 1);
	assert_true(ended(pid));
	command_result_free(&result);
}

/* A daemon (session of its own) is left alone, even when it holds the pipe. */
static void a_daemon_is_left(void **state)
{
	struct command_result result =
		run_shell("setsid sh -c 'echo $$ >daemon; exec sleep 60' & "
			  "while [ ! -s daemon ]; do sleep 0.01; done; echo 9",
			  0, NULL);
	pid_t pid = pid_in("daemon");

	assert_string_equal(result.stdout_tail, "9\n");
	assert_false(ended(pid));
	kill(pid, SIGKILL);
	command_result_free(&result);
}

static void a_time_limit_ends_it(void **state)
{
	int64_t begin_ns = clock_now_ns();
	struct command_result result = run_shell("sleep 60", 300 * NS_PER_MS, NULL);

	assert_true(result.timed_out);
	assert_true(clock_now_ns() - begin_ns < 14 * NS_PER_S);
	command_result_free(&result);
}

static volatile sig_atomic_t signals;

static void signal_at(const char *file, int count)
{
	pid_t parent = getpid();

	if (fork() != 0)
		return;
	pid_in(file);
	for (int i = 0; i < count; i++) {
		kill(parent, SIGUSR1);
		clock_sleep_for(200 * NS_PER_MS);
	}
	_exit(0);
}

static void on_signal(int signal)
{
	signals++;
}

static struct command_result run_interrupted(const char *script, int count)
{
	struct sigaction action = {.sa_handler = on_signal};
	struct command_result result;

	signals = 0;
	sigaction(SIGUSR1, &action, NULL);
	signal_at("ready", count);
	result = run_shell(script, 0, &signals);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	return result;
}

/* The first signal asks: what the command does then is waited for and read. */
static void the_first_signal_asks(void **state)
{
	struct command_result result =
		run_interrupted("trap 'sleep 0.3; echo 5; exit 0' INT; echo 1 >ready; "
				"while :; do sleep 0.05; done",
				1);

	assert_true(result.told);
	assert_int_equal(result.wait_status, 0);
	assert_string_equal(result.stdout_tail, "5\n");
	command_result_free(&result);
}

static void the_second_signal_kills(void **state)
{
	struct command_result result =
		run_interrupted("trap '' INT; echo 1 >ready; sleep 60; sleep 60", 2);

	assert_true(result.told);
	assert_true(WIFSIGNALED(result.wait_status) && WTERMSIG(result.wait_status) == SIGKILL);
	command_result_free(&result);
}

/* We are killed: the command, its children, and the monitor end by themselves. */
static void nothing_outlives_us(void **state)
{
	for (int round = 0; round < 3; round++) {
		pid_t us = fork(), command, child;

		if (us == 0) {
			run_shell("sh -c 'echo $$ >child; sleep 60; :' & echo $$ >command; "
				  "wait; sleep 60",
				  0, NULL);
			_exit(0);
		}
		command = pid_in("command");
		child = pid_in("child");
		assert_false(ended(command));
		kill(us, SIGKILL);
		waitpid(us, NULL, 0);
		assert_true(ends_within(command, 10 * NS_PER_S));
		assert_true(ends_within(child, 10 * NS_PER_S));
	}
}

/* The monitor is killed too: at least the command itself ends. */
static void the_monitor_may_die_too(void **state)
{
	char path[64], text[256] = "";
	pid_t us = fork(), command, monitor;
	int fd;

	if (us == 0) {
		char *argv[] = {(char *)"/bin/sh", (char *)"-c",
				(char *)"echo $$ >command; sleep 60", NULL};
		struct command_settings settings = {
			.argv = argv, .working_directory = folder, .record_path = "x"};
		struct command_result result;
		struct message message;

		_exit(command_execute(&settings, &result, &message) == -ECHILD ? 7 : 1);
	}
	command = pid_in("command");
	snprintf(path, sizeof(path), "/proc/%d/stat", command);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0 && read(fd, text, sizeof(text) - 1) > 0);
	close(fd);
	assert_int_equal(sscanf(strrchr(text, ')') + 1, " %*c %d", &monitor), 1);
	kill(monitor, SIGKILL);
	assert_int_equal(waitpid(us, &fd, 0), us);
	assert_int_equal(WEXITSTATUS(fd), 7); /* noticed, and said */
	assert_true(ends_within(command, 10 * NS_PER_S));
}

/* No descriptor may be left behind by a thousand runs. */
static void descriptors_are_given_back(void **state)
{
	int before = dup(0), after;

	close(before);
	for (int i = 0; i < 20; i++) {
		struct command_result result = run_shell("echo 1", 0, NULL);

		command_result_free(&result);
	}
	after = dup(0);
	close(after);
	assert_int_equal(before, after);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_found_where_people_see_them),
		cmocka_unit_test(a_command_is_run_and_read),
		cmocka_unit_test(a_death_by_signal_is_named),
		cmocka_unit_test(what_cannot_be_executed_is_a_result),
		cmocka_unit_test(huge_output_is_bounded),
		cmocka_unit_test(zero_bytes_hide_nothing),
		cmocka_unit_test(nobody_waits_for_input),
		cmocka_unit_test(a_background_child_is_ended),
		cmocka_unit_test(a_daemon_is_left),
		cmocka_unit_test(a_time_limit_ends_it),
		cmocka_unit_test(the_first_signal_asks),
		cmocka_unit_test(the_second_signal_kills),
		cmocka_unit_test(nothing_outlives_us),
		cmocka_unit_test(the_monitor_may_die_too),
		cmocka_unit_test(descriptors_are_given_back),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
