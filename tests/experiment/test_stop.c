/* SPDX-License-Identifier: MIT */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "base/json.h"
#include "base/random.h"
#include "experiment/experiment.h"
#include "experiment/stop.h"
#include "record/record.h"

/* The rules that end an experiment, on records with known answers. */

#define RUNS_MAX 512

struct trial {
	struct experiment *experiment;
	struct record *records[RUNS_MAX];
	size_t count;
};

static void trial_begin(struct trial *trial, enum experiment_rule rule, int64_t blocks)
{
	struct message message;

	*trial = (struct trial){.experiment = experiment_new("trial")};
	for (char name[] = "a"; name[0] <= 'c'; name[0]++)
		assert_int_equal(
			experiment_add_arm_text(trial->experiment, name, "echo 1", &message), 0);
	trial->experiment->blocks = blocks;
	trial->experiment->stopping.rule = rule;
	trial->experiment->stopping.target_ci = 0.05;
	assert_int_equal(experiment_make_order(trial->experiment, &message), 0);
	assert_int_equal(experiment_check_stopping(trial->experiment, &message), 0);
}

static void trial_end(struct trial *trial)
{
	for (size_t i = 0; i < trial->count; i++)
		record_free(trial->records[i]);
	experiment_free(trial->experiment);
}

static struct record *trial_add(struct trial *trial, const char *arm, int64_t block, double value)
{
	struct record *record = record_new("trial");

	assert_true(trial->count < RUNS_MAX);
	record->arm = strdup(arm);
	record->block = block;
	record->metrics = json_pack("{s:{s:f,s:s,s:s}}", "value", "value", value, "unit", "us",
				    "better", "lower");
	trial->records[trial->count++] = record;
	if (!trial->experiment->stopping.metric)
		assert_int_equal(experiment_choose_metric(trial->experiment, record, NULL), 0);
	return record;
}

/* What is told; NULL: nothing. The caller frees. */
static char *trial_look(struct trial *trial, int64_t block)
{
	struct message message = {""};
	char *text = NULL;

	assert_int_equal(experiment_look(trial->experiment, trial->records, trial->count, block,
					 &text, &message),
			 0);
	return text;
}

/* a and c alike, b three times as slow. */
static void add_block(struct trial *trial, struct random *random, int64_t block, double factor)
{
	trial_add(trial, "a", block, 100 + 10 * random_unit(random));
	trial_add(trial, "b", block, factor * (100 + 10 * random_unit(random)));
	trial_add(trial, "c", block, 100 + 10 * random_unit(random));
}

static void a_decided_arm_is_dropped_and_told(void **state)
{
	struct random random = {7};
	struct trial trial;
	int64_t decided_after = 0;

	trial_begin(&trial, RULE_UNTIL_DECIDED, 40);
	for (int64_t block = 1; block <= 12; block++) {
		char *text;

		add_block(&trial, &random, block, 3);
		text = trial_look(&trial, block);
		if (block < 5)
			assert_null(text);
		if (text && !decided_after) {
			decided_after = block;
			assert_non_null(strstr(text, "b is slower than a (x"));
		}
		free(text);
	}
	assert_in_range(decided_after, 5, 8);
	assert_string_equal(trial.experiment->arms[1].decision, "slower");
	assert_int_equal(trial.experiment->arms[1].decided_after, decided_after);
	assert_null(trial.experiment->arms[2].decision);
	assert_false(trial.experiment->rule_met);
	assert_int_equal(json_array_size(trial.experiment->looks), 12);
	assert_true(experiment_looked(trial.experiment, 12));
	assert_false(experiment_looked(trial.experiment, 13));
	trial_end(&trial);
}

static void all_decided_ends_it(void **state)
{
	struct trial trial;
	struct message message;
	int64_t block = 0;

	trial_begin(&trial, RULE_UNTIL_DECIDED, 40);
	while (!trial.experiment->rule_met && block < 40) {
		block++;
		trial_add(&trial, "a", block, 100 + (double)block);
		trial_add(&trial, "b", block, 300 + (double)block);
		trial_add(&trial, "c", block, 30 + (double)block / 10);
		free(trial_look(&trial, block));
	}
	assert_in_range(block, 5, 9);
	assert_string_equal(trial.experiment->arms[1].decision, "slower");
	assert_string_equal(trial.experiment->arms[2].decision, "faster");
	assert_string_equal(trial.experiment->stopped, "every pair is decided");
	/* Two arms and too few blocks to ever decide are refused beforehand. */
	trial.experiment->blocks = 4;
	assert_int_equal(experiment_check_stopping(trial.experiment, &message), -EINVAL);
	trial_end(&trial);
}

