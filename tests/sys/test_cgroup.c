/* SPDX-License-Identifier: MIT */
/* Machines with v1, v2, both or no memory groups, laid out in a folder. */
#include "support/testing.h"

#include <errno.h>

#include "base/file.h"
#include "sys/cgroup.h"
#include "undo/transaction.h"

#define V1_MOUNT                                                               \
	"30 25 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n"                    \
	"31 30 0:27 / /sys/fs/cgroup/cpu rw shared:9 - cgroup cgroup rw,cpu\n" \
	"33 30 0:29 / /sys/fs/cgroup/memory rw,relatime shared:10 - cgroup cgroup rw,memory\n"
#define V2_MOUNT "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define HYBRID_MOUNT V1_MOUNT "36 30 0:31 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n"
#define MEMORY "/sys/fs/cgroup/memory"
#define V2 "/sys/fs/cgroup"

static int set_up(void **state)
{
	char *tree = calloc(1, 256);

	assert_non_null(tree);
	testing_make_tree(tree, 256);
	testing_write(tree, "/run/.keep", "");
	machine_set_root(tree);
	*state = tree;
	return 0;
}

static int tear_down(void **state)
{
	machine_set_root(NULL);
	testing_remove_tree(*state);
	free(*state);
	return 0;
}

static void lay_out(const char *tree, const char *mounts, const char *own)
{
	testing_write(tree, "/proc/self/mountinfo", mounts);
	testing_write(tree, "/proc/self/cgroup", own);
}

static void v2_group(const char *tree, const char *path, const char *controllers,
		     const char *handed_on, const char *processes)
{
	char file[512];

	snprintf(file, sizeof(file), "%s/cgroup.controllers", path);
	testing_write(tree, file, controllers);
	snprintf(file, sizeof(file), "%s/cgroup.subtree_control", path);
	testing_write(tree, file, handed_on);
	snprintf(file, sizeof(file), "%s/cgroup.procs", path);
	testing_write(tree, file, processes);
	if (strcmp(path, V2) != 0) {
		snprintf(file, sizeof(file), "%s/cgroup.type", path);
		testing_write(tree, file, "domain\n");
	}
}

static void assert_parent(enum cgroup_version version, const char *path)
{
	struct message message = {0};
	struct cgroup parent;
	int result = cgroup_detect(&parent, &message);

	if (result < 0)
		fail_msg("%s", message.text);
	assert_int_equal(parent.version, version);
	assert_string_equal(parent.path, path);
}

static void v1_own_group(void **state)
{
	lay_out(*state, V1_MOUNT, "5:cpu:/\n4:memory:/user/session\n0::/\n");
	testing_write(*state, MEMORY "/user/session/cgroup.procs", "");
	assert_parent(CGROUP_V1, MEMORY "/user/session");
}

static void v1_group_that_cannot_be_seen(void **state)
{
	/* A container that sees the host's path, mounted at its own group or not at all. */
	lay_out(*state, "33 30 0:29 /docker/abc " MEMORY " rw - cgroup cgroup rw,memory\n",
		"4:memory:/docker/abc\n");
	testing_write(*state, MEMORY "/cgroup.procs", "");
	assert_parent(CGROUP_V1, MEMORY);
	lay_out(*state, "33 30 0:29 /docker/abc " MEMORY " rw - cgroup cgroup rw,memory\n",
		"4:memory:/docker/abc/below\n");
	testing_write(*state, MEMORY "/below/cgroup.procs", "");
	assert_parent(CGROUP_V1, MEMORY "/below");
	lay_out(*state, "33 30 0:29 / " MEMORY " rw - cgroup cgroup rw,memory\n",
		"4:memory:/not/here\n");
	assert_parent(CGROUP_V1, MEMORY);
	lay_out(*state, "33 30 0:29 / " MEMORY " rw - cgroup cgroup rw,memory\n",
		"4:memory:/../other\n");
	assert_parent(CGROUP_V1, MEMORY);
}

