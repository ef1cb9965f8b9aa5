/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/exit.h"
#include "base/file.h"
#include "base/options.h"
#include "base/parse.h"
#include "command.h"
#include "experiment/experiment.h"
#include "experiment/run.h"
#include "run_options.h"
#include "run_progress.h"

static volatile sig_atomic_t signals_seen;

static void count_signal(int signal)
{
	(void)signal;
	signals_seen++;
}

/* --- the folder --- */

/* results/20261130-115830-gem_syslatency; a second one in that second gets "-2". */
static int choose_directory(const struct run_options *options, const struct experiment *experiment,
			    char *path, size_t size, struct message *message)
{
	char when[32], known[PATH_MAX + 32];
	time_t now = time(NULL);
	struct tm local;

	if (options->directory) {
		if (snprintf(path, size, "%s", options->directory) >= (int)size)
			return message_set_errno(message, -ENAMETOOLONG, "-o");
		snprintf(known, sizeof(known), "%s/experiment.json", path);
		if (access(known, F_OK) == 0)
			return message_set(message, -EINVAL,
					   "%s holds an experiment already: go on with --resume "
					   "%s, or give another -o",
					   path, path);
		snprintf(known, sizeof(known), "%s/runs.jsonl", path);
		if (access(known, F_OK) == 0)
			return message_set(message, -EINVAL,
					   "%s holds runs of something else: give another -o",
					   path);
		return 0;
	}
	localtime_r(&now, &local);
	strftime(when, sizeof(when), "%Y%m%d-%H%M%S", &local);
	for (int number = 1; number < 100; number++) {
		if (number == 1)
			snprintf(path, size, "results/%s-%.100s", when, experiment->name);
		else
			snprintf(path, size, "results/%s-%.100s-%d", when, experiment->name,
				 number);
		if (access(path, F_OK) < 0)
			return 0;
	}
	return message_set(message, -EEXIST, "%s is taken: give -o DIR", path);
}

/* --- what is planned --- */

static void print_order(const struct experiment *experiment)
{
	for (int64_t block = 1 - experiment->warm_up_runs; block <= experiment->blocks; block++) {
		if (block < 1)
			printf("  warm-up %lld:", (long long)(block + experiment->warm_up_runs));
		else
			printf("  block %lld:", (long long)block);
		for (size_t i = 0; i < experiment->arm_count; i++)
			printf(" %s",
			       experiment->arms[experiment_arm_at(experiment, block, i)].name);
		putchar('\n');
	}
}

static void print_rule(const struct experiment *experiment)
{
	const struct experiment_stopping *stopping = &experiment->stopping;

	if (stopping->rule == RULE_UNTIL_DECIDED)
		printf("stops when every arm is decided against %s (alpha %g over all looks and "
		       "pairs, least effect %g%%), at the latest after block %lld\n",
		       experiment->arms[stopping->reference].name, stopping->alpha,
		       100 * stopping->min_effect, (long long)experiment->blocks);
	else if (stopping->rule == RULE_TARGET_CI)
		printf("stops when every median is known to %g%%, at the latest after block "
		       "%lld\n",
		       100 * stopping->target_ci, (long long)experiment->blocks);
}

static void print_plan(const struct experiment *experiment, int64_t missing, int64_t left_ns)
{
	char span[32];

	printf("%s: %lld blocks of %zu arms, seed %llu\n", experiment->name,
	       (long long)experiment->blocks, experiment->arm_count,
	       (unsigned long long)experiment->seed);
	print_rule(experiment);
	for (size_t i = 0; i < experiment->arm_count; i++) {
		const struct experiment_arm *arm = &experiment->arms[i];
		char *line = command_line_format(arm->argv);

		printf("  %s: %s", arm->name, line ? line : "?");
		if (arm->kernel)
			printf("  [kernel %s]", arm->kernel);
		if (arm->decision)
			printf("  [%s since block %lld]", arm->decision,
			       (long long)arm->decided_after);
		putchar('\n');
		free(line);
	}
	print_order(experiment);
	printf("%lld runs to make", (long long)missing);
	if (left_ns >= 0)
		printf(", about %s", format_span(left_ns, span, sizeof(span)));
	putchar('\n');
}

