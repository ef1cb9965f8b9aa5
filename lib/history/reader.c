/* SPDX-License-Identifier: MIT */
#include "history/reader.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/file.h"
#include "history/record_scan.h"

/* --- words --- */

void commit_of_release(const char *release, char *buffer, size_t size)
{
	for (const char *at = release; (at = strstr(at, "-g")); at++) {
		size_t digits = strspn(at + 2, "0123456789abcdef");

		if (digits >= 7 && digits <= 40 && !isalnum((unsigned char)at[2 + digits])) {
			snprintf(buffer, size, "%.*s", (int)digits, at + 2);
			return;
		}
	}
	snprintf(buffer, size, "%s", *release ? release : "unknown");
}

int time_parse_rfc3339(const char *text, int64_t *ret_us)
{
	struct tm tm = {.tm_isdst = 0};
	int used = 0, hours = 0, minutes = 0;
	int64_t us = 0, scale = 100000;
	const char *at;

	if (sscanf(text, "%4d-%2d-%2d%*1[Tt ]%2d:%2d:%2d%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
		   &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &used) != 6 ||
	    used != 19)
		return -EINVAL;
	at = text + used;
	if (*at == '.')
		for (at++; isdigit((unsigned char)*at); at++, scale /= 10)
			us += (*at - '0') * scale;
	if (*at == '+' || *at == '-') {
		if (sscanf(at + 1, "%2d:%2d%n", &hours, &minutes, &used) != 2 || at[1 + used])
			return -EINVAL;
		minutes += 60 * hours;
		minutes = *at == '-' ? -minutes : minutes;
	} else if ((*at != 'Z' && *at != 'z') || at[1]) {
		return -EINVAL;
	}
	tm.tm_year -= 1900;
	tm.tm_mon--;
	*ret_us = ((int64_t)timegm(&tm) - 60 * minutes) * 1000000 + us;
	return 0;
}

/* --- the list --- */

static int room_for(void **array, size_t *capacity, size_t count, size_t more, size_t size)
{
	size_t wanted = *capacity ? *capacity : 256;
	void *longer;

	if (count + more <= *capacity)
		return 0;
	while (wanted < count + more)
		wanted *= 2;
	longer = reallocarray(*array, wanted, size);
	if (!longer)
		return -ENOMEM;
	*array = longer;
	*capacity = wanted;
	return 0;
}

static int reserve(struct run_list *list, size_t values)
{
	int error = room_for((void **)&list->runs, &list->capacity, list->count, 1,
			     sizeof(*list->runs));

	return error ? error
		     : room_for((void **)&list->values, &list->value_capacity, list->value_count,
				values, sizeof(*list->values));
}

void run_list_free(struct run_list *list)
{
	free(list->runs);
	free(list->values);
	intern_free(&list->series);
	intern_free(&list->commits);
	intern_free(&list->sources);
	*list = (struct run_list){.runs = NULL};
}

static int add_value(struct run_list *list, const char *base, size_t base_size,
		     const struct scanned *scanned, size_t index)
{
	char text[8192], *longer = text;
	size_t room = base_size + 160;
	uint32_t series;
	int length, error;

	if (room > sizeof(text) && !(longer = malloc(room)))
		return -ENOMEM;
	memcpy(longer, base, base_size);
	length = snprintf(longer + base_size, room - base_size, "%s%c%s%c%s",
			  scanned->values[index].name, RUN_FIELD, scanned->values[index].unit,
			  RUN_FIELD, scanned->values[index].better);
	error = intern_add(&list->series, longer, base_size + (size_t)length, &series);
	if (longer != text)
		free(longer);
	if (error)
		return error;
	list->values[list->value_count++] =
		(struct run_value){series, scanned->values[index].value};
	return 0;
}

static int commit_number(struct run_list *list, const char *kernel, const struct run_labels *labels,
			 uint32_t *ret_number)
{
	char name[256], when[24] = "", *text;
	int length, error;

	if (labels->commit)
		snprintf(name, sizeof(name), "%s", labels->commit);
	else
		commit_of_release(kernel, name, sizeof(name));
	if (labels->commit_time_us != INT64_MIN)
		snprintf(when, sizeof(when), "%lld", (long long)labels->commit_time_us);
	length = asprintf(&text, "%s%c%s%c%s%c%s%c%s", name, RUN_FIELD,
			  labels->branch ? labels->branch : "", RUN_FIELD,
			  labels->tags ? labels->tags : "", RUN_FIELD, kernel, RUN_FIELD, when);
	if (length < 0)
		return -ENOMEM;
	error = intern_add(&list->commits, text, (size_t)length, ret_number);
	free(text);
	return error;
}