static void hybrid_takes_the_one_with_memory(void **state)
{
	lay_out(*state, HYBRID_MOUNT, "4:memory:/\n0::/user\n");
	testing_write(*state, MEMORY "/cgroup.procs", "");
	testing_write(*state, "/sys/fs/cgroup/unified/cgroup.controllers", "hugetlb\n");
	assert_parent(CGROUP_V1, MEMORY);
}

static void none(void **state)
{
	struct message message = {0};
	struct cgroup parent;

	lay_out(*state, "35 24 0:30 / /sys rw - sysfs sysfs rw\n", "");
	assert_int_equal(cgroup_detect(&parent, &message), -ENOTSUP);
	assert_non_null(strstr(message.text, "--scope machine"));
	/* v2 without the controller. */
	lay_out(*state, V2_MOUNT, "0::/\n");
	v2_group(*state, V2, "cpu io\n", "", "1\n");
	assert_int_equal(cgroup_detect(&parent, &message), -ENOTSUP);
	/* Named alike is not it. */
	lay_out(*state, "33 30 0:29 / /x rw - cgroup cgroup rw,name=memory\n", "");
	assert_int_equal(cgroup_detect(&parent, &message), -ENOTSUP);
}

static void v2_goes_up_to_who_hands_memory_on(void **state)
{
	lay_out(*state, V2_MOUNT, "0::/user.slice/user-0.slice/session-1.scope\n");
	v2_group(*state, V2, "cpu memory\n", "cpu memory\n", "1\n");
	v2_group(*state, V2 "/user.slice", "cpu memory\n", "memory\n", "");
	v2_group(*state, V2 "/user.slice/user-0.slice", "memory\n", "pids memory\n", "");
	v2_group(*state, V2 "/user.slice/user-0.slice/session-1.scope", "memory\n", "", "77\n");
	assert_parent(CGROUP_V2, V2 "/user.slice/user-0.slice");
	/* One that holds processes cannot; the next that does is further up. */
	v2_group(*state, V2 "/user.slice/user-0.slice", "memory\n", "pids\n", "5\n");
	assert_parent(CGROUP_V2, V2 "/user.slice");
}

static void v2_in_a_container_needs_help(void **state)
{
	struct message message = {0};
	struct cgroup parent;

	/* The mount's top is a group with our process in it, not the kernel's root. */
	lay_out(*state, V2_MOUNT, "0::/\n");
	v2_group(*state, V2, "memory\n", "", "1\n");
	testing_write(*state, V2 "/cgroup.type", "domain\n");
	assert_int_equal(cgroup_detect(&parent, &message), -ENOTSUP);
	assert_non_null(strstr(message.text, "Delegate=yes"));
}

static void v2_group_is_made_and_limited(void **state)
{
	struct cgroup_usage usage;
	struct cgroup group;
	struct transaction *transaction;
	char name[128], path[400], text[64], command[800], *end;

	lay_out(*state, V2_MOUNT, "0::/\n");
	v2_group(*state, V2, "cpu memory\n", "cpu\n", "1\n");
	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(cgroup_make(transaction, "load", &group, NULL), 0);
	snprintf(name, sizeof(name), V2 "/syslatency-%d-load", (int)getpid());
	assert_string_equal(group.path, name);
	assert_true(machine_exists(name));
	assert_int_equal(machine_read_line(V2 "/cgroup.subtree_control", text, sizeof(text)), 0);
	assert_string_equal(text, "+memory");
	/* The kernel's files of a new group. */
	end = path + snprintf(path, sizeof(path), "%s/", name);
	strcpy(end, "memory.max");
	testing_write(*state, path, "max\n");
	strcpy(end, "memory.swap.max");
	testing_write(*state, path, "0\n\n");
	strcpy(end, "memory.current");
	testing_write(*state, path, "4096\n");
	strcpy(end, "memory.events");
	testing_write(*state, path, "low 0\nhigh 0\nmax 17\noom 2\noom_kill 3\n");
	strcpy(end, "cgroup.procs");
	testing_write(*state, path, "");
	assert_int_equal(cgroup_read_usage(&group, &usage), 0);
	assert_true(usage.limit_bytes == UINT64_MAX);
	assert_int_equal(cgroup_set_limit(&group, 1 << 20, NULL), 0);
	assert_int_equal(cgroup_set_limit(&group, (1 << 20) - 1, NULL), -EINVAL);
	assert_int_equal(cgroup_read_usage(&group, &usage), 0);
	assert_int_equal(usage.limit_bytes, 1 << 20);
	assert_int_equal(usage.usage_bytes, 4096);
	assert_int_equal(usage.limit_hits, 17);
	assert_int_equal(usage.oom_kills, 3);
	assert_int_equal(cgroup_enter(&group, 4711), 0);
	assert_int_equal(machine_read_line(path, text, sizeof(text)), 0);
	assert_string_equal(text, "4711");
	/* A plain folder goes only when it is empty. */
	snprintf(command, sizeof(command), "rm '%s%s'/*", (char *)*state, name);
	assert_int_equal(system(command), 0);
	assert_int_equal(transaction_close(transaction, NULL), 0);
	assert_false(machine_exists(name));
	assert_int_equal(machine_read_line(V2 "/cgroup.subtree_control", text, sizeof(text)), 0);
	assert_string_equal(text, "-memory");
}

