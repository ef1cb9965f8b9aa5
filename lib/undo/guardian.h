/* SPDX-License-Identifier: MIT */
#ifndef UNDO_GUARDIAN_H
#define UNDO_GUARDIAN_H

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"
#include "undo/journal.h"

/*
 * The guardian: a process in a session of its own that makes the journal, waits for the end of the
 * program (or of its transaction) and then puts back what the journal says. The program, its
 * threads and its children append to the journal by themselves; the guardian reads it once, at the
 * end.
 */

/* Memory that program, children and guardian share: who appends holds the mutex. */
struct undo_shared {
	pthread_mutex_t mutex;	 /* robust: a child may be killed in the middle */
	_Atomic uint64_t newest; /* sequence of the newest record */
	bool ended;		 /* the guardian reads the journal: nothing may be added */
};

/* Holds it for the caller; -ETIMEDOUT when a stopped process has it. */
int undo_shared_lock(struct undo_shared *shared, int64_t limit_ns);

/* What the guardian says over its socket: when the journal is there, and when its work is done. */
struct guardian_report {
	int32_t error;
	bool goes_on; /* not all is put back yet, and it tries on */
	char journal_name[JOURNAL_NAME_BYTES];
	struct message message;
};

struct guardian {
	struct undo_shared *shared;
	int directory_fd, lock_fd; /* both are the program's too */
	int socket;		   /* its end is the program's, or the transaction's */
	int program_pidfd;	   /* -1 where there are none */
	pid_t program;
	uint64_t program_start_ticks;
	const char *program_name;
};

/* The forked process, all signals blocked; descriptors in @guardian are kept, others closed. */
void guardian_main(const struct guardian *guardian) __attribute__((noreturn));

struct transaction {
	struct undo_shared *shared;
	int directory_fd, lock_fd, journal_fd, socket;
	atomic_bool locked; /* the machine-wide lock is held */
	pid_t guardian, program;
	int64_t end_by_ns;			  /* nothing is waited for beyond it */
	const volatile sig_atomic_t *interrupted; /* NULL: nothing ends a wait */
	char program_name[64];
	char journal_name[JOURNAL_NAME_BYTES];
};

/* Notes how to undo a change that is not made yet; *ret_sequence: for transaction_drop(). -EPIPE.
 */
int transaction_add(struct transaction *transaction, enum undo_verb verb, const char *const *fields,
		    uint64_t *ret_sequence, struct message *message);

/* The change was not made. */
void transaction_drop(struct transaction *transaction, uint64_t sequence);

/* What @verb and its first field say needs no undoing any more. */
void transaction_disown(struct transaction *transaction, enum undo_verb verb, const char *field);

#endif
