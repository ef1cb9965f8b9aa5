/* SPDX-License-Identifier: MIT */
#ifndef EXPERIMENT_STOP_H
#define EXPERIMENT_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "experiment/experiment.h"

struct record;

/*
 * May an experiment stop? A look after a whole block, by the rule that experiment.json holds.
 * Values are those of the records up to that block that ended well and are not invalid.
 */

/* Checks rule, blocks and arms against each other (before anything runs). -EINVAL with the reason.
 */
int experiment_check_stopping(const struct experiment *experiment, struct message *message);

/*
 * Chooses the metric by the first good record: the one asked for must be in it; when none was
 * asked for, "mean", else "value". -EINVAL with what the record has. Only the rules need it.
 */
int experiment_choose_metric(struct experiment *experiment, const struct record *record,
			     struct message *message);

/*
 * The look after @block: appends what it saw to experiment->looks, sets the decisions of arms and,
 * when nothing is left to do, experiment->stopped. *ret_text (caller frees; NULL: nothing to tell)
 * is a line for people. @records are those of the folder in order of time; borrowed. -ENOMEM.
 */
int experiment_look(struct experiment *experiment, struct record *const *records, size_t count,
		    int64_t block, char **ret_text, struct message *message);

/* Was the look after @block made already? */
bool experiment_looked(const struct experiment *experiment, int64_t block);

#endif
