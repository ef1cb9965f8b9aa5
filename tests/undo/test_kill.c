/* SPDX-License-Identifier: MIT */
/*
 * SIGKILL at random moments of a program that has changed the machine in every way that the
 * transaction knows: nothing of it may be left.
 */
#include "support/testing.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/random.h"
#include "sys/cgroup.h"
#include "sys/child.h"
#include "undo/transaction.h"
#include "undo/journal.h"
#include "undo/process.h"
#include "sys/swap.h"

#define KNOB "/sys/kernel/mm/transparent_hugepage/khugepaged/scan_sleep_millisecs"
#define FOLDER "/run/syslatency"
#define CHILDREN 2
#define LIMIT_BYTES (16u << 20)
#define TOUCHED_BYTES (24u << 20)

enum who { PROGRAM, PROGRAM_AND_GUARDIAN, PROCESS_GROUP };

/* What the program did, for the checks after its death. */
struct trace {
	_Atomic int stage; /* how far it came; 100: all is made */
	_Atomic int error;
	char text[256];
	_Atomic pid_t children[CHILDREN];
	char group[PATH_MAX];
	char device[64];
};

struct world {
	struct trace *trace;
	char knob[64], algorithm[64];
	struct random random;
	pid_t bystander; /* a task of the test's whose scheduling is changed */
	int lock_fd;	 /* -1: not held. A case that fails must not hold up the next */
};

