/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/exit.h"
#include "base/json.h"
#include "base/options.h"
#include "command.h"
#include "compare_job.h"
#include "compare_ministat.h"
#include "ops.h"

#define NAME "compare"

struct settings {
	struct compare_settings compare; /* first: COMPARE_ROWS fill it */
	const char *json;
	int64_t width;
	bool ministat, fail_on_slower;
};

static const struct option_row rows[] = {
	COMPARE_ROWS,
	{OPTION_SECTION, .long_name = "Output"},
	{OPTION_INT, 0, "width", "COLUMNS", "of the plot (default 74, or the terminal's)",
	 offsetof(struct settings, width), .minimum = 1, .maximum = 10000},
	{OPTION_FLAG, 0, "ministat", NULL, "hand the same values to the installed ministat",
	 offsetof(struct settings, ministat)},
	{OPTION_STRING, 0, "json", "FILE",
	 "the result as JSON, one line a metric (-: in place of the text)",
	 offsetof(struct settings, json)},
	{OPTION_FLAG, 0, "fail-on-slower", NULL, "exit 3 when an arm is slower than the reference",
	 offsetof(struct settings, fail_on_slower)},
};

static size_t page_width(const struct settings *settings)
{
	struct winsize size;

	if (settings->width)
		return (size_t)settings->width;
	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
	    size.ws_col > 26)
		return (size_t)size.ws_col - 2;
	return 74;
}

/* One line a metric. */
static int write_json(const struct compare_job *job, const char *path, struct message *message)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	int error = stream ? 0 : -ENOMEM;

	for (size_t i = 0; i < job->metrics.count && !error; i++) {
		json_t *json = comparison_to_json(job->comparisons[i]);
		char *line = json ? json_line(json) : NULL;

		json_decref(json);
		error = line && fprintf(stream, "%s\n", line) > 0 ? 0 : -ENOMEM;
		free(line);
	}
	if (stream && fclose(stream) != 0)
		error = -ENOMEM;
	error = error ? message_set_errno(message, error, "JSON")
		      : command_write(path, text, size, message);
	free(text);
	return error;
}

/* The text is made in full before any of it is shown, so that a failure shows one line alone. */
static int write_text(const struct comparison_report *report, struct message *message)
{
	const struct report_ops *ops = report_with(REPORT_OF_COMPARISON);
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
		      : command_write(NULL, text, size, message);
	free(text);
	return error;
}

static bool any_slower(const struct compare_job *job)
{
	for (size_t i = 0; i < job->metrics.count; i++)
		for (size_t j = 0; j < job->comparisons[i]->pair_count; j++)
			if (job->comparisons[i]->pairs[j].verdict == COMPARISON_SLOWER)
				return true;
	return false;
}

static int compare(struct compare_job *job, const void *data, char *const *operands, size_t count,
		   struct message *message)
{
	const struct settings *settings = data;
	size_t width = page_width(settings);
	struct comparison_report report;
	int error = compare_job_prepare(job, operands, count, !settings->ministat, message);

	if (!error && settings->ministat)
		return ministat_run(job, width, message);
	if (!error)
		error = compare_job_report(job, &report, width, message);
	if (!error && settings->json)
		error = write_json(job, settings->json, message);
	if (!error && (!settings->json || !command_is_stdout(settings->json)))
		error = write_text(&report, message);
	return !error && settings->fail_on_slower && any_slower(job) ? EXIT_REGRESSION : error;
}

static const struct command_page page = {
	.name = NAME,
	.usage = "syslat compare [OPTION]... DIR|RECORD|FILE|-...",
	.about = "Compares arms: experiments, records, files of numbers (one a line), "
		 "each also as NAME=PATH.",
	.rows = rows,
	.row_count = ARRAY_SIZE(rows),
	.wanted = "nothing to compare: give an experiment's folder, records, or "
		  "files of numbers",
};

static int run_compare(int argc, char **argv)
{
	struct settings settings = {.compare = COMPARE_SETTINGS_DEFAULT};

	return compare_main(&page, &settings, argc, argv, compare);
}

const struct command command_compare = {
	NAME,
	"compare arms: table, plots, verdicts",
	run_compare,
};
