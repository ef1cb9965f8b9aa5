/* SPDX-License-Identifier: MIT */
#ifndef STATS_HISTOGRAM_H
#define STATS_HISTOGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Log-linear histogram of non-negative nanoseconds, any int64_t value representable (the shape of
 * HdrHistogram: Tene). 2^HISTOGRAM_SUB_BUCKET_BITS buckets an octave: a bucket is at most
 * 1/128 = 0.79% of its lowest value wide; values below 256 ns are exact.
 * No pointers inside: it may lie in shared memory. Negative values count into bucket 0; callers
 * keep the exact minimum and maximum apart.
 */
#define HISTOGRAM_SUB_BUCKET_BITS 7
#define HISTOGRAM_BUCKETS (((64 - HISTOGRAM_SUB_BUCKET_BITS) << HISTOGRAM_SUB_BUCKET_BITS))

struct histogram {
	uint64_t total;
	uint64_t counts[HISTOGRAM_BUCKETS];
};

static inline size_t histogram_index(int64_t value_ns)
{
	uint64_t value = value_ns < 0 ? 0 : (uint64_t)value_ns;
	int shift;

	if (value < (UINT64_C(2) << HISTOGRAM_SUB_BUCKET_BITS))
		return (size_t)value;
	shift = 63 - __builtin_clzll(value) - HISTOGRAM_SUB_BUCKET_BITS;
	return ((size_t)shift << HISTOGRAM_SUB_BUCKET_BITS) + (size_t)(value >> shift);
}

static inline void histogram_record(struct histogram *histogram, int64_t value_ns)
{
	histogram->counts[histogram_index(value_ns)]++;
	histogram->total++;
}

void histogram_record_many(struct histogram *histogram, int64_t value_ns, uint64_t count);

/* Bounds of a bucket, both inclusive, nanoseconds. */
int64_t histogram_lowest(size_t index);
int64_t histogram_highest(size_t index);

/* A finished histogram in a fifth of the memory or less: of many runs, most of their time went into
 * pages of zeros. */
struct histogram_sparse {
	size_t count;
	struct histogram_bucket {
		uint32_t index, samples;
	} buckets[];
};

void histogram_merge_sparse(struct histogram *into, const struct histogram_sparse *from);

void histogram_merge(struct histogram *into, const struct histogram *from);

/*
 * Value at @fraction (0 to 1): the highest value of the bucket that holds the ceil(fraction x n)-th
 * smallest sample, never above @exact_max_ns. -1 when empty.
 */
int64_t histogram_percentile(const struct histogram *histogram, double fraction,
			     int64_t exact_max_ns);

/* Samples above @threshold_ns (by whole buckets: those whose lowest value is above it). */
uint64_t histogram_count_above(const struct histogram *histogram, int64_t threshold_ns);

#endif
