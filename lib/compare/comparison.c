/* SPDX-License-Identifier: MIT */
#include "compare/comparison.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "record/record.h"
#include "stats/multiple.h"
#include "stats/series.h"
#include "stats/summary.h"

void comparison_free(struct comparison *comparison)
{
	if (!comparison)
		return;
	for (size_t i = 0; i < comparison->count; i++)
		if (!comparison->arms[i].borrowed)
			free(comparison->arms[i].sorted);
	free(comparison->arms);
	free(comparison->pairs);
	free(comparison->metric);
	free(comparison->unit);
	free(comparison);
}

const char *comparison_verdict_name(enum comparison_verdict verdict)
{
	static const char *const names[] = {"undecided", "slower", "faster", "equivalent"};

	return (unsigned int)verdict < 4 ? names[verdict] : "unknown";
}

bool comparison_left_out_invalid(const struct comparison *comparison)
{
	for (size_t i = 0; i < comparison->count; i++)
		if (comparison->arms[i].invalid)
			return true;
	return false;
}

double comparison_normalised(const struct comparison *comparison, size_t arm, size_t zero,
			     size_t one)
{
	double origin = comparison->arms[zero].median;
	double length = comparison->arms[one].median - origin;

	return length == 0 ? NAN : (comparison->arms[arm].median - origin) / length;
}

/* --- values --- */

/* Does this run count? If not, the reason is counted. */
static bool take_run(const struct record *record, const struct comparison_options *options,
		     struct comparison_arm *arm)
{
	enum record_use use = record_use(record);

	if (use == RECORD_INTERRUPTED && options->include_interrupted)
		use = record->verdict == VERDICT_INVALID ? RECORD_INVALID : RECORD_COUNTS;
	if (use == RECORD_INVALID && options->include_invalid)
		use = RECORD_COUNTS;
	arm->failed += use == RECORD_FAILED;
	arm->interrupted += use == RECORD_INTERRUPTED;
	arm->invalid += use == RECORD_INVALID;
	if (use != RECORD_COUNTS || record->verdict != VERDICT_SUSPECT)
		return use == RECORD_COUNTS;
	arm->suspect++;
	return !options->without_suspect;
}

bool comparison_takes(const struct record *record, const struct comparison_options *options)
{
	struct comparison_arm counted = {0};

	return take_run(record, options, &counted);
}

/* *ret_found: some record knows the metric at all. */
static int take_records(const struct arm *arm, struct comparison *comparison,
			struct comparison_arm *into, bool *ret_found)
{
	into->sorted = malloc((arm->record_count ? arm->record_count : 1) * sizeof(double));
	if (!into->sorted)
		return -ENOMEM;
	for (size_t i = 0; i < arm->record_count; i++) {
		const struct record *record = arm->records[i];
		const char *unit;
		double value;

		if (!take_run(record, &comparison->options, into))
			continue;
		if (record_metric(record, comparison->metric, &value, &unit) < 0 ||
		    !isfinite(value)) {
			into->without_value++;
			continue;
		}
		*ret_found = true;
		if (!comparison->unit) {
			comparison->unit = strdup(unit);
			comparison->higher_is_better =
				record_metric_higher_is_better(record, comparison->metric);
			if (!comparison->unit)
				return -ENOMEM;
		}
		into->sorted[into->count++] = value;
	}
	return 0;
}

/* Blocks that stay in the processor's cache, each in two passes, merged: exact where one pass
 * over everything in one sum would not be, and as fast. */
static void moments_of(const double *values, size_t count, double scale,
		       struct moments *ret_moments)
{
	*ret_moments = (struct moments){0};
	for (size_t start = 0; start < count; start += 4096) {
		size_t size = count - start < 4096 ? count - start : 4096;
		const double *block = values + start;
		double sum[4] = {0}, square[4] = {0}, shift = block[0] * scale, mean, rest = 0;
		struct moments part = {.count = size};

		for (size_t i = 0; i < size; i++)
			sum[i & 3] += block[i] * scale - shift;
		mean = (sum[0] + sum[1] + sum[2] + sum[3]) / (double)size;
		for (size_t i = 0; i < size; i++) {
			double distance = block[i] * scale - shift - mean;

			square[i & 3] += distance * distance;
			rest += distance;
		}
		part.mean = shift + mean;
		part.m2 =
			square[0] + square[1] + square[2] + square[3] - rest * rest / (double)size;
		moments_merge(ret_moments, &part);
	}
}

/* A power of two that brings the greatest magnitude near 1 where squares would leave the range of
 * a double; else 1. */
static double safe_scale(const struct comparison_arm *arm)
{
	int exponent = 0;

	frexp(fmax(fabs(arm->sorted[0]), fabs(arm->sorted[arm->count - 1])), &exponent);
	exponent = exponent < -1000 ? -1000 : exponent;
	return abs(exponent) > 400 ? ldexp(1, -exponent) : 1;
}

/* Unless @in_order is false, @arm->sorted is still in order of time here. */
static int describe(struct comparison_arm *arm, bool in_order, double confidence)
{
	struct moments moments;
	double scale;
	int error;

	arm->lag1 = in_order && arm->count <= COMPARISON_LAG1_MOST
			    ? series_lag1(arm->sorted, arm->count)
			    : NAN;
	error = in_order ? series_sort(arm->sorted, arm->count) : 0;
	if (error)
		return error;
	scale = safe_scale(arm);
	moments_of(arm->sorted, arm->count, scale, &moments);
	arm->minimum = arm->sorted[0];
	arm->maximum = arm->sorted[arm->count - 1];
	arm->median = series_median(arm->sorted, arm->count);
	arm->mean = moments.mean / scale;
	arm->stddev = moments_stddev(&moments) / scale;
	if (percentile_interval(arm->sorted, arm->count, 0.5, confidence, &arm->median_ci))
		arm->median_ci = (struct interval){arm->median, NAN, NAN, confidence};
	return 0;
}

