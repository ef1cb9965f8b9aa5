/* SPDX-License-Identifier: MIT */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stddef.h>
#include <stdint.h>

/*
 * A generator of one's own for each thread: no lock, no shared state, repeatable from its seed.
 * SplitMix64 (Steele, Lea, Flood, OOPSLA 2014): 64 bits of state, passes BigCrush.
 */
struct random {
	uint64_t state;
};

static inline void random_seed(struct random *random, uint64_t seed)
{
	random->state = seed;
}

static inline uint64_t random_next(struct random *random)
{
	uint64_t z = (random->state += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

/* Uniform in [0, bound), unbiased to 2^-64 * bound (multiply-shift, Lemire 2019). */
static inline uint64_t random_below(struct random *random, uint64_t bound)
{
	return (uint64_t)(((unsigned __int128)random_next(random) * bound) >> 64);
}

/* Uniform in [0, 1) with 53 bits. */
static inline double random_unit(struct random *random)
{
	return (double)(random_next(random) >> 11) * 0x1.0p-53;
}

/* A seed from the kernel (getrandom), for runs that were given none. */
uint64_t random_fresh_seed(void);

/* Fisher-Yates over @count indices. */
void random_shuffle(struct random *random, size_t *indices, size_t count);

/* Fills @bytes that no compressor shrinks (for zram, zswap and the zero page shortcut). */
void random_fill(struct random *random, void *memory, size_t bytes);

#endif
