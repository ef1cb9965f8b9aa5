/* SPDX-License-Identifier: MIT */
#ifndef SUPPORT_TESTING_H
#define SUPPORT_TESTING_H

/* What every unit test includes: cmocka wants these headers before its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A folder of the test's own; remove with testing_remove_tree(). Returns @path. */
static inline char *testing_make_tree(char *path, size_t size)
{
	const char *base = getenv("TMPDIR");

	snprintf(path, size, "%s/syslatency-test.XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(path));
	return path;
}

static inline void testing_remove_tree(const char *path)
{
	char command[4200];

	assert_true(strstr(path, "syslatency-test.") != NULL);
	snprintf(command, sizeof(command), "rm -rf '%s'", path);
	assert_int_equal(system(command), 0);
}

/* Writes @text to @tree + @path, making directories: a machine of the test's own. */
static inline void testing_write(const char *tree, const char *path, const char *text)
{
	char full[4200], command[4300];
	FILE *file;

	snprintf(full, sizeof(full), "%s%s", tree, path);
	snprintf(command, sizeof(command), "mkdir -p \"$(dirname '%s')\"", full);
	assert_int_equal(system(command), 0);
	file = fopen(full, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* Skips the running test with its reason on the TAP stream. */
#define SKIP_BECAUSE(...)                          \
	do {                                       \
		printf("# skipped: " __VA_ARGS__); \
		printf("\n");                      \
		skip();                            \
	} while (0)

#endif
