/* SPDX-License-Identifier: MIT */
#ifndef EXPLAIN_EXPLAIN_H
#define EXPLAIN_EXPLAIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "record/sampling.h"

/*
 * Why a delay was long: events and a window in, causes out. Pure: no file, no clock, no kernel;
 * what collects the events is in lib/causes. docs/method-causes.md shows how a slice is charged.
 */

/* What a slice of a delay is charged to: the innermost thing that the CPU or task was in. */
enum cause_kind {
	CAUSE_UNKNOWN,
	CAUSE_STEAL,	      /* the host ran something else on this virtual CPU */
	CAUSE_POSSIBLE_STEAL, /* the signs of it, below the resolution of the steal counter */
	CAUSE_IRQ,
	CAUSE_SOFTIRQ,
	CAUSE_IDLE, /* the CPU ran nothing: leaving idle, or EXPLAIN_THROTTLED */
	CAUSE_TASK, /* another task, in none of the regions below */
	CAUSE_DIRECT_RECLAIM,
	CAUSE_MEMCG_RECLAIM,
	CAUSE_SHRINKER,
	CAUSE_COMPACTION,
	CAUSE_LOCK,
	CAUSE_WRITEBACK,
	CAUSE_SWAP_IO,
	CAUSE_KSWAPD,
	CAUSE_KHUGEPAGED,
	CAUSE_STOPPED, /* the sampler itself, by a signal */
	CAUSE_BLOCKED, /* the sampler slept in the kernel and no region says what for */
	CAUSE_SELF,    /* the sampler ran */
	CAUSE_KINDS
};

const char *cause_name(enum cause_kind kind); /* "memcg-reclaim"; as in records */

enum trace_kind {
	TRACE_LOST,   /* events of this CPU just before this one are lost */
	TRACE_SWITCH, /* tid leaves in state value; other, other_comm, priority come */
	TRACE_WAKING, /* tid (or an interrupt above it) wakes other, for CPU value */
	TRACE_ENTER,  /* tid enters the region cause, name; other: address space whose lock it is */
	TRACE_LEAVE,
	TRACE_IRQ_ENTER, /* this CPU enters the handler name; cause: CAUSE_IRQ or CAUSE_SOFTIRQ */
	TRACE_IRQ_LEAVE,
	TRACE_COLLAPSE,	 /* tid has tried to collapse a range of the address space other (0: not
			    known) to a huge page */
	TRACE_RECLAIMED, /* tid freed value anonymous or file pages (cause) of other scanned */
	TRACE_STACK,	 /* name: functions of the kernel that tid was in, innermost first */
};

/* State in which a task leaves its CPU (the field prev_state, reduced). */
enum trace_state { STATE_RUNNABLE, STATE_SLEEPING, STATE_BLOCKED, STATE_STOPPED, STATE_DEAD };

/* One event. Strings belong to whoever gave the events. */
struct trace_event {
	int64_t when_ns; /* CLOCK_MONOTONIC */
	int32_t cpu;
	int32_t tid; /* task that was current on the CPU; 0: idle */
	enum trace_kind kind;
	enum cause_kind cause;
	int32_t other, value;
	uint64_t lock;	  /* address of the lock that is contended for; 0: not in this event */
	int32_t priority; /* the kernel's: below 100 real-time (FIFO 99 is 0), from 100 on ordinary
			   */
	const char *comm; /* of tid; NULL: not in this event */
	const char *other_comm;
	const char *name;
	bool inferred; /* a switch that the kernel did not report: explain_infer_switches() */
};

/* What is to be explained. */
enum explain_subject {
	SUBJECT_WAKEUP,	  /* from the expiry of a timer to the running of tid */
	SUBJECT_INTERVAL, /* tid ran code of its own from when_ns on (thp) */
};

struct explain_window {
	int64_t when_ns, late_ns;
	int32_t cpu, tid;
	enum explain_subject subject;
	int64_t steal_ns;      /* of the CPU in a span that encloses the window; -1: not known */
	int64_t steal_span_ns; /* length of that span */
};

/* Events so long before and after a window are of use: who ran, which regions were entered. */
#define EXPLAIN_LEAD_NS INT64_C(50000000)
#define EXPLAIN_TAIL_NS INT64_C(10000000)

