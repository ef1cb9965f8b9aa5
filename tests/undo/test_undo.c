/* SPDX-License-Identifier: MIT */
#include "undo/machine.h"

#include <inttypes.h>
#include <limits.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/clock.h"

static void close_puts_back_newest_first(void **state)
{
	struct message message = {0};
	struct transaction *transaction;
	size_t mark;

	assert_int_equal(transaction_open(&transaction, "test", &message), 0);
	assert_int_equal(transaction_write(transaction, KNOB, "20001", &message), 0);
	mark = transaction_mark(transaction);
	assert_int_equal(transaction_write(transaction, KNOB, "20002", &message), 0);
	assert_int_equal(transaction_write(transaction, OTHER_KNOB, "99", &message), 0);
	assert_value(OTHER_KNOB, "99");
	assert_int_equal(transaction_undo_to(transaction, mark, &message), 0);
	assert_value(KNOB, "20001");
	assert_value(OTHER_KNOB, "60");
	assert_int_equal(transaction_close(transaction, &message), 0);
	assert_value(KNOB, "10000");
	assert_int_equal(count_journals(), 0);
	assert_int_equal(transaction_close(NULL, NULL), 0);
}

static void choices_and_values_that_are_read_otherwise(void **state)
{
	struct machine *machine = *state;
	struct transaction *transaction;

	testing_write(machine->tree, "/sys/kernel/mm/enabled", "always [madvise] never\n");
	testing_write(machine->tree, "/sys/fs/cgroup/cgroup.subtree_control", "cpu\n");
	testing_write(machine->tree, "/sys/kernel/empty", "\n");
	testing_write(machine->tree, "/sys/kernel/table", "one\ntwo\n");
	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(transaction_write(transaction, "/sys/kernel/mm/enabled", "never", NULL),
			 0);
	assert_int_equal(transaction_write(transaction, "/sys/kernel/empty", "x", NULL), 0);
	assert_int_equal(transaction_write(transaction, "/sys/kernel/table", "x", NULL), -ENOTSUP);
	assert_int_equal(transaction_write(transaction, "/sys/kernel/absent", "x", NULL), -ENOENT);
	assert_int_equal(transaction_write_reversibly(transaction,
						      "/sys/fs/cgroup/cgroup.subtree_control",
						      "+memory", "-memory", NULL),
			 0);
	assert_int_equal(transaction_close(transaction, NULL), 0);
	assert_int_equal(count_journals(), 0);
	assert_value("/sys/kernel/empty", "");
	/* A plain file keeps the tail of a longer text, where an attribute file does not. */
	assert_value("/sys/kernel/mm/enabled", "madvise[madvise] never");
	assert_value("/sys/fs/cgroup/cgroup.subtree_control", "-memory");
}

static void groups_go(void **state)
{
	struct transaction *transaction;

	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(
		transaction_make_group(transaction, "/sys/fs/cgroup/memory/syslatency-1", NULL), 0);
	assert_true(machine_exists("/sys/fs/cgroup/memory/syslatency-1"));
	assert_int_equal(
		transaction_make_group(transaction, "/sys/fs/cgroup/memory/syslatency-1", NULL),
		-EEXIST);
	assert_int_equal(
		transaction_make_group(transaction, "/sys/fs/cgroup/absent/syslatency-1", NULL),
		-ENOENT);
	assert_int_equal(transaction_close(transaction, NULL), 0);
	assert_false(machine_exists("/sys/fs/cgroup/memory/syslatency-1"));
}

