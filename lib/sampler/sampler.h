/* SPDX-License-Identifier: MIT */
#ifndef SAMPLER_SAMPLER_H
#define SAMPLER_SAMPLER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/message.h"
#include "ops.h"
#include "sys/child.h"

/*
 * The sampler: a process of its own that holds the sampling threads, and the view that the
 * supervisor has of them.
 */
struct sampler_settings {
	const struct measure_ops *measure;
	struct measure_settings measure_settings;
	struct cpu_list cpus; /* one thread each, in order, round and round when threads > count */
	unsigned int threads; /* 0: one a CPU */
	bool fifo;	      /* --sched */
	int priority;	      /* 1..99 */
	const struct cgroup *cgroup; /* NULL: stay where we are */
	const char *
		samples_path; /* --samples; NULL: none. ".txt" text, else binary (docs/method.md) */
	struct transaction *transaction;
};

struct sampler;

/*
 * Forks the sampler and waits until every thread is ready (pinned, scheduled, locked) or has
 * failed; -errno with the thread's reason. What was asked but could not be had without failing
 * (FIFO, lock) is in the threads' policy/memory_locked and in @message's place as notes:
 * sampler_notes().
 */
int sampler_start(const struct sampler_settings *settings, struct sampler **ret_sampler,
		  struct message *message);

/* Things to say in the record ("sampler: SCHED_OTHER, because..."); owned by the sampler. */
const struct message *sampler_notes(const struct sampler *sampler, size_t *ret_count);

/*
 * How far in the future a start must lie for every thread to sleep towards it when it comes,
 * nanoseconds: a thread that is woken after the start would find deadlines missed that only the
 * tool missed.
 */
int64_t sampler_lead_ns(const struct sampler *sampler);

/* Threads begin to sample at @start_ns. Once: they have waited until now. */
void sampler_begin(struct sampler *sampler, int64_t start_ns);

/*
 * 0 running; -ECHILD when the process died, another -errno when a thread gave up (thp without
 * address space), and @message (may be NULL)
 * says how. Reads steal for the worst delays. Cheap: called ten times
 * a second.
 */
int sampler_poll(struct sampler *sampler, struct message *message);

const struct sampling_thread *sampler_threads(const struct sampler *sampler, size_t *ret_count);
const struct sampling_thread *sampler_thread(const struct sampler *sampler, size_t index);

/* Longest wait under way at @now_ns; its thread; 0 when none is late. */
int64_t sampler_stalled_ns(const struct sampler *sampler, int64_t now_ns, size_t *ret_index);

/*
 * Ends sampling at once, by the supervisor's clock. Threads that do not stop within 750 ms are
 * left to the kill, which has 200 ms: -ETIMEDOUT when the process outlives that; their unfinished
 * wait is in *ret_stall_ns (0 none) as "at least".
 */
int sampler_stop(struct sampler *sampler, int64_t *ret_stall_ns);

/*
 * Of --samples, after sampler_stop(): how many are not in the file, and why it failed (0 when it
 * did not: then what is lost found no room in the rings).
 */
int sampler_samples(const struct sampler *sampler, uint64_t *ret_lost, struct message *message);
void sampler_free(struct sampler *sampler); /* kills what is left */

#endif
