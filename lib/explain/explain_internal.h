/* SPDX-License-Identifier: MIT */
#ifndef EXPLAIN_EXPLAIN_INTERNAL_H
#define EXPLAIN_EXPLAIN_INTERNAL_H

#include "explain/explain.h"

/* Private to explain/. Each file uses only those above it here. */

/* ---- slices.c: what a slice is called and what it counts to ---- */

#define PRIORITY_UNKNOWN (-1)

bool is_real_time(int32_t priority);
bool is_throttled(const struct explain_slice *slice);

/* The region that a slice counts to: the reclaim around a shrinker or compaction, else its own. */
enum cause_kind explain_base(const struct explain_slice *slice);

/* Do both count to the same thing: the region of one task, the CPU's host, one interrupt? */
bool explain_same_group(const struct explain_slice *a, const struct explain_slice *b);

/*
 * The longest slice of what most of the delay is charged to (parts of reclaim with it); *ret_ns: of
 * all of that. NULL: there is none.
 */
const struct explain_slice *explain_main(const struct explanation *explanation, int64_t *ret_ns);

/* The highest CPU of the events, at least @highest. */
int32_t explain_highest_cpu(const struct trace_event *events, size_t count, int32_t highest);

/* ---- replay.c: what CPUs and tasks are in, event by event ---- */

#define NEST_DEPTH 16

struct nest_level {
	enum cause_kind cause;
	const char *name;
	uint64_t lock; /* address; 0: not a lock, or not known */
};

/* What was entered and not left, the innermost last. */
struct nest {
	struct nest_level levels[NEST_DEPTH];
	size_t depth; /* may count more than fit */
};

struct replay_cpu {
	const struct trace_event *first; /* NULL: it has none */
	bool known;			 /* tid is */
	bool inferred;			 /* its last event is an inferred switch, at inferred_ns */
	bool switched;			 /* since known_from: no interrupt is older */
	int32_t tid;
	int64_t inferred_ns;
	size_t known_from; /* from this event on it is not known that any was lost */
	struct nest nest;
};

struct replay_task {
	int32_t tid, priority, cpu; /* cpu: where it was last seen; -1: nowhere */
	const char *comm;	    /* NULL: not known */
	size_t known_from;	    /* greater than replay.at: in a gap */
	struct nest nest;
};

/* A region or interrupt that was left and not seen to be entered. */
struct unseen_entry {
	size_t from, to; /* it was entered before the first of these events, and left at the last */
	bool irq;
	int32_t owner; /* tid, or CPU of an interrupt */
	struct nest_level level;
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
	int64_t released_ns;	 /* the holder of the explanation released what it held */
};

struct replay {
	const struct explain_window *window;
	const struct trace_event *events; /* those that may tell something about the window */
	size_t count, at;		  /* at: the last that was applied */
	size_t *gap_end; /* of each event: the loss that is the next event of its CPU; 0: none */
	struct replay_cpu *cpus;
	size_t cpu_count;
	struct replay_task *tasks;
	size_t task_count, task_capacity;
	struct unseen_entry *unseen; /* by from */
	size_t unseen_count, unseen_capacity, unseen_next;
	struct subject subject;
};

/* Reads all events once for what was entered before. -ENOMEM. */
int replay_start(struct replay *replay, const struct trace_event *events, size_t count,
		 const struct explain_window *window);
void replay_end(struct replay *replay);

/* The next of replay->events. */
void replay_apply(struct replay *replay, const struct trace_event *event);

/* What time is charged to now: phase, cause, names. */
void replay_label(const struct replay *replay, struct explain_slice *label);

/* What a task is in, on whatever CPU. */
void replay_label_task(const struct replay *replay, int32_t tid, struct explain_slice *label);

/* NULL: it is in no event. */
struct replay_task *replay_task(const struct replay *replay, int32_t tid);

/* ---- segments.c: a window cut at the events of its CPU ---- */

struct segment {
	int64_t ns;
	bool whole; /* between two events of the CPU: nothing happened on it meanwhile */
	struct explain_slice label;
};

struct segments {
	struct segment *items;
	size_t count, capacity;
};

int segments_add(struct segments *segments, int64_t ns, bool whole,
		 const struct explain_slice *label);

/*
 * Charges stolen time to the host first: a CPU that the host stopped must not be blamed on what it
 * was stopped in. The counter says how much was stolen around the window (to a tick), silence on
 * the CPU where. -ENOMEM.
 */
int segments_take_stolen(struct segments *segments, const struct explain_window *window,
			 const struct explain_settings *settings);

/* Sums equal labels into slices; what is too much for them becomes unknown. -ENOMEM. */
int segments_sum_up(const struct segments *segments, struct explanation *explanation);

/* ---- wait.c ---- */

/*
 * Whom the subject waited for, after the replay: waker, holder and collapser of @explanation, and
 * what held these up. -ENOMEM.
 */
int explain_wait(struct replay *replay, struct explanation *explanation);

/* ---- words.c ---- */

/* One sentence for a person, from the filled rest of the explanation. */
void explain_in_words(struct explanation *explanation, const struct explain_settings *settings);

#endif
