/* SPDX-License-Identifier: MIT */
#ifndef PIN_CYCLE_STATE_H
#define PIN_CYCLE_STATE_H

/* Shared by the files of pin_cycle/ alone. */
#include <stdbool.h>

#include "pin_cycle/pin_cycle.h"
#include "record/metric_table.h"
#include "run/loads.h"
#include "sys/cgroup.h"
#include "sys/child.h"
#include "sys/swap.h"

#define WORKERS_MOST 8

/* What is timed of one buffer: the phases of its life, and reclaim's look at it while it is held.
 */
enum { PHASE_RECLAIM = BUFFER_PHASES, PHASES };

/* What one turn took. */
struct pin_turn {
	int error;			    /* 0, or -errno of the backend */
	int64_t ns[PHASES], cpu_ns[PHASES]; /* of reclaim -1: not asked, or not possible */
	struct message message;
};

/* What a worker says of its backend once that is open. */
struct pin_greeting {
	int error;
	struct message message; /* of the error */
	char pin_method[32], release_context[16], observed_variant[16];
	struct message notes[4];
};

/*
 * One way of holding pages, a column of the table: a process that makes and releases buffers when
 * it is told to. One a variant, because what holds a buffer (an IPC namespace, a lock limit, a
 * memory group) belongs to a process, and so that the variants can take turns.
 */
struct pin_worker {
	char label[32]; /* "mapping"; a driver's by its name: "i915" */
	const struct backend_ops *ops;
	enum variant variant;
	bool gone;	    /* cannot be measured (any more) */
	unsigned int turns; /* that counted */
	struct child child;
	int socket; /* -1: it does not run */
	struct pin_greeting greeting;
};

struct pin_cycle {
	const struct pin_cycle_settings *settings;
	struct record *record;
	struct transaction *transaction;
	struct metric_table metrics;
	struct pin_worker workers[WORKERS_MOST];
	size_t worker_count;
	uint64_t page_bytes;
	double clock_cost_ns;
	struct cgroup group; /* version CGROUP_NONE: none */
	struct swap_area swap;
	bool has_swap;
};

/* --- worker.c --- */

/* Starts the process and opens the backend in it; -errno with the backend's message. */
int pin_worker_start(struct pin_worker *worker, const struct backend_settings *settings,
		     const struct cgroup *group, struct message *message);
/*
 * One buffer of @bytes from allocation to release; with @reclaim reclaim is asked to take it while
 * it is held. Waits @limit_ns at most. -errno of the turn, -ECHILD: the process died; -ETIMEDOUT;
 * -EINTR: *interrupted.
 */
int pin_worker_turn(struct pin_worker *worker, uint64_t bytes, bool reclaim, int64_t limit_ns,
		    const volatile sig_atomic_t *interrupted, struct pin_turn *ret_turn,
		    struct message *message);
void pin_worker_stop(struct pin_worker *worker, struct transaction *transaction);

/* --- workers.c --- */

/* Which backends and variants: fills cycle->workers. -EINVAL. */
int pin_workers_choose(struct pin_cycle *cycle, struct message *message);
/* Starts a process for each, in @group (NULL: here). -ENOTSUP: none works; -EINVAL. */
int pin_workers_start(struct pin_cycle *cycle, const struct cgroup *group, struct message *message);
void pin_workers_stop(struct pin_cycle *cycle);

/* --- rounds.c --- */

/*
 * Rounds of one turn a worker with buffers of @bytes, until @time_ns is over (or settings->rounds
 * are done); metrics "<prefix><phase>_<label>_<size>_page_ns" and what release costs one way more
 * than another. With @reclaim only what reclaim costs is taken. -EINTR, -ENOTSUP when no worker is
 * left.
 */
int pin_cycle_rounds(struct pin_cycle *cycle, const char *prefix, uint64_t bytes, bool reclaim,
		     int64_t time_ns, struct message *message);

#endif
