/* SPDX-License-Identifier: MIT */
#ifndef SAMPLER_SAMPLE_FILE_H
#define SAMPLER_SAMPLE_FILE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"

struct transaction;

/*
 * Every sample of a run in a file (--samples). One ring a sampling thread, in shared memory and
 * without a lock; a writer process of ordinary priority empties them twenty times a second, so that
 * a slow disk delays neither the threads nor the supervisor. A full ring loses samples, which are
 * counted and told, never silently.
 *
 * Binary file (little endian): struct sample_file_header, then one struct sample_file_record a
 * sample in the order of writing (of one thread: in time), then a last record whose thread is
 * SAMPLE_FILE_END: when_ns holds the samples written and late_ns the samples lost. A file without
 * that last record was cut short. A name that ends in ".txt" gives text: a line "# ..." that names
 * the columns, "thread cpu when_ns late_ns" a line, and a last line "# written N lost M".
 */
#define SAMPLE_FILE_MAGIC "SYSLSMP1"
#define SAMPLE_FILE_END UINT32_MAX

struct sample_file_header {
	char magic[8];
	uint32_t header_bytes; /* of this struct: records begin there */
	uint32_t record_bytes;
	uint32_t threads;
	uint32_t reserved;
};

struct sample_file_record {
	int64_t when_ns; /* CLOCK_MONOTONIC of the expected expiry (wakeup) or of the start (thp) */
	int64_t late_ns; /* the sample, as it was counted */
	uint32_t thread;
	int32_t cpu; /* that the thread is pinned to; -1: none */
};

/* 1.6 s at 10 kHz: longer than real-time threads can keep the writer from its CPU. */
#define SAMPLE_RING_SIZE 16384

struct sample_ring {
	_Atomic uint64_t head;				    /* put by the thread */
	_Atomic uint64_t lost;				    /* found no room */
	_Atomic uint64_t tail __attribute__((aligned(64))); /* taken by the writer */
	struct {
		int64_t when_ns, late_ns;
	} entries[SAMPLE_RING_SIZE] __attribute__((aligned(64)));
};

static inline void sample_ring_put(struct sample_ring *ring, int64_t when_ns, int64_t late_ns)
{
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);

	if (head - atomic_load_explicit(&ring->tail, memory_order_acquire) == SAMPLE_RING_SIZE) {
		atomic_store_explicit(&ring->lost,
				      atomic_load_explicit(&ring->lost, memory_order_relaxed) + 1,
				      memory_order_relaxed);
		return;
	}
	ring->entries[head % SAMPLE_RING_SIZE].when_ns = when_ns;
	ring->entries[head % SAMPLE_RING_SIZE].late_ns = late_ns;
	atomic_store_explicit(&ring->head, head + 1, memory_order_release);
}

struct sample_sink;

/*
 * Makes the file, the rings and the writer. @cpus: of each of @threads threads. -errno of the file
 * with its name in @message.
 */
int sample_sink_open(const char *path, const int *cpus, size_t threads,
		     struct transaction *transaction, struct sample_sink **ret_sink,
		     struct message *message);

struct sample_ring *sample_sink_ring(struct sample_sink *sink, size_t thread);

/*
 * After the threads ended: the writer takes what is left and ends, at the latest at @deadline_ns.
 * -ETIMEDOUT or the writer's -errno with why in @message; see sample_sink_lost() in any case.
 */
int sample_sink_finish(struct sample_sink *sink, int64_t deadline_ns, struct message *message);

/* Samples that are not in the file: no room in a ring, or not written by the end. */
uint64_t sample_sink_lost(const struct sample_sink *sink);

void sample_sink_free(struct sample_sink *sink); /* kills a writer that is left; NULL is accepted */

#endif
