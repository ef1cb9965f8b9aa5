/* SPDX-License-Identifier: MIT */
#include "record/store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "base/json_shared.h"
#include "base/parallel.h"
#include "record/record.h"
#include "record/store_internal.h"

#define RUNS "runs.jsonl"

static bool is_record(const char *line, size_t size)
{
	struct record *record;

	if (store_parse_line(line, size, NULL, &record, NULL) < 0)
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

struct list {
	struct record **records;
	size_t count, capacity;
};

void store_free(struct record **records, size_t count)
{
	for (size_t i = 0; i < count; i++)
		record_free(records[i]);
	free(records);
}

static int list_add(struct list *list, struct record *record)
{
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 64;
		struct record **longer =
			reallocarray(list->records, capacity, sizeof(*list->records));

		if (!longer) {
			record_free(record);
			return -ENOMEM;
		}
		list->records = longer;
		list->capacity = capacity;
	}
	list->records[list->count++] = record;
	return 0;
}

static bool is_blank(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!strchr(" \t\r", text[i]) || !text[i])
			return false;
	return true;
}

/* Lines do not depend on each other: each is parsed by whichever thread is free. */
struct parsing {
	struct line {
		const char *text;
		size_t size, number;
		struct record *record;
		int error;
	} * lines;
	size_t count;
	struct json_shared *shared; /* NULL: whole records */
};

static void parse_one(void *data, size_t index)
{
	struct parsing *parsing = data;
	struct line *line = &parsing->lines[index];

	line->error =
		store_parse_line(line->text, line->size, parsing->shared, &line->record, NULL);
}

/* Lines that are not blank; *ret_open: the last lacks its newline. */
static int split_lines(const char *text, size_t size, struct parsing *parsing, bool *ret_open)
{
	size_t capacity = 0, number = 0;

	*ret_open = false;
	for (size_t at = 0; at < size;) {
		const char *newline = memchr(text + at, '\n', size - at);
		size_t length = newline ? (size_t)(newline - (text + at)) : size - at;

		number++;
		if (!is_blank(text + at, length)) {
			if (parsing->count == capacity) {
				struct line *longer =
					reallocarray(parsing->lines, capacity = 2 * capacity + 64,
						     sizeof(*longer));

				if (!longer)
					return -ENOMEM;
				parsing->lines = longer;
			}
			parsing->lines[parsing->count++] =
				(struct line){text + at, length, number, NULL, 0};
			*ret_open = !newline;
		}
		at += length + 1;
	}
	return 0;
}

/* Lines of @text; the last may be torn where it lacks its newline. */
static int read_lines(const char *path, const char *text, size_t size, bool whole,
		      struct list *list, bool *ret_torn, struct message *message)
{
	struct parsing parsing = {.shared = whole ? NULL : json_shared_new()};
	bool open;
	int error = split_lines(text, size, &parsing, &open);

	if (!error)
		parallel_for(parsing.count, parse_one, &parsing);
	for (size_t i = 0; i < parsing.count; i++) {
		struct line *line = &parsing.lines[i];
		struct message why = {"out of memory"};

		if (error) {
			record_free(line->record);
		} else if (!line->error) {
			error = list_add(list, line->record);
		} else if (line->error == -EINVAL && open && i + 1 == parsing.count) {
			*ret_torn = true;
		} else {
			struct record *none;

			error = store_parse_line(line->text, line->size, NULL, &none, &why);
			error = message_set(message, error ? error : line->error,
					    "%s: line %zu: %s", path, line->number, why.text);
		}
	}
	free(parsing.lines);
	json_shared_free(parsing.shared);
	return error;
}

/* A record that a person laid out over several lines is read as a whole. */
static int read_text(const char *path, const char *text, size_t size, bool whole, struct list *list,
		     bool *ret_torn, struct message *message)
{
	const char *newline = memchr(text, '\n', size);
	struct record *record;

	if (newline && !is_record(text, (size_t)(newline - text)) &&
	    store_parse_line(text, size, NULL, &record, NULL) == 0)
		return list_add(list, record);
	return read_lines(path, text, size, whole, list, ret_torn, message);
}

/* What is left to read of a regular file; 0: not known. */
static size_t rest_size(int fd)
{
	struct stat status;
	off_t at = lseek(fd, 0, SEEK_CUR);

	if (at < 0 || fstat(fd, &status) < 0 || !S_ISREG(status.st_mode) || status.st_size <= at)
		return 0;
	return (size_t)(status.st_size - at);
}

/* The text of a file. Its pages come all at once: one by one, each costs more than what is read
 * into it. */
struct text {
	char *bytes;
	size_t size, room;
};

static int text_new(struct text *text, size_t room)
{
	*text = (struct text){.room = room};
	text->bytes = mmap(NULL, room, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (text->bytes != MAP_FAILED)
		return 0;
	text->bytes = NULL;
	return -ENOMEM;
}

static int text_grow(struct text *text)
{
	void *longer = mremap(text->bytes, text->room, 2 * text->room, MREMAP_MAYMOVE);

	if (longer == MAP_FAILED)
		return -ENOMEM;
	text->bytes = longer;
	text->room *= 2;
	return 0;
}

static void text_free(struct text *text)
{
	if (text->bytes)
		munmap(text->bytes, text->room);
}

/* All of @fd after @head; @ret_text is to be freed in any case. */
static int slurp(int fd, const char *head, size_t head_size, struct text *ret_text)
{
	int error = text_new(ret_text, head_size + rest_size(fd) + (1 << 16));

	if (!error && head_size)
		memcpy(ret_text->bytes, head, head_size);
	ret_text->size = head_size;
	while (!error) {
		ssize_t got =
			read(fd, ret_text->bytes + ret_text->size, ret_text->room - ret_text->size);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got < 0 ? -errno : 0;
		ret_text->size += (size_t)got;
		if (ret_text->size == ret_text->room)
			error = text_grow(ret_text);
	}
	return error;
}

int store_read_fd(int fd, const char *name, const char *head, size_t head_size, bool whole,
		  struct record ***ret_records, size_t *ret_count, bool *ret_torn,
		  struct message *message)
{
	struct list list = {NULL, 0, 0};
	struct text text;
	bool torn = false;
	int error = slurp(fd, head, head_size, &text);

	if (error)
		message_set_errno(message, error, "%s", name);
	else
		error = read_text(name, text.bytes, text.size, whole, &list, &torn, message);
	text_free(&text);
	if (error) {
		store_free(list.records, list.count);
		return error;
	}
	*ret_records = list.records;
	*ret_count = list.count;
	if (ret_torn)
		*ret_torn = torn;
	return 0;
}

int store_read_part(const char *path, bool whole, struct record ***ret_records, size_t *ret_count,
		    bool *ret_torn, struct message *message)
{
	struct stat status;
	char inside[4096];
	int fd, error;

	if (strcmp(path, "-") == 0)
		return store_read_fd(STDIN_FILENO, "standard input", NULL, 0, whole, ret_records,
				     ret_count, ret_torn, message);
	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		if (snprintf(inside, sizeof(inside), "%s/%s", path, RUNS) >= (int)sizeof(inside))
			return message_set_errno(message, -ENAMETOOLONG, "%s", path);
		path = inside;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return message_set_errno(message, -errno, "%s", path);
	error = store_read_fd(fd, path, NULL, 0, whole, ret_records, ret_count, ret_torn, message);
	close(fd);
	return error;
}

int store_read(const char *path, struct record ***ret_records, size_t *ret_count, bool *ret_torn,
	       struct message *message)
{
	return store_read_part(path, true, ret_records, ret_count, ret_torn, message);
}
