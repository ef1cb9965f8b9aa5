/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "sys/kmsg.h"

static char root[TREE_SIZE];

static int set_up(void **state)
{
	testing_open_machine(root);
	return 0;
}

static int tear_down(void **state)
{
	testing_close_machine(root);
	return 0;
}

static void append(const char *text)
{
	char path[PATH_MAX];
	FILE *stream;

	snprintf(path, sizeof(path), "%s/dev/kmsg", root);
	stream = fopen(path, "a");
	assert_non_null(stream);
	fputs(text, stream);
	fclose(stream);
}

static const char *kind_of(const json_t *entries, size_t at)
{
	return json_get_string(json_array_get(entries, at), "kind", "");
}

/* Lines as kernels of several ages printed them. */
static void test_kinds(void **state)
{
	static const struct {
		const char *line, *kind;
	} cases[] = {
		{"3,10,100,-;INFO: task dd:123 blocked for more than 120 seconds.\n", "hung-task"},
		{"3,10,100,-;INFO: task dd:123 blocked for more than 122 seconds. [stalled]\n",
		 "hung-task"},
		{"0,11,200,-;watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [x:1]\n",
		 "soft-lockup"},
		{"0,11,200,-;NMI watchdog: BUG: soft lockup - CPU#1 stuck for 22s! [x:1]\n",
		 "soft-lockup"},
		{"3,12,300,-;rcu: INFO: rcu_preempt self-detected stall on CPU\n", "rcu-stall"},
		{"3,12,300,-;INFO: rcu_sched detected stalls on CPUs/tasks:\n", "rcu-stall"},
		{"4,13,400,-;stress invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n",
		 "oom"},
		{"3,14,500,-;Memory cgroup out of memory: Killed process 9 (load-swap)\n", "oom"},
		{"3,14,500,-;Out of memory: Killed process 9 (load-swap)\n", "oom"},
		{"4,15,600,-;kworker/0:1: page allocation failure: order:4, mode:0x40cc0\n",
		 "allocation-failure"},
		{"4,16,700,-;sched: RT throttling activated\n", "rt-throttling"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kmsg *kmsg;
		json_t *entries;

		testing_write(root, "/dev/kmsg",
			      "3,9,50,-;INFO: task old:1 blocked for more than 1\n");
		assert_int_equal(kmsg_open(&kmsg), 0);
		append(cases[i].line);
		append("6,99,999,-;usb 1-1: new device\n SUBSYSTEM=usb\n");
		entries = kmsg_collect(kmsg);
		assert_int_equal(json_array_size(entries),
				 1); /* not the old one, not the harmless one */
		assert_string_equal(kind_of(entries, 0), cases[i].kind);
		assert_true(
			json_is_integer(json_object_get(json_array_get(entries, 0), "when_us")));
		json_decref(entries);
		kmsg_close(kmsg);
	}
}

static void test_ordinary_lines_are_not_reported(void **state)
{
	static const char *const lines = "6,1,1,-;rcu: Hierarchical RCU implementation.\n"
					 "6,2,2,-;INFO: task scheduler started\n"
					 "6,3,3,-;Memory: 24000K/25000K available\n"
					 "garbage without a semicolon\n"
					 " KEY=watchdog: BUG: soft lockup; x\n";
	struct kmsg *kmsg;
	json_t *entries;

	testing_write(root, "/dev/kmsg", "");
	assert_int_equal(kmsg_open(&kmsg), 0);
	append(lines);
	entries = kmsg_collect(kmsg);
	assert_int_equal(json_array_size(entries), 0);
	json_decref(entries);
	kmsg_close(kmsg);
}

static void test_a_flood_is_bounded_and_told(void **state)
{
	struct kmsg *kmsg;
	json_t *entries;

	testing_write(root, "/dev/kmsg", "");
	assert_int_equal(kmsg_open(&kmsg), 0);
	for (int i = 0; i < 100; i++)
		append("3,1,5,-;INFO: task d:1 blocked for more than 120 seconds.\n");
	entries = kmsg_collect(kmsg);
	assert_int_equal(json_array_size(entries), 17);
	assert_string_equal(kind_of(entries, 16), "more");
	assert_non_null(strstr(json_get_string(json_array_get(entries, 16), "text", ""), "84"));
	json_decref(entries);
	/* what was collected once is not told again */
	entries = kmsg_collect(kmsg);
	assert_int_equal(json_array_size(entries), 0);
	json_decref(entries);
	kmsg_close(kmsg);
}

static void test_absent_log(void **state)
{
	struct kmsg *kmsg = NULL;
	json_t *entries;

	assert_int_equal(kmsg_open(&kmsg), -ENOENT);
	entries = kmsg_collect(NULL);
	assert_int_equal(json_array_size(entries), 0);
	json_decref(entries);
	kmsg_close(NULL);
}

/* The real log: what we write there comes back classified, and nothing from before. */
static void test_real_log(void **state)
{
	static const char line[] =
		"<4>syslatency test: page allocation failure: order:0, mode:0x0\n";
	struct kmsg *kmsg;
	bool found = false;
	json_t *entries;
	int fd, error;

	machine_set_root(NULL);
	error = kmsg_open(&kmsg);
	if (error) {
		assert_true(error == -EPERM || error == -ENOENT);
		print_message("the kernel log cannot be read here\n");
		skip();
	}
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (fd < 0 || write(fd, line, strlen(line)) != (ssize_t)strlen(line)) {
		kmsg_close(kmsg);
		print_message("the kernel log cannot be written here\n");
		skip();
	}
	close(fd);
	entries = kmsg_collect(kmsg);
	for (size_t i = 0; i < json_array_size(entries); i++)
		found |= strcmp(kind_of(entries, i), "allocation-failure") == 0 &&
			 strstr(json_get_string(json_array_get(entries, i), "text", ""),
				"syslatency test");
	assert_true(found);
	json_decref(entries);
	kmsg_close(kmsg);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_kinds),
		CASE(test_ordinary_lines_are_not_reported),
		CASE(test_a_flood_is_bounded_and_told),
		CASE(test_absent_log),
		CASE(test_real_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
