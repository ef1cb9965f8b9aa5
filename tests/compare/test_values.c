/* SPDX-License-Identifier: MIT */
#include "compare/values.h"

#include <errno.h>
#include <fcntl.h>

#include "base/array.h"
#include "support/testing.h"

/* A file without a name that holds @size bytes. */
static int file_of(const char *text, size_t size)
{
	int fd = open(getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp", O_TMPFILE | O_RDWR | O_CLOEXEC,
		      0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, size), (ssize_t)size);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static int read_text(const char *text, size_t size, unsigned int column, struct values *ret_values,
		     struct message *message)
{
	int fd = file_of(text, size);
	int error = values_read_fd(fd, "file", column, NULL, 0, ret_values, message);

	close(fd);
	return error;
}

static void expect(const char *text, unsigned int column, size_t count, const double *expected)
{
	struct message message = {""};
	struct values values = {NULL};
	int error = read_text(text, strlen(text), column, &values, &message);

	if (error)
		fail_msg("\"%s\": %s", text, message.text);
	assert_int_equal(values.count, count);
	for (size_t i = 0; i < count; i++)
		assert_float_equal(values.values[i], expected[i], 0);
	free(values.values);
}

static void refuse(const char *text, size_t size, unsigned int column, int expected,
		   const char *part)
{
	struct message message = {""};
	struct values values = {NULL};

	assert_int_equal(read_text(text, size, column, &values, &message), expected);
	assert_null(values.values);
	if (!strstr(message.text, part))
		fail_msg("\"%s\" is not in: %s", part, message.text);
}

static void plain_lines(void **state)
{
	expect("1\n2.5\n-3e2\n", 1, 3, (double[]){1, 2.5, -300});
	expect("1\n2", 1, 2, (double[]){1, 2});
	expect("1\r\n2.5\r\n", 1, 2, (double[]){1, 2.5});
	expect("\xef\xbb\xbf"
	       "4\n5\n",
	       1, 2, (double[]){4, 5});
	expect("\n  \n# note\n 6 # why\n\t7\n", 1, 2, (double[]){6, 7});
	expect("8#x\n", 1, 1, (double[]){8});
}

static void columns(void **state)
{
	struct values values;

	expect("1 2 3\n4\t5\t6\n", 2, 2, (double[]){2, 5});
	expect("a 2\nb 5 # c\n", 2, 2, (double[]){2, 5});
	assert_int_equal(read_text("1 x\n2\n3 # y\n", 11, 1, &values, NULL), 0);
	assert_int_equal(values.count, 3);
	assert_int_equal(values.longer_lines, 1);
	free(values.values);
	refuse("1 2\n3\n", 6, 2, -EINVAL, "line 2 has no column 2");
}

static void refusals(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{"1\nnan\n", "file: line 2: \"nan\" is not a number that can be ranked"},
		{"1\n2\n-inf\n", "line 3: \"-inf\" is not a finite number"},
		{"1e400\n", "line 1: \"1e400\" is not a finite number"},
		{"1,5\n", "decimals take a point"},
		{"hello\n", "\"hello\" is not a number"},
		{"12us\n", "\"12us\" is not a number"},
		{"1\n\x01\x80\n", "line 2: \"??\""},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		refuse(cases[i].text, strlen(cases[i].text), 1, -EINVAL, cases[i].part);
	refuse("1\n\0\n", 4, 1, -EINVAL, "line 2");
	refuse("", 0, 1, -ENODATA, "no values");
	refuse("# none\n\n", 8, 1, -ENODATA, "no values");
}

/* Lines cut by the ends of the reader's buffer, and a bad one whose number must be told right. */
static void many_lines(void **state)
{
	const size_t count = 300000;
	size_t capacity = 20 * count, size = 0;
	char *text = malloc(capacity);
	struct values values;
	struct message message = {""};

	for (size_t i = 0; i < count; i++)
		size += (size_t)snprintf(text + size, capacity - size,
					 i % 7 ? "%zu.%02zu\n" : "%zu.%02zu \n", i % 1000003,
					 i % 100);
	assert_int_equal(read_text(text, size, 1, &values, &message), 0);
	assert_int_equal(values.count, count);
	for (size_t i = 0; i < count; i++)
		assert_float_equal(values.values[i], (double)(i * 100 + i % 100) / 100, 0);
	free(values.values);
	memcpy(text + size, "oops\n", 5);
	refuse(text, size + 5, 1, -EINVAL, "line 300001: \"oops\"");
	free(text);
}

static void long_lines(void **state)
{
	size_t size = 1 << 20;
	char *text = malloc(size + 2);
	struct values values;

	memset(text, ' ', size);
	memcpy(text + size, "7\n", 2);
	assert_int_equal(read_text(text, size + 2, 1, &values, NULL), 0);
	assert_int_equal(values.count, 1);
	assert_float_equal(values.values[0], 7, 0);
	free(values.values);
	memset(text, '0', size); /* a number of a million digits */
	assert_int_equal(read_text(text, size + 2, 1, &values, NULL), 0);
	assert_float_equal(values.values[0], 7, 0);
	free(values.values);
	free(text);
}

static void a_head_and_a_pipe(void **state)
{
	struct values values;
	int ends[2];

	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], "5\n3\n", 4), 4);
	close(ends[1]);
	assert_int_equal(values_read_fd(ends[0], "pipe", 1, "1\n2", 3, &values, NULL), 0);
	close(ends[0]);
	assert_int_equal(values.count, 3);
	assert_float_equal(values.values[1], 25, 0);
	assert_float_equal(values.values[2], 3, 0);
	free(values.values);
	assert_int_equal(values_read("/no/such/file", 1, &values, NULL), -ENOENT);
	assert_int_equal(values_read("/", 1, &values, NULL), -EISDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_lines), cmocka_unit_test(columns),
		cmocka_unit_test(refusals),    cmocka_unit_test(many_lines),
		cmocka_unit_test(long_lines),  cmocka_unit_test(a_head_and_a_pipe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