static void a_small_effect_decides_nothing(void **state)
{
	struct trial trial;

	trial_begin(&trial, RULE_UNTIL_DECIDED, 20);
	for (int64_t block = 1; block <= 20; block++) { /* b is 2% slower, beyond any doubt */
		trial_add(&trial, "a", block, 100 + (double)block / 100);
		trial_add(&trial, "b", block, 102 + (double)block / 100);
		trial_add(&trial, "c", block, 100 + (double)block / 100);
		free(trial_look(&trial, block));
	}
	assert_null(trial.experiment->arms[1].decision);
	assert_true(json_is_true(json_at(
		json_array_get(json_at(json_array_get(trial.experiment->looks, 19), "pairs"), 0),
		"small_effect")));
	trial_end(&trial);
}

/* Failed, interrupted, invalid and later runs do not count, nor do runs without a number. */
static void only_good_runs_count(void **state)
{
	struct trial trial;
	const json_t *pair;
	struct record *record;

	trial_begin(&trial, RULE_UNTIL_DECIDED, 40);
	for (int64_t block = 1; block <= 6; block++) {
		trial_add(&trial, "a", block, 100 + (double)block);
		trial_add(&trial, "b", block, 300 + (double)block);
		trial_add(&trial, "c", block, 100 + (double)block);
	}
	record = trial.records[1];
	free(record->status);
	record->status = strdup("failed");
	trial.records[4]->interrupted = true;
	trial.records[7]->verdict = VERDICT_INVALID;
	json_object_set_new(json_at(trial.records[10]->metrics, "value"), "value", json_null());
	free(trial_look(&trial, 5));
	pair = json_array_get(json_at(json_array_get(trial.experiment->looks, 0), "pairs"), 0);
	assert_string_equal(json_get_string(pair, "a", ""), "b");
	assert_int_equal(json_get_int64(pair, "n_a", -1), 1);
	assert_int_equal(json_get_int64(pair, "n_b", -1), 5);
	trial_end(&trial);
}

static void higher_is_better_turns_the_words(void **state)
{
	struct random random = {7};
	struct trial trial;

	trial_begin(&trial, RULE_UNTIL_DECIDED, 40);
	trial.experiment->higher_is_better = true;
	for (int64_t block = 1; block <= 10; block++) {
		add_block(&trial, &random, block, 3);
		free(trial_look(&trial, block));
	}
	assert_string_equal(trial.experiment->arms[1].decision, "faster");
	trial_end(&trial);
}

/* Equal arms, 40 experiments with every look: alpha 1% has to hold. */
static void equal_arms_are_rarely_decided(void **state)
{
	struct random random = {11};
	int alarms = 0;

	for (int i = 0; i < 40; i++) {
		struct trial trial;

		trial_begin(&trial, RULE_UNTIL_DECIDED, 12);
		trial.experiment->stopping.min_effect = 0;
		for (int64_t block = 1; block <= 12; block++) {
			add_block(&trial, &random, block, 1);
			free(trial_look(&trial, block));
		}
		alarms += trial.experiment->arms[1].decision || trial.experiment->arms[2].decision;
		trial_end(&trial);
	}
	/* 0.4 expected at most; P(more than 4) is 6e-5 by Poisson. */
	assert_in_range(alarms, 0, 4);
}

static void precision_ends_it_too(void **state)
{
	struct random random = {3};
	struct trial trial;
	int64_t block = 0;
	char *text = NULL;

	trial_begin(&trial, RULE_TARGET_CI, 40);
	while (!trial.experiment->rule_met && block < 40) {
		free(text);
		add_block(&trial, &random, ++block, 3);
		text = trial_look(&trial, block);
	}
	/* No interval of the median exists below 6 runs at 95%; the spread is 10%. */
	assert_in_range(block, 6, 20);
	assert_non_null(text);
	assert_non_null(strstr(text, "+-5%"));
	free(text);
	assert_null(trial.experiment->arms[1].decision);
	trial_end(&trial);
}

static void a_metric_that_is_not_there_is_told(void **state)
{
	struct message message = {""};
	struct trial trial;

	trial_begin(&trial, RULE_UNTIL_DECIDED, 40);
	trial_add(&trial, "a", 1, 100);
	assert_string_equal(trial.experiment->stopping.metric, "value");
	free(trial.experiment->stopping.metric);
	trial.experiment->stopping.metric = strdup("p99");
	assert_int_equal(experiment_choose_metric(trial.experiment, trial.records[0], &message),
			 -EINVAL);
	assert_non_null(strstr(message.text, "--metric takes: value"));
	trial_end(&trial);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_decided_arm_is_dropped_and_told),
		cmocka_unit_test(all_decided_ends_it),
		cmocka_unit_test(a_small_effect_decides_nothing),
		cmocka_unit_test(only_good_runs_count),
		cmocka_unit_test(higher_is_better_turns_the_words),
		cmocka_unit_test(equal_arms_are_rarely_decided),
		cmocka_unit_test(precision_ends_it_too),
		cmocka_unit_test(a_metric_that_is_not_there_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
