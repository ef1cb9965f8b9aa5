/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>
#include <fcntl.h>

#include "base/file.h"

static void the_prefix_fakes_a_machine(void **state)
{
	char tree[256], text[64];
	int64_t value;

	testing_make_tree(tree, sizeof(tree));
	testing_write(tree, "/sys/kernel/x", "always [madvise] never\n");
	testing_write(tree, "/sys/kernel/y", "42\n");
	testing_write(tree, "/sys/kernel/empty", "");
	machine_set_root(tree);
	assert_int_equal(machine_read_choice("/sys/kernel/x", text, sizeof(text)), 0);
	assert_string_equal(text, "madvise");
	assert_int_equal(machine_read_choice("/sys/kernel/y", text, sizeof(text)), 0);
	assert_string_equal(text, "42");
	assert_int_equal(machine_read_int64("/sys/kernel/y", &value), 0);
	assert_int_equal(value, 42);
	assert_int_equal(machine_read_int64("/sys/kernel/empty", &value), -EINVAL);
	assert_int_equal(machine_read_line("/sys/kernel/x", text, 5), -EOVERFLOW);
	assert_int_equal(machine_read_line("/proc/absent", text, sizeof(text)), -ENOENT);
	assert_false(machine_exists("/proc/self/status"));
	assert_int_equal(machine_write("/sys/kernel/y", "7"), 0);
	machine_set_root(NULL);
	assert_true(machine_exists("/proc/self/status"));
	testing_remove_tree(tree);
}

static void keyed_lines(void **state)
{
	static const char meminfo[] = "MemTotal:       1024 kB\nMemFree: 12 kB\n";
	static const char vmstat[] = "nr_free 7\nnr_free_cma 9\npgfault 18446744073709551615\n";
	int64_t value;

	assert_int_equal(text_find_int64(meminfo, "MemFree", &value), 0);
	assert_int_equal(value, 12);
	assert_int_equal(text_find_int64(vmstat, "nr_free_cma", &value), 0);
	assert_int_equal(value, 9);
	assert_int_equal(text_find_int64(vmstat, "nr_free", &value), 0);
	assert_int_equal(value, 7);
	assert_int_equal(text_find_int64(vmstat, "free", &value), -ENOENT);
	assert_int_equal(text_find_int64(vmstat, "pgfault", &value), -ERANGE);
	assert_int_equal(text_find_int64("", "x", &value), -ENOENT);
}

static void replace_is_whole_or_nothing(void **state)
{
	char tree[256], path[300], *text;
	size_t size;

	testing_make_tree(tree, sizeof(tree));
	snprintf(path, sizeof(path), "%s/a/b/c", tree);
	assert_int_equal(file_make_directories(path), 0);
	assert_int_equal(file_make_directories(path), 0);
	snprintf(path, sizeof(path), "%s/a/file", tree);
	assert_int_equal(file_replace(path, "one", 3), 0);
	assert_int_equal(file_replace(path, "two!", 4), 0);
	assert_int_equal(file_read(path, &text, &size), 0);
	assert_int_equal(size, 4);
	assert_string_equal(text, "two!");
	free(text);
	assert_int_equal(file_make_directories(path), -ENOTDIR);
	snprintf(path, sizeof(path), "%s/absent/file", tree);
	assert_int_equal(file_replace(path, "x", 1), -ENOENT);
	assert_int_equal(file_replace(tree, "x", 1), -EISDIR);
	testing_remove_tree(tree);
}

static void what_is_no_file_is_not_replaced(void **state)
{
	struct stat before, after;
	char tree[256], path[300], text[8] = "";
	int reader;

	assert_int_equal(stat("/dev/full", &before), 0);
	assert_int_equal(file_replace("/dev/full", "x", 1), -ENOSPC);
	assert_int_equal(stat("/dev/full", &after), 0);
	assert_true(S_ISCHR(after.st_mode) && before.st_rdev == after.st_rdev);

	testing_make_tree(tree, sizeof(tree));
	snprintf(path, sizeof(path), "%s/pipe", tree);
	assert_int_equal(mkfifo(path, 0600), 0);
	reader = open(path, O_RDONLY | O_NONBLOCK);
	assert_int_equal(file_replace(path, "record", 6), 0);
	assert_int_equal(read(reader, text, 6), 6);
	assert_string_equal(text, "record");
	close(reader);
	assert_int_equal(file_replace(path, "record", 6), -EPIPE); /* and does not wait */
	testing_remove_tree(tree);
}

static void a_link_stays_and_leads_to_the_result(void **state)
{
	char tree[256], link[300], target[300], *text;
	struct stat status;

	testing_make_tree(tree, sizeof(tree));
	snprintf(link, sizeof(link), "%s/link", tree);
	snprintf(target, sizeof(target), "%s/target", tree);
	assert_int_equal(symlink("target", link), 0);
	for (int i = 0; i < 2; i++) { /* to nothing yet, then to a file */
		assert_int_equal(file_replace(link, "record", 6), 0);
		assert_int_equal(lstat(link, &status), 0);
		assert_true(S_ISLNK(status.st_mode));
		assert_int_equal(file_read(target, &text, NULL), 0);
		assert_string_equal(text, "record");
		free(text);
	}
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink("link", link), 0);
	assert_int_equal(file_replace(link, "record", 6), -ELOOP);
	testing_remove_tree(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_prefix_fakes_a_machine),
		cmocka_unit_test(keyed_lines),
		cmocka_unit_test(replace_is_whole_or_nothing),
		cmocka_unit_test(what_is_no_file_is_not_replaced),
		cmocka_unit_test(a_link_stays_and_leads_to_the_result),
	};

	return cmocka_run_group_tests_name("base/file", tests, NULL, NULL);
}
