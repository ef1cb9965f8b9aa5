/* SPDX-License-Identifier: MIT */
#include "common.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "build_id.h"
#include "config.h"
#include "run/program.h"

const char *const benchmark_progress_choices[] = {"auto", "always", "never", NULL};

volatile sig_atomic_t benchmark_interrupted;

static void on_signal(int number)
{
	benchmark_interrupted = number;
}

void benchmark_catch_signals(void)
{
	program_catch_signals(on_signal);
}

int benchmark_fail(const struct benchmark *benchmark, enum exit_code code, const char *text)
{
	fprintf(stderr, "%s: %s\n", benchmark->name, text);
	return code;
}

int benchmark_finish_output(const struct benchmark *benchmark)
{
	if (fflush(stdout) == EOF || ferror(stdout))
		return benchmark_fail(benchmark, EXIT_FAILED,
				      "cannot write the result to standard output");
	return EXIT_DONE;
}

int benchmark_each_word(void *settings, const char *list,
			int (*add)(void *settings, const char *word, struct message *message),
			struct message *message)
{
	for (const char *at = list;; at++) {
		size_t length = strcspn(at, ",");
		char word[64];
		int error;

		snprintf(word, sizeof(word), "%.*s", (int)length, at);
		error = add(settings, word, message);
		if (error)
			return error;
		at += length;
		if (!*at)
			return 0;
	}
}

bool benchmark_begin(const struct benchmark *benchmark, void *settings, int argc, char **argv,
		     int *ret_first, int *ret_code)
{
	struct message message = {""};
	int error;

	error = program_begin(argv, &message);
	if (error) {
		*ret_code = benchmark_fail(benchmark, exit_code_of(error), message.text);
		return false;
	}
	program_survive_failed_writes();
	machine_set_root(getenv("SYSLATENCY_ROOT"));
	error = options_parse(benchmark->rows, benchmark->row_count, settings, argc, argv, 0,
			      ret_first, &message);
	if (error == OPTIONS_HELP)
		options_help(stdout, benchmark->usage, benchmark->about, benchmark->rows,
			     benchmark->row_count);
	else if (error == OPTIONS_VERSION)
		printf("%s (syslatency) " SYSLATENCY_VERSION " " SYSLATENCY_BUILD "\n",
		       benchmark->name);
	if (error > 0)
		*ret_code = benchmark_finish_output(benchmark);
	else if (error < 0)
		*ret_code = benchmark_fail(benchmark, exit_code_of(error), message.text);
	return error == 0;
}

int benchmark_refuse_operands(int argc, char **argv, int first, struct message *message)
{
	if (first < argc)
		return message_set(message, -EINVAL, "'%s' is no option: see --help", argv[first]);
	return 0;
}

static void show_progress(void *data, const char *text)
{
	fprintf(stderr, "\r\033[K%s", text);
	fflush(stderr);
}

int benchmark_measure(const struct benchmark *benchmark, void *settings, const char *json,
		      const char *progress, benchmark_execute *execute,
		      int (*print)(const struct record *record, const void *settings), int argc,
		      char **argv)
{
	bool shows = program_wants_progress(progress);
	struct message message = {""}, left;
	struct record *record;
	int error, code = EXIT_DONE;

	if (program_check_outputs(json, NULL, 0, &message) < 0)
		return benchmark_fail(benchmark, EXIT_FAILED, message.text);
	benchmark_catch_signals();
	error = execute(settings, shows ? show_progress : NULL, &record, &message);
	if (shows)
		fprintf(stderr, "\r\033[K");
	if (error)
		return benchmark_fail(benchmark, exit_code_of(error),
				      message.text[0] ? message.text : strerrordesc_np(-error));
	left = message; /* not everything is put back */
	error = program_finish(record, json, argc, argv, print, settings, &message);
	if (error)
		code = benchmark_fail(benchmark, EXIT_FAILED, message.text);
	else if (json_object_size(record->metrics) == 0)
		code = EXIT_SKIPPED; /* nothing could be measured */
	else if (record->verdict == VERDICT_INVALID)
		code = EXIT_INVALID;
	record_free(record);
	if (left.text[0])
		code = benchmark_fail(benchmark, EXIT_FAILED, left.text);
	return code;
}
