/* SPDX-License-Identifier: MIT */
#ifndef COMMAND_H
#define COMMAND_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/options.h"

/*
 * One command of syslat. A command is one file, cmd_<name>.c, that ends in
 *
 *	const struct command command_<name> = {"<name>", "what it does", run_<name>};
 *
 * and one word in the list of tools/meson.build, from which the table is generated.
 * run() gets argv with the command's own name first ("compare"), prints its one line of error
 *itself (command_error), answers --help and --version, and returns an exit code of base/exit.h.
 */
struct command {
	const char *name, *summary;
	int (*run)(int argc, char **argv);
};

extern const struct command *const commands[]; /* generated, NULL-terminated */

/* "syslat NAME: what: why; what to do" on standard error, one line whatever the text holds. */
void command_error(const char *name, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The line of --version, for every command alike. */
void command_version(void);

/* What a command takes, and what its --help says. */
struct command_page {
	const char *name; /* in errors */
	const char *usage, *about;
	const struct option_row *rows;
	size_t row_count;
	const char *wanted; /* error without an operand; NULL: none is needed */
	bool stop_at_operand;
};

/*
 * Options into @settings. --help, --version and wrong usage are answered alike by all: then false,
 * and *ret_status is the exit code. True: go on; operands start at *ret_first.
 */
bool command_parse(const struct command_page *page, void *settings, int argc, char **argv,
		   int *ret_first, int *ret_status);

bool command_is_stdout(const char *path); /* NULL or "-" */

/* Text to a file, whole or not at all, or to standard output. -errno with the reason. */
int command_write(const char *path, const char *text, size_t size, struct message *message);

/* The same with a value as one line of JSON; frees it. */
int command_write_json(const char *path, json_t *value, struct message *message);

#endif