static int dry_run(const struct run_options *options, const struct experiment *experiment,
		   const char *directory, struct message *message)
{
	struct experiment_preview preview = {
		.missing = (experiment->warm_up_runs + experiment->blocks) *
			   (int64_t)experiment->arm_count,
		.left_ns = -1,
	};
	int error = 0;

	if (options->resume)
		error = experiment_look_ahead(experiment, directory, options->run_ns, &preview,
					      message);
	else if (options->run_ns)
		preview.left_ns = preview.missing * options->run_ns;
	if (!error)
		print_plan(experiment, preview.missing, preview.left_ns);
	return error;
}

/* --- running --- */

/* Ctrl-C and the like are counted; nohup's choice about SIGHUP stands. */
static void catch_signals(void)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct sigaction action = {.sa_handler = count_signal}, now;

	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (sigaction(signals[i], NULL, &now) == 0 && now.sa_handler != SIG_IGN)
			sigaction(signals[i], &action, NULL);
	signal(SIGPIPE, SIG_IGN); /* a reader of our progress that has gone is no death */
}

/* As "syslat compare DIR" prints it. */
static int print_comparison(const struct experiment *experiment, const char *directory)
{
	const struct experiment_stopping *stopping = &experiment->stopping;
	char *arguments[8] = {(char *)"compare"};
	int count = 1;

	if (stopping->reference) {
		arguments[count++] = (char *)"--against";
		arguments[count++] = experiment->arms[stopping->reference].name;
	}
	if (stopping->metric && strcmp(stopping->metric, "value") != 0) {
		arguments[count++] = (char *)"--metric";
		arguments[count++] = stopping->metric;
	}
	arguments[count++] = (char *)directory;
	for (size_t i = 0; commands[i]; i++)
		if (strcmp(commands[i]->name, "compare") == 0)
			return commands[i]->run(count, arguments);
	return EXIT_DONE;
}

static int report(const struct experiment *experiment, const char *directory, bool quiet_end,
		  enum experiment_outcome outcome, const struct experiment_totals *totals,
		  const struct message *message)
{
	int status = EXIT_DONE;

	if (outcome == EXPERIMENT_COMPLETE || outcome == EXPERIMENT_WITH_FAILURES) {
		printf("results: %s (%lld runs%s%s)\n", directory, (long long)totals->done,
		       experiment->stopped ? "; " : "",
		       experiment->stopped ? experiment->stopped : "");
		fflush(stdout);
		if (totals->done && !quiet_end)
			status = print_comparison(experiment, directory);
	}
	if (totals->invalid && totals->invalid < totals->done)
		command_error("run",
			      "%lld of %lld runs are invalid and not compared; runs.jsonl "
			      "holds the reasons",
			      (long long)totals->invalid, (long long)totals->done);
	switch (outcome) {
	case EXPERIMENT_COMPLETE:
		if (totals->done && totals->invalid == totals->done) {
			command_error("run",
				      "every run is invalid; runs.jsonl in %s holds the "
				      "reasons",
				      directory);
			return EXIT_INVALID;
		}
		return status;
	case EXPERIMENT_WITH_FAILURES:
		command_error("run", "%s; try them again with: syslat run --resume %s",
			      message->text, directory);
		return EXIT_FAILED;
	case EXPERIMENT_INTERRUPTED:
		command_error("run", "%s, all kept; go on with: syslat run --resume %s",
			      message->text, directory);
		return EXIT_FAILED;
	case EXPERIMENT_OTHER_KERNEL:
		printf("results so far: %s (%lld of %lld runs)\n%s, then: syslat run --resume %s\n",
		       directory, (long long)totals->done, (long long)totals->planned,
		       message->text, directory);
		return EXIT_DONE;
	case EXPERIMENT_SKIPPED:
		command_error("run", "%s", message->text);
		return EXIT_SKIPPED;
	case EXPERIMENT_UNUSABLE:
		command_error("run", "%s; mend the command and begin again", message->text);
		return EXIT_USAGE;
	}
	return EXIT_FAILED;
}

