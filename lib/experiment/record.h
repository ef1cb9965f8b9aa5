/* SPDX-License-Identifier: MIT */
#ifndef EXPERIMENT_RECORD_H
#define EXPERIMENT_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/message.h"
#include "experiment/experiment.h"
#include "experiment/command.h"

struct record;

/* Where a run stood: what every record of an experiment is given besides what the command wrote. */
struct experiment_place {
	size_t arm;
	int64_t block;		 /* 1 and up */
	int64_t order;		 /* place in the whole plan, 1 and up */
	const char *started;	 /* RFC 3339 */
	const char *machine_key; /* 16 hex digits */
	json_t *environment;	 /* for foreign commands, that describe none; borrowed */
};

/*
 * The record of one run: what the command wrote to @record_path, or, when it wrote nothing there
 * (a foreign command), its last number on standard output as the metric "value". A run that failed
 * gives a record too, with status "failed" and the end of its standard error. *ret_why (of 256
 * bytes at least) says why it failed; "" when it did not.
 */
int experiment_record(const struct experiment *experiment, const struct experiment_place *place,
		      const struct command_result *result, const char *record_path,
		      struct record **ret_record, char *why, size_t why_size);

#endif
