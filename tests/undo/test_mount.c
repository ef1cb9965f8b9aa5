/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/wait.h>

#include "base/array.h"
#include "undo/transaction.h"
#include "undo/record.h"

static void test_only_tracefs_in_its_place(void **state)
{
	static const char *const refused[] = {
		"mount /etc",
		"mount /sys/kernel/tracing/",
		"mount /sys/kernel/tracing/../debug",
		"mount \\e",
		"mount",
		"mount /sys/kernel/tracing 1",
	};
	struct undo_list list = {0};

	assert_int_equal(undo_list_add(&list, 1, "mount /sys/kernel/tracing", NULL), 0);
	assert_int_equal(list.records[0].verb, UNDO_MOUNT);
	/* Others may go on using it, so it holds no machine-wide lock. */
	assert_false(undo_list_is_global(&list));
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		assert_int_equal(undo_list_add(&list, 2, refused[i], NULL), -EINVAL);
	assert_int_equal(list.count, 1);
	undo_list_clear(&list);
}

/* Mounts of the test's own, without tracefs, whatever the machine has. */
static bool enter_private_mounts(void)
{
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	while (tracefs_owner() != TRACEFS_NOT_MOUNTED)
		if (umount2(TRACEFS_PLACE, MNT_DETACH) < 0)
			return false;
	return true;
}

/* In a process of its own: 0 passed, 77 cannot be tried here, else the line that failed. */
static void run_apart(int (*function)(void))
{
	int status;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0)
		_exit(enter_private_mounts() ? function() : 77);
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		SKIP_BECAUSE("mounting tracefs needs root, and a kernel that has it");
	if (status)
		fail_msg("status %#x: what failed is in line %d or %d", status, WEXITSTATUS(status),
			 WEXITSTATUS(status) + 256);
}

#define MUST(condition)                         \
	do {                                    \
		if (!(condition))               \
			return __LINE__ & 0xff; \
	} while (0)

static int mount_and_back(void)
{
	static const char instance[] = "/sys/kernel/tracing/instances/syslatency-test";
	struct message message = {""};
	struct transaction *transaction;

	MUST(transaction_open(&transaction, "test", &message) == 0);
	if (transaction_mount_tracefs(transaction, &message) < 0)
		return 77;
	MUST(tracefs_owner() == TRACEFS_OURS);
	MUST(transaction_make_trace_instance(transaction, instance, &message) == 0);
	MUST(access(instance, F_OK) == 0);
	MUST(transaction_close(transaction, &message) == 0);
	MUST(tracefs_owner() == TRACEFS_NOT_MOUNTED);
	return 0;
}

static void test_mount_and_back(void **state)
{
	run_apart(mount_and_back);
}

/* Joins the mount, says so, and stays until it is told to end. */
static int second_program(int ready_fd, int end_fd)
{
	struct message message = {""};
	struct transaction *transaction;
	char byte = 0;
	int fd;

	MUST(transaction_open(&transaction, "second", &message) == 0);
	MUST(transaction_mount_tracefs(transaction, &message) == 0);
	fd = open(TRACEFS_PLACE "/instances", O_RDONLY | O_CLOEXEC);
	MUST(fd >= 0);
	MUST(write(ready_fd, &byte, 1) == 1);
	MUST(read(end_fd, &byte, 1) == 1);
	MUST(tracefs_owner() == TRACEFS_OURS);
	close(fd);
	MUST(transaction_close(transaction, &message) == 0);
	return 0;
}

static int last_one_unmounts(void)
{
	int ready[2], end[2], status;
	struct message message = {""};
	struct transaction *transaction;
	char byte = 0;
	pid_t child;

	MUST(pipe(ready) == 0 && pipe(end) == 0);
	MUST(transaction_open(&transaction, "first", &message) == 0);
	if (transaction_mount_tracefs(transaction, &message) < 0)
		return 77;
	child = fork();
	if (child == 0) {
		transaction_forget(transaction);
		_exit(second_program(ready[1], end[0]));
	}
	MUST(read(ready[0], &byte, 1) == 1);
	/* Who mounted it ends first; the other still uses it. */
	MUST(transaction_close(transaction, &message) == 0);
	MUST(tracefs_owner() == TRACEFS_OURS);
	MUST(write(end[1], &byte, 1) == 1);
	MUST(waitpid(child, &status, 0) == child && status == 0);
	MUST(tracefs_owner() == TRACEFS_NOT_MOUNTED);
	return 0;
}

static void test_last_one_unmounts(void **state)
{
	run_apart(last_one_unmounts);
}

/* What is unmounted meanwhile, and mounted again by others, is theirs. */
static int others_keep_theirs(void)
{
	struct message message = {""};
	struct transaction *transaction;

	MUST(transaction_open(&transaction, "test", &message) == 0);
	if (transaction_mount_tracefs(transaction, &message) < 0)
		return 77;
	MUST(umount(TRACEFS_PLACE) == 0);
	MUST(mount("tracefs", TRACEFS_PLACE, "tracefs", 0, NULL) == 0);
	MUST(transaction_mount_tracefs(transaction, &message) == -EBUSY);
	MUST(transaction_close(transaction, &message) == 0);
	MUST(tracefs_owner() == TRACEFS_OTHERS);
	return 0;
}

static void test_others_keep_theirs(void **state)
{
	run_apart(others_keep_theirs);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_tracefs_in_its_place),
		cmocka_unit_test(test_mount_and_back),
		cmocka_unit_test(test_last_one_unmounts),
		cmocka_unit_test(test_others_keep_theirs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
