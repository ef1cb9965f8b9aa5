/* SPDX-License-Identifier: MIT */
#include "undo/record.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/parse.h"

/* Everything of ours that is removed again as a whole carries this in the front of its name. */
#define OWN_PREFIX "syslatency"

struct verb_kind {
	const char *name;
	size_t fields;
	bool global;
	bool (*check)(const char *const *fields);
};

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

static bool is_under(const char *path, const char *const *prefixes)
{
	for (; *prefixes; prefixes++)
		if (strncmp(path, *prefixes, strlen(*prefixes)) == 0)
			return is_plain_path(path);
	return false;
}

static bool has_own_name(const char *path)
{
	return strncmp(strrchr(path, '/') + 1, OWN_PREFIX, strlen(OWN_PREFIX)) == 0;
}

static bool check_write(const char *const *fields)
{
	/* cgroup and trace file systems are mounted below /sys. */
	static const char *const prefixes[] = {"/sys/", "/proc/sys/", NULL};

	return is_under(fields[0], prefixes);
}

static bool check_group(const char *const *fields)
{
	static const char *const prefixes[] = {"/sys/fs/cgroup/", NULL};

	return is_under(fields[0], prefixes) && has_own_name(fields[0]);
}

static bool check_trace_instance(const char *const *fields)
{
	static const char *const prefixes[] = {"/sys/kernel/tracing/instances/",
					       "/sys/kernel/debug/tracing/instances/", NULL};

	return is_under(fields[0], prefixes) && has_own_name(fields[0]);
}

static bool check_mount(const char *const *fields)
{
	return strcmp(fields[0], TRACEFS_PLACE) == 0;
}

static bool check_swap(const char *const *fields)
{
	const char *at;

	if (strncmp(fields[0], "zram", 4) != 0 || !is_number(fields[0] + 4, 0, 9999) ||
	    !is_number(fields[1], 0, 1))
		return false;
	for (at = fields[2]; *at; at++)
		if (!isalnum((unsigned char)*at) && *at != '-' && *at != '_')
			return false;
	return true;
}

static bool check_process(const char *const *fields)
{
	return is_number(fields[0], 2, INT32_MAX) && is_number(fields[1], 0, INT64_MAX);
}

static bool check_scheduling(const char *const *fields)
{
	return check_process(fields) && is_number(fields[2], 0, INT32_MAX) &&
	       is_number(fields[3], 0, 99) && is_number(fields[4], -20, 19) &&
	       strspn(fields[5], "0123456789-,") == strlen(fields[5]);
}

static const struct verb_kind kinds[UNDO_VERBS] = {
	[UNDO_WRITE] = {"write", 2, true, check_write},
	[UNDO_GROUP] = {"group", 1, false, check_group},
	[UNDO_TRACE_INSTANCE] = {"trace-instance", 1, false, check_trace_instance},
	[UNDO_MOUNT] = {"mount", 1, false, check_mount},
	[UNDO_SWAP] = {"swap", 3, true, check_swap},
	[UNDO_PROCESS] = {"process", 2, false, check_process},
	[UNDO_SCHEDULING] = {"scheduling", 6, true, check_scheduling},
};

static size_t escape(const char *field, char *buffer, size_t size)
{
	size_t used = 0;

	if (!*field)
		return (size_t)snprintf(buffer, size, "\\e");
	for (; *field && used + 5 < size; field++) {
		unsigned char byte = (unsigned char)*field;

		if (byte > 0x20 && byte < 0x7f && byte != '\\')
			buffer[used++] = (char)byte;
		else
			used += (size_t)snprintf(buffer + used, size - used, "\\x%02x", byte);
	}
	buffer[used] = '\0';
	return *field ? size : used;
}

int undo_line_format(enum undo_verb verb, const char *const *fields, char *buffer, size_t size)
{
	size_t used = (size_t)snprintf(buffer, size, "%s", kinds[verb].name), i;

	for (i = 0; i < kinds[verb].fields; i++) {
		if (used + 8 >= size)
			return -EMSGSIZE;
		buffer[used++] = ' ';
		used += escape(fields[i], buffer + used, size - used);
		if (used >= size)
			return -EMSGSIZE;
	}
	return (int)used;
}

static int hex_digit(char digit)
{
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* In place; false when an escape is broken, or hides a NUL. */
static bool unescape(char *field)
{
	char *to = field;

	if (strcmp(field, "\\e") == 0) {
		*field = '\0';
		return true;
	}
	if (!*field)
		return false;
	while (*field) {
		int high, low;

		if (*field != '\\') {
			*to++ = *field++;
			continue;
		}
		high = field[1] == 'x' ? hex_digit(field[2]) : -1;
		low = high >= 0 ? hex_digit(field[3]) : -1;
		if (low < 0 || high * 16 + low == 0)
			return false;
		*to++ = (char)(high * 16 + low);
		field += 4;
	}
	*to = '\0';
	return true;
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
	for (i = 0; i < kinds[verb].fields; i++) {
		char *field = strsep(&rest, " ");

		if (!field || !unescape(field))
			return -EINVAL;
		record->fields[i] = field;
	}
	return rest || !kinds[verb].check(record->fields) ? -EINVAL : 0;
}

int undo_list_add(struct undo_list *list, uint64_t sequence, const char *line,
		  struct message *message)
{
	struct undo_record record = {.sequence = sequence, .pidfd = -1};
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

	for (i = 0; i < list->count; i++) {
		if (list->records[i].pidfd >= 0)
			close(list->records[i].pidfd);
		free(list->records[i].text);
	}
	free(list->records);
	*list = (struct undo_list){0};
}

int64_t undo_field_number(const struct undo_record *record, size_t field)
{
	return strtoll(record->fields[field], NULL, 10);
}
