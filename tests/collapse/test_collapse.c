/* SPDX-License-Identifier: MIT */
/* Names of rows, and what is refused before anything is measured, on machines laid out in a folder.
 */
#include "support/testing.h"

#include <errno.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "collapse/collapse.h"

#define THP "/sys/kernel/mm/transparent_hugepage"

static int set_up(void **state)
{
	char *tree = calloc(1, 256);

	assert_non_null(tree);
	testing_make_tree(tree, 256);
	testing_write(tree, "/run/.keep", "");
	testing_write(tree, "/proc/meminfo", "MemTotal: 8000000 kB\nMemAvailable: 4000000 kB\n");
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

static int execute(const char *size, struct message *message)
{
	struct collapse_settings settings = {.window_ns = NS_PER_S,
					     .runs = 1,
					     .pages_to_scan = {65536},
					     .sweep_count = 1,
					     .rows = "collapse"};
	struct record *record;
	int error;

	if (size)
		assert_int_equal(parse_size(size, &settings.size), 0);
	error = collapse_execute(&settings, &record, message);
	assert_true(error < 0); /* nothing here may get so far as to measure */
	return error;
}

static void rows_by_name_and_group(void **state)
{
	struct collapse_row_name names[64];
	struct message message = {""};
	size_t count = collapse_row_names(names, 64);

	assert_true(count >= 20);
	assert_string_equal(names[0].name, "khugepaged");
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal(names[i].name, names[k].name);
	assert_int_equal(collapse_check_rows(NULL, &message), 0);
	assert_int_equal(collapse_check_rows("mail", &message), 0);
	assert_int_equal(collapse_check_rows("walked,state,all", &message), 0);
	assert_int_equal(collapse_check_rows("walke", &message), -EINVAL);
	assert_int_equal(collapse_check_rows("walked,", &message), 0);
	assert_int_equal(collapse_check_rows(",walked", &message), -EINVAL);
	assert_int_equal(collapse_check_rows("", &message), -EINVAL);
	assert_non_null(strstr(message.text, "names no row"));
}

static void a_kernel_without_huge_pages(void **state)
{
	struct message message = {""};

	assert_int_equal(execute(NULL, &message), -ENOTSUP);
	assert_non_null(strstr(message.text, "CONFIG_TRANSPARENT_HUGEPAGE"));
}

static void sizes_that_do_not_fit(void **state)
{
	struct message message = {""};

	testing_write(*state, THP "/hpage_pmd_size", "2097152\n");
	testing_write(*state, THP "/enabled", "always [madvise] never\n");
	assert_int_equal(execute("6M", &message), -EINVAL);
	assert_non_null(strstr(message.text, "at least 4 huge pages, 8M"));
	assert_int_equal(execute("4G", &message), -ENOMEM);
	assert_non_null(strstr(message.text, "this machine has available"));
}

static void the_limit_of_the_group_we_are_in(void **state)
{
	struct message message = {""};

	testing_write(*state, THP "/hpage_pmd_size", "2097152\n");
	testing_write(*state, THP "/enabled", "always [madvise] never\n");
	testing_write(*state, "/proc/self/mountinfo",
		      "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
	testing_write(*state, "/proc/self/cgroup", "0::/a\n");
	testing_write(*state, "/sys/fs/cgroup/cgroup.controllers", "memory\n");
	testing_write(*state, "/sys/fs/cgroup/a/memory.current", "1048576\n");
	testing_write(*state, "/sys/fs/cgroup/a/memory.max", "68157440\n");
	assert_int_equal(execute("64M", &message), -ENOMEM);
	assert_non_null(strstr(message.text, "the memory limit of this control group leaves"));
	testing_write(*state, "/sys/fs/cgroup/a/memory.max", "4194304\n");
	/* What is chosen by itself does not fit either. */
	assert_int_equal(execute(NULL, &message), -ENOMEM);
	assert_non_null(strstr(message.text, "too small"));
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_by_name_and_group),
		CASE(a_kernel_without_huge_pages),
		CASE(sizes_that_do_not_fit),
		CASE(the_limit_of_the_group_we_are_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
