/* SPDX-License-Identifier: MIT */
#ifndef TESTS_STATS_CLOSE_H
#define TESTS_STATS_CLOSE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "stats/series.h"

/* Equal within @tolerance, relative to the greater of 1 and the value expected. */
static inline void check_close(double found, double expected, double tolerance, const char *what,
			       const char *file, int line)
{
	double scale = fabs(expected) > 1 ? fabs(expected) : 1;

	if (found == expected || fabs(found - expected) <= tolerance * scale)
		return;
	print_error("%s: %.17g, expected %.17g\n", what, found, expected);
	_fail(file, line);
}

#define assert_close(found, expected, tolerance) \
	check_close(found, expected, tolerance, #found, __FILE__, __LINE__)

/* Relative to the value itself, for p and the like. */
#define assert_same(found, expected) \
	check_close((found) / (expected), 1, 1e-10, #found, __FILE__, __LINE__)

#define COUNT(array) (ARRAY_SIZE(array))

/* A series of tests/stats/data, in the order of the file. */
static inline size_t load_series(const char *name, double *values, size_t room)
{
	const char *root = getenv("TEST_SOURCE_ROOT");
	char path[4096];
	size_t count = 0;
	FILE *file;

	snprintf(path, sizeof(path), "%s/tests/stats/data/%s.txt", root ? root : ".", name);
	file = fopen(path, "r");
	assert_non_null(file);
	while (count < room && fscanf(file, "%lf", &values[count]) == 1)
		count++;
	fclose(file);
	return count;
}

#endif
