/* SPDX-License-Identifier: MIT */
#ifndef TESTS_HISTORY_NOISE_H
#define TESTS_HISTORY_NOISE_H

#include "support/testing.h"

#include "base/random.h"

/* Run means of the published series, rebuilt from its plots: tests/stats/data. */
static inline size_t load_noise(const char *name, double *values, size_t room)
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
