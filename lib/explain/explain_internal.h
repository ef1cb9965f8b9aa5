/* SPDX-License-Identifier: MIT */
#ifndef EXPLAIN_EXPLAIN_INTERNAL_H
#define EXPLAIN_EXPLAIN_INTERNAL_H

#include "explain/explain.h"

/* The state of a replay; private to explain/. */

#define NEST_DEPTH 16
#define PRIORITY_UNKNOWN (-1)

struct nest_level {
	enum cause_kind cause;
	const char *name;
};

/* What was entered and not left, the innermost last. */
struct nest {
	struct nest_level levels[NEST_DEPTH];
	size_t depth;	       /* may count more than fit */
	int open[CAUSE_KINDS]; /* of the search for what was entered before the events begin */
};

struct replay_cpu {
	bool known;    /* tid is */
	bool lost;     /* events of it were lost */
	bool inferred; /* its last event is a switch that was put in, at inferred_ns */
	int32_t tid;
	int64_t inferred_ns;
	struct nest nest;
};

struct replay_task {
	int32_t tid, priority;
	const char *comm; /* NULL: not known */
	struct nest nest;
};

struct subject {
	int32_t tid, cpu;
	enum {
		SUBJECT_SLEEPING,
		SUBJECT_BLOCKED,
		SUBJECT_STOPPED,
		SUBJECT_RUNNABLE,
		SUBJECT_ON_CPU
	} state;
	bool has_run;	       /* in the window */
	bool woken_from_block; /* by waker_tid; the timer's own wake is none */
	int32_t waker_tid;
	bool waker_in_irq;
	bool left_runnable; /* it did not sleep: an idle CPU means that it is throttled */
	int64_t woken_at_ns, slept_at_ns;
	int64_t waited_since_ns; /* begin of the sleep that woken_at_ns ended */
	int64_t released_ns;	 /* the holder of the explanation gave on what it held */
};

struct replay {
	const struct explain_window *window;
	struct replay_cpu *cpus;
	size_t cpu_count;
	struct replay_task *tasks;
	size_t task_count, task_room;
	struct subject subject;
};

int replay_start(struct replay *replay, const struct trace_event *events, size_t count,
		 const struct explain_window *window);
void replay_end(struct replay *replay);
void replay_apply(struct replay *replay, const struct trace_event *event);

/* What time is charged to now: phase, cause, names. */
void replay_label(struct replay *replay, struct explain_slice *label);

/* What a task is in, on whatever CPU. */
void replay_label_task(struct replay *replay, int32_t tid, struct explain_slice *label);

/*
 * Whom the subject waited for, after the replay: waker, holder and collapser of @explanation, and
 * what held these up. -ENOMEM.
 */
int explain_wait(struct replay *replay, const struct trace_event *events, size_t count,
		 struct explanation *explanation);

/* The region that a slice counts to: the reclaim around a shrinker or compaction, else its own. */
enum cause_kind explain_base(const struct explain_slice *slice);

/*
 * The longest slice of what most of the delay is charged to (parts of reclaim with it); *ret_ns: of
 * all of that. NULL: there is none.
 */
const struct explain_slice *explain_main(const struct explanation *explanation, int64_t *ret_ns);

/* Made when it is not there; NULL without memory. Valid until the next call. */
struct replay_task *replay_task(struct replay *replay, int32_t tid);

#endif
