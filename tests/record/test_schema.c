/* SPDX-License-Identifier: MIT */
/* docs/record.schema.json against what record_to_json writes, by python3-jsonschema. */
#include <math.h>
#include <sys/wait.h>

#include "support/testing.h"

#include "base/array.h"
#include "base/json.h"
#include "record/record.h"

/* Exits with the number of lines that the schema refuses, 99 when python3-jsonschema is absent. */
static const char *const validator =
	"import json, sys\n"
	"try:\n"
	"    import jsonschema\n"
	"except ImportError:\n"
	"    sys.exit(99)\n"
	"schema = json.load(open(sys.argv[1]))\n"
	"jsonschema.Draft7Validator.check_schema(schema)\n"
	"validator = jsonschema.Draft7Validator(schema)\n"
	"bad = 0\n"
	"for line in open(sys.argv[2]):\n"
	"    errors = list(validator.iter_errors(json.loads(line)))\n"
	"    bad += len(errors) > 0\n"
	"    for error in errors:\n"
	"        print('#', '/'.join(map(str, error.absolute_path)), error.message[:100])\n"
	"sys.exit(bad)\n";

struct lines {
	char path[40];
	FILE *stream;
};

static void lines_open(struct lines *lines)
{
	strcpy(lines->path, "/tmp/syslatency-schema.XXXXXX");
	lines->stream = fdopen(mkstemp(lines->path), "w");
	assert_non_null(lines->stream);
}

static void lines_add(struct lines *lines, const json_t *json)
{
	char *line = json_line(json);

	assert_non_null(line);
	fprintf(lines->stream, "%s\n", line);
	free(line);
}

/* Skips the test without the validator. */
static int lines_refused(struct lines *lines)
{
	const char *root = getenv("TEST_SOURCE_ROOT");
	char command[2048];
	int status;

	assert_int_equal(fclose(lines->stream), 0);
	snprintf(command, sizeof(command), "python3 -c \"%s\" '%s/docs/record.schema.json' '%s'",
		 validator, root ? root : ".", lines->path);
	status = system(command);
	unlink(lines->path);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 99)
		SKIP_BECAUSE("python3-jsonschema is not installed");
	return WEXITSTATUS(status);
}

static struct latency_summary latencies(uint64_t count)
{
	return (struct latency_summary){
		.count = count,
		.mean_ns = count ? 863548.125 : NAN,
		.stddev_ns = count > 1 ? 12.5 : NAN,
		.min_ns = count ? -1500 : INT64_MIN,
		.max_ns = count ? INT64_C(675208500123) : INT64_MIN,
		.p50_ns = count ? 863000 : -1,
		.p90_ns = -1,
		.p99_ns = -1,
		.p99_9_ns = -1,
		.p99_99_ns = -1,
	};
}

static struct record *full_record(void)
{
	struct record *record = record_new("gem_syslatency");

	record->arm = strdup("stock");
	record->variant = strdup("stock");
	record->scope = strdup("memcg");
	record->release_context = strdup("load");
	record->loads = calloc(2, sizeof(char *));
	record->loads[0] = strdup("swap");
	record->duration_s = 8;
	record->has_latency = record->has_corrected = true;
	record->latency = latencies(1000);
	record->corrected = latencies(0);
	record->phases = json_object();
	json_object_set_new(record->phases, "map", json_null());
	json_object_set_new(record->phases, "populate",
			    record_latency_json(&(struct latency_summary[]){latencies(1)}[0]));
	record->igt_cycles = 3;
	record->histogram = calloc(1, sizeof(*record->histogram));
	histogram_record(record->histogram, 863000);
	record->per_cpu = calloc(1, sizeof(*record->per_cpu));
	record->per_cpu_count = 1;
	record->per_cpu[0] = (struct record_cpu){-1, 0, NAN, NAN, -1, -1, -1, NULL, 0};
	record->throttle_gaps = 2;
	record->metrics = json_pack("{s:{s:n,s:s,s:s}}", "passes", "value", "unit", "passes",
				    "better", "higher");
	record_reason(record, VERDICT_INVALID, "majflt 3");
	record_note(record, "a note");
	return record;
}

static void test_written_records_are_valid(void **state)
{
	struct record *full = full_record(), *empty = record_new("pin_cycle");
	json_t *json[2] = {record_to_json(full), record_to_json(empty)};
	struct lines lines;

	lines_open(&lines);
	lines_add(&lines, json[0]);
	lines_add(&lines, json[1]);
	json_decref(json[0]);
	json_decref(json[1]);
	record_free(full);
	record_free(empty);
	assert_int_equal(lines_refused(&lines), 0);
}

/* A schema that takes everything would prove nothing. */
static void test_wrong_records_are_not(void **state)
{
	static const struct {
		const char *key, *value;
	} wrong[] = {
		{"latency", "{\"mean_ms\": 1}"},
		{"duration_s", "\"8 s\""},
		{"variant", "\"tip\""},
		{"per_cpu", "[{\"cpu\": 0}]"},
		{"histogram", "{\"unit\": \"us\", \"sub_bucket_bits\": 7, \"buckets\": []}"},
		{"validity", "{\"verdict\": \"fine\", \"reasons\": []}"},
		{"metrics", "{\"x\": {\"value\": 1}}"},
		{"schema", "\"syslatency/run/2\""},
	};
	const size_t count = ARRAY_SIZE(wrong);
	struct lines lines;

	lines_open(&lines);
	for (size_t i = 0; i < count; i++) {
		struct record *record = full_record();
		json_t *json = record_to_json(record);

		json_object_set_new(json, wrong[i].key,
				    json_loads(wrong[i].value, JSON_DECODE_ANY, NULL));
		lines_add(&lines, json);
		json_decref(json);
		record_free(record);
	}
	assert_int_equal(lines_refused(&lines), count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_written_records_are_valid),
		cmocka_unit_test(test_wrong_records_are_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
