/* SPDX-License-Identifier: MIT */
#include <errno.h>

#include "support/testing.h"

#include "base/array.h"
#include "base/json_shared.h"
#include "record/record.h"

#define HEAD "{\"schema\":\"syslatency/run/1\",\"benchmark\":\"b\","
#define LATENCY "\"latency\":{\"count\":2,\"mean_us\":5.5,\"max_us\":6}"

static struct json_shared *shared; /* one for all tests, as for all lines of a file */

static int parse(const char *line, bool whole, struct record **ret_record, struct message *message)
{
	return record_from_text(line, strlen(line), whole ? NULL : shared, ret_record, NULL,
				message);
}

static void expect_same_histogram(const struct record *brief, const struct record *whole)
{
	static struct histogram merged;

	assert_null(whole->sparse);
	assert_int_equal(record_has_histogram(brief), record_has_histogram(whole));
	if (!whole->histogram)
		return;
	memset(&merged, 0, sizeof(merged));
	if (brief->sparse)
		histogram_merge_sparse(&merged, brief->sparse);
	else
		histogram_merge(&merged, brief->histogram);
	assert_memory_equal(&merged, whole->histogram, sizeof(merged));
}

static void leaves_out_what_is_not_wanted(void **state)
{
	static const char line[] = HEAD
		"\"counters\":{\"a\":{\"b\":[1,-2.5e-3,true,null,9223372036854771712]}},\"causes\":[]," LATENCY
		",\"worst\":[{\"late_us\":1}],\"histogram\":{\"unit\":\"ns\",\"sub_bucket_"
		"bits\":7,\"buckets\":[[100,3],[5000,1]]},\"notes\":[\"\\\"worst\\\":[1]\"]}";
	struct record *brief, *whole;

	assert_int_equal(parse(line, false, &brief, NULL), 0);
	assert_int_equal(parse(line, true, &whole, NULL), 0);
	assert_null(brief->counters);
	assert_null(brief->worst);
	assert_int_equal(json_array_size(whole->worst), 1);
	assert_int_equal(json_object_size(whole->counters), 1);
	assert_float_equal(brief->latency.mean_ns, 5500, 0);
	assert_null(brief->histogram);
	expect_same_histogram(brief, whole);
	assert_int_equal(whole->histogram->total, 4);
	assert_true(json_equal(brief->notes, whole->notes));
	record_free(brief);
	record_free(whole);
}

/* A fault inside of what is left out is a fault of the line all the same. */
static void refuses_what_the_whole_is_refused_for(void **state)
{
	static const char *const members[] = {
		"\"worst\":[1,]",
		"\"worst\":[1 2]",
		"\"worst\":[01]",
		"\"worst\":[.5]",
		"\"worst\":[1.]",
		"\"worst\":[1e]",
		"\"worst\":[-]",
		"\"worst\":[1e999]",
		"\"worst\":[nul]",
		"\"worst\":[nulll]",
		"\"worst\":[\"a]",
		"\"worst\":[\"\\x\"]",
		"\"worst\":[\"\x01\"]",
		"\"worst\":[\"\xff\"]",
		"\"worst\":[99999999999999999999]",
		"\"worst\":[9223372036854775808]",
		"\"worst\":[[]",
		"\"worst\":[}",
		"\"worst\":{}",
		"\"worst\":5",
		"\"counters\":{\"a\"}",
		"\"counters\":{\"a\":}",
		"\"counters\":{a:1}",
		"\"counters\":{\"a\":1,}",
		"\"counters\":[]",
		"\"counters\":{\"a\":1",
		"\"causes\":{}",
		"\"thp_phases\":[]",
		"\"environment\":{\"a\":1,}",
		"\"environment\":{\"clock_read_ns\":1.5x}",
		"\"environment\":{\"clock_read_ns\":01}",
		"\"environment\":{\"a\":\"\xff\"}",
		"\"environment\":{\"a\":tru}",
		"\"environment\":[1]",
		"\"settings\":{\"a\":1e999}",
		"\"settings\":{\"a\":[1}",
		"\"settings\":7",
		"\"command\":[\"a\" \"b\"]",
		"\"command\":{}",
		"\"histogram\":{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[1,2],]}",
		"\"histogram\":{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[1,-2]]}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		for (int after = 0; after < 2; after++) {
			struct message message = {""};
			struct record *record;
			char line[400];

			if (after)
				snprintf(line, sizeof(line), HEAD LATENCY ",%s}", members[i]);
			else
				snprintf(line, sizeof(line), HEAD "%s," LATENCY "}", members[i]);
			if (parse(line, true, &record, NULL) != -EINVAL ||
			    parse(line, false, &record, &message) != -EINVAL || !message.text[0])
				fail_msg("taken: %s", line);
		}
}

