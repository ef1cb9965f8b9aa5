/* SPDX-License-Identifier: MIT */
/* The end of a transaction whose guardian is stopped, stuck or late: nobody waits for it for ever.
 */
#include "undo/machine.h"

#include <limits.h>
#include <sys/prctl.h>

#include "base/clock.h"

#define LIMIT_NS (200 * NS_PER_MS)
/* What a busy machine may add; far below the 10 s and more of a wait without a limit. */
#define LATE_NS (3 * NS_PER_S)

static void close_within_the_limit(struct transaction *transaction, struct message *message)
{
	int64_t begin_ns = clock_now_ns();

	transaction_end_by(transaction, begin_ns + LIMIT_NS);
	assert_int_equal(transaction_close(transaction, message), -EBUSY);
	assert_true(clock_now_ns() - begin_ns >= LIMIT_NS);
	assert_true(clock_now_ns() - begin_ns < LIMIT_NS + LATE_NS);
}

static void reap(pid_t pid)
{
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_stopped_guardian_is_named_and_goes_on(void **state)
{
	struct message message = {0};
	struct transaction *transaction, *second;
	char wanted[64];
	pid_t guardian;

	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(transaction_write(transaction, KNOB, "12345", NULL), 0);
	guardian = find_guardian(getpid());
	assert_true(guardian > 0);
	kill(guardian, SIGSTOP);
	close_within_the_limit(transaction, &message);
	snprintf(wanted, sizeof(wanted), "kill -CONT %d", (int)guardian);
	assert_non_null(strstr(message.text, wanted));
	assert_non_null(strstr(message.text, "syslat check --restore"));
	assert_value(KNOB, "12345");
	assert_int_equal(count_journals(), 1);

	/* The machine is not as it was, so nobody may have it yet. */
	assert_int_equal(transaction_open(&second, "second", NULL), 0);
	setenv("SYSLATENCY_LOCK_WAIT_S", "0.1", 1);
	assert_int_equal(transaction_write(second, OTHER_KNOB, "10", &message), -EBUSY);
	setenv("SYSLATENCY_LOCK_WAIT_S", "20", 1);
	kill(guardian, SIGCONT);
	assert_int_equal(transaction_write(second, OTHER_KNOB, "10", &message), 0);
	assert_value(KNOB, "10000");
	reap(guardian);
	assert_int_equal(transaction_close(second, &message), 0);
	assert_value(OTHER_KNOB, "60");
	assert_int_equal(count_journals(), 0);
}

/* A knob that takes no value back: a FIFO that nobody reads holds the guardian's open(2) up. */
static void a_stuck_write_is_left_to_the_guardian(void **state)
{
	struct message message = {0};
	char path[PATH_MAX], text[16];
	struct transaction *transaction;
	pid_t guardian;
	ssize_t got;
	int fd;

	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(transaction_write(transaction, OTHER_KNOB, "10", NULL), 0);
	assert_int_equal(transaction_write(transaction, KNOB, "12345", NULL), 0);
	guardian = find_guardian(getpid());
	assert_int_equal(machine_path(KNOB, path, sizeof(path)), 0);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0600), 0);
	close_within_the_limit(transaction, &message);
	assert_non_null(strstr(message.text, "goes on by itself"));
	fd = open(path, O_RDONLY | O_CLOEXEC); /* what held it up is over */
	assert_true(fd >= 0);
	got = read(fd, text, sizeof(text) - 1);
	assert_true(got > 0);
	text[got] = '\0';
	assert_string_equal(text, "10000");
	close(fd);
	reap(guardian);
	assert_value(OTHER_KNOB, "60");
	assert_int_equal(count_journals(), 0);
}

/* Inside a window: a load that dies must not make the watch wait for the guardian. */
static void telling_a_stopped_guardian_waits_for_nobody(void **state)
{
	struct message message = {0};
	struct transaction *transaction;
	int64_t begin_ns;
	pid_t guardian;

	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	guardian = find_guardian(getpid());
	kill(guardian, SIGSTOP);
	begin_ns = clock_now_ns();
	for (int i = 0; i < 10000; i++) /* more than its socket holds */
		transaction_disown_process(transaction, getpid());
	assert_true(clock_now_ns() - begin_ns < LATE_NS);
	kill(guardian, SIGCONT);
	assert_int_equal(transaction_close(transaction, &message), 0);
}

/* Killed with its guardian stopped: unfinished until that one goes on. */
static void unfinished_work_of_others_is_counted(void **state)
{
	int ready[2], count = -1;
	pid_t program, guardian;
	char byte;

	assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	assert_int_equal(transaction_count_unfinished(&count), 0);
	assert_int_equal(count, 0);
	assert_int_equal(pipe(ready), 0);
	program = fork();
	if (program == 0) {
		struct transaction *transaction;

		if (transaction_open(&transaction, "test", NULL) < 0 ||
		    transaction_write(transaction, KNOB, "12345", NULL) < 0)
			_exit(1);
		(void)!write(ready[1], "r", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	guardian = find_guardian(program);
	assert_true(guardian > 0);
	assert_int_equal(transaction_count_unfinished(&count), 0);
	assert_int_equal(count, 0); /* at work, not late */
	kill(guardian, SIGSTOP);
	kill(program, SIGKILL);
	reap(program);
	assert_int_equal(transaction_count_unfinished(&count), 0);
	assert_int_equal(count, 1);
	kill(guardian, SIGCONT);
	reap(guardian);
	assert_int_equal(transaction_count_unfinished(&count), 0);
	assert_int_equal(count, 0);
	assert_value(KNOB, "10000");
	close(ready[0]);
	close(ready[1]);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

/* The program undoes in a killed guardian's place, and not for longer than it has. */
static void in_a_killed_guardians_place_the_limit_holds(void **state)
{
	struct message message = {0};
	char command[4300];
	struct transaction *transaction;
	int64_t begin_ns;
	pid_t guardian;
	int count;

	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(transaction_make_group(transaction,
						"/sys/fs/cgroup/memory/syslatency-1-test", NULL),
			 0);
	guardian = find_guardian(getpid());
	/* A folder with a file in it stays busy, as a group with a member does: 5 s of trying. */
	snprintf(command, sizeof(command), "touch %s/sys/fs/cgroup/memory/syslatency-1-test/file",
		 machine_root());
	assert_int_equal(system(command), 0);
	kill(guardian, SIGKILL);
	begin_ns = clock_now_ns();
	transaction_end_by(transaction, begin_ns + LIMIT_NS);
	assert_true(transaction_close(transaction, &message) < 0);
	assert_true(clock_now_ns() - begin_ns < LIMIT_NS + LATE_NS);
	assert_non_null(strstr(message.text, "syslat check --restore"));
	snprintf(command, sizeof(command), "rm %s/sys/fs/cgroup/memory/syslatency-1-test/file",
		 machine_root());
	assert_int_equal(system(command), 0);
	/* Not abandoned while this program lives. */
	assert_int_equal(transaction_count_abandoned(&count), 0);
	assert_int_equal(count, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(a_stopped_guardian_is_named_and_goes_on),
		CASE(a_stuck_write_is_left_to_the_guardian),
		CASE(telling_a_stopped_guardian_waits_for_nobody),
		CASE(unfinished_work_of_others_is_counted),
		CASE(in_a_killed_guardians_place_the_limit_holds),
	};

	return cmocka_run_group_tests_name("undo: close", tests, NULL, NULL);
}
