/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "support/testing.h"

#include "base/file.h"
#include "base/json.h"
#include "record/record.h"
#include "record/store.h"

struct folder {
	char path[64], runs[96];
};

static int setup(void **state)
{
	struct folder *folder = calloc(1, sizeof(*folder));

	strcpy(folder->path, "/tmp/syslatency-store.XXXXXX");
	if (!mkdtemp(folder->path))
		return -1;
	snprintf(folder->runs, sizeof(folder->runs), "%s/runs.jsonl", folder->path);
	*state = folder;
	return 0;
}

static int teardown(void **state)
{
	struct folder *folder = *state;
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", folder->path);
	if (system(command) != 0)
		return -1;
	free(folder);
	return 0;
}

static struct record *run(const char *arm, double mean_us, double max_us)
{
	struct record *record = record_new("gem_syslatency");

	record->arm = strdup(arm);
	record->has_latency = true;
	record->latency = (struct latency_summary){
		.count = 10,
		.mean_ns = mean_us * 1000,
		.stddev_ns = 1,
		.min_ns = 1,
		.max_ns = (int64_t)(max_us * 1000),
		.p50_ns = 1,
		.p90_ns = 1,
		.p99_ns = -1,
		.p99_9_ns = -1,
		.p99_99_ns = -1,
	};
	return record;
}

static void append(const struct folder *folder, const char *arm, double mean_us, double max_us)
{
	struct record *record = run(arm, mean_us, max_us);
	struct message message;

	if (store_append(folder->path, record, &message) != 0)
		fail_msg("%s", message.text);
	record_free(record);
}

static size_t count_runs(const struct folder *folder, bool *ret_torn)
{
	struct record **records;
	struct message message = {""};
	size_t count;

	if (store_read(folder->path, &records, &count, ret_torn, &message) != 0)
		fail_msg("%s", message.text);
	store_free(records, count);
	return count;
}

static void write_text(const char *path, const char *text, const char *mode)
{
	FILE *stream = fopen(path, mode);

	assert_non_null(stream);
	fputs(text, stream);
	assert_int_equal(fclose(stream), 0);
}

static void test_append_and_read(void **state)
{
	struct folder *folder = *state;
	struct record **records;
	size_t count;
	bool torn = true;

	append(folder, "stock", 100.5, 900);
	append(folder, "mlock", 50.25, 400);
	assert_int_equal(store_read(folder->runs, &records, &count, &torn, NULL), 0);
	assert_int_equal(count, 2);
	assert_false(torn);
	assert_string_equal(records[0]->arm, "stock");
	assert_string_equal(records[1]->arm, "mlock");
	assert_string_not_equal(records[0]->id, records[1]->id);
	store_free(records, count);
	assert_int_equal(count_runs(folder, &torn), 2);
}

/* A line cut anywhere: readers drop it and say so, the next append cuts it off and says so. */
static void test_torn_at_every_byte(void **state)
{
	struct folder *folder = *state;
	struct stat one, two;
	bool torn;

	append(folder, "a", 1, 2);
	assert_int_equal(stat(folder->runs, &one), 0);
	append(folder, "b", 1, 2);
	assert_int_equal(stat(folder->runs, &two), 0);
	for (off_t size = two.st_size - 2; size > one.st_size; size -= 37) {
		struct record *record = run("c", 1, 2);
		struct message message;

		assert_int_equal(truncate(folder->runs, size), 0);
		assert_int_equal(count_runs(folder, &torn), 1);
		assert_true(torn);
		assert_int_equal(store_append(folder->path, record, &message), 0);
		assert_non_null(strstr(message.text, "torn"));
		assert_int_equal(count_runs(folder, &torn), 2);
		assert_false(torn);
		record_free(record);
	}
}

static void test_whole_line_without_its_newline(void **state)
{
	struct folder *folder = *state;
	struct stat status;
	bool torn;

	append(folder, "a", 1, 2);
	assert_int_equal(stat(folder->runs, &status), 0);
	assert_int_equal(truncate(folder->runs, status.st_size - 1), 0);
	assert_int_equal(count_runs(folder, &torn), 1);
	assert_false(torn);
	append(folder, "b", 1, 2);
	assert_int_equal(count_runs(folder, &torn), 2);
}