static int take_arms(struct arm_set *set, struct comparison *comparison, struct message *message)
{
	bool found = arm_set_has_plain(set);

	for (size_t i = 0; i < set->count; i++) {
		struct comparison_arm *arm = &comparison->arms[i];
		int error;

		arm->name = set->arms[i].name;
		comparison->count = i + 1;
		if (set->arms[i].values) {
			arm->sorted = set->arms[i].values;
			arm->count = set->arms[i].value_count;
			arm->borrowed = true;
			continue;
		}
		error = take_records(&set->arms[i], comparison, arm, &found);
		if (error)
			return error;
	}
	if (!found)
		return message_set(message, -ENOENT,
				   "no run that counts has a metric called \"%s\"",
				   comparison->metric);
	return 0;
}

/* An arm without a value cannot be compared: the message says where its runs went. */
static int check_counts(const struct comparison *comparison, struct message *message)
{
	for (size_t i = 0; i < comparison->count; i++) {
		const struct comparison_arm *arm = &comparison->arms[i];

		if (arm->count)
			continue;
		return message_set(message, -ENODATA,
				   "%s: no run left with a %s (%zu invalid, %zu failed, %zu "
				   "interrupted, %zu without a value)%s%s",
				   arm->name, comparison->metric, arm->invalid, arm->failed,
				   arm->interrupted, arm->without_value,
				   arm->invalid ? ": --include-invalid takes invalid ones" : "",
				   arm->interrupted ? ": --mix interrupted takes interrupted ones"
						    : "");
	}
	return 0;
}

/* --- tests: each arm, then each test of each pair, on as many CPUs as there are --- */

struct work {
	struct comparison *comparison;
	struct arm_set *set;
	_Atomic int error; /* the first */
};

static void note_error(struct work *work, int error)
{
	int none = 0;

	if (error)
		atomic_compare_exchange_strong(&work->error, &none, error);
}

static void describe_one(void *data, size_t index)
{
	struct work *work = data;
	struct comparison_arm *arm = &work->comparison->arms[index];
	struct arm *source = &work->set->arms[index];

	note_error(work, describe(arm, !(arm->borrowed && source->sorted),
				  work->comparison->options.confidence));
	source->sorted = arm->borrowed;
}

enum { TEST_ORDER, TEST_SHIFT, TESTS };

static void test_one(void *data, size_t index)
{
	struct work *work = data;
	struct comparison *comparison = work->comparison;
	struct comparison_pair *pair = &comparison->pairs[index / TESTS];
	const struct comparison_arm *a = &comparison->arms[pair->a],
				    *b = &comparison->arms[pair->b];
	double confidence = comparison->options.confidence;
	int error = 0;

	switch (index % TESTS) {
	case TEST_ORDER:
		error = rank_and_superiority(a->sorted, a->count, b->sorted, b->count, confidence,
					     &pair->test, &pair->superiority);
		break;
	case TEST_SHIFT:
		error = shift_estimate(a->sorted, a->count, b->sorted, b->count, confidence,
				       &pair->shift);
		break;
	}
	note_error(work, error);
}

static int test_all(struct comparison *comparison, struct arm_set *set)
{
	struct work work = {.comparison = comparison, .set = set};

	parallel_for(comparison->count, describe_one, &work);
	if (work.error)
		return work.error;
	for (size_t i = 0; i < comparison->count; i++)
		if (i != comparison->reference)
			comparison->pairs[comparison->pair_count++] = (struct comparison_pair){
				.a = i,
				.b = comparison->reference,
				.equivalence_bound = NAN,
			};
	parallel_for(comparison->pair_count * TESTS, test_one, &work);
	return work.error;
}

static int find_reference(const struct arm_set *set, const char *against, size_t *ret_reference,
			  struct message *message)
{
	int found = against ? arm_set_find(set, against) : 0;

	if (found < 0)
		return message_set(message, -EINVAL, "--against: there is no arm called \"%s\"",
				   against);
	*ret_reference = (size_t)found;
	return 0;
}

int comparison_make(struct arm_set *set, const char *metric,
		    const struct comparison_options *options, struct comparison **ret_comparison,
		    struct message *message)
{
	struct comparison *comparison = calloc(1, sizeof(*comparison));
	int error = -ENOMEM;

	message_set(message, 0, "%s", "");
	if (!comparison)
		return message_set_errno(message, error, "comparison");
	comparison->options = *options;
	comparison->metric = strdup(metric);
	comparison->arms = calloc(set->count, sizeof(*comparison->arms));
	comparison->pairs = calloc(set->count, sizeof(*comparison->pairs));
	if (comparison->metric && comparison->arms && comparison->pairs)
		error = find_reference(set, options->against, &comparison->reference, message);
	if (!error)
		error = take_arms(set, comparison, message);
	if (!error)
		error = check_counts(comparison, message);
	if (!error && !comparison->unit && !(comparison->unit = strdup("")))
		error = -ENOMEM;
	if (!error)
		error = test_all(comparison, set);
	if (error) {
		if (message && !message->text[0])
			message_set_errno(message, error, "comparison of %s", metric);
		comparison_free(comparison);
		return error;
	}
	comparison->family = comparison->pair_count;
	*ret_comparison = comparison;
	return 0;
}
