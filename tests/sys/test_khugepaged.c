/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>

#include "base/file.h"
#include "sys/khugepaged.h"

#define STAT(pid, name, flags) \
#pid " (" name ") S 2 0 0 0 -1 " flags " 0 0 0 0 0 12 0 0 39 19 1 0 99 0\n"

static int set_up(void **state)
{
	char *tree = calloc(1, 256);

	assert_non_null(tree);
	testing_make_tree(tree, 256);
	testing_write(tree, "/proc/uptime", "1 1\n");
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

static void found_by_name_and_kind(void **state)
{
	pid_t pid = -1;

	/* Someone's program may have any name. */
	testing_write(*state, "/proc/7/stat", STAT(7, "khugepaged", "4194304"));
	testing_write(*state, "/proc/8/stat", STAT(8, "x (khugepaged) y", "2097216"));
	assert_int_equal(khugepaged_find(&pid), -ESRCH);
	testing_write(*state, "/proc/38/stat", STAT(38, "khugepaged", "2097216"));
	assert_int_equal(khugepaged_find(&pid), 0);
	assert_int_equal(pid, 38);
}

static void samples_work_and_time(void **state)
{
	struct khugepaged_sample sample;

	assert_int_equal(khugepaged_sample(0, &sample), -ENOENT);
	testing_write(*state, KHUGEPAGED_FOLDER "/full_scans", "4294967295\n");
	testing_write(*state, KHUGEPAGED_FOLDER "/pages_collapsed", "12\n");
	testing_write(*state, "/proc/38/schedstat", "7000000000 25 9\n");
	assert_int_equal(khugepaged_sample(38, &sample), 0);
	assert_int_equal(sample.full_scans, 4294967295u);
	assert_int_equal((uint32_t)(3 - sample.full_scans), 4); /* it wraps */
	assert_int_equal(sample.pages_collapsed, 12);
	assert_int_equal(sample.cpu_ns, 7000000000);
	assert_int_equal(sample.waited_ns, 25);
	assert_int_equal(khugepaged_sample(0, &sample), 0);
	assert_int_equal(sample.cpu_ns, -1);
	assert_int_equal(khugepaged_sample(39, &sample), 0);
	assert_int_equal(sample.waited_ns, -1);
}

static void tables_per_hold_by_version(void **state)
{
	assert_int_equal(khugepaged_tables_per_hold("6.18.44-x", 65536, 512), 128);
	assert_int_equal(khugepaged_tables_per_hold("7.0.0", 4096, 512), 8);
	assert_int_equal(khugepaged_tables_per_hold("7.1.0-rc1", 65536, 512), 65536);
	assert_int_equal(khugepaged_tables_per_hold("10.0", 10, 512), 10);
	assert_int_equal(khugepaged_tables_per_hold("5.10.0", 1, 512), 1);
	assert_int_equal(khugepaged_tables_per_hold("5.10.0", 513, 512), 2);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(found_by_name_and_kind),
		CASE(samples_work_and_time),
		cmocka_unit_test(tables_per_hold_by_version),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
