/* SPDX-License-Identifier: MIT */
#include "base/clock.h"
#include "base/options.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"

#define HELP_COLUMN 28
#define HELP_WIDTH 79

static void *member(void *settings, size_t offset)
{
	return (char *)settings + offset;
}

static const struct option_row *find_short(const struct option_row *rows, size_t count, char name)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].kind != OPTION_SECTION && rows[i].short_name == name)
			return &rows[i];
	return NULL;
}

static const struct option_row *find_long(const struct option_row *rows, size_t count,
					  const char *name, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (rows[i].kind != OPTION_SECTION && rows[i].long_name &&
		    strlen(rows[i].long_name) == length &&
		    strncmp(rows[i].long_name, name, length) == 0)
			return &rows[i];
	return NULL;
}

static bool takes_argument(const struct option_row *row)
{
	return row->kind != OPTION_FLAG && row->argument && !row->optional_argument;
}

/* "--limit" or "-t", as the user may type it, for messages. */
static const char *name_of(const struct option_row *row, char buffer[64])
{
	if (row->long_name)
		snprintf(buffer, 64, "--%s", row->long_name);
	else
		snprintf(buffer, 64, "-%c", row->short_name);
	return buffer;
}

static int set_choice(const struct option_row *row, void *settings, const char *argument,
		      const char *name, struct message *message)
{
	char list[256] = "";
	size_t used = 0;

	for (size_t i = 0; row->choices[i]; i++) {
		if (strcmp(row->choices[i], argument) == 0) {
			*(const char **)member(settings, row->offset) = row->choices[i];
			return 0;
		}
		if (used < sizeof(list))
			used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%s",
						 i ? ", " : "", row->choices[i]);
	}
	return message_set(message, -EINVAL, "%s: '%s' is none of %s", name, argument, list);
}

static int set_int(const struct option_row *row, void *settings, const char *argument,
		   const char *name, struct message *message)
{
	int64_t value;
	int error = parse_int64(argument, row->minimum, row->maximum, &value);

	if (error == -ERANGE)
		return message_set(message, -EINVAL, "%s: %s is not within %lld to %lld", name,
				   argument, (long long)row->minimum, (long long)row->maximum);
	if (error)
		return message_set(message, -EINVAL, "%s: '%s' is not a whole number", name,
				   argument);
	*(int64_t *)member(settings, row->offset) = value;
	return 0;
}

static int set_duration(const struct option_row *row, void *settings, const char *argument,
			const char *name, struct message *message)
{
	char low[32], high[32];
	int64_t value;
	int error = parse_duration_ns(argument, row->unit_ns ? row->unit_ns : NS_PER_S,
				      row->minimum < 0, &value);

	if (error == -EINVAL)
		return message_set(message, -EINVAL,
				   "%s: '%s' is not a duration: write it like 250us, 2ms, 1.5s",
				   name, argument);
	if (error == -ERANGE || value < row->minimum || (row->maximum && value > row->maximum))
		return message_set(message, -EINVAL, "%s: %s is not within %s to %s", name,
				   argument, format_duration(row->minimum, low, sizeof(low)),
				   row->maximum ? format_duration(row->maximum, high, sizeof(high))
						: "292 years");
	if (error)
		return error;
	*(int64_t *)member(settings, row->offset) = value;
	return 0;
}

static int set_double(const struct option_row *row, void *settings, const char *argument,
		      const char *name, struct message *message)
{
	double value;

	if (parse_double(argument, &value) < 0)
		return message_set(message, -EINVAL, "%s: '%s' is not a number", name, argument);
	if (row->minimum != row->maximum &&
	    (value < (double)row->minimum || value > (double)row->maximum))
		return message_set(message, -EINVAL, "%s: %s is not within %lld to %lld", name,
				   argument, (long long)row->minimum, (long long)row->maximum);
	*(double *)member(settings, row->offset) = value;
	return 0;
}

