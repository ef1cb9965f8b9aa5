/* SPDX-License-Identifier: MIT */
#include "record/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_shared.h"
#include "base/parallel.h"
#include "record/record.h"

#define RUNS "runs.jsonl"

static bool is_record(const char *line, size_t size)
{
	struct record *record;

	if (record_from_text(line, size, NULL, &record, NULL, NULL) < 0)
		return false;
	record_free(record);
	return true;
}

/* --- append --- */

/* Offset of the first byte of the last line: where a torn one starts. */
static int last_line_start(int fd, off_t size, off_t *ret_start)
{
	char chunk[4096];
	off_t end = size;

	while (end > 0) {
		off_t start = end > (off_t)sizeof(chunk) ? end - (off_t)sizeof(chunk) : 0;
		ssize_t got = pread(fd, chunk, (size_t)(end - start), start);
		const char *newline;

		if (got != end - start)
			return got < 0 ? -errno : -EIO;
		newline = memrchr(chunk, '\n', (size_t)got);
		if (newline) {
			*ret_start = start + (newline - chunk) + 1;
			return 0;
		}
		end = start;
	}
	*ret_start = 0;
	return 0;
}

/*
 * A kill in the middle of a write leaves a line without its newline. One that is a whole record
 * lacks nothing but the newline; any other is cut off. *ret_size is the size after it.
 */
static int mend_tail(int fd, off_t size, off_t *ret_size, struct message *message)
{
	off_t start = 0;
	char *tail;
	ssize_t got;
	bool whole;
	int error = last_line_start(fd, size, &start);

	*ret_size = size;
	if (error || start == size)
		return error;
	tail = malloc((size_t)(size - start));
	if (!tail)
		return -ENOMEM;
	got = pread(fd, tail, (size_t)(size - start), start);
	whole = got == size - start && is_record(tail, (size_t)got);
	free(tail);
	if (got != size - start)
		return got < 0 ? -errno : -EIO;
	if (whole) {
		*ret_size = size + 1;
		return write_all(fd, "\n", 1);
	}
	if (ftruncate(fd, start) < 0)
		return -errno;
	*ret_size = start;
	message_set(
		message, 0,
		"%s: cut off a torn last line of %lld bytes (a run that was killed while writing)",
		RUNS, (long long)(size - start));
	return 0;
}

/* A new file is there after a crash only when its folder was synced too. */
static void sync_folder(const char *directory)
{
	int fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return;
	fsync(fd);
	close(fd);
}

static int append_line(int fd, const char *line, size_t size, struct message *message)
{
	struct stat status;
	off_t before;
	int error;

	if (flock(fd, LOCK_EX) < 0 || fstat(fd, &status) < 0)
		return -errno;
	error = mend_tail(fd, status.st_size, &before, message);
	if (error)
		return error;
	error = write_all(fd, line, size);
	if (!error && fsync(fd) < 0)
		error = -errno;
	if (error && ftruncate(fd, before) < 0) /* a full disk leaves no torn line */
		return error;
	return error;
}

/* The record as one line that ends in a newline; the caller frees it. NULL without memory. */
static char *line_of(const struct record *record, size_t *ret_size)
{
	json_t *json = record_to_json(record);
	char *line = json ? json_line(json) : NULL, *longer;
	size_t size;

	json_decref(json);
	if (!line)
		return NULL;
	size = strlen(line);
	longer = realloc(line, size + 2);
	if (!longer) {
		free(line);
		return NULL;
	}
	memcpy(longer + size, "\n", 2);
	*ret_size = size + 1;
	return longer;
}

int store_append(const char *directory, const struct record *record, struct message *message)
{
	char path[4096];
	size_t size = 0;
	char *line;
	int fd, error;
	bool new;

	message_set(message, 0, "%s", "");
	if (snprintf(path, sizeof(path), "%s/%s", directory, RUNS) >= (int)sizeof(path))
		return message_set_errno(message, -ENAMETOOLONG, "%s", directory);
	line = line_of(record, &size);
	if (!line)
		return message_set_errno(message, -ENOMEM, "%s", path);
	new = access(path, F_OK) < 0;
	fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0) {
		error = message_set_errno(message, -errno, "%s", path);
		goto out;
	}
	error = append_line(fd, line, size, message);
	if (error)
		message_set_errno(message, error, "%s", path);
	close(fd); /* and with it the lock */
	if (!error && new)
		sync_folder(directory);