static int execute(const struct run_options *options, struct experiment *experiment,
		   const char *directory)
{
	struct run_progress_printer printer;
	struct experiment_events events = {.interrupted = &signals_seen};
	struct experiment_totals totals = {0};
	enum experiment_outcome outcome = EXPERIMENT_COMPLETE;
	struct message message = {""};
	int error;

	run_progress_init(&printer, options->quiet);
	run_progress_events(&printer, &events);
	catch_signals();
	error = experiment_execute(experiment, directory, &events, &outcome, &totals, &message);
	run_progress_clear(&printer);
	if (error) {
		command_error("run", "%s; what was measured is kept: syslat run --resume %s",
			      message.text, directory);
		return error == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	return report(experiment, directory, options->quiet_end, outcome, &totals, &message);
}

static int check_resume(const struct run_options *options, int operands, struct message *message)
{
	if (operands || options->plan_given || options->reps_given || options->max_reps_given ||
	    options->seed_given || options->rule_given || options->directory)
		return message_set(message, -EINVAL,
				   "--resume takes everything from %s/experiment.json: give no "
				   "command and no option of the plan beside it",
				   options->resume);
	return 0;
}

static int prepare(const struct run_options *options, char *const *command, char *directory,
		   size_t size, struct experiment **ret_experiment, struct message *message)
{
	int error;

	if (options->resume) {
		if (snprintf(directory, size, "%s", options->resume) >= (int)size)
			return message_set_errno(message, -ENAMETOOLONG, "--resume");
		return experiment_load(directory, ret_experiment, message);
	}
	error = run_options_plan(options, command, ret_experiment, message);
	if (error)
		return error;
	error = choose_directory(options, *ret_experiment, directory, size, message);
	if (!error && !options->dry_run) {
		error = file_make_directories(directory);
		if (error)
			message_set_errno(message, error, "cannot make %s", directory);
	}
	if (error) {
		experiment_free(*ret_experiment);
		/* -EACCES here is a folder that cannot be made, not a machine that cannot measure
		 */
		return error == -EINVAL ? error : -EIO;
	}
	return 0;
}

static int run(struct run_options *options, char *const *command, int operands)
{
	struct experiment *experiment = NULL;
	struct message message = {""};
	char directory[PATH_MAX];
	int status = EXIT_DONE, error = 0;

	if (options->resume)
		error = check_resume(options, operands, &message);
	if (!error)
		error = prepare(options, command, directory, sizeof(directory), &experiment,
				&message);
	if (error) {
		command_error("run", "%s", message.text);
		return error == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
	}
	if (options->dry_run) {
		error = dry_run(options, experiment, directory, &message);
		if (error)
			command_error("run", "%s", message.text);
		status = error ? EXIT_FAILED : EXIT_DONE;
	} else {
		status = execute(options, experiment, directory);
	}
	experiment_free(experiment);
	return status;
}

static int run_run(int argc, char **argv)
{
	struct run_options options;
	struct message message = {""};
	int first = argc, status = EXIT_DONE;
	int result = run_options_parse(&options, argc, argv, &first, &message);

	if (result == OPTIONS_HELP) {
		run_options_help();
	} else if (result == OPTIONS_VERSION) {
		command_version();
	} else if (result < 0) {
		command_error("run", "%s", message.text);
		status = EXIT_USAGE;
	} else {
		status = run(&options, argv + first, argc - first);
	}
	run_options_free(&options);
	return status;
}

const struct command command_run = {"run", "run variants or commands in randomised blocks",
				    run_run};
