/* SPDX-License-Identifier: MIT */
#ifndef EXPERIMENT_SESSION_H
#define EXPERIMENT_SESSION_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "experiment/experiment.h"

struct record;

/* What is known of an experiment's runs: which are on disk, and how long they take. */
struct session {
	struct experiment *experiment;
	char directory[PATH_MAX]; /* absolute */
	char warm_up_directory[PATH_MAX];
	char record_path[PATH_MAX]; /* SYSLATENCY_RECORD */
	int lock;		    /* on the folder */
	struct record **records;    /* of runs.jsonl; their histograms are let go */
	size_t record_count, record_capacity;
	bool *done;		/* as experiment->order: is there a good record? */
	bool *tried;		/* failed in this session */
	bool arm_worked[64];	/* has a good record */
	double arm_seconds[64]; /* all of them together ... */
	int64_t arm_runs[64];	/* ... of so many runs */
	bool torn;
	char kernel[65]; /* that is booted */
};

/*
 * Reads what @directory holds (nothing: a new experiment). -EBUSY: another program works there,
 * after @lock_wait_ns. The experiment is borrowed.
 */
int session_open(struct experiment *experiment, const char *directory, int64_t lock_wait_ns,
		 struct session **ret_session, struct message *message);
void session_close(struct session *session);

/* Index into done and tried. Blocks as experiment_arm_at(): warm-up 0 and below. */
size_t session_slot(const struct session *session, int64_t block, size_t position);

bool session_dropped(const struct session *session, int64_t block, size_t arm);
bool session_served(const struct session *session, size_t arm); /* by the booted kernel */

/* Is this run still to be made (whatever the kernel)? */
bool session_missing(const struct session *session, int64_t block, size_t position);

/* Are all runs of the block there, or failed now? */
bool session_block_over(const struct session *session, int64_t block);

/*
 * Takes the record over, appends it (synced) and writes the text files; marks the slot. On error
 * (a full disk) the record is freed.
 */
int session_add(struct session *session, int64_t block, size_t position, struct record *record,
		int64_t elapsed_ns, struct message *message);

/* Time of all missing runs; @run_ns (0: unknown) for arms that never ran; -1 unknown. */
int64_t session_left_ns(const struct session *session, int64_t run_ns, int64_t *ret_missing);

#endif
