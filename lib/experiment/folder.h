/* SPDX-License-Identifier: MIT */
#ifndef EXPERIMENT_FOLDER_H
#define EXPERIMENT_FOLDER_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "experiment/experiment.h"

struct record;

/* The folder of an experiment, opened: which runs are on disk, and how long they take. */
struct folder {
	struct experiment *experiment;
	char directory[PATH_MAX]; /* absolute */
	char warm_up_directory[PATH_MAX];
	char record_path[PATH_MAX]; /* SYSLATENCY_RECORD */
	int lock;		    /* on the folder */
	struct record **records;    /* of runs.jsonl; their histograms are let go */
	size_t record_count, record_capacity;
	bool *done;			       /* as experiment->order: is there a good record? */
	bool *tried;			       /* failed since it was opened */
	bool arm_worked[EXPERIMENT_ARMS_MOST]; /* has a good record */
	double arm_seconds[EXPERIMENT_ARMS_MOST]; /* all of them together ... */
	int64_t arm_runs[EXPERIMENT_ARMS_MOST];	  /* ... of so many runs */
	bool torn;				  /* the last line of a runs.jsonl */
	char kernel[65];			  /* that is booted */
};

/*
 * Reads what @directory holds (nothing: a new experiment). -EBUSY: another program works there,
 * after @lock_wait_ns. The experiment is borrowed.
 */
int folder_open(struct experiment *experiment, const char *directory, int64_t lock_wait_ns,
		struct folder **ret_folder, struct message *message);
void folder_close(struct folder *folder);

/* Was the arm of this slot dropped before its block? */
bool folder_dropped(const struct folder *folder, size_t slot);
bool folder_served(const struct folder *folder, size_t arm); /* by the booted kernel */

/* Is this run still to be made (whatever the kernel)? */
bool folder_missing(const struct folder *folder, size_t slot);

/* Are all runs of the block there, or failed now? */
bool folder_block_over(const struct folder *folder, int64_t block);

/*
 * Takes the record over, appends it (synced) and writes the text files; marks the slot. On error
 * (-errno: a full disk) the record is freed.
 */
int folder_add(struct folder *folder, size_t slot, struct record *record, int64_t elapsed_ns,
	       struct message *message);

/*
 * Nanoseconds that all missing runs will take; @run_ns (0: unknown) for arms that never ran; -1
 * unknown. *ret_missing: how many they are.
 */
int64_t folder_left_ns(const struct folder *folder, int64_t run_ns, int64_t *ret_missing);

#endif