out:
	free(line);
	return error;
}

/* --- read --- */

#define CHUNK ((size_t)2 << 20) /* lines of so much text are parsed at once */

/* Lines do not depend on each other: each is parsed by whichever thread is free. */
struct parsed_line {
	struct store_line line;
	struct record *record;
	int error;
};

struct reading {
	const char *name;
	struct json_shared *shared; /* NULL: whole records */
	store_take take;
	void *data;
	char *text; /* what is read and not yet taken */
	size_t size, capacity;
	struct parsed_line *lines;
	size_t line_count, line_capacity;
	size_t number; /* of lines before @text */
	size_t torn;   /* number of the torn last line; 0: none */
	struct message *message;
};

static void parse_one(void *data, size_t index)
{
	struct reading *reading = data;
	struct parsed_line *parsed = &reading->lines[index];
	struct record_text text;

	parsed->error = record_from_text(parsed->line.text, parsed->line.size, reading->shared,
					 &parsed->record, &text, NULL);
	parsed->line.blanks = text.blanks;
}

static bool is_blank(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!text[i] || !strchr(" \t\r", text[i]))
			return false;
	return true;
}

/* Lines of the text that are whole, @at_end all; *ret_used: bytes in them. */
static int split_lines(struct reading *reading, bool at_end, size_t *ret_used)
{
	const char *at = reading->text, *end = reading->text + reading->size;

	reading->line_count = 0;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		size_t length = (size_t)((newline ? newline : end) - at);
		int error;

		if (!newline && !at_end)
			break;
		reading->number++;
		if (!is_blank(at, length)) {
			error = array_reserve(&reading->lines, &reading->line_capacity,
					      reading->line_count + 1);
			if (error)
				return error;
			reading->lines[reading->line_count++] = (struct parsed_line){
				.line = {at, length, reading->number, .open = !newline}};
		}
		at = newline ? newline + 1 : end;
	}
	*ret_used = (size_t)(at - reading->text);
	return 0;
}

/* The line once more, for what is wrong with it; a torn last line is no fault. */
static int explain(struct reading *reading, const struct parsed_line *parsed)
{
	struct message why = {"out of memory"};
	struct record *record;
	int error;

	if (parsed->error == -EINVAL && parsed->line.open) {
		reading->torn = parsed->line.number;
		return 0;
	}
	error = record_from_text(parsed->line.text, parsed->line.size, NULL, &record, NULL, &why);
	if (!error)
		record_free(record);
	return message_set(reading->message, parsed->error, "%s: line %zu: %s", reading->name,
			   parsed->line.number, why.text);
}

/* Takes all lines of the text that are whole; the rest stays. */
static int take_lines(struct reading *reading, bool at_end)
{
	size_t used = 0;
	int error = split_lines(reading, at_end, &used);

	if (error)
		return error;
	parallel_for(reading->line_count, parse_one, reading);
	for (size_t i = 0; i < reading->line_count; i++) {
		struct parsed_line *parsed = &reading->lines[i];

		if (error)
			record_free(parsed->record);
		else if (parsed->error)
			error = explain(reading, parsed);
		else
			error = reading->take(reading->data, parsed->record, &parsed->line);
	}
	reading->size -= used;
	memmove(reading->text, reading->text + used, reading->size);
	return error;
}

/* More text: a chunk at least, or all. 0: the end. */
static ssize_t read_more(struct reading *reading, int fd)
{
	int error = array_reserve(&reading->text, &reading->capacity, reading->size + CHUNK);
	ssize_t got;

	if (error)
		return error;
	do
		got = read(fd, reading->text + reading->size, reading->capacity - reading->size);
	while (got < 0 && errno == EINTR);
	reading->size += got > 0 ? (size_t)got : 0;
	return got < 0 ? -errno : got;
}

/* A record that a person laid out over several lines is read as a whole: its first line ends in
 * the middle of it. */
static bool is_laid_out(const struct reading *reading)
{
	const char *newline = memchr(reading->text, '\n', reading->size);
	struct record_text text = {.torn = false};
	struct record *record;

	if (newline && record_from_text(reading->text, (size_t)(newline - reading->text), NULL,
					&record, &text, NULL) == 0)
		record_free(record);
	return text.torn;
}

