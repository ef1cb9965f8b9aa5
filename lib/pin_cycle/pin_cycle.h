/* SPDX-License-Identifier: MIT */
#ifndef PIN_CYCLE_PIN_CYCLE_H
#define PIN_CYCLE_PIN_CYCLE_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "ops.h"
#include "record/record.h"

/*
 * What it costs to allocate, populate, pin and release buffers, for each way of holding their
 * pages: with memory free (cold), in a memory group where another process makes reclaim run
 * (pressure), and what reclaim pays for looking at pages that it cannot take (pageout). The
 * variants take turns, one buffer each, so that what drifts on the machine drifts for all.
 */
#define PIN_CYCLE_SIZES_MOST 16

enum pin_cycle_part { PIN_CYCLE_COLD = 1, PIN_CYCLE_PRESSURE = 2, PIN_CYCLE_PAGEOUT = 4 };

struct pin_cycle_settings {
	const char *arm;	/* NULL: none */
	const char *backend;	/* NULL: shm, and drivers' where they work */
	unsigned int variants;	/* bits 1 << enum variant; 0: all */
	const char *device;	/* NULL: choose */
	const char *pin_method; /* shm; NULL: the best that works */
	unsigned int parts;	/* enum pin_cycle_part */
	uint64_t sizes[PIN_CYCLE_SIZES_MOST];
	size_t size_count;
	uint64_t limit_bytes; /* of the group under pressure */
	unsigned int rounds;  /* of each size; 0: what fits into the time */
	int64_t time_ns;      /* for all that is measured, unless rounds are given */
	void (*progress)(void *data, const char *text); /* NULL: none */
	void *progress_data;
	const volatile sig_atomic_t *interrupted; /* NULL: never */
};

/*
 * Measures; everything changed on the machine is back when it returns. Variants and parts that
 * cannot be measured here are notes "NAME: n/a: why" of the record. -EINVAL: sizes, backend;
 * -ENOMEM: more than there is; -ENOTSUP: no variant works; -EINTR: stopped before anything was.
 */
int pin_cycle_execute(const struct pin_cycle_settings *settings, struct record **ret_record,
		      struct message *message);

#endif
