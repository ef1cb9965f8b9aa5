/* SPDX-License-Identifier: MIT */
#ifndef RECORD_CLAIM_H
#define RECORD_CLAIM_H

/*
 * What a load, measure or variant says that it exercises, as data: a witness in the record and the
 * least (or most) that proves it. Judged by record/validity.
 */
enum claim_test {
	CLAIM_AT_LEAST,		/* witness >= bound */
	CLAIM_AT_MOST,		/* witness <= bound */
	CLAIM_RATIO_AT_LEAST,	/* witness >= bound x reference */
	CLAIM_RATIO_AT_MOST,	/* witness <= bound x reference */
};

struct claim {
	const char *name;	/* "swap exercised" */
	const char *witness;	/* dotted path in the record: "counters.vmstat.pswpout" */
	const char *reference;	/* dotted path for the ratio tests; NULL else */
	enum claim_test test;
	double bound;
	const char *why;	/* what it means when it fails */
	const char *advice;	/* what to do */
	const char *fallback;	/* another witness for kernels without the first; NULL: then not provable */
};

#endif
