/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>

#include "support/testing.h"

#include "base/array.h"
#include "base/json.h"
#include "record/record.h"
#include "record/variant.h"

static struct record *full_record(void)
{
	struct record *record = record_new("gem_syslatency");

	assert_non_null(record);
	record->arm = strdup("mlock");
	record->variant = strdup("mlock");
	record->measure = strdup("thp");
	record->scope = strdup("memcg");
	record->loads = calloc(3, sizeof(char *));
	record->loads[0] = strdup("gem");
	record->loads[1] = strdup("swap");
	record->duration_s = 8.25;
	record->has_latency = true;
	record->latency = (struct latency_summary){
		.count = 4000,
		.mean_ns = 863548.125,
		.stddev_ns = 186158.75,
		.min_ns = -1500,
		.max_ns = INT64_C(675208500123),
		.p50_ns = 863000,
		.p90_ns = 870001,
		.p99_ns = 876915,
		.p99_9_ns = 900000,
		.p99_99_ns = -1,
		.early = 2,
	};
	record->histogram = calloc(1, sizeof(*record->histogram));
	histogram_record(record->histogram, 17);
	histogram_record(record->histogram, 863000);
	histogram_record(record->histogram, 863000);
	histogram_record(record->histogram, INT64_C(675208500123));
	record->per_cpu = calloc(2, sizeof(*record->per_cpu));
	record->per_cpu_count = 2;
	record->per_cpu[0] = (struct record_cpu){0, 2000, 860.5, 900.25, 12, 0, 0, "fifo", 99};
	record->per_cpu[1] = (struct record_cpu){1, 0, NAN, NAN, -1, -1, -1, "other", 0};
	record->counters = json_pack("{s:{s:I}}", "vmstat", "pgscan_anon", (json_int_t)1234567);
	record->metrics = json_pack("{s:{s:f,s:s,s:s}}", "full_passes", "value", 251180.0, "unit",
				    "passes", "better", "higher");
	record->block = 3;
	record->order = 0;
	strcpy(record->machine_key, "0123456789abcdef");
	record_reason(record, VERDICT_SUSPECT, "%d minor faults", 3);
	record_note(record, "a note");
	return record;
}

static int from_json(const json_t *json, struct record **ret_record, struct message *message)
{
	char *line = json_line(json);
	int error;

	assert_non_null(line);
	error = record_from_text(line, strlen(line), NULL, ret_record, NULL, message);
	free(line);
	return error;
}

static struct record *through_json(const struct record *record)
{
	struct message message = {""};
	struct record *back = NULL;
	json_t *json = record_to_json(record);

	if (from_json(json, &back, &message) != 0)
		fail_msg("%s", message.text);
	json_decref(json);
	return back;
}

static void test_a_record_survives_its_json(void **state)
{
	struct record *record = full_record(), *back = through_json(record);
	json_t *before = record_to_json(record), *after = record_to_json(back);

	assert_true(json_equal(before, after));
	assert_string_equal(back->loads[1], "swap");
	assert_null(back->loads[2]);
	assert_int_equal(back->latency.max_ns, INT64_C(675208500123));
	assert_int_equal(back->latency.min_ns, -1500);
	assert_int_equal(back->latency.p99_99_ns, -1);
	assert_int_equal(back->histogram->total, 4);
	assert_memory_equal(back->histogram, record->histogram, sizeof(*record->histogram));
	assert_true(isnan(back->per_cpu[1].mean_us));
	assert_int_equal(back->verdict, VERDICT_SUSPECT);
	assert_int_equal(json_array_size(back->reasons), 1);
	json_decref(before);
	json_decref(after);
	record_free(record);
	record_free(back);
}

static void test_what_does_not_exist_is_null(void **state)
{
	static const char *const nulls[] = {"arm",	   "duration_s",  "latency",
					    "igt",	   "histogram",	  "pinned_bytes",
					    "environment", "thp_phases",  "throttle_gaps",
					    "block",	   "machine_key", "settings"};
	struct record *record = record_new("pin_cycle"), *back;
	json_t *json = record_to_json(record);

	for (size_t i = 0; i < ARRAY_SIZE(nulls); i++)
		if (!json_is_null(json_object_get(json, nulls[i])))
			fail_msg("%s is not null", nulls[i]);
	assert_true(json_is_object(json_object_get(json, "metrics")));
	back = through_json(record);
	assert_true(isnan(back->duration_s));
	assert_int_equal(back->block, -1);
	assert_false(back->has_latency);
	json_decref(json);
	record_free(back);
	record_free(record);
}

