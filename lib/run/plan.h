/* SPDX-License-Identifier: MIT */
#ifndef RUN_PLAN_H
#define RUN_PLAN_H

#include <stdbool.h>
#include <stdint.h>

#include "run/run.h"

/* What the machine has, as the plan needs it; read by machine_memory_read(), faked by tests. */
struct machine_memory {
	uint64_t total_bytes, available_bytes;
	uint64_t swap_free_bytes;
};

int machine_memory_read(struct machine_memory *ret_memory);

/* Sizes, scope and loads of one run, all decided before anything is changed. */
struct run_plan {
	bool memcg;
	uint64_t nominal_limit_bytes; /* as asked; what shares (%) and budgets refer to */
	uint64_t limit_bytes; /* as set: the baseline's is lowered by the footprint; 0: none */
	uint64_t nominal_footprint_bytes; /* as asked */
	uint64_t footprint_bytes;	  /* held pinned; 0 for the baseline */
	uint64_t swap_bytes;		  /* zram to make; 0: none */
	struct load_settings loads[8];
	size_t load_count;
	/* What was asked for, a baseline's gem load included: the same for every arm. */
	struct load_settings asked[8];
	size_t asked_count;
};

/*
 * -EINVAL: the options contradict each other or the sizes cannot work; -ENOMEM: more than the
 * machine has (machine scope, without --force). Notes about what was chosen go into @record (may be
 * NULL).
 */
int run_plan_make(const struct run_settings *settings, const struct machine_memory *memory,
		  struct run_plan *ret_plan, struct record *record, struct message *message);

#endif
