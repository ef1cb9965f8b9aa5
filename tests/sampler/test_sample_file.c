/* SPDX-License-Identifier: MIT */
#include "sampler/sample_file.h"

#include <errno.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"

static char directory[] = "/tmp/syslatency-samples-XXXXXX";
static const int cpus[] = {3, 8};

static const char *path_of(const char *name)
{
	static char path[128];

	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

static int set_up(void **state)
{
	return mkdtemp(directory) ? 0 : -1;
}

static int tear_down(void **state)
{
	unlink(path_of("a.bin"));
	unlink(path_of("a.txt"));
	unlink(path_of("fifo"));
	return rmdir(directory);
}

static struct sample_sink *open_sink(const char *path)
{
	struct sample_sink *sink = NULL;
	struct message message;

	assert_int_equal(sample_sink_open(path, cpus, 2, NULL, &sink, &message), 0);
	return sink;
}

static int finish(struct sample_sink *sink, struct message *message)
{
	return sample_sink_finish(sink, clock_now_ns() + 5 * NS_PER_S, message);
}

/* Checks form, order and values of a binary file; returns the samples in it. */
static uint64_t check_binary(const char *path, uint64_t expect_lost)
{
	const struct sample_file_header *header;
	const struct sample_file_record *records;
	int64_t last_when[2] = {-1, -1};
	size_t size, count;
	char *text;

	assert_int_equal(file_read(path, &text, &size), 0);
	header = (const struct sample_file_header *)text;
	assert_memory_equal(header->magic, SAMPLE_FILE_MAGIC, 8);
	assert_int_equal(header->header_bytes, sizeof(*header));
	assert_int_equal(header->record_bytes, 24);
	assert_int_equal(header->threads, 2);
	assert_int_equal((size - header->header_bytes) % header->record_bytes, 0);
	count = (size - header->header_bytes) / header->record_bytes;
	records = (const struct sample_file_record *)(text + header->header_bytes);
	assert_true(count >= 1);
	for (size_t i = 0; i < count - 1; i++) {
		assert_in_range(records[i].thread, 0, 1);
		assert_int_equal(records[i].cpu, cpus[records[i].thread]);
		assert_int_equal(records[i].late_ns, -2 * records[i].when_ns);
		assert_true(records[i].when_ns > last_when[records[i].thread]);
		last_when[records[i].thread] = records[i].when_ns;
	}
	assert_int_equal(records[count - 1].thread, SAMPLE_FILE_END);
	assert_int_equal(records[count - 1].when_ns, count - 1);
	assert_int_equal(records[count - 1].late_ns, expect_lost);
	free(text);
	return count - 1;
}

static void every_sample_is_in_the_binary_file(void **state)
{
	struct sample_sink *sink = open_sink(path_of("a.bin"));
	struct message message;

	for (int64_t i = 0; i < 3 * SAMPLE_RING_SIZE; i++) {
		sample_ring_put(sample_sink_ring(sink, (size_t)i % 2), i, -2 * i);
		if (i % 8192 == 0)
			clock_sleep_for(120 * NS_PER_MS); /* lets the writer keep up */
	}
	assert_int_equal(finish(sink, &message), 0);
	assert_int_equal(sample_sink_lost(sink), 0);
	assert_int_equal(check_binary(path_of("a.bin"), 0), 3 * SAMPLE_RING_SIZE);
	sample_sink_free(sink);
}

static void overflow_is_counted_and_told_in_the_file(void **state)
{
	struct sample_sink *sink = open_sink(path_of("a.bin"));
	const uint64_t put = 40 * SAMPLE_RING_SIZE;
	struct message message;
	uint64_t lost;

	for (int64_t i = 0; i < (int64_t)put; i++)
		sample_ring_put(sample_sink_ring(sink, 1), i, -2 * i);
	assert_int_equal(finish(sink, &message), 0);
	lost = sample_sink_lost(sink);
	assert_true(lost > 0); /* forty rings within a few milliseconds */
	assert_int_equal(check_binary(path_of("a.bin"), lost), put - lost);
	sample_sink_free(sink);
}

static void text_when_the_name_says_so(void **state)
{
	struct sample_sink *sink = open_sink(path_of("a.txt"));
	struct message message;
	char *text;

	sample_ring_put(sample_sink_ring(sink, 0), INT64_MAX, -7);
	sample_ring_put(sample_sink_ring(sink, 1), 5, INT64_MAX);
	assert_int_equal(finish(sink, &message), 0);
	assert_int_equal(file_read(path_of("a.txt"), &text, NULL), 0);
	assert_string_equal(text, "# thread cpu when_ns late_ns\n"
				  "0 3 9223372036854775807 -7\n"
				  "1 8 5 9223372036854775807\n"
				  "# written 2 lost 0\n");
	free(text);
	sample_sink_free(sink);
}

static void full_disk_is_told_with_its_loss(void **state)
{
	struct sample_sink *sink = open_sink("/dev/full");
	struct message message = {""};

	for (int64_t i = 0; i < 100; i++)
		sample_ring_put(sample_sink_ring(sink, 0), i, -2 * i);
	assert_int_equal(finish(sink, &message), -ENOSPC);
	assert_non_null(strstr(message.text, "100 samples"));
	assert_int_equal(sample_sink_lost(sink), 100);
	sample_sink_free(sink);
}

static void bad_paths_are_refused_with_their_name(void **state)
{
	struct sample_sink *sink = NULL;
	struct message message;

	assert_int_equal(sample_sink_open("/nonexistent/x", cpus, 2, NULL, &sink, &message),
			 -ENOENT);
	assert_non_null(strstr(message.text, "/nonexistent/x"));
	assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
	assert_int_equal(sample_sink_open(path_of("fifo"), cpus, 2, NULL, &sink, &message), -EPIPE);
	assert_null(sink);
	sample_sink_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_sample_is_in_the_binary_file),
		cmocka_unit_test(overflow_is_counted_and_told_in_the_file),
		cmocka_unit_test(text_when_the_name_says_so),
		cmocka_unit_test(full_disk_is_told_with_its_loss),
		cmocka_unit_test(bad_paths_are_refused_with_their_name),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