static int eat_memory(void *argument)
{
	struct random random;
	char *memory = mmap(NULL, TOUCHED_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return -errno;
	random_seed(&random, 1);
	for (;;)
		random_fill(&random, memory, TOUCHED_BYTES);
}

static void give_up(struct trace *trace, int error, const struct message *message)
{
	snprintf(trace->text, sizeof(trace->text), "%.250s", message->text);
	trace->error = error;
	_exit(1);
}

#define TRY(call)                                         \
	do {                                              \
		int error_ = (call);                      \
		if (error_ < 0)                           \
			give_up(trace, error_, &message); \
		trace->stage++;                           \
	} while (0)

static void program(struct world *world)
{
	struct trace *trace = world->trace;
	struct sched_param none = {0};
	struct message message = {0};
	struct swap_area area;
	struct cgroup group;
	struct transaction *transaction;
	int i;

	setpgid(0, 0);
	TRY(transaction_open(&transaction, "kill-test", &message));
	TRY(cgroup_make(transaction, "kill", &group, &message));
	TRY(cgroup_set_limit(&group, LIMIT_BYTES, &message));
	memcpy(trace->group, group.path, sizeof(trace->group));
	TRY(transaction_write(transaction, KNOB, "4321", &message));
	TRY(swap_make_zram(transaction, 64u << 20, &area, &message));
	memcpy(trace->device, area.device, sizeof(trace->device));
	for (i = 0; i < CHILDREN; i++) {
		struct child_settings settings = {.name = "kill-child",
						  .oom_score_adj = 1000,
						  .cgroup = &group,
						  .transaction = transaction};
		struct child child;

		TRY(child_start(&settings, eat_memory, NULL, &child, &message));
		trace->children[i] = child.pid;
	}
	TRY(transaction_save_scheduling(transaction, world->bystander, &message));
	sched_setscheduler(world->bystander, SCHED_BATCH, &none);
	setpriority(PRIO_PROCESS, (id_t)world->bystander, 7);
	trace->stage = 100;
	for (;;)
		pause();
}

static int attribute(const char *device, const char *name, char *buffer, size_t size)
{
	char path[256];

	snprintf(path, sizeof(path), "/sys/block/%s/%s", device, name);
	return machine_read_choice(path, buffer, size);
}

static int set_up(void **state)
{
	struct world *world = calloc(1, sizeof(*world));

	assert_non_null(world);
	world->lock_fd = -1;
	world->trace = mmap(NULL, sizeof(*world->trace), PROT_READ | PROT_WRITE,
			    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(world->trace != MAP_FAILED);
	random_seed(&world->random, random_fresh_seed());
	world->bystander = fork();
	if (world->bystander == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	/* Orphaned guardians come to us, so that they are reaped whatever the init process does. */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	*state = world;
	return 0;
}

/* Holds the machine-wide lock, so that nobody else's changes are seen. */
static void hold_lock(struct world *world)
{
	struct message message = {0};
	int directory_fd = journal_open_directory(true, &message), fd;

	assert_true(directory_fd >= 0);
	fd = lock_open(directory_fd, &message);
	close(directory_fd);
	if (fd < 0 || lock_take(fd, "test_kill", getpid(), lock_wait_ns(), NULL, &message) < 0)
		fail_msg("%s", message.text);
	world->lock_fd = fd;
}

static void let_lock_go(struct world *world)
{
	if (world->lock_fd >= 0)
		close(world->lock_fd);
	world->lock_fd = -1;
}

static int tear_down(void **state)
{
	struct world *world = *state;

	let_lock_go(world);
	kill(world->bystander, SIGKILL);
	waitpid(world->bystander, NULL, 0);
	munmap(world->trace, sizeof(*world->trace));
	free(world);
	return 0;
}

/* Of the pid @program, whatever their number. */
static bool has_journal(pid_t pid)
{
	char start[32];
	DIR *directory = opendir(FOLDER);
	struct dirent *entry;
	bool found = false;

	snprintf(start, sizeof(start), "%d.", (int)pid);
	while (directory && (entry = readdir(directory)))
		found |= strncmp(entry->d_name, start, strlen(start)) == 0 &&
			 strstr(entry->d_name, "journal");
	if (directory)
		closedir(directory);
	return found;
}

static pid_t guardian_of(pid_t parent)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	assert_non_null(directory);
	while (!found && (entry = readdir(directory))) {
		char path[300], *text, name[32] = "";
		int ppid = 0;

		snprintf(path, sizeof(path), "/proc/%s/stat", entry->d_name);
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    file_read(path, &text, NULL) < 0)
			continue;
		if (sscanf(text, "%*d (%31[^)]) %*c %d", name, &ppid) == 2 && ppid == parent &&
		    strcmp(name, "syslat-guardian") == 0)
			found = atoi(entry->d_name);
		free(text);
	}
	closedir(directory);
	return found;
}

static void kill_some(struct world *world, pid_t pid, enum who who)
{
	pid_t guardian = who == PROGRAM_AND_GUARDIAN ? guardian_of(pid) : 0;

	if (guardian)
		kill(guardian, SIGKILL);
	kill(who == PROCESS_GROUP ? -pid : pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	if (guardian)
		waitpid(guardian, NULL, 0);
	for (int i = 0; i < CHILDREN; i++)
		if (world->trace->children[i])
			waitpid(world->trace->children[i], NULL, 0);
}

static void assert_clean(struct world *world, pid_t pid)
{
	struct trace *trace = world->trace;
	char text[64], parent[PATH_MAX], *swaps;
	struct cgroup group;
	int i;

	hold_lock(world);
	for (i = 0; i < CHILDREN; i++)
		assert_true(trace->children[i] == 0 || kill(trace->children[i], 0) < 0);
	assert_int_equal(cgroup_detect(&group, NULL), 0);
	snprintf(parent, sizeof(parent), "%.4000s/syslatency-%d-kill", group.path, (int)pid);
	assert_false(machine_exists(parent));
	assert_int_equal(machine_read_line(KNOB, text, sizeof(text)), 0);
	assert_string_equal(text, world->knob);
	assert_int_equal(machine_read("/proc/swaps", &swaps, NULL), 0);
	assert_null(strstr(swaps, "zram"));
	free(swaps);
	assert_int_equal(attribute("zram0", "disksize", text, sizeof(text)), 0);
	assert_string_equal(text, "0");
	assert_int_equal(attribute("zram0", "comp_algorithm", text, sizeof(text)), 0);
	assert_string_equal(text, world->algorithm);
	assert_int_equal(sched_getscheduler(world->bystander), SCHED_OTHER);
	assert_int_equal(getpriority(PRIO_PROCESS, (id_t)world->bystander), 0);
	let_lock_go(world);
}

/*
 * @restore: program and guardian were killed, or died before transaction_open() returned and left
 * an empty journal of no harm. Restoring waits for no one, and both may be still dying: try again
 * and again.
 */
static void wait_for_guardian(pid_t pid, bool restore)
{
	int64_t deadline_ns = clock_now_ns() + 60 * NS_PER_S;
	int restored;

	while (has_journal(pid)) {
		struct message message;

		if (restore && transaction_restore(&restored, &message) < 0)
			fail_msg("restore: %s", message.text);
		if (clock_now_ns() > deadline_ns)
			fail_msg("the guardian has not undone all in a minute");
		clock_sleep_for(2 * NS_PER_MS);
		while (waitpid(-1, NULL, WNOHANG) > 0)
			;
	}
}

/*
 * The program in a process group of its own. Parent and child both say so: whichever comes first, a
 * kill of the group right after the fork finds it.
 */
static pid_t start_program(struct world *world)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		program(world);
	setpgid(pid, pid);
	return pid;
}

/* How long one takes until all is made, here and now. */
static int64_t time_one(struct world *world)
{
	int64_t start_ns = clock_now_ns();
	pid_t pid = start_program(world);

	while (world->trace->stage < 100) {
		if (waitpid(pid, NULL, WNOHANG) == pid)
			fail_msg("the program failed: %s (%d)", world->trace->text,
				 world->trace->error);
		clock_sleep_for(NS_PER_MS);
	}
	start_ns = clock_now_ns() - start_ns;
	kill_some(world, pid, PROGRAM);
	wait_for_guardian(pid, false);
	assert_clean(world, pid);
	return start_ns;
}

static void kill_many(struct world *world, enum who who, int times)
{
	int i, complete = 0;
	struct message message = {0};
	int64_t span_ns;

	if (geteuid() != 0 || !machine_exists("/sys/block/zram0"))
		SKIP_BECAUSE("needs root and zram");
	if (cgroup_detect(&(struct cgroup){0}, &message) < 0)
		SKIP_BECAUSE("%s", message.text);
	hold_lock(world);
	assert_int_equal(machine_read_line(KNOB, world->knob, sizeof(world->knob)), 0);
	attribute("zram0", "comp_algorithm", world->algorithm, sizeof(world->algorithm));
	let_lock_go(world);
	span_ns = time_one(world);
	for (i = 0; i < times; i++) {
		pid_t pid;

		memset(world->trace, 0, sizeof(*world->trace));
		pid = start_program(world);
		clock_sleep_for((int64_t)(random_unit(&world->random) * 2 * (double)span_ns));
		if (waitpid(pid, NULL, WNOHANG) == pid)
			fail_msg("the program failed: %s (%d)", world->trace->text,
				 world->trace->error);
		complete += world->trace->stage == 100;
		kill_some(world, pid, who);
		wait_for_guardian(pid, who == PROGRAM_AND_GUARDIAN || world->trace->stage == 0);
		assert_clean(world, pid);
	}
	print_message("# %d kills, %d of them after all was made, which takes %.0f ms\n", times,
		      complete, (double)span_ns / 1e6);
}

static void program_killed(void **state)
{
	kill_many(*state, PROGRAM, 50);
}

static void process_group_killed(void **state)
{
	kill_many(*state, PROCESS_GROUP, 20);
}

static void program_and_guardian_killed(void **state)
{
	kill_many(*state, PROGRAM_AND_GUARDIAN, 30);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(program_killed),
		CASE(process_group_killed),
		CASE(program_and_guardian_killed),
	};

	return cmocka_run_group_tests_name("kill", tests, NULL, NULL);
}
