/* SPDX-License-Identifier: MIT */
#include "record/store_internal.h"

#include <errno.h>

#include "support/testing.h"

#include "record/record.h"

#define HEAD "{\"schema\":\"syslatency/run/1\",\"benchmark\":\"b\","
#define LATENCY "\"latency\":{\"count\":2,\"mean_us\":5.5,\"max_us\":6}"

static int parse(const char *line, bool whole, struct record **ret_record, struct message *message)
{
	return store_parse_line(line, strlen(line), whole, ret_record, message);
}

static void leaves_out_what_is_not_wanted(void **state)
{
	static const char line[] =
		HEAD "\"counters\":{\"a\":{\"b\":[1,-2.5e-3,true,null]}},\"causes\":[]," LATENCY
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
	assert_int_equal(brief->histogram->total, 4);
	assert_memory_equal(brief->histogram, whole->histogram, sizeof(*whole->histogram));
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
		"\"histogram\":{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[1,2],]}",
		"\"histogram\":{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[1,-2]]}",
	};

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
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
	};

	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
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
		assert_int_equal(store_parse_line(copy, size, false, &record, NULL), -EINVAL);
		free(copy);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leaves_out_what_is_not_wanted),
		cmocka_unit_test(refuses_what_the_whole_is_refused_for),
		cmocka_unit_test(takes_what_is_laid_out_by_others),
		cmocka_unit_test(every_prefix_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
