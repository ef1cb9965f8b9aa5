/* SPDX-License-Identifier: MIT */
#include "compare/arms.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "compare/arms_internal.h"
#include "record/record.h"
#include "record/store.h"
#include "record/variant.h"

static void arm_clear(struct arm *arm)
{
	free(arm->name);
	free(arm->records);
	free(arm->values);
}

void arm_set_free(struct arm_set *set)
{
	if (!set)
		return;
	for (size_t i = 0; i < set->count; i++)
		arm_clear(&set->arms[i]);
	free(set->arms);
	for (size_t i = 0; i < set->source_count; i++) {
		struct arm_source *source = &set->sources[i];

		free(source->path);
		free(source->label);
		json_decref(source->plan);
		store_free(source->records, source->record_count);
		free(source->values.values);
	}
	free(set->sources);
	free(set->plain_metric);
	json_decref(set->notes);
	free(set);
}

int arm_set_find(const struct arm_set *set, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (strcmp(set->arms[i].name, name) == 0)
			return (int)i;
	return -ENOENT;
}

bool arm_set_has_records(const struct arm_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		if (!set->arms[i].values)
			return true;
	return false;
}

bool arm_set_has_plain(const struct arm_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->arms[i].values)
			return true;
	return false;
}

struct arm *arm_set_add(struct arm_set *set, size_t source, const char *name)
{
	struct arm *longer = reallocarray(set->arms, set->count + 1, sizeof(*longer)), *arm;

	if (!longer)
		return NULL;
	set->arms = longer;
	arm = &set->arms[set->count];
	*arm = (struct arm){.name = strdup(name), .source = source};
	if (!arm->name)
		return NULL;
	set->count++;
	return arm;
}

static int add_record(struct arm *arm, struct record *record)
{
	/* Grown in powers of two: the count alone tells when it is full. */
	if ((arm->record_count & (arm->record_count - 1)) == 0) {
		size_t capacity = arm->record_count ? 2 * arm->record_count : 1;
		struct record **longer = reallocarray(arm->records, capacity, sizeof(*longer));

		if (!longer)
			return -ENOMEM;
		arm->records = longer;
	}
	arm->records[arm->record_count++] = record;
	return 0;
}

static struct arm *find_of_source(struct arm_set *set, size_t source, const char *name)
{
	for (size_t i = 0; i < set->count; i++)
		if (set->arms[i].source == source && strcmp(set->arms[i].name, name) == 0)
			return &set->arms[i];
	return NULL;
}

static bool source_has_arm(const struct arm_source *source, const char *name)
{
	for (size_t i = 0; i < source->record_count; i++)
		if (strcmp(record_arm_name(source->records[i]), name) == 0)
			return true;
	return false;
}

/* Runs are shuffled in their blocks, so the first line says nothing about the order of arms. */
static int add_planned_arms(struct arm_set *set, size_t index)
{
	const struct arm_source *source = &set->sources[index];
	const json_t *arm;
	size_t i;

	json_array_foreach (json_object_get(source->plan, "arms"), i, arm) {
		const char *name = json_get_string(arm, "name", json_string_value(arm));

		if (name && source_has_arm(source, name) && !find_of_source(set, index, name) &&
		    !arm_set_add(set, index, name))
			return -ENOMEM;
	}
	for (int variant = 0; variant < VARIANT_COUNT; variant++) {
		const char *name = variant_name((enum variant)variant);

		if (source_has_arm(source, name) && !find_of_source(set, index, name) &&
		    !arm_set_add(set, index, name))
			return -ENOMEM;
	}
	return 0;
}

int arm_set_add_records(struct arm_set *set, size_t index)
{
	struct arm_source *source = &set->sources[index];
	int error = source->label ? 0 : add_planned_arms(set, index);

	for (size_t i = 0; i < source->record_count && !error; i++) {
		const char *name =
			source->label ? source->label : record_arm_name(source->records[i]);
		struct arm *arm = find_of_source(set, index, name);

		if (!arm)
			arm = arm_set_add(set, index, name);
		error = arm ? add_record(arm, source->records[i]) : -ENOMEM;
	}
	return error;
}

/* Records of one arm that came as single files are runs of that one arm. */
static int merge(struct arm_set *set, size_t into, size_t from)
{
	int error = 0;

	for (size_t i = 0; i < set->arms[from].record_count && !error; i++)
		error = add_record(&set->arms[into], set->arms[from].records[i]);
	if (error)
		return error;
	arm_clear(&set->arms[from]);
	memmove(&set->arms[from], &set->arms[from + 1],
		(set->count - from - 1) * sizeof(*set->arms));
	set->count--;
	return 0;
}

static bool may_merge(const struct arm_set *set, size_t a, size_t b)
{
	const struct arm_source *source_a = &set->sources[set->arms[a].source];
	const struct arm_source *source_b = &set->sources[set->arms[b].source];

	return !source_a->plain && !source_b->plain && !source_a->folder && !source_b->folder &&
	       strcmp(set->arms[a].name, set->arms[b].name) == 0;
}

static bool names_differ(const struct arm_set *set)
{
	for (size_t i = 1; i < set->count; i++)
		if (strcmp(set->arms[i].name, set->arms[0].name) != 0)
			return true;
	return false;
}

int arm_set_merge(struct arm_set *set)
{
	/* Two record files of one and the same variant: then the files are the arms. */
	if (!names_differ(set))
		return 0;
	for (size_t i = 0; i < set->count; i++)
		for (size_t j = i + 1; j < set->count;) {
			int error = may_merge(set, i, j) ? merge(set, i, j) : (j++, 0);

			if (error)
				return error;
		}
	return 0;
}
