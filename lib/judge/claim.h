/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_CLAIM_H
#define JUDGE_CLAIM_H

#include <stdbool.h>
#include <stddef.h>

/*
 * What a load, measure or variant says that it exercises, as data: a witness in the record and the
 * least (or most) that proves it. Judged by judge/validity. Always initialise by member name.
 *
 * A path is dotted ("counters.vmstat.pswpout"); paths joined by '+' are summed, and the sum exists
 * only when every term does. Beside the record's own keys, record_judge() offers:
 *
 *   derived.pinned_pages		pinned_bytes in pages
 *   derived.unevictable_pages		most by which nr_unevictable rose in the run
 *   derived.mlocked_pages		the same of nr_mlock
 *   derived.scanned_pages		anon and file pages scanned by vmscan
 *   derived.swapped_out_pages		pswpout + swpout_zero (where the kernel counts it)
 *   derived.thp_attempts		mappings that the thp measure made
 *   derived.thp_hits			of these, the ones that became one huge page
 *   derived.limit_hits			times that the group's limit was hit (v1, v2)
 *   derived.group_reclaim		what the run's own group shows of reclaim: pages scanned
 *					in it (v2), else limit hits, pages swapped out and refaults
 *   derived.group_swapped_pages	pages that left the group for swap, at least about so many
 *
 * The last two exist where the loads have a group of their own. /proc/vmstat counts the reclaim of
 * the whole machine, a neighbour's too: a claim that rests on it names the group's part in "own".
 */
enum claim_test {
	CLAIM_AT_LEAST,	      /* witness >= bound */
	CLAIM_AT_MOST,	      /* witness <= bound */
	CLAIM_RATIO_AT_LEAST, /* witness >= bound x reference */
	CLAIM_RATIO_AT_MOST,  /* witness <= bound x reference */
};

/* What becomes of a run whose claim does not hold. */
enum claim_failure { CLAIM_INVALIDATES, CLAIM_CASTS_DOUBT };

struct claim {
	const char *name;      /* "swap exercised"; NULL ends a list */
	const char *witness;   /* path: "counters.vmstat.pswpout" */
	const char *reference; /* path for the ratio tests; NULL else */
	enum claim_test test;
	double bound;
	const char *why;      /* what it means when it fails: "nothing was swapped out" */
	const char *advice;   /* what to do: "lower --limit or give the swap load more" */
	const char *fallback; /* another witness for kernels without the first; NULL: then not
				 provable */
	enum claim_failure failure;
	const char *own;  /* path of what the run's own group must show as well; NULL: nothing */
	double own_least; /* of that; where it does not exist nothing is held against the run */
};

/* What a load is like; asked instead of its name by the plan, the run and the judgement. */
enum load_flags {
	/* A backend's buffers, held pinned. --backend, --device, --variant, --footprint and IGT's
	   -n and -m are about it. */
	LOAD_HOLDS_BUFFERS = 1 << 0,
	/* Takes anonymous memory up to its budget, which only swap can take back. */
	LOAD_HOLDS_MEMORY = 1 << 1,
	/* Takes page cache, which reclaim takes back. */
	LOAD_FILLS_CACHE = 1 << 2,
	/* Wants more than a limit leaves: beside it the group's limit has to be reached. */
	LOAD_REACHES_LIMIT = 1 << 3,
	/* Would be killed without swap for its budget. */
	LOAD_NEEDS_SWAP = 1 << 4,
	/* Does nothing to the machine, so there is nothing to prove of it. */
	LOAD_IDLES = 1 << 5,
};

/* The same of a measure. */
enum measure_flags {
	MEASURE_DEFAULT = 1 << 0, /* taken when none is named */
	MEASURE_IN_GROUP =
		1 << 1, /* its threads belong inside the group, where they meet its limit */
	MEASURE_SCHEDULES = 1 << 2,  /* --interval: deadlines of a fixed schedule */
	MEASURE_PACES = 1 << 3,	     /* --pace: a pause between samples */
	MEASURE_FAULTS = 1 << 4,     /* page faults are part of what it times */
	MEASURE_HUGE_PAGES = 1 << 5, /* a sample wants a huge page; hits and misses are counted */
};

/* What ran, for the judgement. */
struct judge_subject {
	unsigned int measure_flags;
	unsigned int load_flags; /* of all loads together */
	bool loaded;		 /* some load did more than idle */
	const struct claim *const *claims;
	size_t claim_count;
};

struct record;

/* Names a verdict from the CONDITIONS of the run; fills verdict and reasons. See judge/validity.c.
 */
void record_judge(struct record *record, const struct judge_subject *subject);

#endif
