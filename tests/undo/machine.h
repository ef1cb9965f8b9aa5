/* SPDX-License-Identifier: MIT */
#ifndef UNDO_MACHINE_H
#define UNDO_MACHINE_H

/* A machine of the test's own for the tests of undoing: two knobs in a folder, journals, guardians.
 */
#include "support/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "undo/transaction.h"
#include "undo/journal.h"
#include "undo/process.h"
#include "undo/record.h"

#define KNOB "/sys/kernel/mm/khugepaged/scan_sleep_millisecs"
#define OTHER_KNOB "/proc/sys/vm/swappiness"

struct machine {
	char tree[256];
};

static inline int set_up(void **state)
{
	struct machine *machine = calloc(1, sizeof(*machine));

	assert_non_null(machine);
	testing_make_tree(machine->tree, sizeof(machine->tree));
	testing_write(machine->tree, KNOB, "10000\n");
	testing_write(machine->tree, OTHER_KNOB, "60\n");
	testing_write(machine->tree, "/run/.keep", "");
	testing_write(machine->tree, "/sys/fs/cgroup/memory/.keep", "");
	testing_write(machine->tree, "/proc/sys/kernel/random/boot_id", "this-boot\n");
	machine_set_root(machine->tree);
	*state = machine;
	return 0;
}

static inline int tear_down(void **state)
{
	struct machine *machine = *state;

	machine_set_root(NULL);
	unsetenv("SYSLATENCY_LOCK_WAIT_S");
	testing_remove_tree(machine->tree);
	free(machine);
	return 0;
}

static inline void assert_value(const char *path, const char *wanted)
{
	char line[64];

	assert_int_equal(machine_read_line(path, line, sizeof(line)), 0);
	assert_string_equal(line, wanted);
}

static inline int count_journals(void)
{
	char command[4200], text[16];
	FILE *stream;

	snprintf(command, sizeof(command), "ls %s/run/syslatency 2>/dev/null | grep -c journal",
		 machine_root());
	stream = popen(command, "r");
	assert_non_null(stream);
	assert_non_null(fgets(text, sizeof(text), stream));
	pclose(stream);
	return atoi(text);
}

static inline void wait_for_no_journal(void)
{
	int64_t deadline_ns = clock_now_ns() + 20 * NS_PER_S;

	while (count_journals() > 0 && clock_now_ns() < deadline_ns)
		clock_sleep_for(5 * NS_PER_MS);
	assert_int_equal(count_journals(), 0);
}

/* The process whose parent is @parent and whose name is the guardian's. */
static inline pid_t find_guardian(pid_t parent)
{
	char command[160], text[16] = "";
	FILE *stream;

	snprintf(command, sizeof(command),
		 "cat /proc/[0-9]*/stat 2>/dev/null | "
		 "awk '$2 == \"(syslat-guardian)\" && $4 == %d { print $1 }'",
		 (int)parent);
	stream = popen(command, "r");
	assert_non_null(stream);
	(void)!fgets(text, sizeof(text), stream);
	pclose(stream);
	return atoi(text);
}

/*
 * All threads of it: a sanitizer's own thread may outlive the one that is seen, and with it the
 * open files and their locks.
 */
static inline void wait_for_death(pid_t pid, uint64_t start_ticks)
{
	struct pollfd death = {.fd = process_pidfd(pid), .events = POLLIN};

	if (death.fd >= 0) {
		poll(&death, 1, 10000);
		close(death.fd);
	}
	while (process_alive(pid, start_ticks))
		clock_sleep_for(NS_PER_MS);
}

#endif
