/* SPDX-License-Identifier: MIT */
#ifndef SUPPORT_TESTING_H
#define SUPPORT_TESTING_H

/* What every unit test includes: cmocka wants these headers before its own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define TREE_SIZE 256 /* of the path of a folder of the test's own */

/* A new empty folder; remove it with testing_remove_tree(). Returns @path. */
static inline char *testing_make_tree(char *path, size_t size)
{
	const char *base = getenv("TMPDIR");

	snprintf(path, size, "%s/syslatency-test.XXXXXX", base ? base : "/tmp");
	assert_non_null(mkdtemp(path));
	return path;
}

static inline int testing_remove_one(const char *path, const struct stat *status, int kind,
				     struct FTW *walk)
{
	(void)status;
	(void)kind;
	(void)walk;
	return remove(path);
}

static inline void testing_remove_tree(const char *path)
{
	assert_true(strstr(path, "syslatency-test.") != NULL);
	assert_int_equal(nftw(path, testing_remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* Writes @text to @tree + @path, making directories. */
static inline void testing_write(const char *tree, const char *path, const char *text)
{
	char full[PATH_MAX], *slash;
	FILE *file;

	assert_true(snprintf(full, sizeof(full), "%s%s", tree, path) < (int)sizeof(full));
	slash = strrchr(full, '/');
	*slash = '\0';
	assert_int_equal(file_make_directories(full), 0);
	*slash = '/';
	file = fopen(full, "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

/* A machine laid out in a folder, for code that reads through base/file: testing_write() its files.
 */
static inline void testing_open_machine(char tree[TREE_SIZE])
{
	machine_set_root(testing_make_tree(tree, TREE_SIZE));
}

static inline void testing_close_machine(const char *tree)
{
	machine_set_root(NULL);
	testing_remove_tree(tree);
}

/* Skips the running test with its reason on the TAP stream. */
#define SKIP_BECAUSE(...)                          \
	do {                                       \
		printf("# skipped: " __VA_ARGS__); \
		printf("\n");                      \
		skip();                            \
	} while (0)

#endif
