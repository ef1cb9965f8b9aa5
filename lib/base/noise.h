/* SPDX-License-Identifier: MIT */
#ifndef BASE_NOISE_H
#define BASE_NOISE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/random.h"

/*
 * Content for pages that reclaim meets: zero pages take the kernel's zero-swap shortcut and zram
 * holds easy data for nothing, so every page must be incompressible by itself. Filling with a
 * generator costs more than the page fault; copying a random block costs a third of it, and
 * compressors that work page by page (zram, zswap) cannot see that blocks repeat. One word of each
 * 4 KiB is made unique, so that nothing that merges equal pages (KSM) finds any.
 */
#define NOISE_UNIT_BYTES 4096
#define NOISE_UNITS 16 /* 64 KiB: a whole page on every architecture */

struct noise {
	unsigned char block[NOISE_UNITS * NOISE_UNIT_BYTES];
};

static inline void noise_init(struct noise *noise, uint64_t seed)
{
	struct random random;

	random_seed(&random, seed);
	random_fill(&random, noise->block, sizeof(noise->block));
}

/* Fills @bytes (a multiple of 4 KiB) at @memory; @random is the caller's own. */
static inline void noise_fill(const struct noise *noise, struct random *random, void *memory,
			      size_t bytes)
{
	unsigned char *to = memory;
	size_t first = (size_t)random_below(random, NOISE_UNITS);

	for (size_t unit = 0; unit < bytes / NOISE_UNIT_BYTES; unit++, to += NOISE_UNIT_BYTES) {
		uint64_t word = random_next(random);

		memcpy(to, noise->block + (first + unit) % NOISE_UNITS * NOISE_UNIT_BYTES,
		       NOISE_UNIT_BYTES);
		memcpy(to, &word, sizeof(word));
	}
}

#endif