static void test_zeros_of_a_power_cut(void **state)
{
	struct folder *folder = *state;
	struct stat status;
	bool torn;

	append(folder, "a", 1, 2);
	assert_int_equal(stat(folder->runs, &status), 0);
	assert_int_equal(truncate(folder->runs, status.st_size + 5000), 0);
	assert_int_equal(count_runs(folder, &torn), 1);
	assert_true(torn);
	append(folder, "b", 1, 2);
	assert_int_equal(count_runs(folder, &torn), 2);
	assert_false(torn);
}

static void test_a_bad_line_in_the_middle(void **state)
{
	struct folder *folder = *state;
	struct record **records;
	struct message message = {""};
	size_t count;
	bool torn;

	append(folder, "a", 1, 2);
	write_text(folder->runs, "{\"schema\": \"syslatency/run/1\"}\n", "a");
	append(folder, "b", 1, 2);
	assert_int_equal(store_read(folder->path, &records, &count, &torn, &message), -EINVAL);
	assert_non_null(strstr(message.text, "line 2"));
	assert_non_null(strstr(message.text, "benchmark"));
}

static void test_a_single_laid_out_record(void **state)
{
	struct folder *folder = *state;
	struct record *record = run("a", 1, 2), **records;
	json_t *json = record_to_json(record);
	char *text = json_dumps(json, JSON_INDENT(2)), path[128];
	size_t count;
	bool torn;

	snprintf(path, sizeof(path), "%s/run.json", folder->path);
	write_text(path, text, "w");
	assert_int_equal(store_read(path, &records, &count, &torn, NULL), 0);
	assert_int_equal(count, 1);
	assert_false(torn);
	store_free(records, count);
	free(text);
	json_decref(json);
	record_free(record);
}

static void test_nothing_there(void **state)
{
	struct folder *folder = *state;
	struct record *record = run("a", 1, 2), **records;
	struct message message = {""};
	char path[128];
	size_t count;
	bool torn;

	assert_int_equal(store_read(folder->path, &records, &count, &torn, &message), -ENOENT);
	assert_non_null(strstr(message.text, "runs.jsonl"));
	snprintf(path, sizeof(path), "%s/none", folder->path);
	assert_int_equal(store_append(path, record, &message), -ENOENT);
	assert_non_null(strstr(message.text, path));
	write_text(folder->runs, "", "w");
	assert_int_equal(count_runs(folder, &torn), 0);
	write_text(folder->runs, "\n \r\n", "w");
	assert_int_equal(count_runs(folder, &torn), 0);
	record_free(record);
}

static void test_a_full_disk_leaves_no_torn_line(void **state)
{
	struct folder *folder = *state;
	struct record *record = run("a", 1, 2);
	struct message message;
	char path[96];

	snprintf(path, sizeof(path), "%s/runs.jsonl", folder->path);
	assert_int_equal(symlink("/dev/full", path), 0);
	assert_int_equal(store_append(folder->path, record, &message), -ENOSPC);
	assert_non_null(strstr(message.text, "No space"));
	record_free(record);
}

/* The histogram is read by other code than the rest of a line: nothing may differ. */
static void test_histograms_come_back(void **state)
{
	struct folder *folder = *state;
	struct record *record = run("a", 1, 2), **records;
	size_t count;
	bool torn;

	record->histogram = calloc(1, sizeof(*record->histogram));
	for (int64_t value = 0; value < INT64_C(1) << 62; value += value / 2 + 1)
		histogram_record_many(record->histogram, value, (uint64_t)(value % 7 + 1));
	free(record->stderr_tail);
	record->stderr_tail =
		strdup("\"histogram\":{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[1,2]]}");
	assert_int_equal(store_append(folder->path, record, NULL), 0);
	memset(record->histogram, 0, sizeof(*record->histogram));
	assert_int_equal(store_append(folder->path, record, NULL), 0);
	assert_int_equal(store_read(folder->path, &records, &count, &torn, NULL), 0);
	assert_int_equal(count, 2);
	assert_string_equal(records[0]->stderr_tail, record->stderr_tail);
	assert_memory_equal(records[1]->histogram, record->histogram, sizeof(*record->histogram));
	for (int64_t value = 0; value < INT64_C(1) << 62; value += value / 2 + 1)
		histogram_record_many(record->histogram, value, (uint64_t)(value % 7 + 1));
	assert_memory_equal(records[0]->histogram, record->histogram, sizeof(*record->histogram));
	store_free(records, count);
	record_free(record);
	write_text(folder->runs,
		   "{\"schema\":\"syslatency/run/1\",\"benchmark\":\"b\",\"histogram\":{\"unit\":"
		   "\"ns\",\"sub_bucket_bits\":7,\"buckets\":[[1,2],[3,-4]]}}\n",
		   "w");
	assert_int_equal(store_read(folder->path, &records, &count, &torn, NULL), -EINVAL);
}

