/* SPDX-License-Identifier: MIT */
#ifndef RUN_PUT_BACK_H
#define RUN_PUT_BACK_H

#include "base/message.h"
#include "record/record.h"
#include "undo/transaction.h"

/*
 * Ends the transaction (NULL: none) of a run that ended with @error. What could not be put back
 * reaches the person whatever else failed: its sentence is added to @message, which is empty
 * otherwise after a run that did not fail; the record (may be NULL) gets a note, and
 * "counters.not_put_back". The program then ends with EXIT_FAILED, its result kept.
 */
void run_put_back(struct transaction *transaction, int error, struct record *record,
		  struct message *message);

#endif
