/* SPDX-License-Identifier: MIT */
#ifndef EXPERIMENT_RUN_H
#define EXPERIMENT_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/message.h"
#include "experiment/experiment.h"

struct record;

/* One run of the plan, as it is told to a person. */
struct experiment_step {
	const struct experiment *experiment;
	const struct experiment_arm *arm;
	int64_t block; /* 1 and up; of the warm-up when warm_up */
	bool warm_up;
	int64_t number; /* of this run among @total */
	int64_t total;	/* runs of the plan that are not dropped */
	int attempt;	/* 1, or 2 after a failure */
	int64_t elapsed_ns;
	int64_t left_ns; /* of the whole experiment from now on; -1: not known yet */
};

/* All may be NULL. */
struct experiment_events {
	void *data;
	void (*begin)(void *data, const struct experiment_step *step);
	void (*tick)(void *data, const struct experiment_step *step); /* once a second */
	/* @why: reason of a failure, else "" */
	void (*end)(void *data, const struct experiment_step *step, const struct record *record,
		    const char *why);
	void (*note)(void *data, const char *text); /* a line to be told */
	const volatile sig_atomic_t *interrupted;   /* count of signals, see command_settings */
};

enum experiment_outcome {
	EXPERIMENT_COMPLETE,
	EXPERIMENT_WITH_FAILURES, /* complete but for runs that failed twice */
	EXPERIMENT_INTERRUPTED,
	EXPERIMENT_OTHER_KERNEL, /* what is left belongs to arms of other kernels */
	EXPERIMENT_SKIPPED,	 /* first run of an arm: exit 77 */
	EXPERIMENT_UNUSABLE,	 /* first run of an arm: wrong usage (2), not found (126, 127) */
};

struct experiment_totals {
	int64_t planned, done, failed; /* runs to be compared; warm-up not counted */
	int64_t invalid;	       /* of done */
};

/* What an experiment still lacks. */
struct experiment_preview {
	int64_t missing; /* runs, warm-up included */
	int64_t left_ns; /* nanoseconds that they will take; -1: not known */
	bool torn;	 /* the last line of runs.jsonl was torn */
};

/*
 * Runs what @directory lacks of the plan, in the planned order; the same call begins and resumes.
 * Every record is on disk when a run is over. *ret_outcome (and for all but COMPLETE a line in
 * @message) says how it ended; -errno: the experiment itself failed (disk full, ...), what was
 * measured is kept; -EINVAL: the stopping rule or SYSLATENCY_LOCK_WAIT_S. Holds a lock on the
 * folder: -EBUSY when another holds it.
 */
int experiment_execute(struct experiment *experiment, const char *directory,
		       const struct experiment_events *events, enum experiment_outcome *ret_outcome,
		       struct experiment_totals *ret_totals, struct message *message);

/*
 * Reads what @directory holds of the plan, without running, writing or locking anything. @run_ns:
 * nanoseconds of one run, for arms of which none is there; 0: not known. -errno of reading
 * runs.jsonl, with its path in @message.
 */
int experiment_look_ahead(const struct experiment *experiment, const char *directory,
			  int64_t run_ns, struct experiment_preview *ret_preview,
			  struct message *message);

#endif
