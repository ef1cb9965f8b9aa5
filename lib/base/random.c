/* SPDX-License-Identifier: MIT */
#include "base/random.h"

#include <string.h>
#include <sys/random.h>

#include "base/clock.h"

uint64_t random_fresh_seed(void)
{
	uint64_t seed;

	if (getrandom(&seed, sizeof(seed), 0) != (ssize_t)sizeof(seed))
		seed = (uint64_t)clock_now_ns();
	return seed;
}

void random_shuffle(struct random *random, size_t *indices, size_t count)
{
	for (size_t i = count; i > 1; i--) {
		size_t j = (size_t)random_below(random, i);
		size_t other = indices[i - 1];

		indices[i - 1] = indices[j];
		indices[j] = other;
	}
}

void random_fill(struct random *random, void *memory, size_t bytes)
{
	unsigned char *at = memory;

	while (bytes > 0) {
		uint64_t word = random_next(random);
		size_t part = bytes < sizeof(word) ? bytes : sizeof(word);

		memcpy(at, &word, part);
		at += part;
		bytes -= part;
	}
}
