/* SPDX-License-Identifier: MIT */
/* Memory groups, swap and their end on the real machine. */
#include "support/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/vfs.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "sys/cgroup.h"
#include "sys/child.h"
#include "undo/transaction.h"
#include "sys/swap.h"

#define MIB (1u << 20)

/* Opens a transaction with a group, or skips. */
#define MAKE_GROUP(transaction, group)                                                    \
	do {                                                                              \
		struct message message_ = {0};                                            \
		if (cgroup_detect((group), &message_) < 0)                                \
			SKIP_BECAUSE("%s", message_.text);                                \
		assert_int_equal(transaction_open((transaction), "test_group", NULL), 0); \
		if (cgroup_make(*(transaction), "test", (group), &message_) < 0)          \
			fail_msg("%s", message_.text);                                    \
	} while (0)

static int lock_memory(void *argument)
{
	size_t bytes = *(size_t *)argument;
	void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);

	return memory == MAP_FAILED ? -errno : 0;
}

static void the_limit_holds_and_is_counted(void **state)
{
	struct child_settings settings = {.name = "locker", .oom_score_adj = 1000};
	size_t bytes = 48 * MIB;
	struct cgroup_usage usage;
	struct message message = {0};
	struct cgroup group;
	struct transaction *transaction;
	struct child child;
	int status;

	if (geteuid() != 0)
		SKIP_BECAUSE("locking 48 MiB needs root");
	MAKE_GROUP(&transaction, &group);
	assert_int_equal(cgroup_set_limit(&group, 16 * MIB, &message), 0);
	settings.cgroup = &group;
	settings.transaction = transaction;
	/* Locked memory cannot be swapped, whatever swap there is: it must be killed. */
	assert_int_equal(child_start(&settings, lock_memory, &bytes, &child, &message), 0);
	assert_int_equal(child_wait(&child, clock_now_ns() + 60 * NS_PER_S, &status), 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(cgroup_read_usage(&group, &usage), 0);
	assert_int_equal(usage.limit_bytes, 16 * MIB);
	assert_true(usage.limit_hits > 0);
	assert_true(usage.oom_kills == 1 || usage.oom_kills == -1);
	assert_true(usage.usage_bytes <= 16 * MIB);
	assert_int_equal(transaction_close(transaction, &message), 0);
	assert_false(machine_exists(group.path));
}

static pid_t fork_into(const struct cgroup *group)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	assert_int_equal(cgroup_enter(group, pid), 0);
	return pid;
}

static void members_end_and_the_program_moves_out(void **state)
{
	struct cgroup group, below;
	struct message message = {0};
	struct transaction *transaction;
	int status, i;
	pid_t pids[3];

	MAKE_GROUP(&transaction, &group);
	/* Not registered: children of foreign commands, say; some in a group that they made. */
	pids[0] = fork_into(&group);
	pids[1] = fork_into(&group);
	below = group;
	assert_true(strlen(below.path) + 8 < sizeof(below.path));
	strcat(below.path, "/below");
	if (group.version == CGROUP_V1 && mkdir(below.path, 0755) == 0)
		pids[2] = fork_into(&below);
	else
		pids[2] = fork_into(&group);
	assert_int_equal(cgroup_enter(&group, 0), 0); /* the program itself */
	if (transaction_close(transaction, &message) < 0)
		fail_msg("%s", message.text);
	for (i = 0; i < 3; i++) {
		assert_int_equal(waitpid(pids[i], &status, 0), pids[i]);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}
	assert_false(machine_exists(group.path));
}

/* As above where v2 is mounted, with or without its memory controller. */
static void members_end_in_v2_too(void **state)
{
	struct cgroup group = {.version = CGROUP_V2};
	char point[PATH_MAX] = "", line[2 * PATH_MAX];
	struct message message = {0};
	struct transaction *transaction;
	FILE *mounts = fopen("/proc/self/mounts", "re");
	int status;
	pid_t pid;

	assert_non_null(mounts);
	while (!*point && fgets(line, sizeof(line), mounts))
		if (strstr(line, " cgroup2 "))
			sscanf(line, "%*s %4095s", point);
	fclose(mounts);
	snprintf(group.path, sizeof(group.path), "%.4000s/syslatency-%d-test", point,
		 (int)getpid());
	if (!*point || access(point, W_OK) < 0)
		SKIP_BECAUSE("no cgroup2 mount that can be written");
	assert_int_equal(transaction_open(&transaction, "test_group", NULL), 0);
	if (transaction_make_group(transaction, group.path, &message) < 0) {
		transaction_close(transaction, NULL);
		SKIP_BECAUSE("%s", message.text);
	}
	pid = fork_into(&group);
	assert_int_equal(cgroup_enter(&group, 0), 0);
	if (transaction_close(transaction, &message) < 0)
		fail_msg("%s", message.text);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_false(machine_exists(group.path));
}

