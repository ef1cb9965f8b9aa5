/* SPDX-License-Identifier: MIT */
#include "record/arms_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "record/record.h"
#include "record/store.h"
#include "record/values.h"

void arm_set_note(struct arm_set *set, const char *format, ...)
{
	va_list arguments;
	char *text;

	va_start(arguments, format);
	if (vasprintf(&text, format, arguments) >= 0) {
		json_array_append_new(set->notes, json_string_or_null(text));
		free(text);
	}
	va_end(arguments);
}

static bool exists(const char *path)
{
	struct stat status;

	return strcmp(path, "-") == 0 || stat(path, &status) == 0;
}

/* NAME=PATH, unless a file of that whole name exists. */
static int split_operand(const char *operand, struct arm_source *source)
{
	const char *equals = strchr(operand, '=');

	if (!exists(operand) && equals && equals > operand && exists(equals + 1)) {
		source->label = strndup(operand, (size_t)(equals - operand));
		operand = equals + 1;
		if (!source->label)
			return -ENOMEM;
	}
	source->path = strdup(operand);
	return source->path ? 0 : -ENOMEM;
}

static bool is_folder(const char *path)
{
	struct stat status;

	return strcmp(path, "-") != 0 && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

static int note_torn(struct arm_set *set, const struct arm_source *source, bool torn)
{
	if (torn)
		arm_set_note(set, "%s: a torn last line was dropped", source->path);
	return 0;
}

static int read_folder(struct arm_set *set, size_t index, struct message *message)
{
	struct arm_source *source = &set->sources[index];
	char path[4096];
	bool torn = false;
	int error;

	source->folder = true;
	error = store_read(source->path, &source->records, &source->record_count, &torn, message);
	if (error)
		return error;
	note_torn(set, source, torn);
	if (source->record_count == 0)
		return message_set(message, -ENODATA, "%s: no runs yet", source->path);
	if (snprintf(path, sizeof(path), "%s/experiment.json", source->path) < (int)sizeof(path) &&
	    access(path, F_OK) == 0) {
		error = json_read_file(path, &source->plan, message);
		if (error)
			return error;
	}
	return arm_set_add_records(set, index);
}

/* The first bytes tell records from numbers: a pipe cannot be read twice. */
static int peek(int fd, char *head, size_t size, size_t *ret_size)
{
	*ret_size = 0;
	while (*ret_size < size) {
		ssize_t got = read(fd, head + *ret_size, size - *ret_size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0;
		*ret_size += (size_t)got;
	}
	return 0;
}

static bool looks_like_records(const char *head, size_t size)
{
	size_t at = 0;

	while (at < size && memchr(" \t\r\n", head[at], 4))
		at++;
	return at < size && head[at] == '{';
}

static int read_records(struct arm_set *set, size_t index, int fd, const char *head, size_t size,
			struct message *message)
{
	struct arm_source *source = &set->sources[index];
	bool torn = false;
	int error = store_read_fd(fd, source->path, head, size, &source->records,
				  &source->record_count, &torn, message);

	if (error)
		return error;
	note_torn(set, source, torn);
	if (source->record_count == 0)
		return message_set(message, -ENODATA, "%s: no whole record", source->path);
	return arm_set_add_records(set, index);
}

static int read_plain(struct arm_set *set, size_t index, int fd, const char *head, size_t size,
		      unsigned int column, struct message *message)
{
	struct arm_source *source = &set->sources[index];
	bool standard_input = strcmp(source->path, "-") == 0;
	const char *name = standard_input ? "standard input" : source->path;
	struct values values;
	struct arm *arm;
	int error = values_read_fd(fd, name, column, head, size, &values, message);

	if (error)
		return error;
	source->plain = true;
	source->longer_lines = values.longer_lines;
	if (values.longer_lines && column == 1)
		arm_set_note(set, "%s: column 1 was read; %zu lines hold more columns", name,
			     values.longer_lines);
	arm = arm_set_add(set, index,
			  source->label	   ? source->label
			  : standard_input ? "stdin"
					   : source->path);
	if (!arm) {
		free(values.values);
		return -ENOMEM;
	}
	arm->values = values.values;
	arm->value_count = values.count;
	return 0;
}

static int read_file(struct arm_set *set, size_t index, unsigned int column,
		     struct message *message)
{
	struct arm_source *source = &set->sources[index];
	bool standard_input = strcmp(source->path, "-") == 0;
	int fd = standard_input ? STDIN_FILENO : open(source->path, O_RDONLY | O_CLOEXEC), error;
	char head[4096];
	size_t size = 0;

	if (fd < 0)
		return message_set_errno(message, -errno, "%s", source->path);
	error = peek(fd, head, sizeof(head), &size);
	if (error)
		message_set_errno(message, error, "%s", source->path);
	else if (looks_like_records(head, size))
		error = read_records(set, index, fd, head, size, message);
	else
		error = read_plain(set, index, fd, head, size, column, message);
	if (!standard_input)
		close(fd);
	return error;
}

static int read_operands(struct arm_set *set, char *const *operands, unsigned int column,
			 struct message *message)
{
	bool standard_input = false;
	int error;

	for (size_t i = 0; i < set->source_count; i++) {
		struct arm_source *source = &set->sources[i];

		error = split_operand(operands[i], source);
		if (error)
			return error;
		if (strcmp(source->path, "-") == 0) {
			if (standard_input)
				return message_set(message, -EINVAL,
						   "- (standard input) is named twice");
			standard_input = true;
		}
		error = is_folder(source->path) ? read_folder(set, i, message)
						: read_file(set, i, column, message);
		if (error)
			return error;
	}
	error = arm_set_merge(set);
	return error ? error : arm_set_name(set);
}

int arm_set_read(char *const *operands, size_t count, unsigned int column, struct arm_set **ret_set,
		 struct message *message)
{
	struct arm_set *set = calloc(1, sizeof(*set));
	int error = -ENOMEM;

	if (!set)
		return message_set_errno(message, error, "arms");
	set->sources = calloc(count ? count : 1, sizeof(*set->sources));
	set->notes = json_array();
	if (set->sources && set->notes) {
		message_set(message, 0, "%s", "");
		set->source_count = count;
		error = read_operands(set, operands, column, message);
	}
	if (error) {
		if (message && !message->text[0])
			message_set_errno(message, error, "arms");
		arm_set_free(set);
		return error;
	}
	*ret_set = set;
	return 0;
}
