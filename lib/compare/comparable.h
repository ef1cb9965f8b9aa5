/* SPDX-License-Identifier: MIT */
#ifndef COMPARE_COMPARABLE_H
#define COMPARE_COMPARABLE_H

#include <jansson.h>

#include "base/message.h"
#include "compare/arms.h"

/* May these runs be compared at all? What must be alike, unless the user says otherwise. */
enum mix {
	MIX_UNITS = 1 << 0,
	MIX_BENCHMARKS = 1 << 1,   /* benchmark and measure */
	MIX_TRACE_LEVELS = 1 << 2, /* tracing costs time */
	MIX_SETTINGS = 1 << 3,	   /* options within an arm, and between sources */
	MIX_INTERRUPTED = 1 << 4,  /* interrupted runs beside complete ones */
	MIX_DURATIONS = 1 << 5,	   /* a maximum grows with the length of its run */
	MIX_ALL = (1 << 6) - 1,
};

/* "units,settings" or "all" to bits; -EINVAL names the word that is unknown. */
int mix_parse(const char *text, unsigned int *ret_mix, struct message *message);
extern const char *const mix_names[]; /* NULL-terminated, in the order of the bits */

/*
 * 0 when the runs that are neither failed nor, without MIX_INTERRUPTED, interrupted are alike in
 * everything but @mix; else -EBADMSG with what differs, where, and which option compares it all the
 * same. @metrics, NULL-terminated: a maximum or minimum among them asks for equal lengths.
 */
int arms_check_comparable(const struct arm_set *set, unsigned int mix, const char *const *metrics,
			  struct message *message);

/*
 * What besides the arm differs between arms, as sentences: environment (facts that hold through
 * each arm), machine, settings, achieved rates of loads that differ by more than 10%. New array of
 * strings, empty when nothing does; NULL without memory.
 */
json_t *arms_differences(const struct arm_set *set);

#endif