/* Several writers at once: every line is whole. */
static void test_writers_take_turns(void **state)
{
	struct folder *folder = *state;
	bool torn;

	for (int i = 0; i < 4; i++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0) {
			struct record *record = run("a", 1, 2);

			for (int j = 0; j < 10; j++)
				if (store_append(folder->path, record, NULL) != 0)
					_exit(1);
			_exit(0);
		}
	}
	for (int i = 0; i < 4; i++) {
		int status;

		assert_true(wait(&status) > 0);
		assert_int_equal(status, 0);
	}
	assert_int_equal(count_runs(folder, &torn), 40);
}

static void expect_file(const struct folder *folder, const char *name, const char *wanted)
{
	char path[128], *text;

	snprintf(path, sizeof(path), "%s/%s", folder->path, name);
	if (!wanted) {
		assert_int_equal(access(path, F_OK), -1);
		return;
	}
	assert_int_equal(file_read(path, &text, NULL), 0);
	assert_string_equal(text, wanted);
	free(text);
}

static void test_text_files(void **state)
{
	struct folder *folder = *state;
	struct record *records[6] = {
		run("stock", 100.5, 900),
		run("lock_vma", 50.25, 400),
		run("stock", 9579.467125, 675208500.125),
		run("stock", 1, 1),
		run("stock", 2, 2),
		record_new("make"),
	};
	struct message message = {""};

	records[3]->verdict = VERDICT_INVALID;
	free(records[4]->status);
	records[4]->status = strdup("failed");
	records[5]->arm = strdup("build");
	records[5]->metrics = json_pack("{s:{s:f,s:s,s:s}}", "value", "value", 0.25, "unit", "",
					"better", "lower");
	assert_int_equal(store_write_text(folder->path, records, 6, &message), 0);
	expect_file(folder, "stock-mean.txt", "100.5\n9579.467125\n");
	expect_file(folder, "stock-max.txt", "900\n675208500.125\n");
	expect_file(folder, "lock_vma-mean.txt", "50.25\n");
	expect_file(folder, "build-mean.txt", NULL);
	expect_file(folder, "build-value.txt", "0.25\n");
	/* Written anew: an arm that has lost its only valid run loses its file. */
	records[1]->verdict = VERDICT_INVALID;
	assert_int_equal(store_write_text(folder->path, records, 6, &message), 0);
	expect_file(folder, "lock_vma-mean.txt", NULL);
	/* A name that would leave the folder. */
	free(records[0]->arm);
	records[0]->arm = strdup("../x");
	assert_int_equal(store_write_text(folder->path, records, 6, &message), -EINVAL);
	assert_non_null(strstr(message.text, "../x"));
	for (size_t i = 0; i < 6; i++)
		record_free(records[i]);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		CASE(test_append_and_read),
		CASE(test_torn_at_every_byte),
		CASE(test_whole_line_without_its_newline),
		CASE(test_zeros_of_a_power_cut),
		CASE(test_a_bad_line_in_the_middle),
		CASE(test_a_single_laid_out_record),
		CASE(test_nothing_there),
		CASE(test_a_full_disk_leaves_no_torn_line),
		CASE(test_histograms_come_back),
		CASE(test_writers_take_turns),
		CASE(test_text_files),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
