/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "imports/bins.h"

#define BINS_MOST 10000000 /* ten seconds */

int import_bins_add(struct import_bins *bins, int64_t us, int64_t count)
{
	if (us < 0 || us >= BINS_MOST || count < 0)
		return -ERANGE;
	if ((size_t)us >= bins->count) {
		size_t wanted = (size_t)us + 1024;
		int64_t *longer = reallocarray(bins->counts, wanted, sizeof(*longer));

		if (!longer)
			return -ENOMEM;
		memset(longer + bins->count, 0, (wanted - bins->count) * sizeof(*longer));
		bins->counts = longer;
		bins->count = wanted;
	}
	bins->counts[us] += count;
	return 0;
}

/* The bin of the ceil(fraction x total)-th smallest; NaN: beyond the bins, or too few samples. */
static double percentile(const struct import_bins *bins, int64_t total, double fraction)
{
	int64_t rank = (int64_t)ceil(fraction * (double)total), seen = 0;

	if ((double)total < 1 / (1 - fraction))
		return NAN;
	for (size_t i = 0; i < bins->count; i++) {
		seen += bins->counts[i];
		if (seen >= rank)
			return (double)i;
	}
	return NAN;
}

int import_bins_finish(struct import_bins *bins, struct record *record)
{
	static const struct {
		const char *name;
		double fraction;
	} fractions[] = {{"p50", 0.5}, {"p99", 0.99}, {"p99.9", 0.999}};
	int64_t total = bins->overflows, last = -1;
	double sum = 0;
	int error = 0;

	for (size_t i = 0; i < bins->count; i++) {
		total += bins->counts[i];
		sum += (double)i * (double)bins->counts[i];
		last = bins->counts[i] ? (int64_t)i : last;
	}
	for (size_t i = 0; i < ARRAY_SIZE(fractions) && !error && total; i++) {
		double value = percentile(bins, total, fractions[i].fraction);

		if (!isnan(value))
			error = import_metric(record, fractions[i].name, value, "us");
	}
	/* A mean without the samples beyond the last bin would be too small: it is not made up. */
	if (!error && !bins->overflows && total)
		error = import_metric(record, "mean", sum / (double)total, "us");
	if (bins->overflows)
		record_note(record, "%lld of %lld samples beyond the histogram: no mean",
			    (long long)bins->overflows, (long long)total);
	if (isnan(bins->max_us) && !bins->overflows && last >= 0)
		bins->max_us = (double)last;
	if (!error && isfinite(bins->max_us))
		error = import_metric(record, "max", bins->max_us, "us");
	free(bins->counts);
	bins->counts = NULL;
	return error;
}