static int set_size(const struct option_row *row, void *settings, const char *argument,
		    const char *name, struct message *message)
{
	struct size_value value;
	char least[32];

	if (parse_size(argument, &value) < 0)
		return message_set(message, -EINVAL,
				   "%s: '%s' is not a size: write it like 512M, 2G or 50%%", name,
				   argument);
	if (!value.is_percent && value.bytes < (uint64_t)row->minimum)
		return message_set(message, -EINVAL, "%s: %s is less than %s", name, argument,
				   format_size((uint64_t)row->minimum, least, sizeof(least)));
	*(struct size_value *)member(settings, row->offset) = value;
	return 0;
}

static int apply(const struct option_row *row, void *settings, const char *argument,
		 struct message *message)
{
	char buffer[64];
	const char *name = name_of(row, buffer);
	int error = 0;

	if (row->settings)
		settings = row->settings;
	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)member(settings, row->offset) = true;
		break;
	case OPTION_INT:
		error = set_int(row, settings, argument, name, message);
		break;
	case OPTION_DURATION:
		error = set_duration(row, settings, argument, name, message);
		break;
	case OPTION_SIZE:
		error = set_size(row, settings, argument, name, message);
		break;
	case OPTION_DOUBLE:
		error = set_double(row, settings, argument, name, message);
		break;
	case OPTION_STRING:
		if (!*argument) /* a shell variable that is not set, most likely */
			return message_set(message, -EINVAL, "%s: the argument %s is empty", name,
					   row->argument);
		*(const char **)member(settings, row->offset) = argument;
		break;
	case OPTION_CHOICE:
		error = set_choice(row, settings, argument, name, message);
		break;
	case OPTION_CALL:
		error = row->call(settings, argument, message);
		break;
	case OPTION_SECTION:
		break;
	}
	if (!error && row->given_offset)
		*(bool *)member(settings, row->given_offset) = true;
	return error;
}

struct parser {
	const struct option_row *rows;
	size_t count;
	void *settings;
	int argc, at;
	char **argv;
	struct message *message;
};

static int parse_long(struct parser *parser)
{
	const char *name = parser->argv[parser->at] + 2;
	size_t length = strcspn(name, "=");
	const char *argument = name[length] == '=' ? name + length + 1 : NULL;
	const struct option_row *row = find_long(parser->rows, parser->count, name, length);

	if (!row && !argument && strcmp(name, "help") == 0)
		return OPTIONS_HELP;
	if (!row && !argument && strcmp(name, "version") == 0)
		return OPTIONS_VERSION;
	if (!row)
		return message_set(parser->message, -EINVAL, "unknown option --%.*s: see --help",
				   (int)length, name);
	parser->at++;
	if (takes_argument(row) && !argument) {
		if (parser->at >= parser->argc)
			return message_set(parser->message, -EINVAL, "--%s needs %s",
					   row->long_name, row->argument);
		argument = parser->argv[parser->at++];
	} else if (!takes_argument(row) && !row->optional_argument && argument) {
		return message_set(parser->message, -EINVAL, "--%s takes no argument",
				   row->long_name);
	}
	return apply(row, parser->settings, argument, parser->message);
}

static int parse_short(struct parser *parser)
{
	const char *letters = parser->argv[parser->at++] + 1;

	while (*letters) {
		char letter = *letters++;
		const struct option_row *row = find_short(parser->rows, parser->count, letter);
		const char *argument = NULL;
		int error;

		if (!row && letter == 'h')
			return OPTIONS_HELP;
		if (!row)
			return message_set(parser->message, -EINVAL,
					   "unknown option -%c: see --help", letter);
		if (takes_argument(row)) {
			if (*letters)
				argument = letters;
			else if (parser->at < parser->argc)
				argument = parser->argv[parser->at++];
			else
				return message_set(parser->message, -EINVAL, "-%c needs %s", letter,
						   row->argument);
			letters = "";
		}
		error = apply(row, parser->settings, argument, parser->message);
		if (error)
			return error;
	}
	return 0;
}

