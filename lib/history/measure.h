/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_MEASURE_H
#define HISTORY_MEASURE_H

#include <jansson.h>
#include <signal.h>
#include <stdint.h>

#include "base/message.h"

struct record;
struct experiment;

/* A command that measures, run as an experiment runs its arms: one fresh process a run. */
struct measure {
	struct experiment *experiment;
	json_t *environment;
	char machine_key[17];
	char record_path[64]; /* SYSLATENCY_RECORD of the command */
	int64_t block;	      /* SYSLATENCY_BLOCK of the next run; 0: none */
	int64_t timeout_ns;   /* of a run; 0: none */
	const volatile sig_atomic_t *interrupted;
};

/* @argv as it stands, or @text for a shell. -EINVAL: no such command. */
int measure_open(const char *name, char *const *argv, const char *text, struct measure *ret_measure,
		 struct message *message);
void measure_close(struct measure *measure);

/*
 * One run: the record that the command wrote, or its last number on standard output as the metric
 * "value". -EIO with the reason when it failed; -EINTR: a signal came.
 */
int measure_run(struct measure *measure, struct record **ret_record, struct message *message);

#endif
