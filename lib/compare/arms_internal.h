/* SPDX-License-Identifier: MIT */
#ifndef COMPARE_ARMS_INTERNAL_H
#define COMPARE_ARMS_INTERNAL_H

#include "compare/arms.h"

/* Shared by arms.c, arms_read.c and arms_name.c. */

struct arm *arm_set_add(struct arm_set *set, size_t source, const char *name);
int arm_set_add_records(struct arm_set *set, size_t index);
int arm_set_merge(struct arm_set *set);

/* Shortens the names of plain files, then makes all names differ; fills set->plain_metric. */
int arm_set_name(struct arm_set *set);

void arm_set_note(struct arm_set *set, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
