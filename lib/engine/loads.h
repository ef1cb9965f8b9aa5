/* SPDX-License-Identifier: MIT */
#ifndef ENGINE_LOADS_H
#define ENGINE_LOADS_H

#include <jansson.h>

#include "ops.h"
#include "sys/child.h"

/* The load processes of a run. */
struct load_process {
	struct load load; /* shared memory inside */
	struct child child;
	bool died;  /* ended before it was asked to */
	int status; /* of waitpid, when ended */
	uint64_t ops_at_begin, bytes_at_begin;
	uint64_t extra_at_begin[LOAD_EXTRA];
};

/* Forks one process for @settings, in @cgroup (NULL: here); settings are copied (cpus too). */
int load_start(const struct load_settings *settings, const struct cgroup *cgroup,
	       struct load_process *ret_process, struct message *message);

/* Waits until every load is steady, has failed or @deadline_ns is past (-ETIMEDOUT: goes on, with a
 * note). */
int loads_wait_steady(struct load_process *processes, size_t count, int64_t deadline_ns,
		      struct message *message);

/* Marks the begin of the measured window for the rates. */
void loads_begin(struct load_process *processes, size_t count);

/* 0; -ECHILD with the name and why in @message when one died. */
int loads_poll(struct load_process *processes, size_t count, struct message *message);

/* Asks all to stop, waits until @deadline_ns, kills the rest. */
void loads_stop(struct load_process *processes, size_t count, int64_t deadline_ns);

/* The "load_stats" object: per load {"ops", "ops_per_s", "bytes", extras..., "died": bool}. */
json_t *loads_statistics(const struct load_process *processes, size_t count, double window_s);

void loads_free(struct load_process *processes, size_t count);

#endif