static int add_scanned(struct run_list *list, const struct scanned *scanned, uint32_t source,
		       const struct run_labels *labels)
{
	struct run run = {.state = (uint8_t)scanned->state,
			  .purpose = labels->purpose,
			  .source = source,
			  .content = scanned->content,
			  .started_us = scanned->started_us};
	size_t base_size = strlen(scanned->base);
	int error = reserve(list, scanned->count);

	memcpy(run.uuid, scanned->uuid, sizeof(run.uuid));
	if (!error)
		error = commit_number(list, scanned->kernel, labels, &run.commit);
	run.first_value = list->value_count;
	run.value_count = (uint16_t)scanned->count;
	for (size_t i = 0; i < scanned->count && !error; i++)
		error = add_value(list, scanned->base, base_size, scanned, i);
	if (!error)
		list->runs[list->count++] = run;
	return error;
}

/* --- lines --- */

struct reading {
	struct run_list *list;
	const struct run_labels *labels;
	const char *name;
	uint32_t source;
	char machine[64]; /* of the operand so far */
	struct scanned *scanned;
};

static int check_machine(struct reading *reading, size_t line, struct message *message)
{
	const char *machine = reading->scanned->machine;

	if (!reading->machine[0])
		snprintf(reading->machine, sizeof(reading->machine), "%s", machine);
	if (reading->labels->mix_machines || strcmp(reading->machine, machine) == 0)
		return 0;
	return message_set(message, -EXDEV,
			   "%s: line %zu: runs of several machines (%s, %s): --mix-machines keeps "
			   "them, each in series of its own",
			   reading->name, line, reading->machine, machine);
}

static int read_line(struct reading *reading, const char *text, size_t size, size_t number,
		     bool last, struct message *message)
{
	struct message why = {""};
	bool torn = false;
	int error =
		record_scan(text, size, reading->labels->machine, reading->scanned, &torn, &why);

	if (error && torn && last && reading->labels->drop_torn)
		return 0;
	if (error && torn && last)
		message_set(message, error,
			    "%s: line %zu is torn: syslat run --resume mends an experiment's "
			    "folder, --drop-torn adds the others",
			    reading->name, number);
	else if (error)
		message_set(message, error, "%s: line %zu: %s", reading->name, number,
			    why.text[0] ? why.text : "out of memory");
	if (!error)
		error = check_machine(reading, number, message);
	if (!error)
		error = add_scanned(reading->list, reading->scanned, reading->source,
				    reading->labels);
	return error;
}

static bool is_blank(const char *text, size_t size)
{
	for (size_t i = 0; i < size; i++)
		if (!isspace((unsigned char)text[i]))
			return false;
	return true;
}

static int nothing(void *data, struct json_span key, struct json_span value)
{
	(void)data, (void)key, (void)value;
	return 0;
}

/* One record that a person laid out over several lines. */
static bool is_one_object(const char *text, size_t size)
{
	const char *newline = memchr(text, '\n', size);
	bool blanks;

	return newline &&
	       scan_object(text, (size_t)(newline - text), nothing, NULL, NULL, &blanks) &&
	       scan_object(text, size, nothing, NULL, NULL, &blanks) == 0;
}

static int read_lines(struct reading *reading, const char *text, size_t size,
		      struct message *message)
{
	size_t number = 0, before = reading->list->count;
	int error = 0;

	if (is_one_object(text, size))
		return read_line(reading, text, size, 1, false, message);
	for (size_t at = 0, length; at < size && !error; at += length + 1) {
		const char *newline = memchr(text + at, '\n', size - at);

		length = newline ? (size_t)(newline - (text + at)) : size - at;
		number++;
		if (!is_blank(text + at, length))
			error = read_line(reading, text + at, length, number, !newline, message);
	}
	if (!error && reading->list->count == before)
		error = message_set(message, -ENODATA, "%s: no runs", reading->name);
	return error;
}