static void test_a_summary_without_samples(void **state)
{
	struct record *record = record_new("gem_syslatency"), *back;
	double value;
	const char *unit;

	record->has_latency = true;
	record->latency = (struct latency_summary){.mean_ns = NAN,
						   .stddev_ns = NAN,
						   .min_ns = INT64_MIN,
						   .max_ns = INT64_MIN,
						   .p50_ns = -1,
						   .p90_ns = -1,
						   .p99_ns = -1,
						   .p99_9_ns = -1,
						   .p99_99_ns = -1};
	back = through_json(record);
	assert_true(back->has_latency);
	assert_int_equal(record_metric(back, "max", &value, &unit), 0);
	assert_true(isnan(value));
	record_free(back);
	record_free(record);
}

static void test_identities_differ(void **state)
{
	struct record *a = record_new("x"), *b = record_new("x");

	assert_int_equal(strlen(a->id), 36);
	assert_int_equal(a->id[14], '4');
	assert_non_null(strchr("89ab", a->id[19]));
	assert_string_not_equal(a->id, b->id);
	assert_int_equal(a->started[10], 'T');
	record_free(a);
	record_free(b);
	record_free(NULL);
}

static void test_reasons_only_raise_the_verdict(void **state)
{
	struct record *record = record_new("x");

	record_reason(record, VERDICT_INVALID, "major fault");
	record_reason(record, VERDICT_SUSPECT, "steal");
	assert_int_equal(record->verdict, VERDICT_INVALID);
	assert_int_equal(json_array_size(record->reasons), 2);
	assert_string_equal(verdict_name(record->verdict), "invalid");
	record_reason(record, VERDICT_SUSPECT, "not UTF-8: %s", "\xff\xfe");
	assert_int_equal(json_array_size(record->reasons), 3);
	record_free(record);
}

static const struct {
	const char *key, *value, *says;
} broken[] = {
	{"schema", "\"syslatency/run/2\"", "schema"},
	{"schema", "null", "schema"},
	{"benchmark", "7", "benchmark"},
	{"arm", "7", "arm"},
	{"duration_s", "\"8\"", "duration_s"},
	{"interrupted", "1", "interrupted"},
	{"loads", "\"gem\"", "loads"},
	{"loads", "[1]", "loads"},
	{"latency", "[]", "latency"},
	{"latency", "{\"count\": 1, \"mean_ms\": 1.0}", "mean_us"},
	{"latency", "{\"count\": -1, \"mean_us\": 1.0}", "latency.count"},
	{"latency", "{\"count\": 1, \"mean_us\": 1.0, \"max_us\": 1e300}", "latency.max_us"},
	{"latency", "{\"count\": 1, \"mean_us\": 1.0, \"p99_us\": \"3\"}", "latency.p99_us"},
	{"histogram", "{\"unit\": \"us\", \"sub_bucket_bits\": 7, \"buckets\": []}",
	 "histogram.unit"},
	{"histogram", "{\"unit\": \"ns\", \"sub_bucket_bits\": 5, \"buckets\": []}",
	 "sub_bucket_bits"},
	{"histogram", "{\"unit\": \"ns\", \"sub_bucket_bits\": 7, \"buckets\": [[1]]}", "buckets"},
	{"histogram", "{\"unit\": \"ns\", \"sub_bucket_bits\": 7, \"buckets\": [[1, -1]]}",
	 "buckets"},
	{"per_cpu", "{}", "per_cpu"},
	{"per_cpu", "[3]", "per_cpu"},
	{"per_cpu", "[{\"cpu\": 99999999999}]", "cpu"},
	{"validity", "{\"verdict\": \"fine\"}", "verdict"},
	{"validity", "{\"verdict\": \"valid\", \"reasons\": \"x\"}", "reasons"},
	{"counters", "[]", "counters"},
	{"worst", "{}", "worst"},
	{"status", "\"maybe\"", "status"},
	{"block", "-2", "block"},
	{"machine_key", "\"0123456789abcdef0\"", "machine_key"},
	{"metrics", "{\"x\": 3}", "metrics.x"},
	{"metrics", "{\"x\": {\"value\": \"3\"}}", "metrics.x"},
	{"metrics", "{\"x\": {\"value\": 3, \"better\": \"bigger\"}}", "metrics.x.better"},
	{"throttle_gaps", "{\"count\": 1.5}", "throttle_gaps.count"},
};

