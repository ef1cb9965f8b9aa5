/* SPDX-License-Identifier: MIT */
#include "experiment/experiment.h"

#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"

/* experiment.json: the plan as data, so that --resume needs nothing else. */

static const char *const rule_names[] = {
	[RULE_FIXED] = "fixed",
	[RULE_UNTIL_DECIDED] = "until-decided",
	[RULE_TARGET_CI] = "target-ci",
};

static bool plain_word(const char *word)
{
	return *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
					   "0123456789_@%+=:,./-")];
}

/* One word as a shell reads it back: 'it'\''s'. */
static void print_word(FILE *stream, const char *word)
{
	if (plain_word(word)) {
		fputs(word, stream);
		return;
	}
	fputc('\'', stream);
	for (; *word; word++) {
		if (*word == '\'')
			fputs("'\\''", stream);
		else
			fputc(*word, stream);
	}
	fputc('\'', stream);
}

char *command_line_format(char *const *argv)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	for (size_t i = 0; argv[i]; i++) {
		if (i)
			fputc(' ', stream);
		print_word(stream, argv[i]);
	}
	if (fclose(stream) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static json_t *words_to_json(char *const *words)
{
	json_t *array = json_array();

	for (; *words; words++)
		json_array_append_new(array, json_string_or_null(*words));
	return array;
}

static json_t *arm_to_json(const struct experiment_arm *arm)
{
	char *line = command_line_format(arm->argv);
	json_t *json =
		json_pack("{s:s, s:o, s:o, s:b, s:o, s:s?, s:o}", "name", arm->name, "command",
			  words_to_json(arm->argv), "command_line", json_string_or_null(line),
			  "shell", arm->shell, "kernel", json_string_or_null(arm->kernel),
			  "decision", arm->decision, "decided_after_block",
			  arm->decision ? json_integer(arm->decided_after) : json_null());

	free(line);
	return json;
}

static json_t *arms_to_json(const struct experiment *experiment)
{
	json_t *arms = json_array();

	for (size_t i = 0; i < experiment->arm_count; i++)
		if (json_array_append_new(arms, arm_to_json(&experiment->arms[i])) < 0) {
			json_decref(arms);
			return NULL;
		}
	return arms;
}

/* Arm names block by block; @first and @count count rows of the order. */
static json_t *order_to_json(const struct experiment *experiment, int64_t first, int64_t count)
{
	json_t *blocks = json_array();

	for (int64_t row = first; row < first + count; row++) {
		const size_t *place = experiment->order + (size_t)row * experiment->arm_count;
		json_t *block = json_array();

		for (size_t i = 0; i < experiment->arm_count; i++)
			json_array_append_new(block, json_string(experiment->arms[place[i]].name));
		json_array_append_new(blocks, block);
	}
	return blocks;
}

static json_t *real_if(bool given, double value)
{
	return given ? json_real(value) : json_null();
}

static json_t *stopping_to_json(const struct experiment *experiment)
{
	const struct experiment_stopping *stopping = &experiment->stopping;
	bool decides = stopping->rule == RULE_UNTIL_DECIDED;

	return json_pack("{s:s, s:o, s:s, s:o, s:o, s:o, s:I}", "rule", rule_names[stopping->rule],
			 "metric", json_string_or_null(stopping->metric), "against",
			 experiment->arms[stopping->reference].name, "alpha",
			 real_if(decides, stopping->alpha), "min_effect",
			 real_if(decides, stopping->min_effect), "target_ci",
			 real_if(stopping->rule == RULE_TARGET_CI, stopping->target_ci), "max_reps",
			 (json_int_t)experiment->blocks);
}

json_t *experiment_to_json(const struct experiment *experiment)
{
	return json_pack(
		"{s:s, s:o, s:s, s:o, s:O?, s:I, s:I, s:I, s:o, s:{s:o, s:s},"
		" s:o, s:o, s:o, s:o, s:O, s:s?, s:b}",
		"schema", EXPERIMENT_SCHEMA, "name", json_string_or_null(experiment->name),
		"created", experiment->created, "working_directory",
		json_string_or_null(experiment->working_directory), "host", experiment->host,
		"seed", (json_int_t)experiment->seed, "blocks", (json_int_t)experiment->blocks,
		"warm_up_runs", (json_int_t)experiment->warm_up_runs, "timeout_s",
		real_if(experiment->timeout_ns, (double)experiment->timeout_ns / 1e9), "value",
		"unit", json_string_or_null(experiment->unit), "better",
		experiment->higher_is_better ? "higher" : "lower", "arms", arms_to_json(experiment),
		"stopping", stopping_to_json(experiment), "warm_up_order",
		order_to_json(experiment, 0, experiment->warm_up_runs), "order",
		order_to_json(experiment, experiment->warm_up_runs, experiment->blocks), "looks",
		experiment->looks, "stopped", experiment->stopped, "rule_met",
		experiment->rule_met);
}

static int bad_key(struct message *message, const char *key)
{
	return message_set(message, -EINVAL, "\"%s\" is missing or wrong", key);
}

static char *copy_string(const json_t *object, const char *key)
{
	const char *text = json_get_string(object, key, NULL);

	return text ? strdup(text) : NULL;
}

static int arm_from_json(struct experiment *experiment, const json_t *json, struct message *message)
{
	const json_t *command = json_object_get(json, "command"), *word;
	const char *name = json_get_string(json, "name", "");
	struct experiment_arm *arm = &experiment->arms[experiment->arm_count];
	size_t i;

	if (experiment_check_arm_name(name, NULL) || experiment_find_arm(experiment, name) >= 0 ||
	    json_array_size(command) == 0)
		return bad_key(message, "arms");
	memset(arm, 0, sizeof(*arm));
	arm->name = strdup(name);
	arm->argv = calloc(json_array_size(command) + 1, sizeof(*arm->argv));
	experiment->arm_count++;
	if (!arm->name || !arm->argv)
		return -ENOMEM;
	json_array_foreach (command, i, word) {
		if (!json_is_string(word))
			return bad_key(message, "arms.command");
		arm->argv[i] = strdup(json_string_value(word));
		if (!arm->argv[i])
			return -ENOMEM;
	}
	arm->shell = json_is_true(json_object_get(json, "shell"));
	arm->kernel = copy_string(json, "kernel");
	arm->decision = copy_string(json, "decision");
	arm->decided_after = json_get_int64(json, "decided_after_block", 0);
	return 0;
}

static int rows_from_json(struct experiment *experiment, const json_t *blocks, size_t first,
			  size_t count, const char *key, struct message *message)
{
	size_t arms = experiment->arm_count;

	if (json_array_size(blocks) != count)
		return bad_key(message, key);
	for (size_t row = 0; row < count; row++) {
		const json_t *block = json_array_get(blocks, row);
		uint64_t seen = 0;

		if (json_array_size(block) != arms)
			return bad_key(message, key);
		for (size_t i = 0; i < arms; i++) {
			const char *name = json_string_value(json_array_get(block, i));
			int arm = name ? experiment_find_arm(experiment, name) : -ENOENT;

			if (arm < 0 || seen & UINT64_C(1) << arm)
				return bad_key(message, key);
			seen |= UINT64_C(1) << arm;
			experiment->order[(first + row) * arms + i] = (size_t)arm;
		}
	}
	return 0;
}

static int order_from_json(struct experiment *experiment, const json_t *json,
			   struct message *message)
{
	size_t warm_up = (size_t)experiment->warm_up_runs, blocks = (size_t)experiment->blocks;
	int error;

	experiment->order =
		calloc((warm_up + blocks) * experiment->arm_count, sizeof(*experiment->order));
	if (!experiment->order)
		return -ENOMEM;
	error = rows_from_json(experiment, json_object_get(json, "warm_up_order"), 0, warm_up,
			       "warm_up_order", message);
	if (!error)
		error = rows_from_json(experiment, json_object_get(json, "order"), warm_up, blocks,
				       "order", message);
	return error;
}

static int stopping_from_json(struct experiment *experiment, const json_t *json,
			      struct message *message)
{
	struct experiment_stopping *stopping = &experiment->stopping;
	const char *rule = json_get_string(json, "rule", "");
	int reference = experiment_find_arm(experiment, json_get_string(json, "against", ""));
	size_t i;

	for (i = 0; i < ARRAY_SIZE(rule_names); i++)
		if (strcmp(rule, rule_names[i]) == 0)
			break;
	if (i == ARRAY_SIZE(rule_names))
		return bad_key(message, "stopping.rule");
	if (reference < 0)
		return bad_key(message, "stopping.against");
	stopping->rule = (enum experiment_rule)i;
	stopping->reference = (size_t)reference;
	stopping->metric = copy_string(json, "metric");
	stopping->alpha = json_get_number(json, "alpha", stopping->alpha);
	stopping->min_effect = json_get_number(json, "min_effect", stopping->min_effect);
	stopping->target_ci = json_get_number(json, "target_ci", 0);
	if (!(stopping->alpha > 0 && stopping->alpha < 1))
		return bad_key(message, "stopping.alpha");
	if (stopping->rule == RULE_TARGET_CI && !(stopping->target_ci > 0))
		return bad_key(message, "stopping.target_ci");
	return 0;
}

/* The plain members; arms, order and rule follow. */
static int members_from_json(struct experiment *experiment, const json_t *json,
			     struct message *message)
{
	const json_t *value = json_object_get(json, "value");
	json_t *looks = json_object_get(json, "looks");
	int64_t seed = json_get_int64(json, "seed", -1);
	char *directory = copy_string(json, "working_directory");

	if (!directory)
		return bad_key(message, "working_directory");
	free(experiment->working_directory);
	experiment->working_directory = directory;
	snprintf(experiment->created, sizeof(experiment->created), "%s",
		 json_get_string(json, "created", ""));
	experiment->blocks = json_get_int64(json, "blocks", -1);
	experiment->warm_up_runs = json_get_int64(json, "warm_up_runs", -1);
	if (experiment->blocks < 1 || experiment->blocks > 1 << 20)
		return bad_key(message, "blocks");
	if (experiment->warm_up_runs < 0 || experiment->warm_up_runs > 1 << 20)
		return bad_key(message, "warm_up_runs");
	if (seed < 0 || seed > EXPERIMENT_SEED_MAX)
		return bad_key(message, "seed");
	experiment->seed = (uint64_t)seed;
	experiment->timeout_ns = llround(json_get_number(json, "timeout_s", 0) * 1e9);
	experiment->unit = copy_string(value, "unit");
	experiment->higher_is_better =
		strcmp(json_get_string(value, "better", "lower"), "higher") == 0;
	experiment->host = json_incref(json_object_get(json, "host"));
	if (json_is_array(looks)) {
		json_decref(experiment->looks);
		experiment->looks = json_incref(looks);
	}
	experiment->stopped = copy_string(json, "stopped");
	experiment->rule_met = json_is_true(json_object_get(json, "rule_met"));
	return 0;
}

int experiment_from_json(const json_t *json, struct experiment **ret_experiment,
			 struct message *message)
{
	const json_t *arms = json_object_get(json, "arms"), *arm;
	struct experiment *experiment;
	size_t i;
	int error;

	if (strcmp(json_get_string(json, "schema", ""), EXPERIMENT_SCHEMA) != 0)
		return message_set(message, -EINVAL, "\"schema\" is not %s", EXPERIMENT_SCHEMA);
	if (json_array_size(arms) == 0 || json_array_size(arms) > EXPERIMENT_ARMS_MOST)
		return bad_key(message, "arms");
	experiment = experiment_new(json_get_string(json, "name", "experiment"));
	if (!experiment)
		return message_set_errno(message, -ENOMEM, "experiment");
	error = members_from_json(experiment, json, message);
	json_array_foreach (arms, i, arm)
		if (!error)
			error = arm_from_json(experiment, arm, message);
	if (!error)
		error = order_from_json(experiment, json, message);
	if (!error)
		error = stopping_from_json(experiment, json_object_get(json, "stopping"), message);
	if (error) {
		experiment_free(experiment);
		return error == -ENOMEM ? message_set_errno(message, error, "experiment") : error;
	}
	*ret_experiment = experiment;
	return 0;
}

int experiment_save(const struct experiment *experiment, const char *directory,
		    struct message *message)
{
	char path[PATH_MAX];
	json_t *json;
	char *text;
	int error;

	if (snprintf(path, sizeof(path), "%s/experiment.json", directory) >= (int)sizeof(path))
		return message_set_errno(message, -ENAMETOOLONG, "%.200s", directory);
	json = experiment_to_json(experiment);
	text = json ? json_dumps(json, JSON_INDENT(1) | JSON_REAL_PRECISION(15)) : NULL;
	error = text ? file_replace(path, text, strlen(text)) : -ENOMEM;
	free(text);
	json_decref(json);
	return error ? message_set_errno(message, error, "cannot write %s", path) : 0;
}

int experiment_load(const char *directory, struct experiment **ret_experiment,
		    struct message *message)
{
	char path[PATH_MAX];
	struct message why;
	json_t *json;
	int error;

	if (snprintf(path, sizeof(path), "%s/experiment.json", directory) >= (int)sizeof(path))
		return message_set_errno(message, -ENAMETOOLONG, "%.200s", directory);
	error = json_read_file(path, &json, message);
	if (error)
		return error;
	error = experiment_from_json(json, ret_experiment, &why);
	json_decref(json);
	return error ? message_set(message, error, "%s: %s", path, why.text) : 0;
}
