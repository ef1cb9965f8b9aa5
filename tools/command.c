/* SPDX-License-Identifier: MIT */
#include "command.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/file.h"
#include "base/json.h"
#include "build_id.h"
#include "config.h"

void command_error(const char *name, const char *format, ...)
{
	char text[1024];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	for (char *at = text; *at; at++)
		if (*at == '\n' || *at == '\r')
			*at = ' ';
	if (name)
		fprintf(stderr, "syslat %s: %s\n", name, text);
	else
		fprintf(stderr, "syslat: %s\n", text);
}

void command_version(void)
{
	printf("syslatency %s (%s)\n", SYSLATENCY_VERSION, SYSLATENCY_BUILD);
}

bool command_parse(const struct command_page *page, void *settings, int argc, char **argv,
		   int *ret_first, int *ret_status)
{
	struct message message = {""};
	int parsed = options_parse(page->rows, page->row_count, settings, argc, argv,
				   page->stop_at_operand, ret_first, &message);

	*ret_status = EXIT_DONE;
	if (parsed == OPTIONS_HELP) {
		options_help(stdout, page->usage, page->about, page->rows, page->row_count);
		return false;
	}
	if (parsed == OPTIONS_VERSION) {
		command_version();
		return false;
	}
	if (parsed == 0 && (!page->wanted || *ret_first < argc))
		return true;
	command_error(page->name, "%s", parsed < 0 ? message.text : page->wanted);
	*ret_status = EXIT_USAGE;
	return false;
}

bool command_is_stdout(const char *path)
{
	return !path || strcmp(path, "-") == 0;
}

int command_write(const char *path, const char *text, size_t size, struct message *message)
{
	int error;

	if (command_is_stdout(path)) {
		error = fwrite(text, 1, size, stdout) == size ? 0 : -EIO;
		path = "standard output";
	} else {
		error = file_replace(path, text, size);
	}
	return error ? message_set_errno(message, error, "cannot write %s", path) : 0;
}

int command_write_json(const char *path, json_t *value, struct message *message)
{
	char *line = value ? json_line(value) : NULL, *text = NULL;
	int length = line ? asprintf(&text, "%s\n", line) : -1, error;

	json_decref(value);
	free(line);
	if (length < 0)
		return message_set_errno(message, -ENOMEM, "JSON");
	error = command_write(path, text, (size_t)length, message);
	free(text);
	return error;
}
