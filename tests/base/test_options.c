/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>
#include <stdbool.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/parse.h"

struct settings {
	bool flag, other, time_given;
	int64_t time_ns, number;
	struct size_value size;
	const char *text, *choice;
	double real;
	char called[32];
};

static int call(void *settings, const char *argument, struct message *message)
{
	snprintf(((struct settings *)settings)->called, 32, "%s", argument ? argument : "(none)");
	return argument && strcmp(argument, "bad") == 0 ? message_set(message, -EINVAL, "bad call")
							: 0;
}

static const char *const choices[] = {"one", "two", NULL};
static const struct option_row rows[] = {
	{.kind = OPTION_SECTION, .long_name = "First"},
	{.kind = OPTION_FLAG,
	 .short_name = 'a',
	 .long_name = "flag",
	 .help = "a flag",
	 .offset = offsetof(struct settings, flag)},
	{.kind = OPTION_FLAG,
	 .short_name = 'b',
	 .help = "another",
	 .offset = offsetof(struct settings, other)},
	{.kind = OPTION_DURATION,
	 .short_name = 't',
	 .long_name = "time",
	 .argument = "TIME",
	 .help = "how long",
	 .offset = offsetof(struct settings, time_ns),
	 .minimum = 0,
	 .maximum = 10 * NS_PER_S,
	 .unit_ns = NS_PER_S,
	 .given_offset = offsetof(struct settings, time_given)},
	{.kind = OPTION_INT,
	 .long_name = "number",
	 .argument = "N",
	 .help = "a number",
	 .offset = offsetof(struct settings, number),
	 .minimum = 1,
	 .maximum = 9},
	{.kind = OPTION_SIZE,
	 .long_name = "size",
	 .argument = "SIZE",
	 .help = "a size",
	 .minimum = 4096,
	 .offset = offsetof(struct settings, size)},
	{.kind = OPTION_DOUBLE,
	 .long_name = "real",
	 .argument = "X",
	 .help = "real",
	 .offset = offsetof(struct settings, real),
	 .minimum = 0,
	 .maximum = 1},
	{.kind = OPTION_STRING,
	 .long_name = "text",
	 .argument = "TEXT",
	 .help = "text",
	 .offset = offsetof(struct settings, text)},
	{.kind = OPTION_CHOICE,
	 .long_name = "choice",
	 .argument = "C",
	 .help = "choice",
	 .offset = offsetof(struct settings, choice),
	 .choices = choices},
	{.kind = OPTION_CALL,
	 .long_name = "call",
	 .argument = "N",
	 .help = "call",
	 .call = call,
	 .optional_argument = 1},
};
#define ROWS ARRAY_SIZE(rows)

static int parse(struct settings *settings, int stop, int *ret_first, char **argv,
		 struct message *message)
{
	int argc = 0;

	while (argv[argc])
		argc++;
	memset(settings, 0, sizeof(*settings));
	return options_parse(rows, ROWS, settings, argc, argv, stop, ret_first, message);
}

static void all_kinds(void **state)
{
	char *argv[] = {"p",	  "-ab", "x", "-t2",	      "--number", "7",	    "--size=1G",
			"--text", "-",	 "y", "--choice=two", "--call",	  "--real", "0.5",
			"--",	  "-z",	 NULL};
	struct settings settings;
	struct message message;
	int first;

	assert_int_equal(parse(&settings, 0, &first, argv, &message), 0);
	assert_true(settings.flag && settings.other && settings.time_given);
	assert_int_equal(settings.time_ns, 2 * NS_PER_S);
	assert_int_equal(settings.number, 7);
	assert_int_equal(settings.size.bytes, 1 << 30);
	assert_string_equal(settings.text, "-");
	assert_string_equal(settings.choice, "two");
	assert_string_equal(settings.called, "(none)");
	assert_true(settings.real == 0.5);
	assert_string_equal(argv[first], "x");
	assert_string_equal(argv[first + 1], "y");
	assert_string_equal(argv[first + 2], "-z");
}

static void stops_at_the_operand(void **state)
{
	char *argv[] = {"p", "-a", "cmd", "-b", NULL};
	struct settings settings;
	int first;

	assert_int_equal(parse(&settings, 1, &first, argv, NULL), 0);
	assert_true(settings.flag);
	assert_false(settings.other);
	assert_int_equal(first, 2);
}

static void bad_input_says_what(void **state)
{
	static const struct {
		char *word, *argument;
		const char *part;
	} cases[] = {
		{"-z", NULL, "unknown option -z"},   {"--zip", NULL, "unknown option --zip"},
		{"--fla", NULL, "unknown option"},   {"-t", NULL, "-t needs TIME"},
		{"--time", "abc", "not a duration"}, {"--time", "11", "not within"},
		{"--time", "-1", "not within"},	     {"--number", "0", "not within"},
		{"--number", "1x", "whole number"},  {"--size", "1Q", "not a size"},
		{"--choice", "three", "one, two"},   {"--flag=1", NULL, "takes no argument"},
		{"--call=bad", NULL, "bad call"},    {"--real", "2", "not within"},
		{"--real", "inf", "not a number"},   {"--size", "0", "less than 4K"},
		{"--size=-1", NULL, "not a size"},   {"--text", "", "TEXT is empty"},
		{"--text=", NULL, "TEXT is empty"},
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		char *argv[] = {"p", cases[i].word, cases[i].argument, NULL};
		struct settings settings;
		struct message message = {""};
		int first;

		assert_int_equal(parse(&settings, 0, &first, argv, &message), -EINVAL);
		if (!strstr(message.text, cases[i].part))
			fail_msg("%s: '%s' lacks '%s'", cases[i].word, message.text, cases[i].part);
	}
}

static void help_comes_from_the_table(void **state)
{
	char *argv[] = {"p", "-h", NULL}, *long_argv[] = {"p", "--version", NULL};
	struct settings settings;
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);
	int first;

	assert_int_equal(parse(&settings, 0, &first, argv, NULL), OPTIONS_HELP);
	assert_int_equal(parse(&settings, 0, &first, long_argv, NULL), OPTIONS_VERSION);
	options_help(stream, "p [options]", "About.", rows, ROWS);
	fclose(stream);
	assert_non_null(strstr(text, "usage: p [options]"));
	assert_non_null(strstr(text, "  -t, --time TIME"));
	assert_non_null(strstr(text, "First:"));
	assert_non_null(strstr(text, "--call[=N]"));
	for (char *line = text; *line; line = strchr(line, '\n') + 1)
		assert_true(strcspn(line, "\n") <= 80);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds),
		cmocka_unit_test(stops_at_the_operand),
		cmocka_unit_test(bad_input_says_what),
		cmocka_unit_test(help_comes_from_the_table),
	};

	return cmocka_run_group_tests_name("base/options", tests, NULL, NULL);
}
