/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>

#include "base/array.h"
#include "base/hash.h"
#include "record/json_scan.h"

/* The number of values in @text; the walk's end in *ret_at. */
static int scan(const char *text, size_t *ret_at)
{
	struct json_span key, value;
	struct json_walk walk;
	int values = 0, more = json_walk_open(&walk, (struct json_span){text, strlen(text)});

	if (!more)
		while ((more = json_walk_next(&walk, &key, &value)) == 1)
			values++;
	if (ret_at)
		*ret_at = (size_t)(walk.at - text);
	return more ? more : values;
}

static void takes_what_json_is(void **state)
{
	assert_int_equal(scan("{}", NULL), 0);
	assert_int_equal(scan("[]", NULL), 0);
	assert_int_equal(scan("[1,[2,3],{\"a\":[]}]", NULL), 3);
	assert_int_equal(scan(" { \"a\" : 1 , \"b\":[ ] }\n", NULL), 2);
	assert_int_equal(
		scan("{\"a\":{\"b\":[1,-2.5e-7,\"x\\\"\\u00e9\",null,true,false,{}]}}", NULL), 1);
	assert_int_equal(scan("{\"a\":[[[[]]],[{\"b\":{}}]]}", NULL), 1);
	assert_int_equal(scan("{\"a\":0,\"b\":-0.0,\"c\":1E+5}", NULL), 3);
}

static void refuses_the_rest(void **state)
{
	static const char *const bad[] = {
		"",
		"1",
		"{",
		"{\"a\"}",
		"{\"a\":}",
		"{\"a\":1,}",
		"{\"a\":01}",
		"{\"a\":1.}",
		"{\"a\":.5}",
		"{\"a\":+1}",
		"{\"a\":1e}",
		"{\"a\":NaN}",
		"{\"a\":tru}",
		"{\"a\":[1,]}",
		"{\"a\":[1 2]}",
		"{\"a\":\"\\x\"}",
		"{\"a\":\"\\u12g4\"}",
		"{\"a\":\"\n\"}",
		"{\"a\":1}}",
		"{\"a\":1} x",
		"{a:1}",
		"{\"a\":[1}",
		"{\"a\":{1:2}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		if (scan(bad[i], NULL) != -EINVAL)
			fail_msg("taken: %s", bad[i]);
}

static void deep_nesting_ends(void **state)
{
	char text[400] = "{\"a\":";

	memset(text + 5, '[', 200);
	assert_int_equal(scan(text, NULL), -EINVAL);
}

/* Every proper start of a record is torn: the fault lies at its end. */
static void a_torn_line_is_told_from_a_wrong_one(void **state)
{
	static const char whole[] = "{\"a\":{\"b\":[1,2.5,\"x\"]},\"c\":true,\"d\":\"\\u00e9\"}";
	char cut[sizeof(whole)];
	size_t at;

	for (size_t length = 1; length < sizeof(whole) - 1; length++) {
		memcpy(cut, whole, length);
		cut[length] = 0;
		assert_int_equal(scan(cut, &at), -EINVAL);
		if (at != length)
			fail_msg("\"%s\": fault at %zu of %zu", cut, at, length);
	}
	assert_int_equal(scan("{\"a\":x}", &at), -EINVAL);
	assert_int_equal(at, 5);
}

static void blanks_do_not_change_a_hash(void **state)
{
	const char *dense = "{\"a\":[1,\"x y\\\" z\"],\"b\":2}";
	const char *wide = "{ \"a\" : [ 1,\n\t\"x y\\\" z\" ] , \"b\" : 2 }\n";
	const char *other = "{\"a\":[1,\"x  y\\\" z\"],\"b\":2}";

	assert_true(hash_json(dense, strlen(dense), false) ==
		    hash_json(dense, strlen(dense), true));
	assert_true(hash_json(dense, strlen(dense), false) == hash_json(wide, strlen(wide), true));
	assert_true(hash_json(dense, strlen(dense), false) !=
		    hash_json(other, strlen(other), true));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_json_is),
		cmocka_unit_test(refuses_the_rest),
		cmocka_unit_test(deep_nesting_ends),
		cmocka_unit_test(a_torn_line_is_told_from_a_wrong_one),
		cmocka_unit_test(blanks_do_not_change_a_hash),
	};

	return cmocka_run_group_tests_name("record/json_scan", tests, NULL, NULL);
}
