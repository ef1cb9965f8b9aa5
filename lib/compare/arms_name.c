/* SPDX-License-Identifier: MIT */
#include "compare/arms_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool shortens(const struct arm_set *set, const struct arm *arm)
{
	return set->sources[arm->source].plain && !set->sources[arm->source].label &&
	       strcmp(set->sources[arm->source].path, "-") != 0;
}

/* How many last characters all names of plain files share; *ret_count: how many names there are. */
static size_t common_suffix(const struct arm_set *set, const char **ret_first, size_t *ret_count)
{
	const char *first = NULL;
	size_t common = 0;

	*ret_count = 0;
	for (size_t i = 0; i < set->count; i++) {
		const char *name = base_name(set->arms[i].name);
		size_t length = strlen(name), first_length, same = 0;

		if (!shortens(set, &set->arms[i]))
			continue;
		(*ret_count)++;
		if (!first) {
			first = name;
			common = length;
			continue;
		}
		first_length = strlen(first);
		while (same < common && same < length &&
		       first[first_length - 1 - same] == name[length - 1 - same])
			same++;
		common = same;
	}
	*ret_first = first;
	return common;
}

/*
 * "tip-mean.txt" and "mapping-mean.txt" are tip and mapping: what follows from the first '-', '.'
 * or '_' of the common end is dropped. A file alone loses a ".txt".
 */
static const char *suffix_to_drop(const struct arm_set *set)
{
	const char *first, *suffix;
	size_t count, common = common_suffix(set, &first, &count);

	if (count == 0)
		return NULL;
	if (count == 1) {
		suffix = strrchr(first, '.');
		return suffix && strcmp(suffix, ".txt") == 0 && suffix > first ? suffix : NULL;
	}
	suffix = first + strlen(first) - common;
	suffix += strcspn(suffix, "-._");
	/* Files of one and the same name in several folders share all of it. */
	return *suffix && common < strlen(first) ? suffix : NULL;
}

static int set_metric(struct arm_set *set, const char *suffix)
{
	static const char *const known[] = {"mean", "max", "min", "p50", "p90", "p99"};
	const char *metric = "value";

	for (size_t i = 0; suffix && i < ARRAY_SIZE(known); i++) {
		size_t length = strlen(known[i]);

		if (strncmp(suffix + 1, known[i], length) == 0 && suffix[1 + length] == '.')
			metric = known[i];
	}
	set->plain_metric = strdup(metric);
	return set->plain_metric ? 0 : -ENOMEM;
}

static int shorten(struct arm_set *set)
{
	const char *found = suffix_to_drop(set);
	char *suffix = found ? strdup(found) : NULL;
	int error = set_metric(set, suffix);
	size_t drop = suffix ? strlen(suffix) : 0;

	for (size_t i = 0; i < set->count && !error; i++) {
		const char *name = base_name(set->arms[i].name);
		size_t length = strlen(name);
		char *shorter;

		if (!shortens(set, &set->arms[i]))
			continue;
		shorter = strndup(name, length > drop ? length - drop : length);
		if (!shorter)
			error = -ENOMEM;
		free(set->arms[i].name);
		set->arms[i].name = shorter;
	}
	free(suffix);
	return error;
}

static size_t count_of_name(const struct arm_set *set, const char *name)
{
	size_t count = 0;

	for (size_t i = 0; i < set->count; i++)
		count += strcmp(set->arms[i].name, name) == 0;
	return count;
}

/* The source's path, without trailing slashes: "results/monday". */
static char *source_prefix(const struct arm_source *source)
{
	size_t length = strlen(source->path);

	while (length > 1 && source->path[length - 1] == '/')
		length--;
	return strndup(source->path, length);
}

/* Arms of one name get their source before it; if that is the same too, a number. */
static int tell_apart(struct arm_set *set)
{
	char **names = calloc(set->count ? set->count : 1, sizeof(*names));
	int error = names ? 0 : -ENOMEM;

	for (size_t i = 0; i < set->count && !error; i++) {
		const struct arm *arm = &set->arms[i];
		const struct arm_source *source = &set->sources[arm->source];
		char *prefix = source_prefix(source);
		bool same = count_of_name(set, arm->name) > 1;
		int length = !same	      ? asprintf(&names[i], "%s", arm->name)
			     : source->folder ? asprintf(&names[i], "%s/%s", prefix, arm->name)
					      : asprintf(&names[i], "%s", prefix);

		error = prefix && length >= 0 ? 0 : -ENOMEM;
		free(prefix);
	}
	for (size_t i = 0; i < set->count && !error; i++) {
		free(set->arms[i].name);
		set->arms[i].name = names[i];
		names[i] = NULL;
	}
	for (size_t i = 0; names && i < set->count; i++)
		free(names[i]);
	free(names);
	return error;
}

static int number_twins(struct arm_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		size_t nth = 1;
		char *name;

		for (size_t j = i + 1; j < set->count; j++) {
			if (strcmp(set->arms[i].name, set->arms[j].name) != 0)
				continue;
			if (asprintf(&name, "%s#%zu", set->arms[j].name, ++nth) < 0)
				return -ENOMEM;
			free(set->arms[j].name);
			set->arms[j].name = name;
		}
	}
	return 0;
}

int arm_set_name(struct arm_set *set)
{
	int error = shorten(set);

	if (!error)
		error = tell_apart(set);
	return error ? error : number_twins(set);
}
