/* SPDX-License-Identifier: MIT */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "base/file.h"
#include "command.h"
#include "run/program.h"

static void help(FILE *stream)
{
	fputs("Usage: syslat COMMAND [OPTION]... [ARGUMENT]...\n"
	      "Runs, compares, explains and tracks latency measured beside memory load.\n\n"
	      "Commands:\n",
	      stream);
	for (size_t i = 0; commands[i]; i++)
		fprintf(stream, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
	fputs("\nsyslat COMMAND --help tells the options of one.\n"
	      "Exit: 0 done, 1 failed, 2 wrong usage, 3 regression, 4 measured but invalid, "
	      "77 cannot run here.\n",
	      stream);
}

static const struct command *find(const char *name)
{
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, name) == 0)
			return commands[i];
	return NULL;
}

static int unknown(const char *name)
{
	command_error(NULL, "unknown command \"%s\"; syslat help lists the commands", name);
	return EXIT_USAGE;
}

/* "syslat help compare" is "syslat compare --help". */
static int run_help(int argc, char **argv)
{
	const struct command *command;
	char *arguments[3];

	if (argc < 3) {
		help(stdout);
		return EXIT_DONE;
	}
	command = find(argv[2]);
	if (!command)
		return unknown(argv[2]);
	arguments[0] = argv[2];
	arguments[1] = (char[]){"--help"};
	arguments[2] = NULL;
	return command->run(2, arguments);
}

/* A result that could not be written (a full disk, a closed pipe) is no success. */
static int flush_output(int status)
{
	if (fflush(stdout) == 0 && !ferror(stdout))
		return status;
	command_error(NULL, "cannot write to standard output: %m");
	return EXIT_FAILED;
}

int main(int argc, char **argv)
{
	const struct command *command;
	struct message message = {""};
	int error = program_begin(argv, &message);

	if (error) {
		command_error(NULL, "%s", message.text);
		return exit_code_of(error);
	}
	signal(SIGXFSZ, SIG_IGN); /* a file size limit is an error of a write, not a death */
	machine_set_root(getenv("SYSLATENCY_ROOT"));
	if (argc < 2) {
		command_error(NULL, "a command is wanted; syslat help lists them");
		return EXIT_USAGE;
	}
	if (strcmp(argv[1], "--version") == 0) {
		command_version();
		return flush_output(EXIT_DONE);
	}
	if (strcmp(argv[1], "help") == 0 || strcmp(argv[1], "--help") == 0 ||
	    strcmp(argv[1], "-h") == 0)
		return flush_output(run_help(argc, argv));
	command = find(argv[1]);
	if (!command)
		return unknown(argv[1]);
	return flush_output(command->run(argc - 1, argv + 1));
}
