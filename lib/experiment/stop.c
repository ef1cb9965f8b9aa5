/* SPDX-License-Identifier: MIT */
#include "experiment/stop.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "record/record.h"
#include "stats/interval.h"
#include "stats/sequential.h"
#include "stats/series.h"

#define CI_CONFIDENCE 0.95

int experiment_check_stopping(const struct experiment *experiment, struct message *message)
{
	const struct experiment_stopping *stopping = &experiment->stopping;

	if (stopping->reference >= experiment->arm_count)
		return message_set(message, -EINVAL, "no arm to compare with");
	if (stopping->rule != RULE_UNTIL_DECIDED)
		return 0;
	if (experiment->arm_count < 2)
		return message_set(message, -EINVAL,
				   "--until-decided compares arms: give at least two");
	if (experiment->blocks < 5 || experiment->blocks > 500)
		return message_set(message, -EINVAL,
				   "--max-reps %lld: --until-decided needs 5 to 500 (the first "
				   "look is after block 5)",
				   (long long)experiment->blocks);
	return 0;
}

static void print_metrics(FILE *stream, const struct record *record)
{
	const char *name;
	json_t *value;

	if (record->has_latency)
		fputs(" mean max min p50 p90 p99 p99.9 p99.99 stddev", stream);
	json_object_foreach (record->metrics, name, value)
		fprintf(stream, " %s", name);
}

int experiment_choose_metric(struct experiment *experiment, const struct record *record,
			     struct message *message)
{
	struct experiment_stopping *stopping = &experiment->stopping;
	const char *metric = stopping->metric, *unit;
	char *known = NULL;
	size_t size;
	double value;
	FILE *stream;

	if (stopping->rule == RULE_FIXED)
		return 0;
	if (!metric)
		metric = record_metric(record, "mean", &value, &unit) == 0 ? "mean" : "value";
	if (record_metric(record, metric, &value, &unit) == 0) {
		if (!stopping->metric)
			stopping->metric = strdup(metric);
		return stopping->metric ? 0 : -ENOMEM;
	}
	stream = open_memstream(&known, &size);
	if (stream) {
		print_metrics(stream, record);
		fclose(stream);
	}
	message_set(message, -EINVAL, "the runs of %s have no metric \"%s\"; --metric takes:%s",
		    record->benchmark ? record->benchmark : "this command", metric,
		    known ? known : "");
	free(known);
	return -EINVAL;
}

/* Values of @arm up to @block in order of time; the caller frees. */
static int collect(const struct experiment *experiment, struct record *const *records, size_t count,
		   size_t arm, int64_t block, double **ret_values, size_t *ret_count)
{
	double *values = calloc(count ? count : 1, sizeof(*values));
	const char *unit;
	double value;

	if (!values)
		return -ENOMEM;
	*ret_count = 0;
	for (size_t i = 0; i < count; i++) {
		const struct record *record = records[i];

		if (record->block < 1 || record->block > block || !record->arm ||
		    strcmp(record->arm, experiment->arms[arm].name) != 0 ||
		    !record_counts(record) ||
		    record_metric(record, experiment->stopping.metric, &value, &unit) != 0 ||
		    !isfinite(value))
			continue;
		values[(*ret_count)++] = value;
	}
	*ret_values = values;
	return 0;
}

bool experiment_looked(const struct experiment *experiment, int64_t block)
{
	const json_t *look;
	size_t i;

	json_array_foreach (experiment->looks, i, look)
		if (json_get_int64(look, "block", -1) == block)
			return true;
	return false;
}

/* The words of the metric's user: where higher is better, the greater one is the faster. */
static const char *verdict_word(const struct experiment *experiment,
				enum sequential_verdict verdict)
{
	if (experiment->higher_is_better && verdict == SEQUENTIAL_SLOWER)
		verdict = SEQUENTIAL_FASTER;
	else if (experiment->higher_is_better && verdict == SEQUENTIAL_FASTER)
		verdict = SEQUENTIAL_SLOWER;
	return sequential_verdict_name(verdict);
}

static json_t *pair_to_json(const struct experiment *experiment, size_t arm,
			    const struct sequential_pair *pair)
{
	const struct sequential_look *look = &pair->look;

	return json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:o, s:o, s:b, s:s}", "a",
			 experiment->arms[arm].name, "b",
			 experiment->arms[experiment->stopping.reference].name, "n_a",
			 (json_int_t)pair->count_a, "n_b", (json_int_t)pair->count_b, "open_pairs",
			 (json_int_t)look->open, "log_p", json_number_or_null(look->log_p),
			 "log_boundary", json_number_or_null(look->log_boundary), "ratio",
			 json_number_or_null(look->ratio), "small_effect", look->small_effect,
			 "verdict", verdict_word(experiment, look->verdict));
}

/* One family of pairs: each open arm against the reference. */
struct family {
	struct sequential_pair pairs[EXPERIMENT_ARMS_MOST];
	size_t arms[EXPERIMENT_ARMS_MOST]; /* of each pair */
	size_t count;
};

