/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/exit.h"
#include "base/options.h"
#include "command.h"
#include "compare_job.h"
#include "ops.h"

#define NAME "report"

struct settings {
	struct compare_settings compare; /* first: COMPARE_ROWS fill it */
	const char *output, *format;
	bool mail, markdown;
};

static const struct option_row rows[] = {
	{OPTION_SECTION, .long_name = "Form"},
	{OPTION_FLAG, 0, "mail", NULL, "plain text of 72 columns for a mailing list (default)",
	 offsetof(struct settings, mail)},
	{OPTION_FLAG, 0, "markdown", NULL, "Markdown", offsetof(struct settings, markdown)},
	{OPTION_STRING, 0, "format", "NAME",
	 "any report by its name; an output file's ending chooses too (.md, .html)",
	 offsetof(struct settings, format)},
	{OPTION_STRING, 'o', "output", "FILE", "where to write (default: standard output)",
	 offsetof(struct settings, output)},
	COMPARE_ROWS,
};

static const char *format_of_file(const char *path)
{
	const char *dot = path ? strrchr(path, '.') : NULL;

	if (dot && (strcmp(dot, ".md") == 0 || strcmp(dot, ".markdown") == 0))
		return "markdown";
	if (dot && (strcmp(dot, ".html") == 0 || strcmp(dot, ".htm") == 0))
		return "html";
	return "mail";
}

static int choose(const struct settings *settings, const struct report_ops **ret_ops,
		  struct message *message)
{
	const char *name = settings->format;

	if (settings->mail + settings->markdown + (name != NULL) > 1)
		return message_set(message, -EINVAL,
				   "--mail, --markdown and --format exclude each other");
	if (settings->mail)
		name = "mail";
	else if (settings->markdown)
		name = "markdown";
	else if (!name)
		name = format_of_file(settings->output);
	*ret_ops = report_find(name);
	if (!*ret_ops || !(*ret_ops)->compare)
		return message_set(message, -EINVAL,
				   "there is no report \"%s\" for comparisons; --mail, "
				   "--markdown and --format html are",
				   name);
	return 0;
}

/* Whole or not at all: a report that failed half way leaves nothing behind. */
static int write_report(const struct settings *settings, const struct report_ops *ops,
			const struct comparison_report *report, struct message *message)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	int error;

	if (!stream)
		return message_set_errno(message, -ENOMEM, "report");
	error = ops->compare(stream, report);
	if (fclose(stream) != 0 && !error)
		error = -ENOMEM;
	error = error ? compare_explain_plot(report, error, message)
		      : command_write(settings->output, text, size, message);
	free(text);
	return error;
}

static int report(struct compare_job *job, const void *data, char *const *operands, size_t count,
		  struct message *message)
{
	const struct settings *settings = data;
	const struct report_ops *ops = NULL;
	struct comparison_report made;
	int error = choose(settings, &ops, message);

	if (!error)
		error = compare_job_prepare(job, operands, count, true, message);
	if (!error)
		error = compare_job_report(job, &made, 74, message);
	if (!error)
		error = write_report(settings, ops, &made, message);
	return error;
}

static const struct command_page page = {
	.name = NAME,
	.usage = "syslat report [OPTION]... DIR|RECORD|FILE|-...",
	.about = "Writes a comparison with everything that is needed to post it: "
		 "command, machine, plots, tables, verdicts, validity.",
	.rows = rows,
	.row_count = ARRAY_SIZE(rows),
	.wanted = "nothing to report on: give an experiment's folder, records, "
		  "or files of numbers",
};

static int run_report(int argc, char **argv)
{
	struct settings settings = {.compare = COMPARE_SETTINGS_DEFAULT};

	settings.compare.whole = true;
	return compare_main(&page, &settings, argc, argv, report);
}

const struct command command_report = {
	NAME,
	"write a comparison to post: mail, Markdown, HTML",
	run_report,
};