static void takes_what_is_laid_out_by_others(void **state)
{
	static const char *const lines[] = {
		"{ \"schema\": \"syslatency/run/1\", \"benchmark\": \"b\", \"worst\": [ 1 ] }",
		HEAD "\"worst\":[\"\xc3\xa4 \\u00e4\"]}",
		HEAD
		"\"worst\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
		HEAD "\"worst\":null,\"counters\":null}",
		HEAD "\"worst\":[0,-0,0.5,1E+5,123456789012345678]}",
		HEAD "\"counters\":{\"a\":9223372036854775807,\"b\":-9223372036854775807}}",
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		for (int whole = 0; whole < 2; whole++) {
			struct message message = {""};
			struct record *record;

			if (parse(lines[i], whole, &record, &message) != 0)
				fail_msg("%s: %s", message.text, lines[i]);
			record_free(record);
		}
}

/* No prefix of a line may be read beyond its end, or be taken. */
static void every_prefix_is_refused(void **state)
{
	static const char line[] = HEAD LATENCY
		",\"counters\":{\"a\":[1,\"x\"]},\"histogram\":{\"unit\":\"ns\",\"sub_bucket_bits\":7,"
		"\"buckets\":[[100,3]]},\"worst\":[{\"a\":-1.5e-7}]}";

	for (size_t size = 0; size + 1 < sizeof(line); size++) {
		char *copy = malloc(size ? size : 1); /* of that very size, for the sanitizer */
		struct record_text text;
		struct record *record;

		memcpy(copy, line, size);
		assert_int_equal(record_from_text(copy, size, shared, &record, &text, NULL),
				 -EINVAL);
		assert_true(text.torn);
		free(copy);
	}
}

/* Runs of one machine: what is the same text is the same value. */
static void shares_what_is_the_same(void **state)
{
	static const char form[] = HEAD
		"\"environment\":{\"kernel\":\"6.1\",\"clock_read_ns\":%s,\"thp\":{\"a\":[1]}},"
		"\"settings\":{\"clock_read_ns\":%s,\"duration_s\":%d.0},\"command\":[\"b\"]}";
	struct record *records[3];
	char line[400];

	for (int i = 0; i < 3; i++) {
		snprintf(line, sizeof(line), form, i ? "31.25" : "-2e1", i ? "7" : "7.5",
			 i == 2 ? 8 : 4);
		assert_int_equal(parse(line, false, &records[i], NULL), 0);
	}
	assert_ptr_equal(records[0]->environment, records[1]->environment);
	assert_ptr_equal(records[0]->environment, records[2]->environment);
	assert_ptr_equal(records[0]->settings, records[1]->settings);
	assert_ptr_equal(records[0]->command, records[2]->command);
	assert_float_equal(json_number_value(json_object_get(records[1]->settings, "duration_s")),
			   4, 0);
	assert_float_equal(json_number_value(json_object_get(records[2]->settings, "duration_s")),
			   8, 0);
	assert_true(json_is_null(json_object_get(records[0]->environment, "clock_read_ns")));
	assert_string_equal(json_string_value(json_object_get(records[0]->environment, "kernel")),
			    "6.1");
	for (int i = 0; i < 3; i++)
		record_free(records[i]);
}

/* Both readers of @line say the same, but for what the brief one leaves out. */
static void expect_alike(const char *line)
{
	struct record *brief, *whole;
	int of_whole = parse(line, true, &whole, NULL), of_brief = parse(line, false, &brief, NULL);
	json_t *a, *b;

	if (of_whole != of_brief)
		fail_msg("whole %d, brief %d: %s", of_whole, of_brief, line);
	if (of_whole)
		return;
	expect_same_histogram(brief, whole);
	/* Without a histogram, and with what may differ set to the same, as JSON. */
	free(whole->histogram);
	free(brief->histogram);
	whole->histogram = brief->histogram = NULL;
	a = record_to_json(whole);
	b = record_to_json(brief);
	for (size_t i = 0; i < 2; i++) {
		json_t *json = i ? b : a;
		static const char *const out[] = {"counters", "causes", "worst"};
		static const char *const parts[] = {"environment", "settings"};

		for (size_t k = 0; k < ARRAY_SIZE(out); k++)
			json_object_del(json, out[k]);
		for (size_t k = 0; k < 2; k++) {
			json_t *copy = json_deep_copy(json_object_get(json, parts[k]));

			if (json_object_get(copy, "clock_read_ns"))
				json_object_set_new(copy, "clock_read_ns", json_null());
			json_object_set_new(json, parts[k], copy);
		}
	}
	if (!json_equal(a, b))
		fail_msg("another record: %s", line);
	json_decref(a);
	json_decref(b);
	record_free(whole);
	record_free(brief);
}

/* Of two that say different things, which one counts? */
static void a_key_comes_once(void **state)
{
	static const char *const members[] = {
		"\"arm\":\"a\",\"arm\":\"a\"",
		"\"environment\":{},\"environment\":null",
		"\"counters\":{\"a\":1},\"counters\":{}",
		"\"latency\":{\"mean_us\":1,\"mean_us\":2}",
		"\"per_cpu\":[{\"cpu\":1,\"cpu\":1}]",
		"\"validity\":{\"verdict\":\"valid\",\"verdict\":\"invalid\"}",
		"\"histogram\":null,\"histogram\":null",
	};
	char line[400];

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		for (int whole = 0; whole < 2; whole++) {
			struct message message = {""};
			struct record *record;

			snprintf(line, sizeof(line), HEAD "%s}", members[i]);
			if (parse(line, whole, &record, &message) != -EINVAL ||
			    !strstr(message.text, "twice"))
				fail_msg("%s: %s", message.text, line);
		}
}

/* A line from a stranger: as many members, as deep, as long and as great as it likes. */
static void hostile_lines_are_refused(void **state)
{
	static const struct {
		const char *before, *again, *after;
		int times;
		bool taken;
	} lines[] = {
		{HEAD "\"latency\":{\"mean_us\":1", ",\"mean_us\":2", "}}", 1000, false},
		{HEAD "\"latency\":{\"mean_us\":1", ",\"x\":2", "}}", 1000, true},
		{HEAD "\"igt\":{\"cycles\":1", ",\"cycles\":1", "}}", 1000, false},
		{HEAD "\"per_cpu\":[{}", ",{}", "]}", 5000, true},
		{HEAD "\"loads\":[\"a\"", ",\"a\"", "]}", 5000, true},
		{HEAD "\"x\":1", ",\"x\":1", "}", 5000, true},
		{HEAD "\"notes\":[\"", "n", "\"]}", 100000, true},
		{HEAD "\"id\":\"", "f", "\"}", 37, false},
		{HEAD "\"machine_key\":\"", "f", "\"}", 17, false},
		{HEAD "\"worst\":", "[", "", 100000, false},
		{HEAD "\"worst\":", "{\"a\":", "", 100000, false},
		{HEAD "\"x\":", "[", "", 70, false},
		{HEAD "\"block\":1", "0", "}", 400, false},
		{HEAD "\"duration_s\":1", "0", "}", 18, true},
		{HEAD "\"duration_s\":1", "0", "}", 400, false},
		{HEAD "\"duration_s\":1.", "0", "1}", 400, true},
		{HEAD "\"duration_s\":1e", "9", "}", 40, false},
		{HEAD "\"pinned_bytes\":-", "9", "}", 40, false},
		{HEAD "\"histogram\":{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[1,1]",
		 ",[1,9223372036854775807]", "]}}", 300, true},
		{HEAD "\"histogram\":{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[1,1]",
		 ",[2,1]", "]}}", 70000, true},
		{HEAD "\"histogram\":{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[1,1", "0",
		 "]]}}", 20, false},
	};

	for (size_t i = 0; i < ARRAY_SIZE(lines); i++)
		for (int whole = 0; whole < 2; whole++) {
			size_t again = strlen(lines[i].again), at = strlen(lines[i].before);
			char *line = malloc(at + again * (size_t)lines[i].times +
					    strlen(lines[i].after) + 1);
			struct message message = {""};
			struct record *record;
			int error;

			strcpy(line, lines[i].before);
			for (int k = 0; k < lines[i].times; k++, at += again)
				memcpy(line + at, lines[i].again, again);
			strcpy(line + at, lines[i].after);
			error = parse(line, whole, &record, &message);
			if (error != (lines[i].taken ? 0 : -EINVAL))
				fail_msg("line %zu: %d %s", i, error, message.text);
			if (!error)
				record_free(record);
			free(line);
		}
}

static void bytes_that_are_no_text_are_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
	} texts[] = {{"\0", 1},		  {"\xff", 1},	  {"\xc0\x80", 2},
		     {"\xed\xa0\x80", 3}, {"\xe4", 1},	  {"\xf5\x80\x80\x80", 4},
		     {"\\u0000", 6},	  {"\\ud800", 6}, {"\\udc00\\ud800", 12},
		     {"\x1f", 1},	  {"\n", 1}};
	static const char *const before[] = {HEAD "\"arm\":\"", HEAD "\"counters\":{\"a\":\"",
					     HEAD "\"x\":{\""};
	static const char *const after[] = {"\"}", "\"}}", "\":1}}"};

	for (size_t i = 0; i < ARRAY_SIZE(texts) * 3; i++)
		for (int whole = 0; whole < 2; whole++) {
			struct record *record;
			char line[300];
			size_t at = strlen(strcpy(line, before[i % 3])), size = texts[i / 3].size;

			memcpy(line + at, texts[i / 3].bytes, size);
			strcpy(line + at + size, after[i % 3]);
			size += at + strlen(after[i % 3]);
			assert_int_equal(record_from_text(line, size, whole ? NULL : shared,
							  &record, NULL, NULL),
					 -EINVAL);
		}
}