enum explain_phase {
	EXPLAIN_TIMER,	  /* wakeup: expiry to the interrupt that wakes */
	EXPLAIN_DISPATCH, /* wakeup: woken to running */
	EXPLAIN_RETURN,	  /* wakeup: running to the clock read in the program */
	EXPLAIN_ON_CPU,	  /* interval: running */
	EXPLAIN_OFF_CPU,  /* interval: not running */
	EXPLAIN_PHASES
};

const char *explain_phase_name(enum explain_phase phase);

/* Name of a slice in which the CPU idled though the task could run, and was not waiting for it. */
#define EXPLAIN_THROTTLED "throttled"

struct explain_slice {
	enum explain_phase phase;
	enum cause_kind cause, outer; /* outer: the region around it; CAUSE_UNKNOWN: none */
	int32_t tid, priority;	      /* of the task that it is charged to; 0: idle or none */
	int64_t ns;
	char name[48]; /* of interrupt, softirq, shrinker, lock; EXPLAIN_THROTTLED; "" none */
	char comm[16];
};

#define EXPLAIN_SLICES 24

struct explanation {
	struct explain_window window;
	int64_t phase_ns[EXPLAIN_PHASES];
	struct explain_slice slices[EXPLAIN_SLICES]; /* longest first; what does not fit: unknown */
	size_t slice_count;
	int64_t explained_ns;
	/* evidence */
	int64_t silent_ns; /* longest time without any event on the CPU */
	int64_t anon_pages, file_pages, scanned_pages; /* by tasks on this CPU, in the window */
	bool switched_in;      /* the moment at which the task began to run was reported */
	bool switch_inferred;  /* not reported, but it follows from later events */
	int32_t displacer_tid; /* ordinary task that the CPU went to while the real-time task could
				  run; 0: none */
	int32_t waker_tid;     /* last that woke the task out of a sleep; 0: an interrupt in idle */
	char waker_comm[16];
	int32_t holder_tid; /* whom the waker had waited for itself, at the end of such a chain; 0:
			       none */
	char holder_comm[16];
	enum cause_kind doing; /* the region that the holder, or else the waker, was in for
				  doing_ns of the wait; CAUSE_UNKNOWN: none */
	int64_t doing_ns;
	int32_t collapser_tid; /* it tried to collapse a huge page of the task's; 0: nobody */
	char collapser_comm[16];
	int32_t stack_tid;
	char stack[160]; /* kernel functions of the blocker when the task was woken */
	char sentence[512];
};

struct explain_settings {
	bool guest;	 /* a virtual machine: CPUs can be stopped by the host */
	int64_t tick_ns; /* resolution of the steal counter */
};

/*
 * Adds the switches that a kernel did not report and that later events of the same CPU show, which
 * name another task as current. @events, allocated and sorted by time, is replaced when there are
 * any; *ret_added: how many. -ENOMEM: all is left as it was.
 */
int explain_infer_switches(struct trace_event **events, size_t *count, size_t *ret_added);

/*
 * Replays @events (sorted by time; of all CPUs) over one window and fills slices, evidence and
 * sentence. Every nanosecond of the window is in exactly one slice. -ENOMEM.
 */
int explain_delay(const struct trace_event *events, size_t count,
		  const struct explain_window *window, const struct explain_settings *settings,
		  struct explanation *ret_explanation);

/*
 * The at most @room worst delays over all threads, the longest first; steal as the threads have it.
 * Returns how many.
 */
size_t explain_pick(const struct sampling_thread *threads, size_t count,
		    enum explain_subject subject, struct explain_window *windows, size_t room);

/* One entry of the record's "causes"; times relative to @begin_ns. */
json_t *explanation_json(const struct explanation *explanation, int64_t begin_ns);

/*
 * Late time by cause over @explanations of at least @least_ns: [{"cause", "late_us", "percent"}],
 * the largest first.
 */
json_t *explain_summary(const struct explanation *explanations, size_t count, int64_t least_ns);

/*
 * The events in and around the windows as Chrome JSON trace events, which ui.perfetto.dev opens:
 * a row a CPU with the tasks, one with interrupts, one a task with regions, and the delays.
 */
int explain_write_perfetto(FILE *stream, const struct trace_event *events, size_t count,
			   const struct explain_window *windows, size_t window_count,
			   int64_t begin_ns);

#endif
