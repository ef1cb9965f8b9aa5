/* SPDX-License-Identifier: MIT */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/message.h"

/*
 * Options as a table: parsing, bounds and the help text all come from it. A program's settings are
 * one struct; each row names the member that it fills by offset.
 */
enum option_kind {
	OPTION_FLAG,	 /* bool */
	OPTION_INT,	 /* int64_t, within [minimum, maximum] */
	OPTION_DURATION, /* int64_t nanoseconds within [minimum, maximum]; bare number in unit_ns */
	OPTION_SIZE,	 /* struct size_value */
	OPTION_DOUBLE,	 /* double, within [minimum, maximum] when they differ */
	OPTION_STRING,	 /* const char *, points into argv */
	OPTION_CHOICE,	 /* const char *, one of choices */
	OPTION_CALL,	 /* call(settings, argument, message): anything else */
	OPTION_SECTION,	 /* no option: a heading of the help text */
};

struct option_row {
	enum option_kind kind;
	char short_name;       /* 0: none */
	const char *long_name; /* NULL: none; for OPTION_SECTION the heading */
	const char *argument;  /* name of the argument in the help; NULL: takes none */
	const char *help;      /* may hold newlines: each starts a new help line */
	size_t offset;	       /* offsetof(struct settings, member) */
	int64_t minimum, maximum;
	int64_t unit_ns;	    /* OPTION_DURATION */
	const char *const *choices; /* OPTION_CHOICE, NULL-terminated */
	int (*call)(void *settings, const char *argument, struct message *message);
	int optional_argument; /* OPTION_CALL: "--explain" or "--explain=10" (NULL argument) */
	size_t given_offset;   /* offset of a bool set when the option was given; 0: none */
	/* What the offsets are of; NULL: the settings that options_parse() is given. For tables of
	   rows from several owners. */
	void *settings;
};

#define OPTIONS_HELP 1	  /* options_parse returned because of -h or --help */
#define OPTIONS_VERSION 2 /* ... --version */

/*
 * GNU style: bundled short flags, "--name value", "--name=value", "--" ends, operands may stand
 * between options unless @stop_at_operand (then everything from the first operand on is left, as
 * "syslat run ... -- command" needs). Long names must be whole. Operands are moved to the end of
 * argv as getopt does; *ret_first is the index of the first.
 * 0, OPTIONS_HELP, OPTIONS_VERSION, or -EINVAL with a message (usage: exit 2).
 */
int options_parse(const struct option_row *rows, size_t count, void *settings, int argc,
		  char **argv, int stop_at_operand, int *ret_first, struct message *message);

/* Writes @usage, @about and the rows, 80 columns. */
void options_help(FILE *stream, const char *usage, const char *about, const struct option_row *rows,
		  size_t count);

/* The rows as items of a list of mdoc(7), for a man page. */
void options_man(FILE *stream, const struct option_row *rows, size_t count);

#endif