/* Swapped out memory of the program comes back at swapoff, unharmed. */
static void swap_is_read_back(void **state)
{
	size_t bytes = 16 * MIB, i;
	uint64_t total_before, total, unused;
	struct random fill, check;
	struct message message = {0};
	struct swap_area area;
	struct transaction *transaction;
	uint64_t *memory;
	int result;

	assert_int_equal(transaction_open(&transaction, "test_group", NULL), 0);
	result = transaction_lock(transaction, &message);
	if (result < 0)
		fail_msg("%s", message.text);
	assert_int_equal(swap_total(&total_before, &unused), 0);
	result = swap_make_zram(transaction, 64 * MIB, &area, &message);
	if (result == -ENODEV || result == -EPERM) {
		transaction_close(transaction, NULL);
		SKIP_BECAUSE("%s", message.text);
	}
	if (result < 0)
		fail_msg("%s", message.text);
	assert_int_equal(swap_total(&total, &unused), 0);
	/* The header takes a page. */
	assert_int_equal(total - total_before, 64 * MIB - (size_t)sysconf(_SC_PAGESIZE));
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(memory != MAP_FAILED);
	random_seed(&fill, 5);
	for (i = 0; i < bytes / sizeof(*memory); i++)
		memory[i] = random_next(&fill);
	assert_int_equal(madvise(memory, bytes, MADV_PAGEOUT), 0);
	assert_int_equal(swap_total(&total, &unused), 0);
	assert_true(total - unused >= bytes / 2);
	if (transaction_close(transaction, &message) < 0)
		fail_msg("%s", message.text);
	random_seed(&check, 5);
	for (i = 0; i < bytes / sizeof(*memory); i++)
		if (memory[i] != random_next(&check))
			fail_msg("word %zu came back changed", i);
	munmap(memory, bytes);
}

/* A group that stays busy: told at close, and undone by the guardian when it can be. */
static void the_guardian_goes_on_trying(void **state)
{
	int64_t deadline_ns;
	char tree[256], path[300], journal[400];
	struct message message = {0};
	struct transaction *transaction;

	testing_make_tree(tree, sizeof(tree));
	testing_write(tree, "/run/.keep", "");
	testing_write(tree, "/sys/fs/cgroup/.keep", "");
	machine_set_root(tree);
	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(
		transaction_make_group(transaction, "/sys/fs/cgroup/syslatency-busy", NULL), 0);
	snprintf(path, sizeof(path), "%s/sys/fs/cgroup/syslatency-busy", tree);
	/* A folder that is mounted on is busy. */
	if (mount("none", path, "tmpfs", 0, "size=4k") < 0) {
		transaction_close(transaction, NULL);
		machine_set_root(NULL);
		testing_remove_tree(tree);
		SKIP_BECAUSE("mounting needs CAP_SYS_ADMIN");
	}
	assert_int_equal(transaction_close(transaction, &message), -EBUSY);
	assert_non_null(strstr(message.text, "goes on trying"));
	snprintf(journal, sizeof(journal), "/run/syslatency/%d.journal", (int)getpid());
	assert_true(machine_exists(journal));
	assert_int_equal(umount(path), 0);
	deadline_ns = clock_now_ns() + 30 * NS_PER_S;
	while (machine_exists(journal) && clock_now_ns() < deadline_ns)
		clock_sleep_for(10 * NS_PER_MS);
	assert_false(machine_exists(journal));
	assert_false(machine_exists("/sys/fs/cgroup/syslatency-busy"));
	machine_set_root(NULL);
	testing_remove_tree(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_limit_holds_and_is_counted),
		cmocka_unit_test(members_end_and_the_program_moves_out),
		cmocka_unit_test(members_end_in_v2_too),
		cmocka_unit_test(swap_is_read_back),
		cmocka_unit_test(the_guardian_goes_on_trying),
	};

	return cmocka_run_group_tests_name("groups and swap", tests, NULL, NULL);
}
