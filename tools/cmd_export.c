/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/exit.h"
#include "base/file.h"
#include "base/options.h"
#include "command.h"
#include "exports/export.h"

#define NAME "export"
#define METRICS_MOST 64

struct settings {
	const char *format, *output, *metric, *arm, *commit, *branch, *origin;
	bool include_invalid;
};

#define AT(member) .offset = offsetof(struct settings, member)

static char format_help[256]; /* filled from the table */

static const struct option_row rows[] = {
	{OPTION_STRING, 'f', "format", "NAME", format_help, AT(format)},
	{OPTION_STRING, 'o', "output", "FILE", "where to write (default: standard output)",
	 AT(output)},
	{OPTION_STRING, 0, "metric", "LIST",
	 "mean, max, p99, a name of the record's metrics or a path; commas between\n"
	 "(default: every one that the records have; ministat: mean, else value)",
	 AT(metric)},
	{OPTION_STRING, 0, "arm", "NAME", "that arm alone", AT(arm)},
	{OPTION_STRING, 0, "commit", "NAME", "of the runs (default: as the kernel's release tells)",
	 AT(commit)},
	{OPTION_STRING, 0, "branch", "NAME", "of the commit", AT(branch)},
	{OPTION_STRING, 0, "origin", "NAME", "of kcidb: who sends it (syslatency)", AT(origin)},
	{OPTION_FLAG, 0, "include-invalid", NULL, "runs judged invalid too", AT(include_invalid)},
};

struct metrics {
	const char *names[METRICS_MOST + 1];
	size_t count;
	char *text; /* of --metric */
};

static int split_metrics(const char *list, struct metrics *metrics, struct message *message)
{
	char *rest = metrics->text = strdup(list), *name;

	if (!rest)
		return message_set_errno(message, -ENOMEM, "--metric");
	while ((name = strsep(&rest, ","))) {
		if (!*name || metrics->count == METRICS_MOST)
			return message_set(message, -EINVAL, "--metric %s: 1 to %d names", list,
					   METRICS_MOST);
		metrics->names[metrics->count++] = name;
	}
	return 0;
}

static void add_metric(struct metrics *metrics, const char *name)
{
	for (size_t i = 0; i < metrics->count; i++)
		if (strcmp(metrics->names[i], name) == 0)
			return;
	if (metrics->count < METRICS_MOST)
		metrics->names[metrics->count++] = name;
}

/* Every latency and metric that some record has. */
static void find_metrics(const struct arm_set *set, bool one, struct metrics *metrics)
{
	static const char *const latencies[] = {"mean", "stddev", "min",    "p50", "p90",
						"p99",	"p99.9",  "p99.99", "max"};

	for (size_t i = 0; i < set->count; i++) {
		for (size_t k = 0; k < set->arms[i].record_count; k++) {
			const struct record *record = set->arms[i].records[k];
			const char *name;
			json_t *metric;

			for (size_t l = 0; record->has_latency && l < (one ? 1 : 9); l++)
				add_metric(metrics, latencies[l]);
			json_object_foreach (record->metrics, name, metric)
				if (!one || !metrics->count)
					add_metric(metrics, name);
		}
	}
	if (!metrics->count)
		add_metric(metrics, "value");
}

/* With --arm the others are let go (their records belong to their sources). */
static int choose_arm(struct arm_set *set, const char *name, struct message *message)
{
	int index = name ? arm_set_find(set, name) : 0;
	struct arm chosen;

	if (!name)
		return 0;
	if (index < 0)
		return message_set(message, -EINVAL, "no arm called \"%s\"", name);
	chosen = set->arms[0];
	set->arms[0] = set->arms[index];
	set->arms[index] = chosen;
	return 1;
}

static int write_out(const struct settings *settings, const struct export_ops *ops,
		     const struct arm_set *set, const struct metrics *metrics,
		     struct message *message)
{
	struct export_settings export_settings = {.metrics = metrics->names,
						  .commit = settings->commit,
						  .branch = settings->branch,
						  .origin = settings->origin ? settings->origin
									     : "syslatency",
						  .include_invalid = settings->include_invalid};
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	int error;

	if (!stream)
		return message_set_errno(message, -ENOMEM, "export");
	error = ops->write(stream, set, &export_settings, message);
	if (fclose(stream) != 0 && !error)
		error = message_set_errno(message, -ENOMEM, "export");
	if (!error && settings->output && strcmp(settings->output, "-") != 0) {
		error = file_replace(settings->output, text, size);
		if (error)
			message_set_errno(message, error, "%s", settings->output);
	} else if (!error) {
		fwrite(text, 1, size, stdout);
	}
	free(text);
	return error;
}

static int export(const struct settings *settings, char *const *operands, size_t count,
		  struct message *message)
{
	const struct export_ops *ops = export_find(settings->format);
	struct metrics metrics = {.count = 0};
	struct arm_set *set = NULL;
	size_t arms = 0;
	int error;

	if (!ops)
		return message_set(message, -EINVAL, "--format %s: one of %s is wanted",
				   settings->format, format_help);
	error = arm_set_read(operands, count, 1, &set, message);
	if (error)
		return error == -EINVAL ? -EBADMSG : error;
	if (settings->metric)
		error = split_metrics(settings->metric, &metrics, message);
	else
		find_metrics(set, ops->flags & EXPORT_ONE_METRIC, &metrics);
	if (!error)
		error = choose_arm(set, settings->arm, message);
	arms = set->count;
	if (error > 0) {
		set->count = 1;
		error = 0;
	}
	if (!error)
		error = write_out(settings, ops, set, &metrics, message);
	set->count = arms;
	arm_set_free(set);
	free(metrics.text);
	return error;
}

#define ROWS_MOST 64

static struct option_row all_rows[ROWS_MOST]; /* and those of the formats */

static struct command_page page = {
	.name = NAME,
	.usage = "syslat export --format NAME [OPTION]... DIR|RECORD|FILE|-...",
	.about = "Writes runs in the format of another tool. Failed, interrupted and "
		 "invalid runs stay out.",
	.rows = all_rows,
	.wanted = "--format NAME and an experiment's folder or records are wanted",
};

static int run_export(int argc, char **argv)
{
	struct settings settings = {.format = NULL};
	struct message message = {""};
	int first = argc, status, error;

	plugin_names(PLUGINS(exports), format_help, sizeof(format_help));
	memcpy(all_rows, rows, sizeof(rows));
	page.row_count = plugin_options(PLUGINS(exports), all_rows, ARRAY_SIZE(rows), ROWS_MOST);
	if (!command_parse(&page, &settings, argc, argv, &first, &status))
		return status;
	if (!settings.format) {
		command_error(NAME, "%s", page.wanted);
		return EXIT_USAGE;
	}
	error = export(&settings, argv + first, (size_t)(argc - first), &message);
	if (!error)
		return EXIT_DONE;
	command_error(NAME, "%s", message.text[0] ? message.text : strerror(-error));
	return error == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

const struct command command_export = {
	NAME,
	"write runs for csv, ministat, benchstat, KCIDB, Otava",
	run_export,
};
