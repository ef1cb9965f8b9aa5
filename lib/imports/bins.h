/* SPDX-License-Identifier: MIT */
#ifndef IMPORTS_BINS_H
#define IMPORTS_BINS_H

#include "imports/import.h"

/*
 * A histogram of whole microseconds as a run's latency: moments and percentiles are those of the
 * bins (rounded down to a microsecond by the tool), the true maximum when the tool told it (else
 * NaN), and samples beyond the last bin, which the tool counts but does not place.
 */
struct import_bins {
	int64_t *counts; /* by microsecond */
	size_t count;
	int64_t overflows; /* samples at or above @count us */
	double max_us;	   /* NaN: not told */
};

int import_bins_add(struct import_bins *bins, int64_t us, int64_t count);
/* Metrics mean, p50, p99, max (us) of the bins into the record; notes what is not known. */
int import_bins_finish(struct import_bins *bins, struct record *record);

#endif
