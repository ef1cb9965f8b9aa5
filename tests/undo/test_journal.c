/* SPDX-License-Identifier: MIT */
#include "undo/machine.h"

#include "base/random.h"

static void write_journal(const char *tree, const char *name, const char *text, mode_t mode)
{
	char path[400];

	snprintf(path, sizeof(path), "%s/run/syslatency", tree);
	mkdir(path, 0700);
	snprintf(path, sizeof(path), "/run/syslatency/%s", name);
	testing_write(tree, path, text);
	snprintf(path, sizeof(path), "%s/run/syslatency/%s", tree, name);
	assert_int_equal(chmod(path, mode), 0);
}

static void boot_line(char *buffer, size_t size)
{
	struct stat status;

	assert_int_equal(stat("/proc/self/ns/pid", &status), 0);
	snprintf(buffer, size, "boot this-boot/%ju", (uintmax_t)status.st_ino);
}

static void torn_forged_and_old_journals(void **state)
{
	struct machine *machine = *state;
	struct message message;
	char boot[128], text[1024];
	int count;

	boot_line(boot, sizeof(boot));
	/* Torn last line: its change was never made. */
	snprintf(text, sizeof(text),
		 "syslatency-journal 2\n%s\nprogram 999999 5 x\n1 write " KNOB
		 " 10000\n2 write " OTHER_KNOB " 7",
		 boot);
	testing_write(machine->tree, KNOB, "55555\n");
	write_journal(machine->tree, "999999.journal", text, 0600);
	assert_int_equal(transaction_restore(&count, &message), 0);
	assert_int_equal(count, 1);
	assert_value(KNOB, "10000");
	assert_value(OTHER_KNOB, "60");
	/* Nothing left to undo: discarded. */
	snprintf(text, sizeof(text),
		 "syslatency-journal 2\n%s\nprogram 999999 5 x\n1 write " OTHER_KNOB " 9\ndone 1\n",
		 boot);
	write_journal(machine->tree, "999999.journal", text, 0600);
	assert_int_equal(transaction_count_abandoned(&count), 0);
	assert_int_equal(count, 0);
	/* Of another boot, without a whole header: discarded. */
	write_journal(machine->tree, "5.journal",
		      "syslatency-journal 2\nboot other/1\nprogram 5 5 x\n1 write " OTHER_KNOB
		      " 70\n",
		      0600);
	write_journal(machine->tree, "6.journal", "syslatency-jour", 0600);
	assert_int_equal(transaction_restore(&count, &message), 0);
	assert_int_equal(count, 0);
	assert_int_equal(count_journals(), 0);
	assert_value(OTHER_KNOB, "60");
	/* Done lines are not undone again; a damaged line is told, the rest is undone. */
	snprintf(text, sizeof(text),
		 "syslatency-journal 2\n%s\nprogram 999999 5 x\n1 write " KNOB
		 " 11111\n2 write /etc/passwd x\n3 write " OTHER_KNOB " 77\ndone 1\n",
		 boot);
	write_journal(machine->tree, "999999.journal", text, 0600);
	assert_int_equal(transaction_restore(&count, &message), -EBADMSG);
	assert_value(KNOB, "10000");
	assert_value(OTHER_KNOB, "77");
	/* Writable by others: not trusted. */
	snprintf(text, sizeof(text),
		 "syslatency-journal 2\n%s\nprogram 999999 5 x\n1 write " OTHER_KNOB " 80\n", boot);
	write_journal(machine->tree, "999999.journal", text, 0666);
	assert_int_equal(transaction_restore(&count, &message), -EACCES);
	assert_value(OTHER_KNOB, "77");
	/* Of a later version: left for the program that knows it. */
	write_journal(machine->tree, "999999.journal", "syslatency-journal 3\na\nb\n", 0600);
	assert_int_equal(transaction_restore(&count, &message), -EPROTONOSUPPORT);
	assert_int_equal(count_journals(), 1);
}

static void unsafe_folder_is_refused(void **state)
{
	struct machine *machine = *state;
	struct message message = {0};
	struct transaction *transaction;
	char path[300], other[300];

	snprintf(path, sizeof(path), "%s/run/syslatency", machine->tree);
	snprintf(other, sizeof(other), "%s/elsewhere", machine->tree);
	assert_int_equal(mkdir(path, 0700), 0);
	assert_int_equal(chmod(path, 0777), 0);
	assert_int_equal(transaction_open(&transaction, "test", &message), -EACCES);
	assert_non_null(strstr(message.text, "not safe"));
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(mkdir(other, 0700), 0);
	assert_int_equal(symlink(other, path), 0);
	assert_true(transaction_open(&transaction, "test", &message) < 0);
}

