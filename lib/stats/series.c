/* SPDX-License-Identifier: MIT */
#include "stats/series.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define INSERTION_MOST 24
#define FLAG_LEAST 2048 /* below it a pass over 256 buckets costs more than it saves */
#define SIGN_BIT (UINT64_C(1) << 63)

int series_check(const double *values, size_t count, bool ascending)
{
	for (size_t i = 0; i < count; i++) {
		if (!isfinite(values[i]))
			return -EINVAL;
		if (ascending && i && values[i] < values[i - 1])
			return -EINVAL;
	}
	return 0;
}

/* The bits of a double, changed so that unsigned order is the order of the numbers. */
static uint64_t load_key(const double *value)
{
	double number = *value + 0.0; /* -0.0 becomes 0.0 */
	uint64_t bits;

	memcpy(&bits, &number, sizeof(bits));
	return bits & SIGN_BIT ? ~bits : bits | SIGN_BIT;
}

static uint64_t get_key(const double *place)
{
	uint64_t key;

	memcpy(&key, place, sizeof(key));
	return key;
}

static void put_key(double *place, uint64_t key)
{
	memcpy(place, &key, sizeof(key));
}

static void insertion_sort(double *keys, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		uint64_t key = get_key(&keys[i]);
		size_t j = i;

		for (; j > 0 && get_key(&keys[j - 1]) > key; j--)
			put_key(&keys[j], get_key(&keys[j - 1]));
		put_key(&keys[j], key);
	}
}

/* Bits in which any two keys differ. */
static uint64_t differing_bits(const double *keys, size_t count)
{
	uint64_t first = get_key(&keys[0]), differ = 0;

	for (size_t i = 1; i < count; i++)
		differ |= get_key(&keys[i]) ^ first;
	return differ;
}

/* Radix exchange (Hildebrandt & Isbitz 1959): part by the highest bit that differs. */
static void exchange_sort(double *keys, size_t count)
{
	while (count > INSERTION_MOST) {
		uint64_t differ = differing_bits(keys, count), bit;
		size_t low = 0, high = count;

		if (!differ)
			return;
		bit = SIGN_BIT >> __builtin_clzll(differ);
		while (low < high) {
			uint64_t key = get_key(&keys[low]);

			if (key & bit) {
				high--;
				put_key(&keys[low], get_key(&keys[high]));
				put_key(&keys[high], key);
			} else {
				low++;
			}
		}
		exchange_sort(keys, low);
		keys += low;
		count -= low;
	}
	insertion_sort(keys, count);
}

/* In place by the eight highest bits that differ (McIlroy, Bostic, McIlroy 1993), then each
 * bucket by itself; at most eight levels deep. */
static void flag_sort(double *keys, size_t count)
{
	size_t next[256], end[256] = {0}, start = 0;
	uint64_t differ;
	int shift;

	if (count < FLAG_LEAST) {
		exchange_sort(keys, count);
		return;
	}
	differ = differing_bits(keys, count);
	if (!differ)
		return;
	shift = 63 - __builtin_clzll(differ) - 7;
	if (shift < 0)
		shift = 0;
	for (size_t i = 0; i < count; i++)
		end[(get_key(&keys[i]) >> shift) & 255]++;
	for (int digit = 0; digit < 256; digit++) {
		next[digit] = start;
		start += end[digit];
		end[digit] = start;
	}
	for (int digit = 0; digit < 256; digit++) {
		while (next[digit] < end[digit]) {
			uint64_t key = get_key(&keys[next[digit]]);
			size_t home = (key >> shift) & 255;

			while (home != (size_t)digit) {
				uint64_t other = get_key(&keys[next[home]]);

				put_key(&keys[next[home]++], key);
				key = other;
				home = (key >> shift) & 255;
			}
			put_key(&keys[next[digit]++], key);
		}
	}
	for (size_t digit = 0, from = 0; digit < 256; from = end[digit++])
		if (shift)
			flag_sort(keys + from, end[digit] - from);
}

int series_sort(double *values, size_t count)
{
	if (series_check(values, count, false))
		return -EINVAL;
	for (size_t i = 0; i < count; i++)
		put_key(&values[i], load_key(&values[i]));
	if (count)
		flag_sort(values, count);
	for (size_t i = 0; i < count; i++) {
		uint64_t key = get_key(&values[i]);

		put_key(&values[i], key & SIGN_BIT ? key ^ SIGN_BIT : ~key);
	}
	return 0;
}

int series_sorted_copy(const double *values, size_t count, double **ret_sorted)
{
	double *copy = NULL;
	int error;

	if (count) {
		copy = malloc(count * sizeof(*copy));
		if (!copy)
			return -ENOMEM;
		memcpy(copy, values, count * sizeof(*copy));
	}
	error = series_sort(copy, count);
	if (error) {
		free(copy);
		return error;
	}
	*ret_sorted = copy;
	return 0;
}

int series_log(double *values, size_t count)
{
	if (count && !(values[0] > 0))
		return -ERANGE;
	for (size_t i = 0; i < count; i++)
		values[i] = log(values[i]);
	return 0;
}

double series_median(const double *sorted, size_t count)
{
	if (!count)
		return NAN;
	if (count % 2)
		return sorted[count / 2];
	/* Halves first: the sum of two large values may overflow. */
	return sorted[count / 2 - 1] / 2 + sorted[count / 2] / 2;
}

double series_lag1(const double *values, size_t count)
{
	long double mean = 0, product = 0, square = 0;

	if (count < 3)
		return NAN;
	for (size_t i = 0; i < count; i++)
		mean += (values[i] - mean) / (i + 1);
	for (size_t i = 0; i < count; i++) {
		square += (values[i] - mean) * (values[i] - mean);
		if (i)
			product += (values[i] - mean) * (values[i - 1] - mean);
	}
	/* Equal values leave the rounding of their mean behind, not a correlation. */
	if (!(square > 0) || sqrtl(square / count) < 1e-15L * fabsl(mean))
		return NAN;
	return (double)(product / square);
}
