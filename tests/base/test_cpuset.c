/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>

#include "base/array.h"
#include "base/cpuset.h"
#include "base/file.h"

static void parse_and_format(void **state)
{
	static const char *const bad[] = {"",	  "0-", "-1", "3-1",	  "a",
					  "1,,2", "1,", "1 ", "99999999", "0-3x"};
	struct cpu_list list;
	struct message message;
	char *text;

	assert_int_equal(cpu_list_parse("8,0-3,2", &list, &message), 0);
	assert_int_equal(list.count, 5);
	assert_true(cpu_list_contains(&list, 8));
	assert_false(cpu_list_contains(&list, 4));
	text = cpu_list_format(&list);
	assert_string_equal(text, "0-3,8");
	free(text);
	cpu_list_free(&list);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		message.text[0] = '\0';
		assert_int_equal(cpu_list_parse(bad[i], &list, &message), -EINVAL);
		assert_non_null(strstr(message.text, "CPU list"));
	}
}

static void beyond_1024(void **state)
{
	struct cpu_list list;

	assert_int_equal(cpu_list_parse("1023-4096", &list, NULL), 0);
	assert_int_equal(list.count, 3074);
	assert_int_equal(list.cpus[3073], 4096);
	cpu_list_free(&list);
}

static void allowed_here(void **state)
{
	struct cpu_list list;

	assert_int_equal(cpu_list_allowed(0, &list), 0);
	assert_true(list.count >= 1);
	assert_int_equal(cpu_list_check(&list, NULL), 0);
	assert_int_equal(cpu_pin(0, list.cpus[0]), 0);
	assert_int_equal(cpu_pin_list(0, &list), 0);
	cpu_list_free(&list);
}

static void says_which_cpu_and_why(void **state)
{
	char tree[256];
	struct cpu_list list;
	struct message message;

	testing_make_tree(tree, sizeof(tree));
	testing_write(tree, "/sys/devices/system/cpu/online", "0-1,5000\n");
	testing_write(tree, "/sys/devices/system/cpu/present", "0-3,5000\n");
	machine_set_root(tree);
	cpu_list_parse("3", &list, NULL);
	assert_int_equal(cpu_list_check(&list, &message), -ENXIO);
	assert_non_null(strstr(message.text, "CPU 3 is offline"));
	cpu_list_free(&list);
	cpu_list_parse("7", &list, NULL);
	assert_int_equal(cpu_list_check(&list, &message), -ENXIO);
	assert_non_null(strstr(message.text, "CPU 7 does not exist"));
	cpu_list_free(&list);
	cpu_list_parse("5000", &list, NULL);
	assert_int_equal(cpu_list_check(&list, &message), -ENXIO);
	assert_non_null(strstr(message.text, "not in the allowed set"));
	cpu_list_free(&list);
	machine_set_root(NULL);
	testing_remove_tree(tree);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_and_format),
		cmocka_unit_test(beyond_1024),
		cmocka_unit_test(allowed_here),
		cmocka_unit_test(says_which_cpu_and_why),
	};

	return cmocka_run_group_tests_name("base/cpuset", tests, NULL, NULL);
}
