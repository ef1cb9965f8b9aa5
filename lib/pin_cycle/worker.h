/* SPDX-License-Identifier: MIT */
#ifndef PIN_CYCLE_WORKER_H
#define PIN_CYCLE_WORKER_H

#include "ops.h"
#include "sys/child.h"

/*
 * A process that makes and releases buffers when it is told to: one a variant, because what holds
 * a buffer (an IPC namespace, a lock limit, a memory group) belongs to a process, and so that the
 * variants can take turns.
 */
struct pin_worker {
	struct child child;
	int socket; /* -1: none */
	char pin_method[32], release_context[16], observed_variant[16];
	struct message notes[4];
};

/* What one turn took. */
struct pin_turn {
	int error; /* 0, or -errno of the backend */
	int64_t phase_ns[BUFFER_PHASES], phase_cpu_ns[BUFFER_PHASES];
	int64_t pageout_ns; /* MADV_PAGEOUT of the held buffer; -1: not asked, or not possible */
	int64_t pageout_cpu_ns;
	struct message message;
};

/* Starts the worker and opens its backend in it; -errno with the backend's message. */
int pin_worker_start(const struct backend_ops *ops, const struct backend_settings *settings,
		     const struct cgroup *cgroup, struct knobs *knobs,
		     struct pin_worker *ret_worker, struct message *message);

/*
 * One buffer of @bytes from allocation to release; with @pageout reclaim is asked to take it
 * while it is held. -errno of the turn, -ECHILD: the worker died; -ETIMEDOUT; -EINTR: *interrupted.
 */
int pin_worker_turn(struct pin_worker *worker, uint64_t bytes, bool pageout, int64_t limit_ns,
		    const volatile sig_atomic_t *interrupted, struct pin_turn *ret_turn,
		    struct message *message);

void pin_worker_stop(struct pin_worker *worker, struct knobs *knobs);

#endif