/* Every byte of a record changed, left out, or doubled: both readers take and refuse the same. */
static void both_readers_agree_on_damaged_lines(void **state)
{
	static const char line[] = HEAD
		"\"arm\":\"a\",\"loads\":[\"gem\"]," LATENCY
		",\"per_cpu\":[{\"cpu\":0,\"count\":1}],"
		"\"histogram\":{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[100,3],[101,1]]},"
		"\"counters\":{\"vmstat\":{\"a\":-1}},\"environment\":{\"kernel\":\"6\","
		"\"clock_read_ns\":2.5,\"cpus\":[0]},\"validity\":{\"verdict\":\"valid\","
		"\"reasons\":[]},\"worst\":[{\"cpu\":1}],\"metrics\":{\"m\":{\"value\":1}},"
		"\"settings\":{\"t\":4.0,\"clock_read_ns\":26},\"command\":[\"a\",\"-t\"]}";
	static const char bytes[] = "{}[]\",:\\0 n.-\x01\xff";
	char damaged[sizeof(line) + 1];

	expect_alike(line);
	for (size_t at = 0; at + 1 < sizeof(line); at++) {
		for (size_t i = 0; i + 1 < sizeof(bytes); i++) {
			memcpy(damaged, line, sizeof(line));
			damaged[at] = bytes[i];
			expect_alike(damaged);
		}
		memcpy(damaged, line, at);
		strcpy(damaged + at, line + at + 1);
		expect_alike(damaged);
		memcpy(damaged, line, at + 1);
		strcpy(damaged + at + 1, line + at);
		expect_alike(damaged);
	}
}

static int make_shared(void **state)
{
	shared = json_shared_new();
	return shared ? 0 : -1;
}

static int free_shared(void **state)
{
	json_shared_free(shared);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_out_what_is_not_wanted),
		cmocka_unit_test(refuses_what_the_whole_is_refused_for),
		cmocka_unit_test(takes_what_is_laid_out_by_others),
		cmocka_unit_test(every_prefix_is_refused),
		cmocka_unit_test(shares_what_is_the_same),
		cmocka_unit_test(a_key_comes_once),
		cmocka_unit_test(hostile_lines_are_refused),
		cmocka_unit_test(bytes_that_are_no_text_are_refused),
		cmocka_unit_test(both_readers_agree_on_damaged_lines),
	};

	return cmocka_run_group_tests(tests, make_shared, free_shared);
}
