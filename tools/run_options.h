/* SPDX-License-Identifier: MIT */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"

/* The options of "syslat run", and the plan that is made of them. */

struct experiment;

#define RUN_PAIRS_MAX 64 /* --arm, --arm-kernel */

struct run_pair {
	const char *name, *value;
};

struct run_options {
	const char *variants, *directory, *resume, *name, *unit, *better, *against, *metric;
	struct run_pair arms[RUN_PAIRS_MAX], kernels[RUN_PAIRS_MAX];
	size_t arm_count, kernel_count;
	int64_t reps, max_reps, warm_up_runs, seed;
	int64_t timeout_ns, run_ns;
	double alpha, min_effect, target_ci;
	bool dry_run, quiet, quiet_end, until_decided, plan_given, reps_given, max_reps_given,
		seed_given, rule_given;
};

/* As options_parse(); the operands (the command) begin at *ret_first. */
int run_options_parse(struct run_options *options, int argc, char **argv, int *ret_first,
		      struct message *message);
void run_options_free(struct run_options *options);
void run_options_help(void);

/* The experiment that options and @command (NULL-terminated, may be empty) ask for. */
int run_options_plan(const struct run_options *options, char *const *command,
		     struct experiment **ret_experiment, struct message *message);

#endif
