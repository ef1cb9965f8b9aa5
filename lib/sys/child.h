/* SPDX-License-Identifier: MIT */
#ifndef SYS_CHILD_H
#define SYS_CHILD_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"

struct cgroup;
struct transaction;

/* A process of ours: a load, the sampler, a foreign command. */
struct child {
	pid_t pid; /* 0: none or reaped */
	int pidfd;
};

struct child_settings {
	const char *name;	     /* PR_SET_NAME, 15 bytes */
	int oom_score_adj;	     /* asked for; what could not be set is left */
	const struct cgroup *cgroup; /* entered before the body runs; NULL: stay */
	struct transaction
		*transaction; /* guardian that ends it after a SIGKILL of the program; NULL: none */
};

/*
 * Forks; the child dies with its parent (PR_SET_PDEATHSIG), has default signal actions with
 * SIGINT/SIGHUP/SIGTERM ignored (a terminal's Ctrl-C is the supervisor's to handle; children are
 * ended by pidfd), enters the group, then runs body(argument) and _exits with its result
 * (0, or the positive errno of a negative one).
 */
int child_start(const struct child_settings *settings, int (*body)(void *argument), void *argument,
		struct child *ret_child, struct message *message);

/* 1: running, 0: ended (then *ret_status as of waitpid, reaped), -errno. */
int child_poll(struct child *child, int *ret_status);

/* Waits until @deadline_ns; 0 ended and reaped, -ETIMEDOUT. */
int child_wait(struct child *child, int64_t deadline_ns, int *ret_status);

/* SIGKILL, waits up to @grace_ns; -ETIMEDOUT when it cannot die (D state): the guardian keeps it.
 */
int child_kill(struct child *child, int64_t grace_ns, struct transaction *transaction);

#endif