static void refuses_places_of_others(void **state)
{
	static const char *const bad_writes[] = {
		"/etc/passwd", "/sys/../etc/passwd", "/sys//x",	 "/sys/x/..",
		"sys/x",       "/proc/1/mem",	     "/system/x"};
	struct message message;
	struct transaction *transaction;
	size_t i;

	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	for (i = 0; i < ARRAY_SIZE(bad_writes); i++)
		assert_int_equal(transaction_write_reversibly(transaction, bad_writes[i], "1", "0",
							      &message),
				 -EINVAL);
	assert_int_equal(
		transaction_make_group(transaction, "/sys/fs/cgroup/memory/system", &message),
		-EINVAL);
	assert_non_null(strstr(message.text, "syslatency"));
	assert_int_equal(transaction_make_group(transaction, "/tmp/syslatency-x", NULL), -EINVAL);
	assert_int_equal(transaction_make_trace_instance(transaction,
							 "/sys/kernel/tracing/syslatency", NULL),
			 -EINVAL);
	assert_int_equal(transaction_own_swap(transaction, "sda1", false, NULL), -EINVAL);
	assert_int_equal(transaction_own_swap(transaction, "zram0/../sda", false, NULL), -EINVAL);
	assert_int_equal(transaction_close(transaction, NULL), 0);
}

static void lines_are_read_as_they_were_written(void **state)
{
	const char *fields[] = {"/sys/x\\y", " \x01\xff  two words "};
	static const char *const refused[] = {
		"write /sys/x",		  "write /sys//x 1",	"process 1 5",	    "process -5 5",
		"process 12 5 6",	  "exec /bin/sh",	"swap zram0 2 lzo", "swap zram0 0",
		"tree /tmp/syslatency-x", "scheduling 5 5 0 0",
	};
	struct undo_list list = {0};
	char line[256], torn[256];
	size_t i;

	for (i = 0; i < 2; i++, fields[1] = "") {
		assert_true(undo_line_format(UNDO_WRITE, fields, line, sizeof(line)) > 0);
		assert_int_equal(undo_list_add(&list, 7, line, NULL), 0);
		assert_string_equal(list.records[i].fields[0], fields[0]);
		assert_string_equal(list.records[i].fields[1], fields[1]);
	}
	assert_int_equal(undo_line_format(UNDO_WRITE, fields, line, 10), -EMSGSIZE);
	/* What would be read otherwise is not noted, so its change is not made. */
	fields[1] = "two\nlines";
	assert_int_equal(undo_line_format(UNDO_WRITE, fields, line, sizeof(line)), -EINVAL);
	fields[1] = "1";
	fields[0] = "/sys/with blank";
	assert_int_equal(undo_line_format(UNDO_WRITE, fields, line, sizeof(line)), -EINVAL);
	fields[0] = "";
	assert_int_equal(undo_line_format(UNDO_WRITE, fields, line, sizeof(line)), -EINVAL);
	/* No prefix of a line may crash the parser. */
	snprintf(line, sizeof(line), "scheduling 55 5 0 0 -20 0-3,5");
	for (i = 0; i <= strlen(line); i++) {
		snprintf(torn, sizeof(torn), "%.*s", (int)i, line);
		undo_list_add(&list, 9, torn, NULL);
	}
	for (i = 0; i < ARRAY_SIZE(refused); i++)
		assert_int_equal(undo_list_add(&list, 9, refused[i], NULL), -EINVAL);
	undo_list_clear(&list);
}

/* Undoes with a journal of its own, whose text is then in @text. */
static int run_noting(struct undo_list *list, uint64_t mark, char *text, size_t size,
		      struct message *message)
{
	struct undo_context context = {.limit_ns = INT64_MAX, .journal_fd = memfd_create("j", 0)};
	ssize_t got;
	int result;

	assert_true(context.journal_fd >= 0);
	result = undo_list_run(list, mark, &context, message);
	got = pread(context.journal_fd, text, size - 1, 0);
	assert_true(got >= 0);
	text[got] = '\0';
	close(context.journal_fd);
	return result;
}

