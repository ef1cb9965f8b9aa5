/* SPDX-License-Identifier: MIT */
#include "run_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/options.h"
#include "base/parse.h"
#include "base/random.h"
#include "experiment/experiment.h"
#include "experiment/stop.h"
#include "share.h"

/* --- options --- */

static int split_pair(const char *argument, struct run_pair *pairs, size_t *count,
		      const char *option, const char *wanted, struct message *message)
{
	const char *equals = strchr(argument, '=');
	char *name;

	if (!equals)
		return message_set(message, -EINVAL, "%s: '%.100s' is not %s", option, argument,
				   wanted);
	if (*count == RUN_PAIRS_MAX)
		return message_set(message, -EINVAL, "%s: more than %d", option, RUN_PAIRS_MAX);
	name = strndup(argument, (size_t)(equals - argument));
	if (!name)
		return message_set_errno(message, -ENOMEM, "%s", option);
	pairs[(*count)++] = (struct run_pair){name, equals + 1};
	return 0;
}

static int take_arm(void *settings, const char *argument, struct message *message)
{
	struct run_options *to = settings;

	to->plan_given = true;
	return split_pair(argument, to->arms, &to->arm_count, "--arm", "NAME=COMMAND", message);
}

static int take_kernel(void *settings, const char *argument, struct message *message)
{
	struct run_options *to = settings;

	to->plan_given = true;
	return split_pair(argument, to->kernels, &to->kernel_count, "--arm-kernel", "NAME=RELEASE",
			  message);
}

static int take_alpha(void *settings, const char *argument, struct message *message)
{
	return parse_share(argument, "--alpha", 0.5, &((struct run_options *)settings)->alpha,
			   message);
}

static int take_min_effect(void *settings, const char *argument, struct message *message)
{
	struct run_options *to = settings;

	if (strcmp(argument, "0") == 0 || strcmp(argument, "0%") == 0) {
		to->min_effect = 0;
		return 0;
	}
	return parse_share(argument, "--min-effect", 10, &to->min_effect, message);
}

static int take_target_ci(void *settings, const char *argument, struct message *message)
{
	return parse_share(argument, "--target-ci", 1, &((struct run_options *)settings)->target_ci,
			   message);
}

static const char *const better_choices[] = {"lower", "higher", NULL};

#define AT(member) .offset = offsetof(struct run_options, member)
#define GIVEN(member) .given_offset = offsetof(struct run_options, member)

