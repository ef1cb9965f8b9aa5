/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/exit.h"
#include "base/json.h"
#include "base/options.h"
#include "command.h"
#include "ops.h"
#include "record/record.h"
#include "record/store.h"

#define NAME "explain"

struct explain_options {
	const char *json, *arm;
};

static const struct option_row rows[] = {
	{OPTION_STRING, 0, "arm", "NAME", "only runs of this arm",
	 offsetof(struct explain_options, arm)},
	{OPTION_STRING, 0, "json", "FILE", "write the causes as JSON (-: instead of the text)",
	 offsetof(struct explain_options, json)},
};

static bool is_wanted(const struct explain_options *options, const struct record *record)
{
	return !options->arm || (record->arm && strcmp(record->arm, options->arm) == 0);
}

static void print_heading(const struct record *record)
{
	printf("%s%s%s, %s, started %s, trace level %s\n", record->benchmark,
	       record->arm ? " " : "", record->arm ? record->arm : "",
	       record->measure ? record->measure : "no measure", record->started,
	       record->trace_level ? record->trace_level : "unknown");
}

static void print_notes(const struct record *record)
{
	const json_t *note;
	size_t i;

	/* Why there are no better causes. */
	json_array_foreach (record->notes, i, note) {
		if (strncmp(json_string_value(note), "causes", 6) == 0)
			printf("note: %s\n", json_string_value(note));
	}
}

static json_t *causes_json(const struct record *record)
{
	json_t *object = json_object();
	json_t *account = json_object_get(record->counters, "causes");

	json_put(object, "id", json_string(record->id));
	json_put(object, "arm", json_string_or_null(record->arm));
	json_put(object, "started", json_string(record->started));
	json_put(object, "trace_level", json_string_or_null(record->trace_level));
	json_put(object, "causes", record->causes ? json_incref(record->causes) : json_array());
	json_put(object, "account", account ? json_incref(account) : json_null());
	return object;
}

/* A run with causes among the wanted; how many there were in *ret_shown. */
static int show(const struct explain_options *options, struct record *const *records, size_t count,
		size_t *ret_shown, struct message *message)
{
	bool text = !options->json || !command_is_stdout(options->json);
	json_t *list = json_array();
	int error = 0;

	*ret_shown = 0;
	for (size_t i = 0; i < count; i++) {
		if (!is_wanted(options, records[i]) || json_array_size(records[i]->causes) == 0)
			continue;
		if (text) {
			if (*ret_shown > 0)
				putchar('\n');
			print_heading(records[i]);
			print_notes(records[i]);
			report_with(REPORT_OF_CAUSES)->run(stdout, records[i]);
		}
		json_array_append_new(list, causes_json(records[i]));
		(*ret_shown)++;
	}
	if (options->json && *ret_shown > 0)
		error = command_write_json(options->json, json_incref(list), message);
	json_decref(list);
	if (!error && (fflush(stdout) == EOF || ferror(stdout)))
		error = message_set(message, -EIO, "cannot write to standard output");
	return error;
}

static int explain(const struct explain_options *options, const char *path)
{
	struct message message = {""};
	struct record **records;
	size_t count, shown = 0;
	bool torn;
	int error;

	error = store_read(path, &records, &count, &torn, &message);
	if (error) {
		command_error(NAME, "%s", message.text[0] ? message.text : strerrordesc_np(-error));
		return EXIT_FAILED;
	}
	error = show(options, records, count, &shown, &message);
	store_free(records, count);
	if (error) {
		command_error(NAME, "%s", message.text);
		return EXIT_FAILED;
	}
	if (shown == 0) {
		command_error(
			NAME, "%s: no run%s%s has causes: measure with --explain or --trace light",
			path, options->arm ? " of arm " : "", options->arm ? options->arm : "");
		return EXIT_FAILED;
	}
	return EXIT_DONE;
}

static const struct command_page page = {
	.name = NAME,
	.usage = "syslat explain [options] RECORD",
	.about = "Says why the worst delays of a recorded run happened. RECORD: a record, "
		 "runs.jsonl, the folder of an experiment, or - for standard input.",
	.rows = rows,
	.row_count = ARRAY_SIZE(rows),
	.wanted = "no record is named: see --help",
};

static int run_explain(int argc, char **argv)
{
	struct explain_options options = {0};
	int first = argc, status;

	if (!command_parse(&page, &options, argc, argv, &first, &status))
		return status;
	if (first == argc - 1)
		return explain(&options, argv[first]);
	command_error(NAME, "one record at a time: see --help");
	return EXIT_USAGE;
}

const struct command command_explain = {
	NAME,
	"say why the worst delays of a recorded run happened",
	run_explain,
};
