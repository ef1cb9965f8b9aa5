/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>

#include "base/array.h"
#include "history/intern.h"
#include "history/reader.h"
#include "history/scan.h"

static int count_members(void *data, struct json_span key, struct json_span value)
{
	(void)key, (void)value;
	++*(int *)data;
	return 0;
}

static int scan(const char *text, size_t *ret_at)
{
	bool blanks;
	int members = 0;
	int error = scan_object(text, strlen(text), count_members, &members, ret_at, &blanks);

	return error ? error : members;
}

static void takes_what_json_is(void **state)
{
	assert_int_equal(scan("{}", NULL), 0);
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
		"[]",
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

	assert_true(scan_hash(dense, strlen(dense), false) ==
		    scan_hash(dense, strlen(dense), true));
	assert_true(scan_hash(dense, strlen(dense), false) == scan_hash(wide, strlen(wide), true));
	assert_true(scan_hash(dense, strlen(dense), false) !=
		    scan_hash(other, strlen(other), true));
}

static void texts_are_kept_once(void **state)
{
	struct intern intern = {.texts = NULL};
	char text[16];
	uint32_t number;

	for (int round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 5000; i++) {
			int length = snprintf(text, sizeof(text), "t%u", i);

			assert_int_equal(intern_add(&intern, text, (size_t)length, &number), 0);
			assert_int_equal(number, i);
		}
	}
	assert_int_equal(intern.count, 5000);
	assert_string_equal(intern.texts[4321], "t4321");
	intern_free(&intern);
}

static void commits_and_times_are_read(void **state)
{
	char name[64];
	int64_t us;

	commit_of_release("6.12.0-rc1-00042-g0123456789ab", name, sizeof(name));
	assert_string_equal(name, "0123456789ab");
	commit_of_release("6.12.0-g0123456-dirty", name, sizeof(name));
	assert_string_equal(name, "0123456");
	commit_of_release("6.1.0-13-generic", name, sizeof(name)); /* "-generic" is no hash */
	assert_string_equal(name, "6.1.0-13-generic");
	commit_of_release("", name, sizeof(name));
	assert_string_equal(name, "unknown");
	assert_int_equal(time_parse_rfc3339("1970-01-02T00:00:01.5Z", &us), 0);
	assert_int_equal(us, 86401500000);
	assert_int_equal(time_parse_rfc3339("1970-01-02T02:00:00+02:00", &us), 0);
	assert_int_equal(us, 86400000000);
	assert_int_equal(time_parse_rfc3339("1970-01-02", &us), -EINVAL);
	assert_int_equal(time_parse_rfc3339("1970-01-02T00:00:00", &us), -EINVAL);
	assert_int_equal(time_parse_rfc3339("1970-01-02T00:00:00Zx", &us), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_what_json_is),
		cmocka_unit_test(refuses_the_rest),
		cmocka_unit_test(deep_nesting_ends),
		cmocka_unit_test(a_torn_line_is_told_from_a_wrong_one),
		cmocka_unit_test(blanks_do_not_change_a_hash),
		cmocka_unit_test(texts_are_kept_once),
		cmocka_unit_test(commits_and_times_are_read),
	};

	return cmocka_run_group_tests_name("history/scan", tests, NULL, NULL);
}