static const struct option_row rows[] = {
	{OPTION_SECTION, .long_name = "What is compared"},
	{OPTION_STRING, .long_name = "variants", .argument = "LIST",
	 .help = "arms baseline,stock,mapping,mlock: the command given, with --variant NAME added",
	 AT(variants), GIVEN(plan_given)},
	{OPTION_CALL, .long_name = "arm", .argument = "NAME=COMMAND",
	 .help = "an arm of its own, as often as wanted; split at blanks and executed, or run by "
		 "/bin/sh -c when it holds a character of the shell (quotes, $, |, ;, >, *...)",
	 .call = take_arm},
	{OPTION_CALL, .long_name = "arm-kernel", .argument = "NAME=RELEASE",
	 .help = "the arm runs only while that kernel (uname -r) is booted", .call = take_kernel},
	{OPTION_STRING, .long_name = "unit", .argument = "UNIT",
	 .help = "unit of the number that a command prints (one that writes no record)", AT(unit),
	 GIVEN(plan_given)},
	{OPTION_CHOICE, .long_name = "better", .argument = "lower|higher",
	 .help = "which of such numbers is the better (lower)", AT(better),
	 .choices = better_choices, GIVEN(plan_given)},
	{OPTION_SECTION, .long_name = "How often"},
	{OPTION_INT, .long_name = "reps", .argument = "N",
	 .help = "blocks; every arm runs once in each (10)", AT(reps), .minimum = 1,
	 .maximum = 100000, GIVEN(reps_given)},
	{OPTION_INT, .long_name = "warmup-runs", .argument = "N",
	 .help = "blocks before the first that are recorded apart and not compared (0)",
	 AT(warm_up_runs), .minimum = 0, .maximum = 10000, GIVEN(plan_given)},
	{OPTION_FLAG, .long_name = "until-decided",
	 .help = "look after each block, drop arms that are decided, stop when all are",
	 AT(until_decided), GIVEN(rule_given)},
	{OPTION_CALL, .long_name = "target-ci", .argument = "SHARE",
	 .help = "stop when the median of every arm is known to this share (95% interval)",
	 .call = take_target_ci, GIVEN(rule_given)},
	{OPTION_INT, .long_name = "max-reps", .argument = "N",
	 .help = "blocks at most with one of these rules (40)", AT(max_reps), .minimum = 1,
	 .maximum = 100000, GIVEN(max_reps_given)},
	{OPTION_STRING, .long_name = "against", .argument = "ARM",
	 .help = "reference of the comparison (the first arm)", AT(against), GIVEN(plan_given)},
	{OPTION_STRING, .long_name = "metric", .argument = "NAME",
	 .help = "what is looked at: mean, max, p99... (mean; value of other commands)", AT(metric),
	 GIVEN(plan_given)},
	{OPTION_CALL, .long_name = "alpha", .argument = "SHARE",
	 .help = "chance of a false decision, over all looks and pairs (1%)", .call = take_alpha,
	 GIVEN(plan_given)},
	{OPTION_CALL, .long_name = "min-effect", .argument = "SHARE",
	 .help = "least effect that counts as a difference (5%)", .call = take_min_effect,
	 GIVEN(plan_given)},
	{OPTION_SECTION, .long_name = "Running"},
	{OPTION_STRING, .short_name = 'o', .long_name = "output", .argument = "DIR",
	 .help = "folder of the results (results/DATE-TIME-NAME)", AT(directory)},
	{OPTION_STRING, .long_name = "name", .argument = "NAME",
	 .help = "name of the experiment (that of the command)", AT(name), GIVEN(plan_given)},
	{OPTION_STRING, .long_name = "resume", .argument = "DIR",
	 .help = "go on with an experiment that was interrupted", AT(resume)},
	{OPTION_INT, .long_name = "seed", .argument = "N",
	 .help = "of the random order (a fresh one; recorded)", AT(seed), .minimum = 0,
	 .maximum = EXPERIMENT_SEED_MAX, GIVEN(seed_given)},
	{OPTION_DURATION, .long_name = "timeout", .argument = "TIME",
	 .help = "a run that takes longer is ended and counts as failed (seconds; none)",
	 AT(timeout_ns), .minimum = 1000000, .maximum = 0, .unit_ns = NS_PER_S, GIVEN(plan_given)},
	{OPTION_DURATION, .long_name = "run-time", .argument = "TIME",
	 .help = "what a run takes, for the time told before the first has ended (seconds)",
	 AT(run_ns), .minimum = 1, .maximum = 0, .unit_ns = NS_PER_S},
	{OPTION_FLAG, .long_name = "dry-run", .help = "print plan and command lines, run nothing",
	 AT(dry_run)},
	{OPTION_FLAG, .short_name = 'q', .long_name = "quiet", .help = "no progress", AT(quiet)},
	{OPTION_FLAG, .long_name = "quiet-end", .help = "no comparison at the end", AT(quiet_end)},
};
#define ROW_COUNT ARRAY_SIZE(rows)

void run_options_help(void)
{
	options_help(
		stdout,
		"syslat run [OPTION]... [--variants LIST] -- COMMAND [ARGUMENT]...\n"
		"       syslat run [OPTION]... --arm NAME=COMMAND --arm NAME=COMMAND...\n"
		"       syslat run --resume DIR",
		"Runs every arm once in each block, in random order, each run a fresh process, "
		"and compares them.",
		rows, ROW_COUNT);
}

/* --- the plan --- */

static int add_variants(struct experiment *experiment, const char *list, char *const *command,
			struct message *message)
{
	char name[128];
	int error = 0;

	for (const char *at = list; !error; at++) {
		size_t length = strcspn(at, ",");

		if (length >= sizeof(name))
			return message_set(message, -EINVAL, "--variants: '%.40s...' is too long",
					   at);
		snprintf(name, sizeof(name), "%.*s", (int)length, at);
		error = *name ? experiment_add_arm(experiment, name, command, name, message)
			      : message_set(message, -EINVAL,
					    "--variants '%.100s': an empty name: write "
					    "baseline,stock",
					    list);
		at += length;
		if (!*at)
			break;
	}
	return error;
}

static const char *program_name(char *const *command)
{
	const char *slash = strrchr(command[0], '/');

	return slash && slash[1] ? slash + 1 : command[0];
}

static int add_arms(const struct run_options *settings, char *const *command,
		    struct experiment *experiment, struct message *message)
{
	int error = 0;

