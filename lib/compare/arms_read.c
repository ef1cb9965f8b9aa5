/* SPDX-License-Identifier: MIT */
#include "compare/arms_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/json.h"
#include "base/parallel.h"
#include "record/record.h"
#include "record/store.h"

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

static bool is_standard_input(const struct arm_source *source)
{
	return strcmp(source->path, "-") == 0;
}

static bool is_folder(const char *path)
{
	struct stat status;

	return strcmp(path, "-") != 0 && stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

/* --- reading: sources do not depend on each other, so each may have a thread --- */

static int read_folder(struct arm_source *source, bool whole, struct message *message)
{
	char path[4096];
	int error;

	source->folder = true;
	error = store_read_part(source->path, whole, &source->records, &source->record_count,
				&source->torn, message);
	if (error)
		return error;
	if (source->record_count == 0)
		return message_set(message, -ENODATA, "%s: no runs yet", source->path);
	if (snprintf(path, sizeof(path), "%s/experiment.json", source->path) < (int)sizeof(path) &&
	    access(path, F_OK) == 0)
		return json_read_file(path, &source->plan, message);
	return 0;
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

static int read_contents(struct arm_source *source, int fd, unsigned int column, bool whole,
			 struct message *message)
{
	const char *name = is_standard_input(source) ? "standard input" : source->path;
	char head[4096];
	size_t size = 0;
	int error = peek(fd, head, sizeof(head), &size);

	if (error)
		return message_set_errno(message, error, "%s", name);
	source->plain = !looks_like_records(head, size);
	if (source->plain)
		return values_read_fd(fd, name, column, head, size, &source->values, message);
	error = store_read_fd(fd, name, head, size, whole, &source->records, &source->record_count,
			      &source->torn, message);
	if (!error && source->record_count == 0)
		return message_set(message, -ENODATA, "%s: no whole record", name);
	return error;
}

static int read_file(struct arm_source *source, unsigned int column, bool whole,
		     struct message *message)
{
	int fd, error;

	if (is_standard_input(source))
		return read_contents(source, STDIN_FILENO, column, whole, message);
	fd = open(source->path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return message_set_errno(message, -errno, "%s", source->path);
	error = read_contents(source, fd, column, whole, message);
	close(fd);
	return error;
}

struct reading {
	struct arm_set *set;
	unsigned int column;
	bool whole;
	struct result {
		int error;
		struct message message;
	} * results; /* one a source */
};

static void read_source(void *data, size_t index)
{
	struct reading *reading = data;
	struct arm_source *source = &reading->set->sources[index];
	struct result *result = &reading->results[index];

	result->error =
		is_folder(source->path)
			? read_folder(source, reading->whole, &result->message)
			: read_file(source, reading->column, reading->whole, &result->message);
}

/* The first source that failed is the one to speak of. */
static int read_sources(struct arm_set *set, unsigned int column, bool whole,
			struct message *message)
{
	struct reading reading = {.set = set, .column = column, .whole = whole};
	int error = 0;

	reading.results =
		calloc(set->source_count ? set->source_count : 1, sizeof(*reading.results));
	if (!reading.results)
		return -ENOMEM;
	parallel_for(set->source_count, read_source, &reading);
	for (size_t i = 0; i < set->source_count && !error; i++) {
		error = reading.results[i].error;
		if (error == -EINVAL) /* what is wrong in a file is no wrong usage */
			error = -EBADMSG;
		if (error)
			message_set(message, error, "%s", reading.results[i].message.text);
	}
	free(reading.results);
	return error;
}

/* --- from sources to arms, in their order --- */

static int add_plain(struct arm_set *set, size_t index, unsigned int column)
{
	struct arm_source *source = &set->sources[index];
	const char *name = source->label	       ? source->label
			   : is_standard_input(source) ? "stdin"
						       : source->path;
	struct arm *arm;

	if (source->values.longer_lines && column == 1)
		arm_set_note(set, "%s: column 1 was read; %zu lines hold more columns", name,
			     source->values.longer_lines);
	arm = arm_set_add(set, index, name);
	if (!arm)
		return -ENOMEM;
	arm->values = source->values.values;
	arm->value_count = source->values.count;
	source->values.values = NULL; /* the arm's now */
	return 0;
}

static int add_arms(struct arm_set *set, unsigned int column)
{
	int error = 0;

	for (size_t i = 0; i < set->source_count && !error; i++) {
		if (set->sources[i].torn)
			arm_set_note(set, "%s: a torn last line was dropped", set->sources[i].path);
		error = set->sources[i].plain ? add_plain(set, i, column)
					      : arm_set_add_records(set, i);
	}
	if (!error)
		error = arm_set_merge(set);
	return error ? error : arm_set_name(set);
}

static int split_operands(struct arm_set *set, char *const *operands, struct message *message)
{
	bool standard_input = false;

	for (size_t i = 0; i < set->source_count; i++) {
		int error = split_operand(operands[i], &set->sources[i]);

		if (error)
			return error;
		if (!is_standard_input(&set->sources[i]))
			continue;
		if (standard_input)
			return message_set(message, -EINVAL, "- (standard input) is named twice");
		standard_input = true;
	}
	return 0;
}

static int read_operands(struct arm_set *set, char *const *operands, unsigned int column,
			 bool whole, struct message *message)
{
	int error = split_operands(set, operands, message);

	if (!error)
		error = read_sources(set, column, whole, message);
	return error ? error : add_arms(set, column);
}

int arm_set_read_part(char *const *operands, size_t count, unsigned int column, bool whole,
		      struct arm_set **ret_set, struct message *message)
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
		error = read_operands(set, operands, column, whole, message);
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

int arm_set_read(char *const *operands, size_t count, unsigned int column, struct arm_set **ret_set,
		 struct message *message)
{
	return arm_set_read_part(operands, count, column, true, ret_set, message);
}
