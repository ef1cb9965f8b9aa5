/* SPDX-License-Identifier: MIT */
#ifndef RECORD_EXPLAIN_EVENTS_H
#define RECORD_EXPLAIN_EVENTS_H

#include "explain/explain.h"

/* Event arrays as a kernel would have written them; times in microseconds from the expiry. */

#define ORIGIN_NS INT64_C(1000000000000)
#define AT(us) (ORIGIN_NS + (int64_t)(us)*1000)
#define SAMPLER 100
#define LOAD 200

static inline struct trace_event switched(double us, int cpu, int from, int state, const char *comm,
					  int to, const char *to_comm, int priority)
{
	return (struct trace_event){.when_ns = AT(us),
				    .cpu = cpu,
				    .tid = from,
				    .kind = TRACE_SWITCH,
				    .value = state,
				    .comm = comm,
				    .other = to,
				    .other_comm = to_comm,
				    .priority = priority};
}

static inline struct trace_event waking(double us, int cpu, int by, int who)
{
	return (struct trace_event){.when_ns = AT(us),
				    .cpu = cpu,
				    .tid = by,
				    .kind = TRACE_WAKING,
				    .other = who,
				    .value = cpu,
				    .priority = -1};
}

static inline struct trace_event plain(double us, int cpu, int tid, enum trace_kind kind,
				       enum cause_kind cause, const char *name)
{
	return (struct trace_event){.when_ns = AT(us),
				    .cpu = cpu,
				    .tid = tid,
				    .kind = kind,
				    .cause = cause,
				    .name = name,
				    .priority = -1};
}

static inline struct explain_window window_of(double late_us, enum explain_subject subject)
{
	return (struct explain_window){.when_ns = ORIGIN_NS,
				       .late_ns = (int64_t)(late_us * 1000),
				       .cpu = 0,
				       .tid = SAMPLER,
				       .subject = subject,
				       .steal_ns = 0};
}

#endif
