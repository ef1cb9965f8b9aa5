/* SPDX-License-Identifier: MIT */
#include "stats/histogram.h"

#include <math.h>
#include <string.h>

void histogram_record_many(struct histogram *histogram, int64_t value_ns, uint64_t count)
{
	histogram->counts[histogram_index(value_ns)] += count;
	histogram->total += count;
}

int64_t histogram_lowest(size_t index)
{
	size_t octave = index >> HISTOGRAM_SUB_BUCKET_BITS;
	uint64_t position = index & ((UINT64_C(1) << HISTOGRAM_SUB_BUCKET_BITS) - 1);

	if (octave < 2)
		return (int64_t)index;
	/* Bucket shift * 2^b + (value >> shift), where value >> shift is 2^b + position. */
	return (int64_t)((position + (UINT64_C(1) << HISTOGRAM_SUB_BUCKET_BITS)) << (octave - 1));
}

int64_t histogram_highest(size_t index)
{
	if (index + 1 >= HISTOGRAM_BUCKETS)
		return INT64_MAX;
	return histogram_lowest(index + 1) - 1;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++)
		into->counts[i] += from->counts[i];
	into->total += from->total;
}

void histogram_merge_sparse(struct histogram *into, const struct histogram_sparse *from)
{
	for (size_t i = 0; i < from->count; i++) {
		into->counts[from->buckets[i].index] += from->buckets[i].samples;
		into->total += from->buckets[i].samples;
	}
}

int64_t histogram_percentile(const struct histogram *histogram, double fraction,
			     int64_t exact_max_ns)
{
	uint64_t rank, seen = 0;
	long double position;

	if (!histogram->total || !(fraction >= 0 && fraction <= 1))
		return -1;
	/* 0.999 * 1000 must be rank 999, though the double 0.999 is a little above 0.999. */
	position = (long double)fraction * histogram->total;
	rank = (uint64_t)ceill(position - position * 0x1p-52L);
	if (rank < 1)
		rank = 1;
	if (rank > histogram->total)
		rank = histogram->total;
	for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
		seen += histogram->counts[i];
		if (seen >= rank) {
			int64_t highest = histogram_highest(i);

			return highest < exact_max_ns ? highest : exact_max_ns;
		}
	}
	return exact_max_ns; /* total above the sum of counts: torn by a writer */
}

uint64_t histogram_count_above(const struct histogram *histogram, int64_t threshold_ns)
{
	uint64_t count = 0;

	for (size_t i = threshold_ns < 0 ? 0 : histogram_index(threshold_ns) + 1;
	     i < HISTOGRAM_BUCKETS; i++)
		count += histogram->counts[i];
	return count;
}
