/* SPDX-License-Identifier: MIT */
#include "record/store_internal.h"

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
	return store_parse_line(line, strlen(line), whole ? NULL : shared, ret_record, message);
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
		struct record *record;

		memcpy(copy, line, size);
		assert_int_equal(store_parse_line(copy, size, shared, &record, NULL), -EINVAL);
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
		static const char *const out[] = {"counters", "causes", "worst", "thp_phases"};
		static const char *const parts[] = {"environment", "settings"};

		for (size_t k = 0; k < 4; k++)
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

static void the_last_of_two_keys_counts(void **state)
{
	static const char *const values[] = {"{\"a\":1}", "{\"a\":2}", "null", "7", "[\"a\"]"};
	static const char *const keys[] = {"environment", "settings", "command", "counters"};
	static const char *const histograms[] = {
		"{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[1,2]]}",
		"{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[5,6]]}", "null", "{}"};
	char line[400];

	for (size_t i = 0; i < 4; i++)
		for (size_t j = 0; j < 4; j++) {
			snprintf(line, sizeof(line), HEAD "\"histogram\":%s,\"histogram\":%s}",
				 histograms[i], histograms[j]);
			expect_alike(line);
		}
	for (size_t k = 0; k < 4; k++)
		for (size_t i = 0; i < 5; i++)
			for (size_t j = 0; j < 5; j++) {
				snprintf(line, sizeof(line), HEAD "\"%s\":%s,\"%s\":%s}", keys[k],
					 values[i], keys[k], values[j]);
				expect_alike(line);
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
		cmocka_unit_test(the_last_of_two_keys_counts),
		cmocka_unit_test(both_readers_agree_on_damaged_lines),
	};

	return cmocka_run_group_tests(tests, make_shared, free_shared);
}