static int family_fill(const struct experiment *experiment, struct record *const *records,
		       size_t count, int64_t block, struct family *family)
{
	double *reference;
	size_t reference_count;
	int error = collect(experiment, records, count, experiment->stopping.reference, block,
			    &reference, &reference_count);

	for (size_t arm = 0; arm < experiment->arm_count && !error; arm++) {
		struct sequential_pair *pair = &family->pairs[family->count];

		if (arm == experiment->stopping.reference)
			continue;
		family->arms[family->count++] = arm;
		pair->b = reference;
		pair->count_b = reference_count;
		pair->decided = experiment->arms[arm].decision != NULL;
		if (!pair->decided)
			error = collect(experiment, records, count, arm, block, (double **)&pair->a,
					&pair->count_a);
	}
	if (family->count == 0)
		free(reference);
	return error;
}

static void family_free(struct family *family)
{
	for (size_t i = 0; i < family->count; i++)
		free((double *)family->pairs[i].a);
	if (family->count)
		free((double *)family->pairs[0].b);
}

/* Writes the decisions of this look into the arms, and tells them. */
static int take_decisions(struct experiment *experiment, const struct family *family, int64_t block,
			  const bool *before, json_t *pairs, FILE *told)
{
	const char *reference = experiment->arms[experiment->stopping.reference].name;

	for (size_t i = 0; i < family->count; i++) {
		struct experiment_arm *arm = &experiment->arms[family->arms[i]];
		const struct sequential_look *look = &family->pairs[i].look;

		if (before[i])
			continue;
		json_array_append_new(pairs,
				      pair_to_json(experiment, family->arms[i], &family->pairs[i]));
		if (!family->pairs[i].decided)
			continue;
		if (experiment_set_text(&arm->decision, verdict_word(experiment, look->verdict)))
			return -ENOMEM;
		arm->decided_after = block;
		fprintf(told, "%s%s is %s than %s (x%.3g, p %.2g)", ftell(told) ? "; " : "",
			arm->name, arm->decision, reference, look->ratio, exp(look->log_p));
	}
	return 0;
}

static int stop(struct experiment *experiment, const char *reason)
{
	experiment->rule_met = true;
	return experiment_set_text(&experiment->stopped, reason);
}

static int look_until_decided(struct experiment *experiment, struct record *const *records,
			      size_t count, int64_t block, json_t *look, FILE *told)
{
	struct sequential_plan plan = {
		.alpha = experiment->stopping.alpha,
		.pairs = experiment->arm_count - 1,
		.max_runs = (size_t)experiment->blocks,
		.min_effect = experiment->stopping.min_effect,
	};
	struct family family = {.count = 0};
	struct sequential *sequential = NULL;
	json_t *pairs = json_array();
	size_t decided = 0;
	bool before[EXPERIMENT_ARMS_MOST];
	int error = sequential_new(&plan, &sequential);

	if (!error)
		error = family_fill(experiment, records, count, block, &family);
	for (size_t i = 0; i < family.count; i++)
		before[i] = family.pairs[i].decided;
	if (!error)
		error = sequential_look_all(sequential, family.pairs, family.count, &decided);
	if (!error)
		error = take_decisions(experiment, &family, block, before, pairs, told);
	if (!error && decided == family.count)
		error = stop(experiment, "every pair is decided");
	json_put(look, "pairs", pairs);
	sequential_free(sequential);
	family_free(&family);
	return error;
}

static int look_target_ci(struct experiment *experiment, struct record *const *records,
			  size_t count, int64_t block, json_t *look, FILE *told)
{
	json_t *arms = json_array();
	size_t precise = 0;

	for (size_t arm = 0; arm < experiment->arm_count; arm++) {
		struct interval interval = {NAN, NAN, NAN, CI_CONFIDENCE};
		double *values;
		size_t values_count;
		int error = collect(experiment, records, count, arm, block, &values, &values_count);

		if (error) {
			json_decref(arms);
			return error;
		}
		series_sort(values, values_count);
		if (values_count)
			percentile_interval(values, values_count, 0.5, CI_CONFIDENCE, &interval);
		free(values);
		precise += interval_precise(&interval, experiment->stopping.target_ci);
		json_array_append_new(arms, json_pack("{s:s, s:I, s:o, s:o, s:o, s:f}", "arm",
						      experiment->arms[arm].name, "n",
						      (json_int_t)values_count, "median",
						      json_number_or_null(interval.estimate), "low",
						      json_number_or_null(interval.low), "high",
						      json_number_or_null(interval.high),
						      "confidence", CI_CONFIDENCE));
	}
	json_put(look, "arms", arms);
	if (precise == experiment->arm_count) {
		fprintf(told, "every median is known to +-%.3g%%",
			100 * experiment->stopping.target_ci);
		return stop(experiment, "every median is as precise as --target-ci asks");
	}
	return 0;
}

int experiment_look(struct experiment *experiment, struct record *const *records, size_t count,
		    int64_t block, char **ret_text, struct message *message)
{
	json_t *look = json_object();
	char *text = NULL;
	size_t size;
	FILE *told = open_memstream(&text, &size);
	int error = -ENOMEM;

	if (!told || !look || !experiment->stopping.metric)
		goto out;
	json_put(look, "block", json_integer(block));
	if (experiment->stopping.rule == RULE_UNTIL_DECIDED)
		error = look_until_decided(experiment, records, count, block, look, told);
	else
		error = look_target_ci(experiment, records, count, block, look, told);
	if (!error && json_array_append(experiment->looks, look) < 0)
		error = -ENOMEM;
out:
	if (told)
		fclose(told);
	json_decref(look);
	if (error || !*text) {
		free(text);
		text = NULL;
	}
	if (error)
		return message_set_errno(message, error, "look after block %lld", (long long)block);
	*ret_text = text;
	return 0;
}
