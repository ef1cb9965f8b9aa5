/* SPDX-License-Identifier: MIT */
#ifndef SAMPLER_PROCESS_H
#define SAMPLER_PROCESS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "sampler/sampler.h"
#include "record/sampling.h"

struct sample_sink;

/* What happens inside the sampler's own process, and the memory that it shares with the supervisor.
 */

#define SAMPLER_NOTES 4

struct sampler_shared {
	_Atomic int32_t stop;
	_Atomic int64_t start_ns;
	/* Futexes */
	_Atomic uint32_t begun; /* 1: start_ns is set (or stop is) */
	_Atomic uint32_t ready; /* threads that are ready or failed */
	_Atomic uint32_t state; /* 0 starting, 1 sampling may begin, 2 failed: see error */

	int32_t error;
	struct message message;
	struct message notes[SAMPLER_NOTES];
	uint32_t note_count;
};

struct sampler_process {
	const struct sampler_settings *settings;
	struct sampler_shared *shared;
	struct sampling_thread *threads;
	size_t count;
	void *memory; /* all of the above that is shared */
	size_t memory_bytes;
	struct sample_sink *sink; /* NULL: no --samples */
};

/* The body of the process (@process: struct sampler_process); returns when all threads have ended.
 */
int sampler_process_run(void *process);

/* Waits while *word is @value, at most @timeout_ns; works across processes. */
void futex_wait(_Atomic uint32_t *word, uint32_t value, int64_t timeout_ns);
void futex_wake_all(_Atomic uint32_t *word);

#endif