int options_parse(const struct option_row *rows, size_t count, void *settings, int argc,
		  char **argv, int stop_at_operand, int *ret_first, struct message *message)
{
	struct parser parser = {rows, count, settings, argc, 1, argv, message};
	char **operands = calloc((size_t)argc + 1, sizeof(*operands));
	int operand_count = 0, result = 0;

	if (!operands)
		return -ENOMEM;
	while (parser.at < argc && result == 0) {
		const char *word = argv[parser.at];

		if (strcmp(word, "--") == 0) {
			parser.at++;
			break;
		}
		if (word[0] == '-' && word[1] == '-') {
			result = parse_long(&parser);
		} else if (word[0] == '-' && word[1] != '\0') {
			result = parse_short(&parser);
		} else {
			if (stop_at_operand)
				break;
			operands[operand_count++] = argv[parser.at++];
		}
	}
	if (result == 0) {
		/* Operands seen so far go right before what is left. */
		memcpy(argv + parser.at - operand_count, operands,
		       (size_t)operand_count * sizeof(*operands));
		*ret_first = parser.at - operand_count;
	}
	free(operands);
	return result;
}

/* @text wrapped to the help's width, every line indented to @column; the first starts there. */
static void print_wrapped(FILE *stream, const char *text, int column)
{
	int width = HELP_WIDTH - column;

	while (*text) {
		size_t length = strcspn(text, "\n");

		if (length > (size_t)width) {
			length = (size_t)width;
			while (length > 0 && text[length] != ' ')
				length--;
			if (length == 0)
				length = strcspn(text, " \n");
		}
		fprintf(stream, "%.*s\n", (int)length, text);
		text += length;
		while (*text == ' ' || *text == '\n') {
			bool newline = *text == '\n';

			text++;
			if (newline)
				break;
		}
		if (*text)
			fprintf(stream, "%*s", column, "");
	}
}

static void print_row(FILE *stream, const struct option_row *row)
{
	char left[80];
	int length = 0;

	if (row->short_name && row->long_name)
		length = snprintf(left, sizeof(left), "  -%c, --%s", row->short_name,
				  row->long_name);
	else if (row->short_name)
		length = snprintf(left, sizeof(left), "  -%c", row->short_name);
	else
		length = snprintf(left, sizeof(left), "      --%s", row->long_name);
	if (row->argument)
		length += snprintf(left + length, sizeof(left) - (size_t)length,
				   row->optional_argument ? "[=%s]" : " %s", row->argument);
	if (length > HELP_COLUMN - 2)
		fprintf(stream, "%s\n%*s", left, HELP_COLUMN, "");
	else
		fprintf(stream, "%-*s", HELP_COLUMN, left);
	print_wrapped(stream, row->help, HELP_COLUMN);
}

void options_help(FILE *stream, const char *usage, const char *about, const struct option_row *rows,
		  size_t count)
{
	fprintf(stream, "usage: %s\n\n", usage);
	print_wrapped(stream, about, 0);
	if (count > 0 && rows[0].kind != OPTION_SECTION)
		fputc('\n', stream);
	for (size_t i = 0; i < count; i++) {
		if (rows[i].kind == OPTION_SECTION)
			fprintf(stream, "\n%s:\n", rows[i].long_name);
		else
			print_row(stream, &rows[i]);
	}
	fprintf(stream, "\n  -h, --help                show this help\n"
			"      --version             show the version\n");
}

/* A line of text must begin with no request, and hold no escape. */
static void print_man_text(FILE *stream, const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stream);
	for (; *text; text++)
		fputs(*text == '\\' ? "\\e" : (const char[]){*text, '\0'}, stream);
	fputc('\n', stream);
}

void options_man(FILE *stream, const struct option_row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		fprintf(stream, ".It Fl -%s", rows[i].long_name);
		if (rows[i].argument)
			fprintf(stream, rows[i].optional_argument ? " Ns Op = Ns Ar %s" : " Ar %s",
				rows[i].argument);
		fputc('\n', stream);
		print_man_text(stream, rows[i].help);
	}
}
