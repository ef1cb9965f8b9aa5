/* SPDX-License-Identifier: MIT */
#include "experiment/record.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/exit.h"
#include "base/json.h"
#include "record/record.h"
#include "record/store.h"

/* The program of an arm as people would name it; of a shell line its first word. */
static void program_name(const struct experiment_arm *arm, char *buffer, size_t size)
{
	const char *text = arm->shell ? arm->argv[2] : arm->argv[0];
	size_t length = strlen(text);

	if (arm->shell) {
		text += strspn(text, " \t\n");
		length = strcspn(text, " \t\n;|&<>");
	}
	snprintf(buffer, size, "%.*s", (int)length, text);
	text = strrchr(buffer, '/');
	text = text && text[1] ? text + 1 : buffer;
	memmove(buffer, text, strlen(text) + 1);
}

/*
 * The benchmark of foreign commands: what all arms have in common. Arms of different programs are
 * compared because the user asks for it; then they share the experiment's name.
 */
static void benchmark_name(const struct experiment *experiment, char *buffer, size_t size)
{
	char other[256];

	program_name(&experiment->arms[0], buffer, size);
	for (size_t i = 1; i < experiment->arm_count; i++) {
		program_name(&experiment->arms[i], other, sizeof(other));
		if (strcmp(buffer, other) != 0) {
			snprintf(buffer, size, "%s", experiment->name);
			return;
		}
	}
	if (!*buffer)
		snprintf(buffer, size, "%s", experiment->name);
}

/* What the command wrote itself: 0, -ENOENT (it wrote nothing), -EINVAL (not one good record). */
static int read_own_record(const char *path, struct record **ret_record, struct message *message)
{
	struct record **records = NULL;
	struct stat status;
	size_t count = 0;
	bool torn = false;
	int error;

	if (stat(path, &status) < 0 || status.st_size == 0)
		return -ENOENT;
	error = store_read(path, &records, &count, &torn, message);
	if (error)
		return error == -ENOMEM ? error : -EINVAL;
	if (count != 1 || torn) {
		store_free(records, count);
		return message_set(message, -EINVAL, "%zu records in its file, one was wanted%s",
				   count, torn ? " (torn)" : "");
	}
	*ret_record = records[0];
	free(records);
	return 0;
}

static int set_value(const struct experiment *experiment, struct record *record, double value)
{
	record->metrics = json_pack("{s:{s:f, s:o, s:s}}", "value", "value", value, "unit",
				    json_string_or_null(experiment->unit ?: ""), "better",
				    experiment->higher_is_better ? "higher" : "lower");
	return record->metrics ? 0 : -ENOMEM;
}

static int foreign_record(const struct experiment *experiment, const struct experiment_place *place,
			  const struct command_result *result, struct record **ret_record)
{
	char name[256];
	struct record *record;

	benchmark_name(experiment, name, sizeof(name));
	record = record_new(name);
	if (!record)
		return -ENOMEM;
	snprintf(record->started, sizeof(record->started), "%s", place->started);
	record->duration_s = (double)result->elapsed_ns / 1e9;
	record->environment = json_incref(place->environment);
	*ret_record = record;
	return 0;
}

/* Exit codes of ours that still mean "measured": a breached threshold, an invalid run. */
static bool measured(const struct command_result *result, bool own, const struct record *record)
{
	int code;

	if (result->exec_error || result->timed_out || !WIFEXITED(result->wait_status))
		return false;
	code = WEXITSTATUS(result->wait_status);
	if (own && code == EXIT_FAILED) /* the result is whole: its guardian was late */
		return json_is_true(json_at(record->counters, "not_put_back"));
	return code == EXIT_DONE || (own && (code == EXIT_INVALID || code == EXIT_REGRESSION));
}

/* Last line of @text that is not blank; its length in *ret_length. */
static const char *last_line(const char *text, size_t *ret_length)
{
	size_t end = strlen(text), start;

	while (end && strchr(" \t\r\n", text[end - 1]))
		end--;
	for (start = end; start && text[start - 1] != '\n';)
		start--;
	*ret_length = end - start;
	return text + start;
}

static void explain_exit(const struct command_result *result, char *why, size_t size)
{
	char how[128];
	size_t length;
	const char *line = last_line(result->stderr_tail, &length);

	command_describe(result, how, sizeof(how));
	if (length)
		snprintf(why, size, "%s: %.*s", how, (int)length, line);
	else
		snprintf(why, size, "%s", how);
}

static int add_place(const struct experiment *experiment, const struct experiment_place *place,
		     const struct command_result *result, struct record *record)
{
	const struct experiment_arm *arm = &experiment->arms[place->arm];
	int error = experiment_set_text(&record->arm, arm->name);

	if (!error && !record->command) {
		record->command = json_array();
		for (size_t i = 0; arm->argv[i]; i++)
			json_array_append_new(record->command, json_string_or_null(arm->argv[i]));
	}
	record->block = place->block;
	record->order = place->order;
	if (place->machine_key)
		snprintf(record->machine_key, sizeof(record->machine_key), "%s",
			 place->machine_key);
	if (result->left_behind)
		record_note(record,
			    "%d processes of the command were still there after it and were ended",
			    result->left_behind);
	return error;
}

int experiment_record(const struct experiment *experiment, const struct experiment_place *place,
		      const struct command_result *result, const char *record_path,
		      struct record **ret_record, char *why, size_t why_size)
{
	struct message message = {""};
	struct record *record = NULL;
	double value = NAN;
	int error = read_own_record(record_path, &record, &message);
	bool own = error == 0, bad_record = error == -EINVAL;

	why[0] = '\0';
	if (error == -ENOENT || bad_record)
		error = foreign_record(experiment, place, result, &record);
	if (!error)
		error = add_place(experiment, place, result, record);
	if (!error && !measured(result, own, record))
		explain_exit(result, why, why_size);
	else if (bad_record)
		snprintf(why, why_size, "its record cannot be read: %s", message.text);
	else if (!own && text_last_number(result->stdout_tail, &value) < 0)
		snprintf(why, why_size, "no number on its standard output (%llu bytes)",
			 (unsigned long long)result->stdout_bytes);
	if (!error && isfinite(value))
		error = set_value(experiment, record, value);
	/* One that was told and had ended by itself is whole; its own record knows, a number does
	 * not. */
	if (result->told && !result->timed_out && (!own || why[0]))
		record->interrupted = true;
	if (!error && record->interrupted)
		snprintf(why, why_size, "interrupted");
	if (!error && why[0]) {
		error = experiment_set_text(&record->status, "failed");
		if (!error)
			error = experiment_set_text(&record->stderr_tail,
						    result->stderr_tail[0] ? result->stderr_tail
									   : why);
		record_note(record, "failed: %s", why);
	}
	if (error) {
		record_free(record);
		return error;
	}
	*ret_record = record;
	return 0;
}