static void test_wrong_keys_are_named(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(broken); i++) {
		struct record *record = full_record(), *back = NULL;
		json_t *json = record_to_json(record);
		struct message message = {""};
		json_t *value = json_loads(broken[i].value, JSON_DECODE_ANY, NULL);

		assert_non_null(value);
		json_object_set_new(json, broken[i].key, value);
		if (from_json(json, &back, &message) != -EINVAL)
			fail_msg("%s: %s was taken", broken[i].key, broken[i].value);
		if (!strstr(message.text, broken[i].says))
			fail_msg("\"%s\" does not name %s", message.text, broken[i].says);
		assert_null(back);
		json_decref(json);
		record_free(record);
	}
	assert_int_equal(record_from_text("", 0, NULL, NULL, NULL, NULL), -EINVAL);
}

static void test_unknown_and_absent_keys(void **state)
{
	json_t *json = json_pack("{s:s, s:s, s:i}", "schema", RECORD_SCHEMA, "benchmark", "foreign",
				 "later_key", 5);
	struct record *record = NULL;

	assert_int_equal(from_json(json, &record, NULL), 0);
	assert_string_equal(record->id, "");
	assert_string_equal(record->status, "ok");
	record_free(record);
	json_decref(json);
}

static void test_metrics_by_name(void **state)
{
	static const struct {
		const char *name;
		double value;
		const char *unit;
	} wanted[] = {
		{"mean", 863.548125, "us"},
		{"max", 675208500.123, "us"},
		{"min", -1.5, "us"},
		{"p50", 863.0, "us"},
		{"p99", 876.915, "us"},
		{"p99.9", 900.0, "us"},
		{"stddev", 186.15875, "us"},
		{"full_passes", 251180, "passes"},
		{"counters.vmstat.pgscan_anon", 1234567, "count"},
		{"latency.p90_us", 870.001, "us"},
		{"duration_s", 8.25, "s"},
	};
	struct record *record = full_record();
	const char *unit;
	double value;

	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (record_metric(record, wanted[i].name, &value, &unit) != 0)
			fail_msg("no %s", wanted[i].name);
		if (fabs(value - wanted[i].value) > 1e-9 * fabs(wanted[i].value))
			fail_msg("%s: %.17g", wanted[i].name, value);
		assert_string_equal(unit, wanted[i].unit);
	}
	assert_int_equal(record_metric(record, "p99.99", &value, &unit), 0);
	assert_true(isnan(value));
	assert_int_equal(record_metric(record, "median", &value, &unit), -ENOENT);
	assert_int_equal(record_metric(record, "", &value, &unit), -ENOENT);
	assert_int_equal(record_metric(record, "counters.vmstat.none", &value, &unit), -ENOENT);
	assert_int_equal(record_metric(record, "counters.vmstat", &value, &unit), -ENOENT);
	assert_int_equal(record_metric(record, "igt-mean", &value, &unit), -ENOENT);
	assert_true(record_metric_higher_is_better(record, "full_passes"));
	assert_true(record_metric_higher_is_better(record, "load_stats.swap.ops_per_s"));
	assert_false(record_metric_higher_is_better(record, "mean"));
	record_free(record);
}

static void test_variants(void **state)
{
	enum variant variant;

	for (int i = 0; i < VARIANT_COUNT; i++) {
		assert_int_equal(variant_parse(variant_name((enum variant)i), &variant), 0);
		assert_int_equal(variant, i);
	}
	assert_int_equal(variant_parse("tip", &variant), -EINVAL);
	assert_int_equal(variant_parse("", &variant), -EINVAL);
	assert_int_equal(variant_parse(NULL, &variant), -EINVAL);
	assert_string_equal(variant_name((enum variant)9), "unknown");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_record_survives_its_json),
		cmocka_unit_test(test_what_does_not_exist_is_null),
		cmocka_unit_test(test_a_summary_without_samples),
		cmocka_unit_test(test_identities_differ),
		cmocka_unit_test(test_reasons_only_raise_the_verdict),
		cmocka_unit_test(test_wrong_keys_are_named),
		cmocka_unit_test(test_unknown_and_absent_keys),
		cmocka_unit_test(test_metrics_by_name),
		cmocka_unit_test(test_variants),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
