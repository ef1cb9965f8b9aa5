/* SPDX-License-Identifier: MIT */
#ifndef BASE_PAGE_FILL_H
#define BASE_PAGE_FILL_H

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
#define PAGE_FILL_UNIT_BYTES 4096
#define PAGE_FILL_UNITS 16 /* 64 KiB: a whole page on every architecture */

struct page_fill {
	unsigned char block[PAGE_FILL_UNITS * PAGE_FILL_UNIT_BYTES];
};

static inline void page_fill_init(struct page_fill *fill, uint64_t seed)
{
	struct random random;

	random_seed(&random, seed);
	random_fill(&random, fill->block, sizeof(fill->block));
}

/* Fills @bytes (a multiple of 4 KiB) at @memory; @random is the caller's own. */
static inline void page_fill_copy(const struct page_fill *fill, struct random *random, void *memory,
				  size_t bytes)
{
	unsigned char *to = memory;
	size_t first = (size_t)random_below(random, PAGE_FILL_UNITS);

	for (size_t unit = 0; unit < bytes / PAGE_FILL_UNIT_BYTES;
	     unit++, to += PAGE_FILL_UNIT_BYTES) {
		uint64_t word = random_next(random);

		memcpy(to, fill->block + (first + unit) % PAGE_FILL_UNITS * PAGE_FILL_UNIT_BYTES,
		       PAGE_FILL_UNIT_BYTES);
		memcpy(to, &word, sizeof(word));
	}
}

#endif
