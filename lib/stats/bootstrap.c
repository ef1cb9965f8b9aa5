/* SPDX-License-Identifier: MIT */
#include "stats/bootstrap.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "stats/series.h"

/*
 * Runs that have samples, as cumulative counts over the buckets that any of them uses: a
 * percentile of a draw is then found by bisection, without merging histograms.
 */
struct cumulated {
	size_t runs, first, buckets; /* bucket @first + i is column i */
	uint64_t *at_most;	     /* runs x buckets */
	uint64_t total;
	double fraction;
};

static int cumulate(const struct histogram *const *runs, size_t count, double fraction,
		    double confidence, struct cumulated *ret_cumulated)
{
	struct cumulated table = {.first = HISTOGRAM_BUCKETS, .fraction = fraction};
	size_t last = 0, row = 0;

	for (size_t run = 0; run < count; run++) {
		table.runs += runs[run]->total > 0;
		table.total += runs[run]->total;
		for (size_t i = 0; i < HISTOGRAM_BUCKETS; i++) {
			if (!runs[run]->counts[i])
				continue;
			table.first = i < table.first ? i : table.first;
			last = i > last ? i : last;
		}
	}
	if (table.runs < 2 || table.total < percentile_least_count(fraction, confidence))
		return -ERANGE;
	table.buckets = last - table.first + 1;
	table.at_most = malloc(table.runs * table.buckets * sizeof(uint64_t));
	if (!table.at_most)
		return -ENOMEM;
	for (size_t run = 0; run < count; run++) {
		uint64_t sum = 0;

		if (!runs[run]->total)
			continue;
		for (size_t i = 0; i < table.buckets; i++) {
			sum += runs[run]->counts[table.first + i];
			table.at_most[row * table.buckets + i] = sum;
		}
		row++;
	}
	*ret_cumulated = table;
	return 0;
}

static uint64_t drawn_at_most(const struct cumulated *table, const unsigned int *times,
			      size_t bucket)
{
	uint64_t sum = 0;

	for (size_t run = 0; run < table->runs; run++)
		sum += times[run] * table->at_most[run * table->buckets + bucket];
	return sum;
}

/* Of the runs, each taken as often as @times says: the middle of the percentile's bucket. */
static double percentile_of(const struct cumulated *table, const unsigned int *times)
{
	uint64_t total = drawn_at_most(table, times, table->buckets - 1);
	long double position = (long double)table->fraction * total;
	uint64_t rank = (uint64_t)ceill(position - position * 0x1p-52L);
	size_t low = 0, high = table->buckets - 1;

	rank = rank ? rank : 1;
	while (low < high) {
		size_t half = low + (high - low) / 2;

		if (drawn_at_most(table, times, half) >= rank)
			high = half;
		else
			low = half + 1;
	}
	low += table->first;
	return (double)histogram_lowest(low) / 2 + (double)histogram_highest(low) / 2;
}

static double draw(const struct cumulated *table, unsigned int *times, struct random *random)
{
	memset(times, 0, table->runs * sizeof(*times));
	for (size_t i = 0; i < table->runs; i++)
		times[random_below(random, table->runs)]++;
	return percentile_of(table, times);
}

static double as_they_are(const struct cumulated *table, unsigned int *times)
{
	for (size_t i = 0; i < table->runs; i++)
		times[i] = 1;
	return percentile_of(table, times);
}

/* @b NULL: one arm alone. Its percentile, or the ratio of both, with the replicates' interval. */
static int resample(const struct cumulated *a, const struct cumulated *b, double confidence,
		    unsigned int replicates, uint64_t seed, struct interval *ret_interval)
{
	size_t runs = b && b->runs > a->runs ? b->runs : a->runs;
	double *drawn = malloc(replicates * sizeof(*drawn));
	unsigned int *times = malloc(runs * sizeof(*times));
	size_t below = (size_t)((1 - confidence) / 2 * replicates + 1e-9);
	struct random random;
	int error = -ENOMEM;

	if (!drawn || !times)
		goto out;
	random_seed(&random, seed);
	for (unsigned int i = 0; i < replicates; i++) {
		drawn[i] = draw(a, times, &random);
		if (b)
			drawn[i] /= draw(b, times, &random);
	}
	error = series_sort(drawn, replicates);
	if (error) { /* a percentile of 0 ns below the line */
		error = -ERANGE;
		goto out;
	}
	ret_interval->estimate = as_they_are(a, times);
	if (b)
		ret_interval->estimate /= as_they_are(b, times);
	ret_interval->low = drawn[below - 1];
	ret_interval->high = drawn[replicates - below];
	ret_interval->confidence = confidence;
out:
	free(drawn);
	free(times);
	return error;
}

static int check(double fraction, double confidence, unsigned int replicates)
{
	if (!(fraction > 0 && fraction < 1) || !(confidence > 0 && confidence < 1))
		return -EINVAL;
	return (1 - confidence) / 2 * replicates + 1e-9 < 1 ? -EINVAL : 0;
}

int bootstrap_percentile(const struct histogram *const *runs, size_t count, double fraction,
			 double confidence, unsigned int replicates, uint64_t seed,
			 struct interval *ret_interval)
{
	struct cumulated table;
	int error = check(fraction, confidence, replicates);

	if (error)
		return error;
	error = cumulate(runs, count, fraction, confidence, &table);
	if (error)
		return error;
	error = resample(&table, NULL, confidence, replicates, seed, ret_interval);
	free(table.at_most);
	return error;
}

int bootstrap_percentile_ratio(const struct histogram *const *runs_a, size_t count_a,
			       const struct histogram *const *runs_b, size_t count_b,
			       double fraction, double confidence, unsigned int replicates,
			       uint64_t seed, struct interval *ret_interval)
{
	struct cumulated a, b;
	int error = check(fraction, confidence, replicates);

	if (error)
		return error;
	error = cumulate(runs_a, count_a, fraction, confidence, &a);
	if (error)
		return error;
	error = cumulate(runs_b, count_b, fraction, confidence, &b);
	if (!error) {
		error = resample(&a, &b, confidence, replicates, seed, ret_interval);
		free(b.at_most);
	}
	free(a.at_most);
	return error;
}
