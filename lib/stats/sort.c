/* SPDX-License-Identifier: MIT */
#include "stats/series.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INSERTION_MOST 16
#define DIGIT_BITS_MOST 12
#define FLAG_BITS_MOST 11
#define SPREAD_MOST (size_t)65536 /* keys and copy of them stay in the processor's second cache */
#define AHEAD 16		  /* keys, two cache lines */
#define SIGN_BIT (UINT64_C(1) << 63)
#define INFINITE_BITS (UINT64_C(0x7ff) << 52)

/* The bits of a double, changed so that unsigned order is the order of the numbers. */
typedef uint64_t key __attribute__((may_alias));

struct sorting {
	key *scratch;
	size_t capacity; /* 0: no memory, all is done in place */
};

static void sort_keys(const struct sorting *sorting, key *keys, size_t count);

static void insertion_sort(key *keys, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		key moved = keys[i];
		size_t j = i;

		for (; j > 0 && keys[j - 1] > moved; j--)
			keys[j] = keys[j - 1];
		keys[j] = moved;
	}
}

/* Bits in which any two keys differ. */
static uint64_t differing_bits(const key *keys, size_t count)
{
	uint64_t differ = 0;

	for (size_t i = 1; i < count; i++)
		differ |= keys[i] ^ keys[0];
	return differ;
}

/* How far to shift for a digit of the highest bits that differ: about four keys a bucket. */
static int find_digit(uint64_t differ, size_t count, int most, int *ret_bits)
{
	int bits = 62 - __builtin_clzll(count), shift;

	bits = bits > most ? most : bits;
	shift = 64 - __builtin_clzll(differ) - bits;
	*ret_bits = bits;
	return shift < 0 ? 0 : shift;
}

/* Each bucket by itself; bucket d ends at ends[d]. */
static void sort_buckets(const struct sorting *sorting, key *keys, const uint32_t *ends, int bits)
{
	size_t from = 0;

	for (size_t digit = 0; digit < (size_t)1 << bits; from = ends[digit++])
		if (ends[digit] - from > 1)
			sort_keys(sorting, keys + from, ends[digit] - from);
}

/* Distribution by one digit through a copy, the most significant first. */
static void spread_sort(const struct sorting *sorting, key *keys, size_t count)
{
	uint64_t differ = differing_bits(keys, count), mask;
	uint32_t next[1 << DIGIT_BITS_MOST], start = 0;
	int bits, shift;

	if (!differ)
		return;
	shift = find_digit(differ, count, DIGIT_BITS_MOST, &bits);
	mask = (UINT64_C(1) << bits) - 1;
	memset(next, 0, sizeof(*next) << bits);
	for (size_t i = 0; i < count; i++)
		next[(keys[i] >> shift) & mask]++;
	for (size_t digit = 0; digit <= mask; digit++) {
		uint32_t size = next[digit];

		next[digit] = start;
		start += size;
	}
	for (size_t i = 0; i < count; i++)
		sorting->scratch[next[(keys[i] >> shift) & mask]++] = keys[i];
	memcpy(keys, sorting->scratch, count * sizeof(*keys));
	if (shift)
		sort_buckets(sorting, keys, next, bits);
}

/* Brings every key home to its bucket; next[d] runs from the bucket's start to ends[d]. */
static void permute(key *keys, size_t *next, const size_t *ends, int shift, uint64_t mask)
{
	for (size_t digit = 0; digit <= mask; digit++) {
		while (next[digit] < ends[digit]) {
			key moved = keys[next[digit]];
			size_t home = (moved >> shift) & mask;

			while (home != digit) {
				size_t place = next[home]++;
				key other = keys[place];

				keys[place] = moved;
				__builtin_prefetch(&keys[place + AHEAD], 1);
				moved = other;
				home = (moved >> shift) & mask;
			}
			keys[next[digit]++] = moved;
		}
	}
}

/* In place by the highest bits that differ (McIlroy, Bostic, McIlroy 1993), then each bucket. */
static void flag_sort(const struct sorting *sorting, key *keys, size_t count)
{
	size_t next[1 << FLAG_BITS_MOST], ends[1 << FLAG_BITS_MOST] = {0}, start = 0;
	uint64_t differ = differing_bits(keys, count), mask;
	int bits, shift;

	if (!differ)
		return;
	shift = find_digit(differ, count, FLAG_BITS_MOST, &bits);
	mask = (UINT64_C(1) << bits) - 1;
	for (size_t i = 0; i < count; i++)
		ends[(keys[i] >> shift) & mask]++;
	for (size_t digit = 0; digit <= mask; digit++) {
		next[digit] = start;
		start += ends[digit];
		ends[digit] = start;
	}
	permute(keys, next, ends, shift, mask);
	for (size_t digit = 0, from = 0; digit <= mask && shift; from = ends[digit++])
		sort_keys(sorting, keys + from, ends[digit] - from);
}

/* Every digit takes at least three bits, so that this is at most 22 levels deep. */
static void sort_keys(const struct sorting *sorting, key *keys, size_t count)
{
	if (count <= INSERTION_MOST)
		insertion_sort(keys, count);
	else if (count <= sorting->capacity)
		spread_sort(sorting, keys, count);
	else
		flag_sort(sorting, keys, count);
}

/* -EINVAL for a value that is not finite; *ret_signs: any sign bit is set. */
static int look_over(const key *keys, size_t count, bool *ret_signs)
{
	uint64_t signs = 0;
	bool infinite = false;

	for (size_t i = 0; i < count; i++) {
		signs |= keys[i];
		infinite |= (keys[i] & INFINITE_BITS) == INFINITE_BITS;
	}
	*ret_signs = signs & SIGN_BIT;
	return infinite ? -EINVAL : 0;
}

/* -0.0 is the number 0.0 and gets its bits. */
static void to_keys(key *keys, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		uint64_t bits = keys[i] == SIGN_BIT ? 0 : keys[i];

		keys[i] = bits & SIGN_BIT ? ~bits : bits | SIGN_BIT;
	}
}

static void from_keys(key *keys, size_t count)
{
	for (size_t i = 0; i < count; i++)
		keys[i] = keys[i] & SIGN_BIT ? keys[i] ^ SIGN_BIT : ~keys[i];
}

int series_sort(double *values, size_t count)
{
	key *keys = (key *)values;
	struct sorting sorting = {.capacity = count < SPREAD_MOST ? count : SPREAD_MOST};
	bool signs;

	if (look_over(keys, count, &signs))
		return -EINVAL;
	if (count <= INSERTION_MOST)
		sorting.capacity = 0;
	else
		sorting.scratch = malloc(sorting.capacity * sizeof(*sorting.scratch));
	if (!sorting.scratch)
		sorting.capacity = 0;
	/* Without a sign the bits of doubles are in the order of the numbers already. */
	if (signs)
		to_keys(keys, count);
	sort_keys(&sorting, keys, count);
	if (signs)
		from_keys(keys, count);
	free(sorting.scratch);
	return 0;
}
