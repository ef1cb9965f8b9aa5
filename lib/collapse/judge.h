/* SPDX-License-Identifier: MIT */
#ifndef COLLAPSE_JUDGE_H
#define COLLAPSE_JUDGE_H

#include <stdbool.h>

#include "base/message.h"
#include "record/metric_table.h"

/* Runs of a row that differ by more than this share of their median: so may two sets of runs. */
#define COLLAPSE_RANGE_MOST 0.20
/* Fewer say nothing about it. */
#define COLLAPSE_RUNS_LEAST 3

#define COLLAPSE_ROWS_MOST 64
/* Group of the values that a row gave in a run: the row's index is in it. */
#define COLLAPSE_GROUP(run, row) ((unsigned int)(run)*COLLAPSE_ROWS_MOST + (unsigned int)(row))

/* Metrics of each row that time work which is always the same: "<row>_reference_p50_ns". */
#define REFERENCE_METRIC "reference_p50_ns"
#define REFERENCE_FAST_METRIC "reference_p1_ns"

/*
 * Would another set of runs give about the same medians for @row, which is called @name? Looks at
 * what the row is about (its first metric, its passes, the p50s of its calls) and at the reference
 * beside it: does that differ between runs, or was it mostly slower than it can be (p50 beside p1)?
 * false: @why says what differs, by how much, and by how much the reference does.
 * @reference_counts: false where the reference alone says nothing, because what the row measures
 * may itself be the other thread on the core.
 */
bool collapse_runs_agree(const struct metric_table *table, unsigned int row, const char *name,
			 bool reference_counts, struct message *why);

#endif