/* Without a root prefix, an ordinary user's journals lie in folders of that user's. */
static void a_user_has_a_folder_of_its_own(void **state)
{
	struct machine *machine = *state;
	char command[400], runtime[300];
	int status;
	pid_t pid;

	if (geteuid() != 0)
		SKIP_BECAUSE("becoming another user needs root");
	snprintf(runtime, sizeof(runtime), "%s/runtime", machine->tree);
	assert_int_equal(mkdir(runtime, 0700), 0);
	snprintf(command, sizeof(command), "chown -R 65534 %s", machine->tree);
	assert_int_equal(system(command), 0);
	pid = fork();
	if (pid == 0) {
		struct stat folder;
		struct transaction *transaction;

		machine_set_root(NULL);
		if (setresuid(65534, 65534, 65534) < 0 || setenv("XDG_RUNTIME_DIR", runtime, 1) < 0)
			_exit(1);
		if (transaction_open(&transaction, "user", NULL) < 0 ||
		    transaction_close(transaction, NULL) < 0)
			_exit(2);
		strcat(runtime, "/syslatency");
		if (stat(runtime, &folder) < 0 || (folder.st_mode & 077))
			_exit(3);
		setenv("XDG_RUNTIME_DIR", "/run/user/0", 1); /* as su(1) may leave it */
		if (transaction_open(&transaction, "user", NULL) < 0 ||
		    transaction_close(transaction, NULL) < 0)
			_exit(4);
		if (stat("/tmp/syslatency-65534", &folder) < 0 ||
		    unlink("/tmp/syslatency-65534/lock") < 0 || rmdir("/tmp/syslatency-65534") < 0)
			_exit(5);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A full disk, below the root prefix. */
static bool mount_small(const char *path)
{
	return unshare(CLONE_NEWNS) == 0 &&
	       mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
	       mount("none", path, "tmpfs", 0, "size=8k,mode=755") == 0;
}

static void fill(const char *path)
{
	char block[4096] = {1};
	int fd = open(path, O_WRONLY | O_CREAT, 0600);

	assert_true(fd >= 0);
	while (write(fd, block, sizeof(block)) > 0)
		;
	close(fd);
}

static void a_full_disk_refuses_before_any_change(void **state)
{
	struct machine *machine = *state;
	struct message message = {0};
	struct transaction *transaction;
	char run[300], filler[400], value[16];
	int result = 0, made = 0;

	snprintf(run, sizeof(run), "%s/run", machine->tree);
	snprintf(filler, sizeof(filler), "%s/filler", run);
	if (!mount_small(run))
		SKIP_BECAUSE("mounting a tmpfs needs CAP_SYS_ADMIN");
	fill(filler);
	assert_int_equal(transaction_open(&transaction, "test", &message), -ENOSPC);
	assert_int_equal(count_journals(), 0);
	assert_int_equal(unlink(filler), 0);
	assert_int_equal(transaction_open(&transaction, "test", &message), 0);
	assert_int_equal(transaction_write(transaction, KNOB, "00000", &message), 0);
	fill(filler);
	while (result == 0 && made < 1000) {
		snprintf(value, sizeof(value), "%05d", ++made);
		result = transaction_write(transaction, KNOB, value, &message);
	}
	assert_int_equal(result, -ENOSPC);
	assert_non_null(strstr(message.text, "not made"));
	snprintf(value, sizeof(value), "%05d", made - 1);
	assert_value(KNOB, value);
	/* All that was noted is undone, though "done" cannot be noted any more. */
	assert_int_equal(transaction_close(transaction, &message), 0);
	assert_value(KNOB, "10000");
	assert_int_equal(count_journals(), 0);
	assert_int_equal(umount(run), 0);
}

static void what_cannot_be_written_is_not_noted(void **state)
{
	struct machine *machine = *state;
	char command[900];
	int status;
	pid_t pid;

	if (geteuid() != 0)
		SKIP_BECAUSE("becoming another user needs root");
	snprintf(command, sizeof(command), "chown -R 65534 %s; chmod 444 %s%s", machine->tree,
		 machine->tree, KNOB);
	assert_int_equal(system(command), 0);
	pid = fork();
	if (pid == 0) {
		struct message message = {0};
		struct transaction *transaction;

		if (setresuid(65534, 65534, 65534) < 0 ||
		    transaction_open(&transaction, "user", &message) < 0)
			_exit(1);
		if (transaction_write(transaction, KNOB, "20001", &message) != -EACCES ||
		    !strstr(message.text, KNOB))
			_exit(2);
		if (transaction_write(transaction, OTHER_KNOB, "10", &message) < 0)
			_exit(3);
		if (transaction_close(transaction, &message) < 0)
			_exit(4);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_value(OTHER_KNOB, "60");
	assert_value(KNOB, "10000");
	assert_int_equal(count_journals(), 0);
}

/* A value that was cut short, whose change was never made, is not taken for whole later. */
static void a_torn_line_stays_torn(void **state)
{
	struct machine *machine = *state;
	struct message message;
	char boot[128], text[1024];
	int count;

	boot_line(boot, sizeof(boot));
	snprintf(text, sizeof(text),
		 "syslatency-journal 2\n%s\nprogram 999999 5 x\n1 write " KNOB
		 " 11111\n2 write /etc/passwd x\n3 write " OTHER_KNOB " 7",
		 boot);
	write_journal(machine->tree, "999999.journal", text, 0600);
	/* "done 1" is appended the first time, and the journal stays because of its bad line. */
	for (int time = 0; time < 2; time++) {
		assert_int_equal(transaction_restore(&count, &message), -EBADMSG);
		assert_value(KNOB, "11111");
		assert_value(OTHER_KNOB, "60");
	}
}

/* A program that is killed at any moment of its beginning asks for no restore. */
static void killed_as_it_begins_leaves_nothing(void **state)
{
	struct random random;
	int count = -1;

	random_seed(&random, random_fresh_seed());
	for (int i = 0; i < 100; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			struct transaction *transaction;

			for (;;)
				if (transaction_open(&transaction, "test", NULL) < 0 ||
				    transaction_close(transaction, NULL) < 0)
					_exit(1);
		}
		clock_sleep_for((int64_t)(random_unit(&random) * 5e6));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, &count, 0), pid);
		assert_true(WIFSIGNALED(count));
	}
	wait_for_no_journal();
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(torn_forged_and_old_journals),
		CASE(unsafe_folder_is_refused),
		CASE(a_user_has_a_folder_of_its_own),
		CASE(what_cannot_be_written_is_not_noted),
		CASE(a_torn_line_stays_torn),
		CASE(killed_as_it_begins_leaves_nothing),
		CASE(a_full_disk_refuses_before_any_change),
	};

	return cmocka_run_group_tests_name("undo: journal", tests, NULL, NULL);
}
