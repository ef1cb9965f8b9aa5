/* SPDX-License-Identifier: MIT */
#ifndef RUN_LOADS_H
#define RUN_LOADS_H

#include <jansson.h>

#include "ops.h"
#include "sys/child.h"

/* The load processes of a run. */
struct load_process {
	struct load load; /* shared memory inside */
	struct child child;
	bool died;  /* ended before it was asked to */
	bool stuck; /* did not end, not even by SIGKILL: the guardian goes on with it */
	int status; /* of waitpid, when ended */
	uint64_t ops_at_begin, bytes_at_begin;
	uint64_t extra_at_begin[LOAD_EXTRA];
	int64_t oom_kills_at_start; /* of the group; -1: not known */
	struct cgroup cgroup;	    /* version CGROUP_NONE: none */
};

/*
 * Forks one process for @settings, in @cgroup (NULL: here); settings are copied (cpus too). Its
 * budget is the load's default when @settings has none. -errno of the load's check, or of the
 * start.
 */
int load_start(const struct load_settings *settings, const struct cgroup *cgroup,
	       struct load_process *ret_process, struct message *message);

/*
 * Waits until every load is steady, one has failed (its -errno; -ECHILD when it was killed) or
 * @deadline_ns is past (-ETIMEDOUT: goes on, with a note). May be called again with a later
 * deadline.
 */
int loads_wait_steady(struct load_process *processes, size_t count, int64_t deadline_ns,
		      struct message *message);

/* Marks the begin of the measured window for the rates. */
void loads_begin(struct load_process *processes, size_t count);

/* 0; -ECHILD with the name and why in @message when one died. */
int loads_poll(struct load_process *processes, size_t count, struct message *message);

/*
 * Asks all to stop, waits until @asked_until_ns, kills the rest all at once, and waits for those
 * until @killed_until_ns: a process that waits in the kernel may outlive even that.
 */
void loads_stop(struct load_process *processes, size_t count, int64_t asked_until_ns,
		int64_t killed_until_ns);

/*
 * The "load_stats" object: per load {"ops", "ops_per_s", "bytes", "bytes_per_s", "offered_per_s",
 * "budget_bytes", extras..., "died": bool}, of the measured window of @window_s. Call it before
 * loads_stop().
 */
json_t *loads_statistics(const struct load_process *processes, size_t count, double window_s);

void loads_free(struct load_process *processes, size_t count);

#endif
