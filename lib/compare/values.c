/* SPDX-License-Identifier: MIT */
#include "compare/values.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/parse.h"

#define BUFFER_START (256u << 10)
#define BUFFER_MOST (64u << 20) /* a longer line is no number */

struct reader {
	int fd;
	const char *name;
	unsigned int column;
	char *buffer;
	size_t capacity, filled;
	size_t line;
	struct values out;
	size_t out_capacity;
	struct message *message;
};

static int keep(struct reader *reader, double value)
{
	struct values *out = &reader->out;

	if (__builtin_expect(out->count == reader->out_capacity, 0)) {
		/* Large blocks are moved by the kernel's page tables, and what is not yet written
		 * costs no memory: doubling is cheap. */
		size_t capacity = reader->out_capacity ? 2 * reader->out_capacity : 1024;
		double *longer = reallocarray(out->values, capacity, sizeof(*longer));

		if (!longer)
			return message_set(reader->message, -ENOMEM,
					   "%s: no memory for more than %zu values", reader->name,
					   out->count);
		out->values = longer;
		reader->out_capacity = capacity;
	}
	out->values[out->count++] = value;
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

static bool ends_column(const char *at, const char *end)
{
	return at == end || is_blank(*at);
}

/* A column that is no number, said in a way that tells what to do. */
static int not_a_number(const struct reader *reader, const char *at, const char *end)
{
	const char *stop = at;
	char text[40];
	size_t size;
	const char *why = "is not a number";

	while (!ends_column(stop, end))
		stop++;
	size = (size_t)(stop - at);
	for (size_t i = 0; i < size && i < sizeof(text) - 4; i++)
		text[i] = (unsigned char)at[i] < ' ' || (unsigned char)at[i] > '~' ? '?' : at[i];
	snprintf(text + (size < sizeof(text) - 4 ? size : sizeof(text) - 4), 4, "%s",
		 size < sizeof(text) - 4 ? "" : "...");
	if (memchr(at, ',', size))
		why = "is not a number: decimals take a point, columns are parted by blanks";
	else if (strncasecmp(text, "nan", 3) == 0 || strncasecmp(text, "-nan", 4) == 0)
		why = "is not a number that can be ranked: remove the line, and say why it is there";
	else if (strcasestr(text, "inf") ||
		 (size && (*at == '-' || (*at >= '0' && *at <= '9')) &&
		  parse_number(at, stop, &stop, &(double){0}) == -ERANGE))
		why = "is not a finite number";
	return message_set(reader->message, -EINVAL, "%s: line %zu: \"%s\" %s", reader->name,
			   reader->line, text, why);
}

/* One line without its newline. */
static int read_line(struct reader *reader, const char *at, const char *end)
{
	const char *after;
	double value;

	while (at < end && is_blank(*at))
		at++;
	if (at == end || *at == '#')
		return 0;
	for (unsigned int column = 1; column < reader->column; column++) {
		while (!ends_column(at, end))
			at++;
		while (at < end && is_blank(*at))
			at++;
		if (at == end || *at == '#')
			return message_set(reader->message, -EINVAL,
					   "%s: line %zu has no column %u", reader->name,
					   reader->line, reader->column);
	}
	if (parse_number(at, end, &after, &value) || !(ends_column(after, end) || *after == '#'))
		return not_a_number(reader, at, end);
	while (after < end && is_blank(*after))
		after++;
	reader->out.longer_lines += after < end && *after != '#';
	return keep(reader, value);
}

/* Every whole line in the buffer; *ret_used: bytes done with. */
static int read_lines(struct reader *reader, bool at_end, size_t *ret_used)
{
	const char *at = reader->buffer, *end = reader->buffer + reader->filled;

	while (at < end) {
		const char *newline, *next;
		double value;
		int error;

		/* The common line by far: a number and nothing else. */
		if (reader->column == 1 && parse_number(at, end, &next, &value) == 0 &&
		    next < end && *next == '\n') {
			reader->line++;
			error = keep(reader, value);
			if (error)
				return error;
			at = next + 1;
			continue;
		}
		newline = memchr(at, '\n', (size_t)(end - at));
		if (!newline && !at_end)
			break;
		reader->line++;
		error = read_line(reader, at, newline ? newline : end);
		if (error)
			return error;
		at = newline ? newline + 1 : end;
	}
	*ret_used = (size_t)(at - reader->buffer);
	return 0;
}

/* A line that fills the whole buffer gets a greater one. */
static int make_room(struct reader *reader)
{
	char *longer;

	if (reader->filled < reader->capacity)
		return 0;
	if (reader->capacity >= BUFFER_MOST)
		return message_set(reader->message, -EINVAL,
				   "%s: line %zu is longer than 64 MiB: not a list of numbers",
				   reader->name, reader->line + 1);
	longer = realloc(reader->buffer, 2 * reader->capacity);
	if (!longer)
		return message_set_errno(reader->message, -ENOMEM, "%s", reader->name);
	reader->buffer = longer;
	reader->capacity *= 2;
	return 0;
}

static void skip_byte_order_mark(struct reader *reader, bool *start)
{
	if (*start && reader->filled >= 3 && memcmp(reader->buffer, "\xef\xbb\xbf", 3) == 0)
		memset(reader->buffer, ' ', 3);
	*start = false;
}

static int read_all(struct reader *reader)
{
	bool start = true;

	for (;;) {
		size_t used = 0;
		ssize_t got;
		int error = make_room(reader);

		if (error)
			return error;
		got = read(reader->fd, reader->buffer + reader->filled,
			   reader->capacity - reader->filled);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return message_set_errno(reader->message, -errno, "%s", reader->name);
		reader->filled += (size_t)got;
		skip_byte_order_mark(reader, &start);
		error = read_lines(reader, got == 0, &used);
		if (error || got == 0)
			return error;
		reader->filled -= used;
		memmove(reader->buffer, reader->buffer + used, reader->filled);
	}
}

int values_read_fd(int fd, const char *name, unsigned int column, const char *head,
		   size_t head_size, struct values *ret_values, struct message *message)
{
	struct reader reader = {
		.fd = fd,
		.name = name,
		.column = column,
		.capacity = head_size < BUFFER_START ? BUFFER_START : 2 * head_size,
		.filled = head_size,
		.message = message,
	};
	int error;

	reader.buffer = malloc(reader.capacity);
	if (!reader.buffer)
		return message_set_errno(message, -ENOMEM, "%s", name);
	if (head_size)
		memcpy(reader.buffer, head, head_size);
	error = read_all(&reader);
	free(reader.buffer);
	if (!error && reader.out.count == 0)
		error = message_set(message, -ENODATA, "%s: no values: one number a line is wanted",
				    name);
	if (error) {
		free(reader.out.values);
		return error;
	}
	*ret_values = reader.out;
	return 0;
}

int values_read(const char *path, unsigned int column, struct values *ret_values,
		struct message *message)
{
	int fd, error;

	if (strcmp(path, "-") == 0)
		return values_read_fd(STDIN_FILENO, "standard input", column, NULL, 0, ret_values,
				      message);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return message_set_errno(message, -errno, "%s", path);
	error = values_read_fd(fd, path, column, NULL, 0, ret_values, message);
	close(fd);
	return error;
}