static void processes_end_first_then_all_newest_first(void **state)
{
	const char *const below = "/sys/fs/cgroup/memory/syslatency-1/syslatency-below";
	struct undo_list list = {0};
	char line[64], path[PATH_MAX], text[128];
	struct transaction *transaction;
	uint64_t ticks;
	pid_t pid = fork();
	int status;

	if (pid == 0)
		for (;;)
			pause();
	assert_int_equal(process_start_ticks(pid, &ticks), 0);
	snprintf(line, sizeof(line), "process %d %" PRIu64, (int)pid, ticks);
	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(
		transaction_make_group(transaction, "/sys/fs/cgroup/memory/syslatency-1", NULL), 0);
	assert_int_equal(machine_path(below, path, sizeof(path)), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(undo_list_add(&list, 1, "group /sys/fs/cgroup/memory/syslatency-1", NULL),
			 0);
	assert_int_equal(undo_list_add(&list, 2, line, NULL), 0);
	assert_int_equal(undo_list_add(&list, 3, "write " KNOB " 11111", NULL), 0);
	snprintf(path, sizeof(path), "group %s", below);
	assert_int_equal(undo_list_add(&list, 4, path, NULL), 0);
	assert_int_equal(undo_list_add(&list, 5, "write " KNOB " 22222", NULL), 0);
	assert_int_equal(run_noting(&list, 0, text, sizeof(text), NULL), 0);
	assert_string_equal(text, "done 2\ndone 5\ndone 4\ndone 3\ndone 1\n");
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_value(KNOB, "11111");
	undo_list_clear(&list);
	assert_int_equal(transaction_close(transaction, NULL), 0);
}

/* A newer value that could not be written must not be written later, over the older one. */
static void an_older_value_stands(void **state)
{
	static const char msgmax[] = "/proc/sys/kernel/msgmax"; /* of the IPC namespace */
	struct message message = {0};
	struct undo_list list = {0};
	char text[128];

	machine_set_root(NULL);
	if (unshare(CLONE_NEWIPC) < 0 || access(msgmax, W_OK) < 0)
		SKIP_BECAUSE("a setting of the test's own needs root");
	assert_int_equal(undo_list_add(&list, 1, "write /proc/sys/kernel/msgmax 4321", NULL), 0);
	assert_int_equal(undo_list_add(&list, 2, "write /proc/sys/kernel/msgmax none", NULL), 0);
	assert_int_equal(run_noting(&list, 1, text, sizeof(text), &message), -EINVAL);
	assert_non_null(strstr(message.text, msgmax));
	assert_string_equal(text, "");
	assert_int_equal(run_noting(&list, 0, text, sizeof(text), NULL), 0);
	assert_string_equal(text, "done 1\ndone 2\n");
	assert_int_equal(undo_list_left(&list), 0);
	assert_value(msgmax, "4321");
	undo_list_clear(&list);
}

static int change_and_hold(const char *program)
{
	struct transaction *transaction;

	if (transaction_open(&transaction, program, NULL) < 0 ||
	    transaction_write(transaction, KNOB, "20001", NULL) < 0)
		_exit(1);
	for (;;)
		pause();
}

static pid_t start_holder(const char *program)
{
	int64_t deadline_ns = clock_now_ns() + 20 * NS_PER_S, value;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		change_and_hold(program);
	while (machine_read_int64(KNOB, &value) < 0 || value != 20001) {
		assert_true(clock_now_ns() < deadline_ns);
		clock_sleep_for(2 * NS_PER_MS);
	}
	return pid;
}

static void a_kill_is_undone_and_the_lock_given_on(void **state)
{
	struct message message = {0};
	struct transaction *transaction;
	pid_t holder = start_holder("holder program");
	char wanted[64];

	assert_int_equal(transaction_open(&transaction, "second", NULL), 0);
	setenv("SYSLATENCY_LOCK_WAIT_S", "0.1", 1);
	assert_int_equal(transaction_write(transaction, OTHER_KNOB, "10", &message), -EBUSY);
	snprintf(wanted, sizeof(wanted), "holder program (pid %d)", (int)holder);
	assert_non_null(strstr(message.text, wanted));
	assert_value(OTHER_KNOB, "60");
	setenv("SYSLATENCY_LOCK_WAIT_S", "20", 1);
	kill(holder, SIGKILL);
	assert_int_equal(transaction_write(transaction, OTHER_KNOB, "10", &message), 0);
	/* The lock was free only when the first one's change was undone. */
	assert_value(KNOB, "10000");
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	assert_int_equal(transaction_close(transaction, &message), 0);
	wait_for_no_journal();
}

static void both_killed_is_restored(void **state)
{
	pid_t holder = start_holder("holder"), guardian = find_guardian(holder);
	struct message message = {0};
	uint64_t ticks;
	int count = -1;

	assert_true(guardian > 0);
	assert_int_equal(process_start_ticks(guardian, &ticks), 0);
	assert_int_equal(transaction_restore(&count, &message), 0);
	assert_int_equal(count, 0); /* it is alive */
	kill(guardian, SIGKILL);
	kill(holder, SIGKILL);
	waitpid(holder, NULL, 0);
	wait_for_death(guardian, ticks);
	assert_value(KNOB, "20001");
	assert_int_equal(transaction_count_abandoned(&count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(transaction_restore(&count, &message), 0);
	assert_int_equal(count, 1);
	assert_value(KNOB, "10000");
	assert_int_equal(count_journals(), 0);
	assert_int_equal(transaction_count_abandoned(&count), 0);
	assert_int_equal(count, 0);
}

static void without_guardian_nothing_is_changed_and_close_undoes(void **state)
{
	struct message message = {0};
	struct transaction *transaction;
	uint64_t ticks;
	pid_t guardian;

	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(transaction_write(transaction, KNOB, "12345", NULL), 0);
	guardian = find_guardian(getpid());
	assert_true(guardian > 0);
	assert_int_equal(process_start_ticks(guardian, &ticks), 0);
	kill(guardian, SIGKILL);
	wait_for_death(guardian, ticks);
	assert_int_equal(transaction_write(transaction, OTHER_KNOB, "10", &message), -EPIPE);
	assert_non_null(strstr(message.text, "guardian"));
	assert_value(OTHER_KNOB, "60");
	assert_int_equal(transaction_close(transaction, &message), 0);
	assert_value(KNOB, "10000");
	assert_int_equal(count_journals(), 0);
}

/* The close itself cannot be asked for then; the guardian undoes all the same, and nobody hangs. */
static void without_descriptors_close_undoes(void **state)
{
	struct message message = {0};
	struct rlimit before, none;
	struct transaction *transaction;
	pid_t guardian;
	int result;

	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(transaction_write(transaction, KNOB, "12345", NULL), 0);
	guardian = find_guardian(getpid());
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = before;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	result = transaction_close(transaction, &message);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	assert_int_equal(result, 0);
	assert_value(KNOB, "10000");
	assert_int_equal(count_journals(), 0);
	assert_int_equal(waitpid(guardian, NULL, WNOHANG), -1); /* reaped */
}

static void an_interruption_ends_the_wait_for_the_lock(void **state)
{
	const int64_t begin_ns = clock_now_ns();
	volatile sig_atomic_t interrupted = 1;
	pid_t holder = start_holder("holder");
	struct message message = {0};
	struct transaction *transaction;

	assert_int_equal(transaction_open(&transaction, "second", NULL), 0);
	setenv("SYSLATENCY_LOCK_WAIT_S", "60", 1);
	transaction_watch_interrupt(transaction, &interrupted);
	assert_int_equal(transaction_write(transaction, OTHER_KNOB, "10", &message), -EINTR);
	assert_non_null(strstr(message.text, "holder"));
	assert_true(clock_now_ns() - begin_ns < 30 * NS_PER_S);
	assert_value(OTHER_KNOB, "60");
	assert_int_equal(transaction_close(transaction, &message), 0);
	kill(holder, SIGKILL);
	assert_int_equal(waitpid(holder, NULL, 0), holder);
	wait_for_no_journal();
}

static void pipes_of_the_caller_end_with_the_program(void **state)
{
	int64_t before_ns;
	pid_t pid, guardian;
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	if (pid == 0) {
		struct transaction *transaction;

		close(ends[0]);
		if (transaction_open(&transaction, "test", NULL) < 0 || write(ends[1], "x", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	close(ends[1]);
	assert_int_equal(read(ends[0], &byte, 1), 1);
	guardian = find_guardian(pid);
	assert_true(guardian > 0);
	assert_int_equal(getsid(guardian), guardian);
	kill(guardian, SIGSTOP); /* it stays, so that the pipe's end is not its exit's */
	before_ns = clock_now_ns();
	kill(pid, SIGKILL);
	assert_int_equal(read(ends[0], &byte, 1), 0);
	assert_true(clock_now_ns() - before_ns < 10 * NS_PER_S);
	kill(guardian, SIGCONT);
	close(ends[0]);
	waitpid(pid, NULL, 0);
	wait_for_no_journal();
}

static void guardian_ignores_other_signals(void **state)
{
	struct transaction *transaction;
	pid_t guardian;
	int number;

	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(transaction_write(transaction, KNOB, "20001", NULL), 0);
	guardian = find_guardian(getpid());
	for (number = 1; number < 32; number++)
		if (number != SIGKILL && number != SIGSTOP)
			kill(guardian, number);
	assert_int_equal(transaction_write(transaction, OTHER_KNOB, "10", NULL), 0);
	assert_int_equal(transaction_close(transaction, NULL), 0);
	assert_int_equal(count_journals(), 0);
}

#define ASKERS 8
#define ASKED 25

static void *ask_often(void *argument)
{
	struct transaction *transaction = argument;
	long failed = 0;
	int i;

	for (i = 0; i < ASKED; i++)
		failed += transaction_own_process(transaction, getpid(), NULL) < 0;
	return (void *)failed;
}

static void threads_and_children_may_ask_at_once(void **state)
{
	pthread_t threads[ASKERS];
	struct transaction *transaction;
	void *failed;
	size_t i;
	int status;
	pid_t pid;

	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	pid = fork();
	if (pid == 0)
		_exit(ask_often(transaction) != NULL);
	for (i = 0; i < ASKERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask_often, transaction), 0);
	for (i = 0; i < ASKERS; i++) {
		pthread_join(threads[i], &failed);
		assert_null(failed);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(transaction_mark(transaction), (ASKERS + 1) * ASKED);
	transaction_disown_process(transaction, getpid());
	assert_int_equal(transaction_close(transaction, NULL), 0);
}

static void a_failed_undo_is_told_and_kept(void **state)
{
	struct machine *machine = *state;
	struct message message = {0};
	char path[400], moved[420];
	struct transaction *transaction;
	int count;

	snprintf(path, sizeof(path), "%s%s", machine->tree, OTHER_KNOB);
	snprintf(moved, sizeof(moved), "%s.moved", path);
	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(transaction_write(transaction, KNOB, "20001", NULL), 0);
	assert_int_equal(transaction_write(transaction, OTHER_KNOB, "10", NULL), 0);
	/* A folder in its place cannot be written. */
	assert_int_equal(rename(path, moved), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(transaction_close(transaction, &message), -EISDIR);
	assert_non_null(strstr(message.text, OTHER_KNOB));
	assert_non_null(strstr(message.text, "--restore"));
	assert_int_equal(count_journals(), 1);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rename(moved, path), 0);
	/* The journal names this process, which lives: only its death abandons it. */
	assert_int_equal(transaction_count_abandoned(&count), 0);
	assert_int_equal(count, 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(close_puts_back_newest_first),
		CASE(choices_and_values_that_are_read_otherwise),
		CASE(groups_go),
		CASE(refuses_places_of_others),
		CASE(lines_are_read_as_they_were_written),
		CASE(processes_end_first_then_all_newest_first),
		CASE(an_older_value_stands),
		CASE(a_kill_is_undone_and_the_lock_given_on),
		CASE(both_killed_is_restored),
		CASE(without_guardian_nothing_is_changed_and_close_undoes),
		CASE(without_descriptors_close_undoes),
		CASE(an_interruption_ends_the_wait_for_the_lock),
		CASE(pipes_of_the_caller_end_with_the_program),
		CASE(guardian_ignores_other_signals),
		CASE(threads_and_children_may_ask_at_once),
		CASE(a_failed_undo_is_told_and_kept),
	};

	return cmocka_run_group_tests_name("undo", tests, NULL, NULL);
}
