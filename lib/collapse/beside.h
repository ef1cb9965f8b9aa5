/* SPDX-License-Identifier: MIT */
#ifndef COLLAPSE_BESIDE_H
#define COLLAPSE_BESIDE_H

#include <stdatomic.h>

#include "collapse/state.h"

/* What neighbours are measured beside. */
enum beside_load {
	BESIDE_IDLE,
	BESIDE_SCAN,	 /* khugepaged, with nothing to collapse */
	BESIDE_COLLAPSE, /* MADV_COLLAPSE of small pages, again and again */
	BESIDE_LOOP,	 /* MADV_COLLAPSE of what is huge, in one call over all of it */
};

/* What is done, at a fixed rate, while the load runs. */
enum beside_work {
	BESIDE_FAULT_SAME,  /* 4K page fault in the mapping that the load works on */
	BESIDE_FAULT_OTHER, /* in another mapping of the process */
	BESIDE_MAP,	    /* mmap and munmap of 64K */
	BESIDE_PROTECT,	    /* mprotect of 64K, to and fro */
	BESIDE_WAKEUP,	    /* timer wakeup of another process */
	BESIDE_WORKS,
};

#define BESIDE_RATE_PER_S 1000
#define BESIDE_SAMPLES_MOST 20000

/*
 * The mapping: tables that the load works on, then tables of small pages of which each keeps its
 * first one, so that a fault there is one of 4K, whatever the advice on the mapping.
 */
struct beside_memory {
	struct thp_region region;
	char *worked, *faulted;
	uint64_t worked_bytes, faulted_bytes;
	char *other; /* as much as is faulted, in a mapping of its own */
	struct thp_region other_region;
};

/* Work at a fixed rate: samples of each, and how much of what was offered was done. */
struct beside_result {
	size_t count;
	uint64_t offered, missed; /* deadlines that passed while the one before was under way */
	double values[BESIDE_SAMPLES_MOST];
};

/* Does @work for @ns in this thread. */
int beside_do(const struct collapse *collapse, enum beside_work work, struct beside_memory *memory,
	      int64_t ns, struct beside_result *result);

#endif
