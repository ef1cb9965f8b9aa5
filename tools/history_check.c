/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "command.h"
#include "history_options.h"
#include "share.h"

/* syslat history check. */

static int take_alpha(void *data, const char *argument, struct message *message)
{
	return parse_share(argument, "--alpha", 0.5,
			   &((struct history_settings *)data)->check.alpha, message);
}

static int take_confirm_alpha(void *data, const char *argument, struct message *message)
{
	return parse_share(argument, "--confirm-alpha", 0.5,
			   &((struct history_settings *)data)->check.confirm_alpha, message);
}

static int take_min_effect(void *data, const char *argument, struct message *message)
{
	return parse_share(argument, "--min-effect", 10,
			   &((struct history_settings *)data)->check.min_effect, message);
}

static int write_junit(const char *path, const struct check_report *report, struct message *message)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	int error;

	if (!stream)
		return message_set_errno(message, -ENOMEM, "JUnit");
	check_write_junit(stream, report);
	error = fclose(stream) != 0 ? message_set_errno(message, -ENOMEM, "JUnit")
				    : command_write(path, text, size, message);
	free(text);
	return error;
}

static bool is_standard_output(const char *path)
{
	return path && strcmp(path, "-") == 0;
}

static int write_report(const struct history_settings *settings, const struct check_report *report,
			struct message *message)
{
	int error = 0;

	if (settings->json)
		error = command_write_json(settings->json, check_to_json(report), message);
	if (!error && settings->junit)
		error = write_junit(settings->junit, report, message);
	if (!error && !is_standard_output(settings->json) && !is_standard_output(settings->junit))
		check_write_text(stdout, report,
				 strcmp(settings->db, HISTORY_DEFAULT) == 0 ? NULL : settings->db);
	return error;
}

static int read_and_check(struct history *history, const struct history_settings *settings,
			  struct history_data *data, struct check_report *report,
			  struct message *message)
{
	struct history_filter filter = history_filter_of(settings);
	int error = history_read(history, &filter, true, data, message);

	return error ? error : check_all(data, &settings->check, report, message);
}

/* What is suspected is measured on both sides, then all is judged again with the fresh runs. */
static int check_and_confirm(struct history *history, const struct history_settings *settings,
			     struct history_data *data, struct check_report *report,
			     struct message *message)
{
	size_t added = 0;
	int error = read_and_check(history, settings, data, report, message);

	if (error || !settings->confirm || !report->suspicions)
		return error;
	error = history_confirm(history, settings, report, &added, message);
	if (error || !added)
		return error;
	check_report_free(report);
	history_data_free(data);
	*report = (struct check_report){.results = NULL};
	return read_and_check(history, settings, data, report, message);
}

static int check(struct history_settings *settings, char *const *operands, size_t count)
{
	struct history history = {.database = NULL};
	struct history_data data = {.series = NULL};
	struct check_report report = {.results = NULL};
	struct message message = {""};
	int error, status = EXIT_DONE;

	(void)operands;
	if (count || (is_standard_output(settings->json) && is_standard_output(settings->junit))) {
		command_error(HISTORY_NAME,
			      count ? "check: takes options alone (--series N)"
				    : "check: --json - and --junit - exclude each other");
		return EXIT_USAGE;
	}
	settings->check.confirm_most = (size_t)settings->confirm_runs;
	error = history_open(settings->db, false, &history, &message);
	if (!error)
		error = check_and_confirm(&history, settings, &data, &report, &message);
	if (!error)
		error = write_report(settings, &report, &message);
	if (!error)
		status = check_exit_code(&report);
	if (report.results)
		check_report_free(&report);
	history_data_free(&data);
	history_close(&history);
	return error ? history_fail(error, &message) : status;
}

static const struct option_row check_rows[] = {
	HISTORY_ROW_DB,
	HISTORY_ROWS_SERIES,
	{OPTION_SECTION, .long_name = "Verdict"},
	{OPTION_CALL, 0, "alpha", "SHARE",
	 "chance that a series without change raises a suspicion (0.75%)", .call = take_alpha},
	{OPTION_CALL, 0, "min-effect", "SHARE", "least change of level that counts (5%)",
	 .call = take_min_effect},
	{OPTION_FLAG, 0, "without-confirmation", NULL, "a suspicion is an alarm",
	 HISTORY_AT(check.without_confirm)},
	{OPTION_SECTION, .long_name = "Confirmation"},
	{OPTION_STRING, 0, "confirm", "COMMAND",
	 "for every suspected regression: run this in a shell, with SYSLATENCY_COMMIT set to\n"
	 "the last good and the first bad commit by turns, until fresh runs decide it",
	 HISTORY_AT(confirm)},
	{OPTION_INT, 0, "confirm-runs", "N", "fresh runs a side at most (40)",
	 HISTORY_AT(confirm_runs), .minimum = 5, .maximum = 500},
	{OPTION_CALL, 0, "confirm-alpha", "SHARE", "chance of a false confirmation (1%)",
	 .call = take_confirm_alpha},
	{OPTION_STRING, 0, "confirm-dir", "DIR",
	 "where the records of fresh runs are kept (results/confirm)", HISTORY_AT(confirm_dir)},
	{OPTION_SECTION, .long_name = "Form"},
	{OPTION_STRING, 0, "json", "FILE", "as JSON; '-': in place of the text", HISTORY_AT(json)},
	{OPTION_STRING, 0, "junit", "FILE", "as JUnit XML for a CI; '-': in place of the text",
	 HISTORY_AT(junit)},
};

const struct history_part history_part_check = {
	"check",
	"has the level of a series changed, and from which commit on?",
	"syslat history check [OPTION]...",
	check,
	check_rows,
	HISTORY_ROW_COUNT(check_rows),
};
