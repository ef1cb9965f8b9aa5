/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_CLAIM_H
#define JUDGE_CLAIM_H

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
 *   derived.group_reclaim		what the run's own group shows of reclaim: pages scanned in
 *it (v2), else limit hits, pages swapped out and refaults (v1) derived.group_swapped_pages
 *pages that left the group for swap, at least about so many
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

#endif
