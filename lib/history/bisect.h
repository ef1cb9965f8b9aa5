/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_BISECT_H
#define HISTORY_BISECT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/message.h"

/*
 * Which side of a regression does a tree belong to? Its runs are compared, after each of them,
 * with those of a good and of a bad tree by exact Mann-Whitney tests at a boundary that spends
 * alpha over the looks (stats/sequential.h). It is bad once it differs from the good runs towards
 * the bad ones, and good once it differs from the bad runs towards the good ones.
 */
struct bisect_settings {
	double alpha;	   /* chance of a wrong verdict on one tree: 0.005 */
	size_t first_look; /* runs before the first look: 3 */
	size_t most;	   /* runs at most: 40 */
	bool higher_is_better;
};

#define BISECT_SETTINGS_DEFAULT                             \
	{                                                   \
		.alpha = 0.005, .first_look = 3, .most = 40 \
	}

enum bisect_verdict {
	BISECT_UNDECIDED, /* measure on */
	BISECT_GOOD,
	BISECT_BAD,
	BISECT_BETWEEN, /* differs from both towards the other: a level of its own */
};

struct bisect;

/*
 * Runs of both sides, in any order; copied. -EINVAL: too few, not finite, or bad is better than
 * good; -ERANGE: the two sides are not told apart at alpha, so nothing could be.
 */
int bisect_new(const double *good, size_t good_count, const double *bad, size_t bad_count,
	       const struct bisect_settings *settings, struct bisect **ret_bisect,
	       struct message *message);
void bisect_free(struct bisect *bisect);

struct bisect_look {
	enum bisect_verdict verdict;
	double log_p_good, log_p_bad; /* two-sided, against each side */
	double ratio_good, ratio_bad; /* Hodges-Lehmann; NaN: none, or undecided so far */
};

int bisect_look(const struct bisect *bisect, const double *values, size_t count,
		struct bisect_look *ret_look);

const char *bisect_verdict_name(enum bisect_verdict verdict);

#endif