	if (settings->variants && !command[0])
		return message_set(message, -EINVAL,
				   "--variants needs the command that they are variants of: "
				   "syslat run --variants LIST -- COMMAND");
	if (settings->variants)
		error = add_variants(experiment, settings->variants, command, message);
	else if (command[0] && settings->arm_count)
		error = message_set(message, -EINVAL,
				    "'%.80s' beside --arm: give the command with --variants, or "
				    "as an --arm of its own",
				    command[0]);
	else if (command[0])
		error = experiment_add_arm(experiment, program_name(command), command, NULL,
					   message);
	for (size_t i = 0; i < settings->arm_count && !error; i++)
		error = experiment_add_arm_text(experiment, settings->arms[i].name,
						settings->arms[i].value, message);
	for (size_t i = 0; i < settings->kernel_count && !error; i++)
		error = experiment_set_kernel(experiment, settings->kernels[i].name,
					      settings->kernels[i].value, message);
	return error;
}

static int set_rule(const struct run_options *settings, struct experiment *experiment,
		    struct message *message)
{
	struct experiment_stopping *stopping = &experiment->stopping;
	bool has_rule = settings->until_decided || settings->target_ci > 0;
	int reference = 0;

	if (settings->until_decided && settings->target_ci > 0)
		return message_set(message, -EINVAL,
				   "--until-decided and --target-ci are two rules: give one");
	if (has_rule && settings->reps_given)
		return message_set(
			message, -EINVAL,
			"--reps is a fixed number: give --max-reps with a stopping rule");
	if (!has_rule && settings->max_reps_given)
		return message_set(message, -EINVAL,
				   "--max-reps goes with --until-decided or --target-ci");
	stopping->rule = settings->until_decided ? RULE_UNTIL_DECIDED
			 : has_rule		 ? RULE_TARGET_CI
						 : RULE_FIXED;
	experiment->blocks = has_rule ? settings->max_reps : settings->reps;
	stopping->alpha = settings->alpha;
	stopping->min_effect = settings->min_effect;
	stopping->target_ci = settings->target_ci;
	stopping->metric = settings->metric ? strdup(settings->metric) : NULL;
	if (settings->against)
		reference = experiment_find_arm(experiment, settings->against);
	if (reference < 0)
		return message_set(message, -EINVAL, "--against: no arm is called \"%.80s\"",
				   settings->against);
	stopping->reference = (size_t)reference;
	return experiment_check_stopping(experiment, message);
}

int run_options_plan(const struct run_options *settings, char *const *command,
		     struct experiment **ret_experiment, struct message *message)
{
	const char *name = settings->name	 ? settings->name
			   : command[0]		 ? program_name(command)
			   : settings->arm_count ? settings->arms[0].name
						 : "experiment";
	struct experiment *experiment = experiment_new(name);
	int error;

	if (!experiment)
		return message_set_errno(message, -ENOMEM, "experiment");
	experiment->warm_up_runs = settings->warm_up_runs;
	experiment->timeout_ns = settings->timeout_ns;
	experiment->unit = settings->unit ? strdup(settings->unit) : NULL;
	experiment->higher_is_better = strcmp(settings->better, "higher") == 0;
	experiment->seed =
		settings->seed_given ? (uint64_t)settings->seed : random_fresh_seed() >> 11;
	error = settings->name ? experiment_check_arm_name(settings->name, NULL) : 0;
	if (error)
		message_set(message, error,
			    "--name '%.80s' cannot name a folder: letters, digits, '.', '_', '+', "
			    "'-'",
			    settings->name);
	if (!error)
		error = add_arms(settings, command, experiment, message);
	if (!error && experiment->arm_count == 0)
		error = message_set(message, -EINVAL,
				    "nothing to run: give a command or --arm NAME=COMMAND; see "
				    "--help");
	if (!error)
		error = set_rule(settings, experiment, message);
	if (!error)
		error = experiment_make_order(experiment, message);
	if (error) {
		experiment_free(experiment);
		return error;
	}
	*ret_experiment = experiment;
	return 0;
}

/* --- in and out --- */

int run_options_parse(struct run_options *options, int argc, char **argv, int *ret_first,
		      struct message *message)
{
	*options = (struct run_options){
		.reps = 10,
		.max_reps = 40,
		.better = "lower",
		.alpha = 0.01,
		.min_effect = 0.05,
	};
	return options_parse(rows, ROW_COUNT, options, argc, argv, 1, ret_first, message);
}

void run_options_free(struct run_options *options)
{
	for (size_t i = 0; i < options->arm_count; i++)
		free((char *)options->arms[i].name);
	for (size_t i = 0; i < options->kernel_count; i++)
		free((char *)options->kernels[i].name);
}
