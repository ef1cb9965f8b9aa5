/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/exit.h"
#include "base/parse.h"
#include "command.h"
#include "history_options.h"

static const struct history_part *const parts[] = {
	&history_part_add,     &history_part_list,	  &history_part_show,
	&history_part_check,   &history_part_acknowledge, &history_part_rm,
	&history_part_rebuild, &history_part_plot,	  &history_part_export,
};
#define PARTS ARRAY_SIZE(parts)

/* -EACCES and the like are files here, not a machine that cannot measure. */
int history_fail(int error, const struct message *message)
{
	command_error(HISTORY_NAME, "%s", message->text[0] ? message->text : strerror(-error));
	return error == -ENOTSUP ? EXIT_SKIPPED : EXIT_FAILED;
}

int history_take_when(void *data, const char *argument, struct message *message)
{
	struct history_settings *settings = data;
	int64_t seconds;

	if (parse_int64(argument, -62135596800, 253402300799, &seconds) == 0) {
		settings->commit_time_us = seconds * 1000000;
		return 0;
	}
	if (time_parse_rfc3339(argument, &settings->commit_time_us) == 0)
		return 0;
	return message_set(message, -EINVAL,
			   "--commit-time %s: seconds since 1970 or RFC 3339 is wanted (git show "
			   "-s --format=%%ct)",
			   argument);
}

struct history_filter history_filter_of(const struct history_settings *settings)
{
	return (struct history_filter){.series = settings->series,
				       .machine = settings->machine,
				       .benchmark = settings->benchmark,
				       .arm = settings->arm,
				       .metric = settings->metric,
				       .branch = settings->branch};
}

int history_on_data(const struct history_settings *settings, const char *part, size_t operands,
		    bool points, history_work work)
{
	struct history_filter filter = history_filter_of(settings);
	struct history history = {.database = NULL};
	struct history_data data = {.series = NULL};
	struct message message = {""};
	int error;

	if (operands) {
		command_error(HISTORY_NAME, "%s: takes options alone (--series N)", part);
		return EXIT_USAGE;
	}
	error = history_open(settings->db, false, &history, &message);
	if (!error)
		error = history_read(&history, &filter, points, &data, &message);
	if (!error)
		error = work(&history, settings, &data, &message);
	history_data_free(&data);
	history_close(&history);
	return error ? history_fail(error, &message) : EXIT_DONE;
}

static void help(void)
{
	fputs("usage: syslat history PART [OPTION]... [OPERAND]...\n"
	      "Keeps runs of many commits and machines, and tells when a level has changed.\n\n",
	      stdout);
	for (size_t i = 0; i < PARTS; i++)
		printf("  %-12s %s\n", parts[i]->name, parts[i]->summary);
	fputs("\nsyslat history PART --help tells the options of one.\n"
	      "Exit of check: 0 no confirmed regression, 3 a confirmed regression, 4 the newest "
	      "runs are invalid.\n",
	      stdout);
}

static int run_part(const struct history_part *part, int argc, char **argv)
{
	struct history_settings settings = {.db = HISTORY_DEFAULT,
					    .commit_time_us = INT64_MIN,
					    .check = CHECK_SETTINGS_DEFAULT,
					    .confirm_runs = 40,
					    .confirm_dir = "results/confirm"};
	struct command_page page = {.name = HISTORY_NAME,
				    .usage = part->usage,
				    .about = part->summary,
				    .rows = part->rows,
				    .row_count = part->row_count};
	int first = argc, status;

	if (!command_parse(&page, &settings, argc, argv, &first, &status))
		return status;
	return part->run(&settings, argv + first, (size_t)(argc - first));
}

static int run_history(int argc, char **argv)
{
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		help();
		return EXIT_DONE;
	}
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		command_version();
		return EXIT_DONE;
	}
	for (size_t i = 0; argc > 1 && i < PARTS; i++)
		if (strcmp(argv[1], parts[i]->name) == 0)
			return run_part(parts[i], argc - 1, argv + 1);
	if (argc > 1)
		command_error(HISTORY_NAME, "\"%s\" is no part; syslat history --help lists them",
			      argv[1]);
	else
		command_error(HISTORY_NAME, "a part is wanted (add, list, check...); syslat "
					    "history --help lists them");
	return EXIT_USAGE;
}

const struct command command_history = {
	HISTORY_NAME,
	"keep runs of many commits, find when it got slower",
	run_history,
};
