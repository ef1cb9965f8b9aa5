/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>
#include <math.h>

#include "base/exit.h"
#include "base/json.h"
#include "base/random.h"
#include "base/clock.h"

static void numbers_that_do_not_exist_are_null(void **state)
{
	json_t *object = json_object();
	char *line;

	json_put(object, "a", json_number_or_null(NAN));
	json_put(object, "b", json_number_or_null(INFINITY));
	json_put(object, "c", json_number_or_null(1.5));
	json_put(object, "d", json_string_or_null(NULL));
	json_put(object, "e", json_string_or_null("caf\xc3\xa9 \xff\"quote"));
	line = json_line(object);
	assert_string_equal(line, "{\"a\":null,\"b\":null,\"c\":1.5,\"d\":null,"
				  "\"e\":\"caf\xc3\xa9 \xef\xbf\xbd\\\"quote\"}");
	free(line);
	assert_true(json_get_number(object, "c", 0) == 1.5);
	assert_true(isnan(json_get_number(object, "a", NAN)));
	assert_string_equal(json_get_string(object, "zz", "no"), "no");
	json_decref(object);
}

static void paths(void **state)
{
	json_t *object = json_loads("{\"a\":{\"b\":{\"c\":3}}}", 0, NULL);

	assert_int_equal(json_integer_value(json_at(object, "a.b.c")), 3);
	assert_null(json_at(object, "a.x.c"));
	assert_null(json_at(object, "a.b.c.d"));
	json_decref(object);
}

static void bad_files_are_told(void **state)
{
	char tree[256], path[300];
	json_t *value;
	struct message message;

	testing_make_tree(tree, sizeof(tree));
	testing_write(tree, "/torn.json", "{\"a\": 1,\n\"b\":");
	snprintf(path, sizeof(path), "%s/torn.json", tree);
	assert_int_equal(json_read_file(path, &value, &message), -EBADMSG);
	assert_non_null(strstr(message.text, "line 2"));
	snprintf(path, sizeof(path), "%s/absent", tree);
	assert_int_equal(json_read_file(path, &value, &message), -ENOENT);
	testing_remove_tree(tree);
}

static void generator(void **state)
{
	struct random a, b;
	size_t order[5] = {0, 1, 2, 3, 4}, seen = 0;
	uint64_t low = 0;

	random_seed(&a, 7);
	random_seed(&b, 7);
	for (int i = 0; i < 100000; i++) {
		uint64_t value = random_below(&a, 10);

		assert_true(value < 10);
		assert_int_equal(value, random_below(&b, 10));
		low += value < 5;
	}
	assert_true(low > 49000 && low < 51000);
	random_shuffle(&a, order, 5);
	for (size_t i = 0; i < 5; i++)
		seen |= (size_t)1 << order[i];
	assert_int_equal(seen, 31);
}

static void clocks_and_exits(void **state)
{
	char text[32];
	double cost = clock_read_cost_ns();

	assert_true(cost > 0 && cost < 1e6);
	clock_rfc3339(text, sizeof(text));
	assert_int_equal(strlen(text), 24);
	assert_int_equal(exit_code_of(-EINVAL), EXIT_USAGE);
	assert_int_equal(exit_code_of(-ENODEV), EXIT_SKIPPED);
	assert_int_equal(exit_code_of(-EIO), EXIT_FAILED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_that_do_not_exist_are_null),
		cmocka_unit_test(paths),
		cmocka_unit_test(bad_files_are_told),
		cmocka_unit_test(generator),
		cmocka_unit_test(clocks_and_exits),
	};

	return cmocka_run_group_tests_name("base/json", tests, NULL, NULL);
}