static void v1_counters(void **state)
{
	struct cgroup group = {.version = CGROUP_V1, .path = MEMORY "/syslatency-1-x"};
	struct cgroup_usage usage;

	testing_write(*state, MEMORY "/syslatency-1-x/memory.usage_in_bytes", "8192\n");
	testing_write(*state, MEMORY "/syslatency-1-x/memory.limit_in_bytes",
		      "9223372036854771712\n");
	testing_write(*state, MEMORY "/syslatency-1-x/memory.failcnt", "12\n");
	testing_write(*state, MEMORY "/syslatency-1-x/memory.oom_control",
		      "oom_kill_disable 0\nunder_oom 0\n");
	assert_int_equal(cgroup_read_usage(&group, &usage), 0);
	assert_true(usage.limit_bytes == UINT64_MAX);
	assert_int_equal(usage.limit_hits, 12);
	assert_int_equal(usage.oom_kills, -1); /* an old kernel does not count them */
	testing_write(*state, MEMORY "/syslatency-1-x/memory.oom_control",
		      "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
	assert_int_equal(cgroup_read_usage(&group, &usage), 0);
	assert_int_equal(usage.oom_kills, 4);
	group.path[0] = '\0';
	assert_int_equal(cgroup_read_usage(&group, &usage), -ENOENT);
}

static void room_below_all_limits_above(void **state)
{
	lay_out(*state, V2_MOUNT, "0::/a/b\n");
	testing_write(*state, V2 "/cgroup.controllers", "memory\n");
	testing_write(*state, V2 "/a/memory.current", "3000000\n");
	testing_write(*state, V2 "/a/memory.max", "max\n");
	testing_write(*state, V2 "/a/b/memory.current", "1000000\n");
	testing_write(*state, V2 "/a/b/memory.max", "max\n");
	assert_true(cgroup_room() == UINT64_MAX);
	testing_write(*state, V2 "/a/b/memory.max", "9000000\n");
	assert_int_equal(cgroup_room(), 8000000);
	testing_write(*state, V2 "/a/memory.max", "4000000\n");
	assert_int_equal(cgroup_room(), 1000000);
	testing_write(*state, V2 "/a/memory.max", "2000000\n");
	assert_int_equal(cgroup_room(), 0);
	testing_write(*state, "/proc/self/mountinfo", "");
	assert_true(cgroup_room() == UINT64_MAX);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(v1_own_group),
		CASE(v1_group_that_cannot_be_seen),
		CASE(hybrid_takes_the_one_with_memory),
		CASE(none),
		CASE(v2_goes_up_to_who_hands_memory_on),
		CASE(v2_in_a_container_needs_help),
		CASE(v2_group_is_made_and_limited),
		CASE(v1_counters),
		CASE(room_below_all_limits_above),
	};

	return cmocka_run_group_tests_name("cgroup", tests, NULL, NULL);
}
