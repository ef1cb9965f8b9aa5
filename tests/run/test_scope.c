/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>

#include "base/file.h"
#include "run/state.h"

#define MIB (UINT64_C(1) << 20)

static char tree[256];

static int make_machine(void **state)
{
	testing_make_tree(tree, sizeof(tree));
	testing_write(tree, "/proc/meminfo",
		      "MemTotal: 4194304 kB\nMemAvailable: 2097152 kB\nSwapTotal: 0 kB\n");
	testing_write(tree, "/proc/sys/kernel/random/boot_id", "this-boot\n");
	testing_write(tree, "/run/.keep", "");
	machine_set_root(tree);
	return 0;
}

static int remove_machine(void **state)
{
	machine_set_root(NULL);
	testing_remove_tree(tree);
	return 0;
}

/* v2, where memory cannot be handed on: a folder lies where the file should (EISDIR). */
static void a_group_that_fails_fails_the_run(void **state)
{
	struct run_settings settings = {.scope = SCOPE_AUTO};
	struct message message = {""};
	struct run run = {
		.settings = &settings,
		.message = &message,
		.plan = {.memcg = true, .limit_bytes = 64 * MIB},
	};

	testing_write(tree, "/proc/self/mountinfo",
		      "30 20 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup rw\n");
	testing_write(tree, "/proc/self/cgroup", "0::/\n");
	testing_write(tree, "/sys/fs/cgroup/cgroup.controllers", "memory\n");
	testing_write(tree, "/sys/fs/cgroup/cgroup.subtree_control/.keep", "");
	run.record = record_new("test");
	assert_int_equal(transaction_open(&run.transaction, "test", &message), 0);
	assert_true(run_enter_scope(&run) < 0);
	assert_non_null(strstr(message.text, "cgroup.subtree_control"));
	assert_true(run.plan.memcg);
	assert_int_equal(run.group.version, CGROUP_NONE);
	transaction_close(run.transaction, NULL);
	record_free(run.record);
}

static int check_scope(struct run_settings *settings, struct message *message)
{
	struct record *record = NULL;
	int error;

	settings->benchmark = "test";
	settings->measure = measure_with(MEASURE_DEFAULT);
	error = run_execute(settings, &record, message);
	record_free(record);
	return error;
}

/* No groups at all: the machine's scope has a budget of its own, and a scope by name is not it. */
static void machine_scope_is_planned_anew(void **state)
{
	struct run_settings settings = {
		.loads = {load_with(LOAD_NEEDS_SWAP)},
		.load_sizes = {{.bytes = 8192 * MIB}},
		.load_count = 1,
	};
	struct message message = {""};

	testing_write(tree, "/proc/self/mountinfo", "");
	assert_int_equal(check_scope(&settings, &message), -ENOMEM);
	assert_non_null(strstr(message.text, "the loads would hold 8G"));
	settings.scope = SCOPE_MEMCG;
	assert_int_equal(check_scope(&settings, &message), -ENOTSUP);
	assert_non_null(strstr(message.text, "no memory control groups"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_group_that_fails_fails_the_run, make_machine,
						remove_machine),
		cmocka_unit_test_setup_teardown(machine_scope_is_planned_anew, make_machine,
						remove_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
