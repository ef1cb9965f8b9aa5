/* SPDX-License-Identifier: MIT */
#include "undo/record.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/parse.h"

/* Everything of ours that is removed again as a whole carries this in the front of its name. */
#define OWN_PREFIX "syslatency"

static bool is_number(const char *text, int64_t minimum, int64_t maximum)
{
	int64_t value;

	return parse_int64(text, minimum, maximum, &value) == 0;
}

/* Absolute, and no way up or around: no empty, "." or ".." component. */
static bool is_plain_path(const char *path)
{
	const char *at = path;

	if (*at != '/')
		return false;
	while (*at == '/') {
		size_t length = strcspn(++at, "/");

		if (length == 0 || (length == 1 && at[0] == '.') ||
		    (length == 2 && at[0] == '.' && at[1] == '.'))
			return false;
		at += length;
	}
	return true;
}

static bool is_under(const char *path, const char *prefix)
{
	return strncmp(path, prefix, strlen(prefix)) == 0 && is_plain_path(path);
}

static bool has_own_name(const char *path)
{
	return strncmp(strrchr(path, '/') + 1, OWN_PREFIX, strlen(OWN_PREFIX)) == 0;
}

/* cgroup and trace file systems are mounted below /sys. */
static bool is_attribute(const char *path)
{
	return is_under(path, "/sys/") || is_under(path, "/proc/sys/");
}

static bool is_any(const char *text)
{
	return true;
}

static bool is_group(const char *path)
{
	return is_under(path, "/sys/fs/cgroup/") && has_own_name(path);
}

static bool is_trace_instance(const char *path)
{
	return (is_under(path, "/sys/kernel/tracing/instances/") ||
		is_under(path, "/sys/kernel/debug/tracing/instances/")) &&
	       has_own_name(path);
}

static bool is_mount(const char *path)
{
	return strcmp(path, TRACEFS_PLACE) == 0;
}

static bool is_zram(const char *device)
{
	return strncmp(device, "zram", 4) == 0 && is_number(device + 4, 0, 9999);
}

static bool is_flag(const char *text)
{
	return is_number(text, 0, 1);
}

static bool is_algorithm(const char *text)
{
	while (isalnum((unsigned char)*text) || *text == '-' || *text == '_')
		text++;
	return !*text;
}

static bool is_pid(const char *text)
{
	return is_number(text, 2, INT32_MAX);
}

static bool is_ticks(const char *text)
{
	return is_number(text, 0, INT64_MAX);
}

static bool is_policy(const char *text)
{
	return is_number(text, 0, INT32_MAX);
}

static bool is_priority(const char *text)
{
	return is_number(text, 0, 99);
}

static bool is_nice(const char *text)
{
	return is_number(text, -20, 19);
}

static bool is_cpu_list(const char *text)
{
	return strspn(text, "0123456789-,") == strlen(text);
}

static const struct verb_kind {
	const char *name;
	bool global;
	bool (*checks[UNDO_FIELDS + 1])(const char *field);
} kinds[UNDO_VERBS] = {
	[UNDO_WRITE] = {"write", true, {is_attribute, is_any}},
	[UNDO_GROUP] = {"group", false, {is_group}},
	[UNDO_TRACE_INSTANCE] = {"trace-instance", false, {is_trace_instance}},
	[UNDO_MOUNT] = {"mount", false, {is_mount}},
	[UNDO_SWAP] = {"swap", true, {is_zram, is_flag, is_algorithm}},
	[UNDO_PROCESS] = {"process", false, {is_pid, is_ticks}},
	[UNDO_SCHEDULING] = {"scheduling",
			     true,
			     {is_pid, is_ticks, is_policy, is_priority, is_nice, is_cpu_list}},
};

int undo_line_format(enum undo_verb verb, const char *const *fields, char *buffer, size_t size)
{
	size_t used = (size_t)snprintf(buffer, size, "%s", kinds[verb].name), i;

	for (i = 0; kinds[verb].checks[i]; i++) {
		/* What would be read otherwise than it was written. */
		if (strchr(fields[i], '\n') ||
		    (kinds[verb].checks[i + 1] && (!*fields[i] || strchr(fields[i], ' '))))
			return -EINVAL;
		used += (size_t)snprintf(buffer + used, size - used, " %s", fields[i]);
		if (used >= size)
			return -EMSGSIZE;
	}
	return (int)used;
}

static int parse_line(struct undo_record *record, const struct verb_kind **ret_kind)
{
	char *rest = record->text, *word = strsep(&rest, " ");
	size_t verb, i;

	for (verb = 0; verb < UNDO_VERBS; verb++)
		if (strcmp(kinds[verb].name, word) == 0)
			break;
	if (verb == UNDO_VERBS)
		return -EINVAL;
	*ret_kind = &kinds[verb];
	record->verb = (enum undo_verb)verb;
	for (i = 0; kinds[verb].checks[i]; i++) {
		/* The last one is the rest of the line. */
		const char *field = kinds[verb].checks[i + 1] ? strsep(&rest, " ") : rest;

		if (!field || !kinds[verb].checks[i](field))
			return -EINVAL;
		record->fields[i] = field;
	}
	return 0;
}

int undo_list_add(struct undo_list *list, uint64_t sequence, const char *line,
		  struct message *message)
{
	struct undo_record record = {.sequence = sequence};
	const struct verb_kind *kind = NULL;

	if (array_reserve(&list->records, &list->capacity, list->count + 1) < 0)
		return message_set_errno(message, -ENOMEM, "undo record");
	record.text = strdup(line);
	if (!record.text)
		return message_set_errno(message, -ENOMEM, "undo record");
	if (parse_line(&record, &kind) < 0) {
		free(record.text);
		return message_set(
			message, -EINVAL,
			"refused to change what could not be put back safely: \"%.200s\"%s", line,
			kind && !kind->global ? " (names of our own start with " OWN_PREFIX ")"
					      : "");
	}
	list->records[list->count++] = record;
	return 0;
}

struct undo_record *undo_list_find(struct undo_list *list, uint64_t sequence)
{
	size_t i;

	for (i = list->count; i-- > 0;)
		if (list->records[i].sequence == sequence)
			return &list->records[i];
	return NULL;
}

bool undo_list_is_global(const struct undo_list *list)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		if (!list->records[i].done && kinds[list->records[i].verb].global)
			return true;
	return false;
}

size_t undo_list_left(const struct undo_list *list)
{
	size_t i, left = 0;

	for (i = 0; i < list->count; i++)
		left += !list->records[i].done;
	return left;
}

void undo_list_clear(struct undo_list *list)
{
	size_t i;

	for (i = 0; i < list->count; i++)
		free(list->records[i].text);
	free(list->records);
	*list = (struct undo_list){0};
}

int64_t undo_field_number(const struct undo_record *record, size_t field)
{
	return strtoll(record->fields[field], NULL, 10);
}
