/* SPDX-License-Identifier: MIT */
#ifndef COMPARE_COMPARISON_H
#define COMPARE_COMPARISON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/message.h"
#include "compare/arms.h"
#include "stats/interval.h"
#include "stats/rank.h"

#define COMPARISON_SCHEMA "syslatency/compare/1"
#define COMPARISON_ALPHA 0.01
#define COMPARISON_MIN_EFFECT 0.05
#define COMPARISON_CONFIDENCE 0.95
/* Longer series are samples, not runs: their order in time is not looked at. */
#define COMPARISON_LAG1_MOST 1000000

struct comparison_options {
	double alpha;	     /* chance of any false claim in the whole report */
	double confidence;   /* of the intervals that are shown: 0.95 */
	double min_effect;   /* 0.05: ratios within 5% are no difference */
	const char *against; /* name of the reference; NULL: the first arm */
	/* Beyond what record_counts() takes, and less than it. */
	bool include_invalid, include_interrupted;
	bool without_suspect;
};

/* The runs of one arm under one metric. */
struct comparison_arm {
	const char *name;
	double *sorted; /* ascending; owned, except the values of plain arms */
	size_t count;
	bool borrowed;
	double minimum, maximum, median, mean, stddev; /* NaN: too few values */
	struct interval median_ci;
	double lag1; /* of the runs in order of time; NaN: too few */
	/* Runs that were left out, by reason; suspect ones are counted and kept unless told. */
	size_t invalid, failed, interrupted, suspect, without_value;
};

enum comparison_verdict {
	COMPARISON_UNDECIDED,
	COMPARISON_SLOWER, /* a is worse: greater, or smaller where higher is better */
	COMPARISON_FASTER,
	COMPARISON_EQUIVALENT,
};

struct comparison_pair {
	size_t a, b; /* indices of arms; b is the reference */
	struct rank_test test;
	struct shift shift;
	struct interval superiority; /* of a over b in value: P(a > b) + P(a = b) / 2 */
	double log_p_holm;
	double equivalence_bound; /* smallest effect within which they are shown equal; NaN */
	enum comparison_verdict verdict;
	char why[256]; /* undecided: the reason; "" else */
};

struct comparison {
	char *metric;
	char *unit; /* "" when it is not known */
	bool higher_is_better;
	struct comparison_options options;
	size_t reference, family; /* family: claims that share alpha */
	struct comparison_arm *arms;
	size_t count;
	struct comparison_pair *pairs;
	size_t pair_count;
};

/*
 * Takes the metric's value of each run, sorts, describes and tests each arm against the reference.
 * Plain arms are sorted in place. -ENOENT: no record has the metric; -ENODATA: an arm is left
 * without a value; -EINVAL: @against names no arm. Call comparison_decide() next.
 */
int comparison_make(struct arm_set *set, const char *metric,
		    const struct comparison_options *options, struct comparison **ret_comparison,
		    struct message *message);
void comparison_free(struct comparison *comparison);

/*
 * Adjusts the p of all pairs of all @comparisons as one family (Holm) and names the verdicts: a
 * difference needs p at or below alpha AND an estimated ratio beyond the least effect; "equivalent"
 * needs the whole interval within it. -ENOMEM.
 */
int comparison_decide(struct comparison *const *comparisons, size_t count);

const char *comparison_verdict_name(enum comparison_verdict verdict);

/* Does this run count (record_counts()), with what @options adds and takes away? */
struct record;
bool comparison_takes(const struct record *record, const struct comparison_options *options);

/* Any run of any arm that was left out as invalid? */
bool comparison_left_out_invalid(const struct comparison *comparison);

/* 0 = median of arm @zero, 1 = median of arm @one; NaN when the two are equal. */
double comparison_normalised(const struct comparison *comparison, size_t arm, size_t zero,
			     size_t one);

/* "syslatency/compare/1"; new reference, NULL without memory. */
json_t *comparison_to_json(const struct comparison *comparison);

/* All that a report on a comparison says: what report_ops.compare gets. */
struct comparison_report {
	struct arm_set *set;
	struct comparison *const *comparisons; /* one a metric */
	struct comparison *const
		*with_invalid; /* the same with invalid runs; NULL: none were out */
	size_t count;
	json_t *differences; /* arms_differences() */
	size_t width;	     /* columns of the page */
	int plot;	     /* enum comparison_plot */
	bool normalise;
	size_t zero, one; /* arms of --normalise */
};

enum comparison_plot { PLOT_AUTO, PLOT_LINEAR, PLOT_LOG, PLOT_NONE };

#endif
