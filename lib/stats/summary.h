/* SPDX-License-Identifier: MIT */
#ifndef STATS_SUMMARY_H
#define STATS_SUMMARY_H

#include <stddef.h>
#include <stdint.h>

#include "stats/histogram.h"
#include "stats/moments.h"

/* Latencies of one run or one phase, nanoseconds; what a record's "latency" holds. */
struct latency_summary {
	uint64_t count;
	double mean_ns, stddev_ns;			     /* NaN: none */
	int64_t min_ns, max_ns;				     /* exact; INT64_MIN when count is 0 */
	int64_t p50_ns, p90_ns, p99_ns, p99_9_ns, p99_99_ns; /* -1: too few samples to say */
	uint64_t early, missed;
	int64_t stall_ns; /* longest unfinished wait at the end: "at least"; 0 none */
};

/*
 * Percentiles from the histogram; one that the count cannot support (fewer than 1 / (1 - p)
 * samples) is -1. @moments: of the same samples.
 */
void latency_summary_from(const struct histogram *histogram, const struct moments *moments,
			  struct latency_summary *ret_summary);

/* As IGT's igt_stats: over a handful of per-CPU values, see docs/method.md. */
double igt_trimean_or_mean(const double *values, size_t count);

#endif
