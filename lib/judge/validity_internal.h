/* SPDX-License-Identifier: MIT */
#ifndef JUDGE_VALIDITY_INTERNAL_H
#define JUDGE_VALIDITY_INTERNAL_H

/* Shared by the files that make up judge/validity. */
#include <jansson.h>
#include <stdbool.h>

#include "judge/claim.h"
#include "record/record.h"

/* A record under judgement: @view is its JSON with "derived" beside (judge/claim.h). */
struct judgement {
	struct record *record;
	const json_t *view;
	const struct judge_subject *subject;
};

/* Sum of the numbers at the '+'-joined paths; NaN when one of them is absent or no number. */
double view_number(const json_t *view, const char *paths);
/* The same with a default. */
double view_number_or(const json_t *view, const char *path, double fallback);
const char *view_text(const json_t *view, const char *path); /* NULL: none */

/* A number at @path below the statistics of whichever load has it; NaN: none has. */
double view_load_number(const json_t *view, const char *path);

/* Did the sampler get what was asked, and could something beside the loads explain its numbers? */
void judge_sampler(const struct judgement *judgement);
void judge_machine(const struct judgement *judgement);
/* What happened under the load is a result: told, but never held against the run. */
void judge_results(const struct judgement *judgement);
/* Were the pages held as the variant says, the LRU lists scanned, swap and huge pages used? */
void judge_memory(const struct judgement *judgement);

#endif