int run_list_read_text(struct run_list *list, const char *name, const char *text, size_t size,
		       const struct run_labels *labels, struct message *message)
{
	struct reading reading = {.list = list, .labels = labels, .name = name};
	int error = intern_add(&list->sources, name, strlen(name), &reading.source);

	reading.scanned = error ? NULL : calloc(1, sizeof(*reading.scanned));
	if (!reading.scanned)
		return message_set_errno(message, -ENOMEM, "%s", name);
	error = read_lines(&reading, text, size, message);
	scanned_free(reading.scanned);
	free(reading.scanned);
	return error;
}

/* --- files --- */

/* Regular files are mapped: a gigabyte of records takes no memory of its own. */
static int read_mapped(struct run_list *list, const char *path, int fd, size_t size,
		       const struct run_labels *labels, struct message *message)
{
	char resolved[PATH_MAX];
	const char *name = realpath(path, resolved) ? resolved : path;
	void *text;
	int error;

	if (size == 0)
		return message_set(message, -ENODATA, "%s: no runs", path);
	text = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (text == MAP_FAILED)
		return message_set_errno(message, -errno, "%s", path);
	madvise(text, size, MADV_SEQUENTIAL);
	error = run_list_read_text(list, name, text, size, labels, message);
	munmap(text, size);
	return error;
}

static int read_stream(struct run_list *list, int fd, const char *name,
		       const struct run_labels *labels, struct message *message)
{
	size_t size = 0, capacity = 0;
	char *text = NULL;
	ssize_t got;
	int error;

	do {
		error = room_for((void **)&text, &capacity, size, 1 << 16, 1);
		got = error ? 0 : read(fd, text + size, 1 << 16);
		size += got > 0 ? (size_t)got : 0;
	} while (got > 0 || (got < 0 && errno == EINTR));
	if (got < 0)
		error = -errno;
	error = error ? message_set_errno(message, error, "%s", name)
		      : run_list_read_text(list, name, text, size, labels, message);
	free(text);
	return error;
}

int run_list_read(struct run_list *list, const char *path, const struct run_labels *labels,
		  struct message *message)
{
	char inside[PATH_MAX];
	struct stat status;
	int fd, error;

	if (strcmp(path, "-") == 0)
		return read_stream(list, STDIN_FILENO, "standard input", labels, message);
	if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
		if (snprintf(inside, sizeof(inside), "%s/runs.jsonl", path) >= (int)sizeof(inside))
			return message_set_errno(message, -ENAMETOOLONG, "%s", path);
		path = inside;
	}
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &status) < 0)
		return message_set_errno(message, -errno, "%s", path);
	if (S_ISREG(status.st_mode))
		error = read_mapped(list, path, fd, (size_t)status.st_size, labels, message);
	else
		error = read_stream(list, fd, path, labels, message);
	close(fd);
	return error;
}

/* --- one id twice --- */

static int compare_runs(const void *left, const void *right)
{
	const struct run *a = *(const struct run *const *)left;
	const struct run *b = *(const struct run *const *)right;
	int order = memcmp(a->uuid, b->uuid, sizeof(a->uuid));

	return order ? order : (a > b) - (a < b);
}

int run_list_settle(struct run_list *list, struct message *message)
{
	struct run **order = malloc((list->count ? list->count : 1) * sizeof(struct run *));
	size_t kept = 0;
	int error = 0;

	if (!order)
		return message_set_errno(message, -ENOMEM, "runs");
	for (size_t i = 0; i < list->count; i++)
		order[i] = &list->runs[i];
	qsort(order, list->count, sizeof(struct run *), compare_runs);
	for (size_t i = 1; i < list->count && !error; i++) {
		struct run *first = order[i - 1], *second = order[i];

		if (memcmp(first->uuid, second->uuid, sizeof(first->uuid)) != 0)
			continue;
		if (first->content != second->content)
			error = message_set(message, -EEXIST,
					    "run %s is there twice with different contents (%s, "
					    "%s): take one of them away",
					    first->uuid, list->sources.texts[first->source],
					    list->sources.texts[second->source]);
		second->value_count = UINT16_MAX; /* marked to be dropped */
		order[i] = first;
	}
	free(order);
	for (size_t i = 0; i < list->count && !error; i++)
		if (list->runs[i].value_count != UINT16_MAX)
			list->runs[kept++] = list->runs[i];
	if (!error)
		list->count = kept;
	return error;
}