static int read_laid_out(struct reading *reading, int fd)
{
	struct parsed_line whole = {.line = {.number = 1}};
	ssize_t got;

	while ((got = read_more(reading, fd)) > 0)
		;
	if (got < 0)
		return (int)got;
	whole.line.text = reading->text;
	whole.line.size = reading->size;
	reading->lines = &whole;
	parse_one(reading, 0);
	reading->lines = NULL;
	if (whole.error)
		return take_lines(reading, true);
	return reading->take(reading->data, whole.record, &whole.line);
}

static int read_chunks(struct reading *reading, int fd)
{
	bool first = true;

	for (;;) {
		ssize_t got = read_more(reading, fd);
		int error;

		if (got < 0)
			return (int)got;
		if (first && is_laid_out(reading))
			return read_laid_out(reading, fd);
		first = false;
		error = take_lines(reading, got == 0);
		if (error || got == 0)
			return error;
	}
}

int store_each_fd(int fd, const char *name, const char *head, size_t head_size, bool whole,
		  store_take take, void *data, size_t *ret_torn, struct message *message)
{
	struct reading reading = {.name = name, .take = take, .data = data, .message = message};
	int error = array_reserve(&reading.text, &reading.capacity, head_size + CHUNK);

	message_set(message, 0, "%s", "");
	if (!whole)
		reading.shared = json_shared_new();
	if (!error && head_size)
		memcpy(reading.text, head, head_size);
	reading.size = head_size;
	if (!error)
		error = read_chunks(&reading, fd);
	if (error && message && !message->text[0])
		message_set_errno(message, error, "%s", name);
	free(reading.text);
	free(reading.lines);
	json_shared_free(reading.shared);
	if (!error)
		*ret_torn = reading.torn;
	return error;
}

int store_each(const char *path, bool whole, store_take take, void *data, size_t *ret_torn,
	       struct message *message)
{
	struct stat status;
	char inside[4096];
	int fd, error;

	if (strcmp(path, "-") == 0)
		return store_each_fd(STDIN_FILENO, "standard input", NULL, 0, whole, take, data,
				     ret_torn, message);
	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		if (snprintf(inside, sizeof(inside), "%s/%s", path, RUNS) >= (int)sizeof(inside))
			return message_set_errno(message, -ENAMETOOLONG, "%s", path);
		path = inside;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return message_set_errno(message, -errno, "%s", path);
	error = store_each_fd(fd, path, NULL, 0, whole, take, data, ret_torn, message);
	close(fd);
	return error;
}

/* --- all records at once --- */

void store_free(struct record **records, size_t count)
{
	for (size_t i = 0; i < count; i++)
		record_free(records[i]);
	free(records);
}

struct list {
	struct record **records;
	size_t count, capacity;
};

static int list_add(void *data, struct record *record, const struct store_line *line)
{
	struct list *list = data;
	int error = array_reserve(&list->records, &list->capacity, list->count + 1);

	(void)line;
	if (error)
		record_free(record);
	else
		list->records[list->count++] = record;
	return error;
}

static int give_list(int error, struct list *list, size_t torn, struct record ***ret_records,
		     size_t *ret_count, bool *ret_torn)
{
	if (error) {
		store_free(list->records, list->count);
		return error;
	}
	*ret_records = list->records;
	*ret_count = list->count;
	if (ret_torn)
		*ret_torn = torn > 0;
	return 0;
}

int store_read_fd(int fd, const char *name, const char *head, size_t head_size, bool whole,
		  struct record ***ret_records, size_t *ret_count, bool *ret_torn,
		  struct message *message)
{
	struct list list = {NULL, 0, 0};
	size_t torn = 0;
	int error =
		store_each_fd(fd, name, head, head_size, whole, list_add, &list, &torn, message);

	return give_list(error, &list, torn, ret_records, ret_count, ret_torn);
}

int store_read_part(const char *path, bool whole, struct record ***ret_records, size_t *ret_count,
		    bool *ret_torn, struct message *message)
{
	struct list list = {NULL, 0, 0};
	size_t torn = 0;
	int error = store_each(path, whole, list_add, &list, &torn, message);

	return give_list(error, &list, torn, ret_records, ret_count, ret_torn);
}

int store_read(const char *path, struct record ***ret_records, size_t *ret_count, bool *ret_torn,
	       struct message *message)
{
	return store_read_part(path, true, ret_records, ret_count, ret_torn, message);
}
