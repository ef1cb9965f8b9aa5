/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/exit.h"
#include "base/file.h"
#include "base/options.h"
#include "command.h"
#include "imports/import.h"
#include "history/reader.h"
#include "record/store.h"

#define NAME "import"

struct settings {
	struct import_settings import;
	const char *format, *output;
};

#define AT(member) .offset = offsetof(struct settings, member)

static char format_help[256]; /* filled from the table */

static const struct option_row rows[] = {
	{OPTION_STRING, 'o', "output", "DIR", "folder for the records; a new or an empty one",
	 AT(output)},
	{OPTION_STRING, 'f', "format", "NAME", format_help, AT(format)},
	{OPTION_STRING, 0, "arm", "NAME", "what was measured (imported)", AT(import.arm)},
	{OPTION_STRING, 0, "benchmark", "NAME", "what measured it (the tool's name)",
	 AT(import.benchmark)},
	{OPTION_STRING, 0, "kernel", "RELEASE", "that ran", AT(import.kernel)},
	{OPTION_STRING, 0, "machine", "KEY", "up to 16 letters", AT(import.machine)},
	{OPTION_STRING, 0, "started", "TIME", "RFC 3339 (default: the file's time)",
	 AT(import.started)},
	{OPTION_STRING, 0, "metric", "NAME", "of plain numbers (value)", AT(import.metric)},
	{OPTION_STRING, 0, "unit", "NAME", "of plain numbers (none)", AT(import.unit)},
};

static int import_file(const struct settings *settings, const char *path, struct import_list *list,
		       struct message *message)
{
	struct import_settings import = settings->import;
	struct stat status;
	char *text = NULL, when[32];
	size_t size = 0;
	int error = file_read(path, &text, &size);

	if (error)
		return message_set_errno(message, error, "%s", path);
	if (!import.started && stat(path, &status) == 0) {
		struct tm tm;

		gmtime_r(&status.st_mtime, &tm);
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
		import.started = when;
	}
	error = import_text(path, text, size, settings->format, &import, list, message);
	free(text);
	return error;
}

static int check(const struct settings *settings, struct message *message)
{
	char known[256];
	int64_t us;

	if (!settings->output)
		return message_set(message, -EINVAL, "-o DIR is wanted: where the records go");
	if (settings->import.started && time_parse_rfc3339(settings->import.started, &us) < 0)
		return message_set(message, -EINVAL, "--started %s: RFC 3339 is wanted",
				   settings->import.started);
	if (settings->import.machine && strlen(settings->import.machine) > 16)
		return message_set(message, -EINVAL, "--machine %s: 16 letters at most",
				   settings->import.machine);
	if (settings->format && !import_find(settings->format))
		return message_set(message, -EINVAL, "--format %s: one of %s is wanted",
				   settings->format,
				   plugin_names(PLUGINS(imports), known, sizeof(known)));
	return 0;
}

static int import(const struct settings *settings, char *const *operands, size_t count,
		  struct message *message)
{
	struct import_list list = {.records = NULL};
	char runs[4096];
	int error = 0;

	snprintf(runs, sizeof(runs), "%s/runs.jsonl", settings->output);
	if (access(runs, F_OK) == 0)
		error = message_set(message, -EEXIST, "%s is there already: give another -o", runs);
	for (size_t i = 0; i < count && !error; i++)
		error = import_file(settings, operands[i], &list, message);
	if (!error) {
		error = file_make_directories(settings->output);
		if (error)
			message_set_errno(message, error, "cannot make %s", settings->output);
	}
	for (size_t i = 0; i < list.count && !error; i++)
		error = store_append(settings->output, list.records[i], message);
	if (!error)
		error = store_write_text(settings->output, list.records, list.count, message);
	if (!error)
		printf("%s: %zu runs\n", settings->output, list.count);
	import_list_free(&list);
	return error;
}

#define ROWS_MOST 64

static struct option_row all_rows[ROWS_MOST]; /* and those of the formats */

static struct command_page page = {
	.name = NAME,
	.usage = "syslat import -o DIR [OPTION]... FILE...",
	.about = "Makes records of other tools' results, for syslat compare and syslat "
		 "history add.",
	.rows = all_rows,
	.wanted = "nothing to import: give files",
};

static int run_import(int argc, char **argv)
{
	struct settings settings = {.format = NULL};
	struct message message = {""};
	int first = argc, status, error;
	char known[256];

	snprintf(format_help, sizeof(format_help), "%.200s (default: as the text looks)",
		 plugin_names(PLUGINS(imports), known, sizeof(known)));
	memcpy(all_rows, rows, sizeof(rows));
	page.row_count = plugin_options(PLUGINS(imports), all_rows, ARRAY_SIZE(rows), ROWS_MOST);
	if (!command_parse(&page, &settings, argc, argv, &first, &status))
		return status;
	if (check(&settings, &message) < 0) {
		command_error(NAME, "%s", message.text);
		return EXIT_USAGE;
	}
	error = import(&settings, argv + first, (size_t)(argc - first), &message);
	if (!error)
		return EXIT_DONE;
	command_error(NAME, "%s", message.text[0] ? message.text : strerror(-error));
	return EXIT_FAILED;
}

const struct command command_import = {
	NAME,
	"make records of ministat, IGT, cyclictest, rtla results",
	run_import,
};
