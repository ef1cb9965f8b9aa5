/* SPDX-License-Identifier: MIT */
#include "history/reader.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/json.h"
#include "history/series.h"
#include "record/record.h"
#include "record/store.h"

/* --- words --- */

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

static int reserve(struct run_list *list, size_t values)
{
	int error = array_reserve(&list->runs, &list->capacity, list->count + 1);

	return error ? error
		     : array_reserve(&list->values, &list->value_capacity,
				     list->value_count + values);
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

/* --- from a record --- */

struct reading {
	struct run_list *list;
	const struct run_labels *labels;
	const char *name;
	uint32_t source;
	char machine[64]; /* of the operand so far */
	struct message *message;
};

static bool is_uuid(const char *text)
{
	if (strlen(text) != 36)
		return false;
	for (int i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' : !strchr("0123456789abcdef", text[i]))
			return false;
	}
	return true;
}

/* Fields of a series are parted by control characters: none may come from outside. */
static bool is_plain(const char *text, size_t most)
{
	size_t length = 0;

	for (; text[length]; length++)
		if ((unsigned char)text[length] < 0x20)
			return false;
	return length <= most;
}

static enum run_state state_of(const struct record *record)
{
	switch (record_use(record)) {
	case RECORD_FAILED:
	case RECORD_INTERRUPTED:
		return RUN_FAILED;
	case RECORD_INVALID:
		return RUN_INVALID;
	case RECORD_COUNTS:
		break;
	}
	return record->verdict == VERDICT_SUSPECT ? RUN_SUSPECT : RUN_VALID;
}

static int add_value(struct run_list *list, const char *base, const char *name, const char *unit,
		     bool higher, double value)
{
	uint32_t series;
	char *text;
	int length = asprintf(&text, "%s%s%c%s%c%s", base, name, RUN_FIELD, unit, RUN_FIELD,
			      higher ? "higher" : "lower");
	int error = length < 0 ? -ENOMEM : reserve(list, 1);

	if (!error)
		error = intern_add(&list->series, text, (size_t)length, &series);
	if (length >= 0)
		free(text);
	if (!error)
		list->values[list->value_count++] = (struct run_value){series, value};
	return error;
}

static int add_values(struct reading *reading, const struct record *record, const char *base,
		      struct message *why)
{
	static const char *const latencies[] = {"mean", "max", "p50", "p99"};
	struct run_list *list = reading->list;
	const char *name, *unit;
	double value;
	json_t *metric;
	int error = 0;

	for (size_t i = 0; i < ARRAY_SIZE(latencies) && !error && record->has_latency; i++)
		if (!json_object_get(record->metrics, latencies[i]) &&
		    record_metric(record, latencies[i], &value, &unit) == 0 && isfinite(value))
			error = add_value(list, base, latencies[i], unit, false, value);
	json_object_foreach (record->metrics, name, metric) {
		if (error || record_metric(record, name, &value, &unit) || !isfinite(value))
			continue;
		if (!*name || !is_plain(name, 63) || !is_plain(unit, 31))
			return message_set(why, -EINVAL, "metrics.%.60s: name or unit too long",
					   name);
		error = add_value(list, base, name, unit,
				  record_metric_higher_is_better(record, name), value);
	}
	return error;
}

static int check_record(const struct record *record, int64_t *ret_started_us, struct message *why)
{
	const char *kernel = json_get_string(record->environment, "kernel", "");

	if (!is_uuid(record->id))
		return message_set(why, -EINVAL, "id: a UUID is wanted");
	*ret_started_us = INT64_MIN;
	if (record->started[0] && time_parse_rfc3339(record->started, ret_started_us) < 0)
		return message_set(why, -EINVAL, "started: \"%s\" is not RFC 3339",
				   record->started);
	if (!*record->benchmark || !is_plain(record->benchmark, 255) ||
	    !is_plain(record_arm_name(record), 255))
		return message_set(why, -EINVAL, "benchmark, arm: a name is wanted");
	if (!is_plain(kernel, 255))
		return message_set(why, -EINVAL, "environment.kernel: a short text is wanted");
	if (!is_plain(record->machine_key, 16))
		return message_set(why, -EINVAL, "machine_key: 16 hex digits are wanted");
	return 0;
}

static int add_run(struct reading *reading, const struct record *record, const char *machine,
		   uint64_t content, struct message *why)
{
	struct run_list *list = reading->list;
	struct history_run run = {.state = (uint8_t)state_of(record),
				  .purpose = reading->labels->purpose,
				  .source = reading->source,
				  .content = content,
				  .first_value = list->value_count};
	char *base = NULL;
	int error = check_record(record, &run.started_us, why);

	memcpy(run.uuid, record->id, sizeof(run.uuid));
	if (!error)
		error = reserve(list, 1);
	if (!error)
		error = commit_number(list, json_get_string(record->environment, "kernel", ""),
				      reading->labels, &run.commit);
	if (!error)
		error = series_base(record, machine, &base);
	if (!error)
		error = add_values(reading, record, base, why);
	free(base);
	if (!error && list->value_count - run.first_value > RUN_VALUES_MOST)
		error = message_set(why, -EINVAL, "metrics: more than %d", RUN_VALUES_MOST);
	if (error) {
		list->value_count = run.first_value;
		return error;
	}
	run.value_count = (uint16_t)(list->value_count - run.first_value);
	list->runs[list->count++] = run;
	return 0;
}

static int check_machine(struct reading *reading, const char *machine, size_t line)
{
	if (!reading->machine[0])
		snprintf(reading->machine, sizeof(reading->machine), "%s", machine);
	if (reading->labels->mix_machines || strcmp(reading->machine, machine) == 0)
		return 0;
	return message_set(reading->message, -EXDEV,
			   "%s: line %zu: runs of several machines (%s, %s): --mix-machines keeps "
			   "them, each in series of its own",
			   reading->name, line, reading->machine, machine);
}

static int take_record(void *data, struct record *record, const struct store_line *line)
{
	struct reading *reading = data;
	const char *machine = reading->labels->machine ? reading->labels->machine
			      : record->machine_key[0] ? record->machine_key
						       : "unknown";
	struct message why = {"out of memory"};
	int error = check_machine(reading, machine, line->number);

	if (!error) {
		error = add_run(reading, record, machine,
				hash_json(line->text, line->size, line->blanks), &why);
		if (error)
			message_set(reading->message, error, "%s: line %zu: %s", reading->name,
				    line->number, why.text);
	}
	record_free(record);
	return error;
}

/* @path, or @fd when that is NULL. */
static int read_all(struct reading *reading, const char *path, int fd)
{
	struct run_list *list = reading->list;
	size_t before = list->count, torn = 0;
	int error =
		intern_add(&list->sources, reading->name, strlen(reading->name), &reading->source);

	if (error)
		return message_set_errno(reading->message, error, "%s", reading->name);
	if (path)
		error = store_each(path, false, take_record, reading, &torn, reading->message);
	else
		error = store_each_fd(fd, reading->name, NULL, 0, false, take_record, reading,
				      &torn, reading->message);
	if (!error && torn && !reading->labels->drop_torn)
		error = message_set(reading->message, -EINVAL,
				    "%s: line %zu is torn: syslat run --resume mends an "
				    "experiment's folder, --drop-torn adds the others",
				    reading->name, torn);
	if (!error && list->count == before)
		error = message_set(reading->message, -ENODATA, "%s: no runs", reading->name);
	return error;
}

int run_list_read(struct run_list *list, const char *path, const struct run_labels *labels,
		  struct message *message)
{
	struct reading reading = {.list = list, .labels = labels, .name = path, .message = message};
	char inside[PATH_MAX], resolved[PATH_MAX];
	struct stat status;

	if (strcmp(path, "-") == 0) {
		reading.name = "standard input";
	} else {
		if (stat(path, &status) == 0 && S_ISDIR(status.st_mode)) {
			if (snprintf(inside, sizeof(inside), "%s/runs.jsonl", path) >=
			    (int)sizeof(inside))
				return message_set_errno(message, -ENAMETOOLONG, "%s", path);
			path = inside;
		}
		reading.name = realpath(path, resolved) ? resolved : path;
	}
	return read_all(&reading, path, -1);
}

int run_list_read_text(struct run_list *list, const char *name, const char *text, size_t size,
		       const struct run_labels *labels, struct message *message)
{
	struct reading reading = {.list = list, .labels = labels, .name = name, .message = message};
	int fd = memfd_create("records", MFD_CLOEXEC), error;

	if (fd < 0)
		return message_set_errno(message, -errno, "%s", name);
	error = write_all(fd, text, size);
	if (!error && lseek(fd, 0, SEEK_SET) < 0)
		error = -errno;
	error = error ? message_set_errno(message, error, "%s", name)
		      : read_all(&reading, NULL, fd);
	close(fd);
	return error;
}

/* --- one id twice --- */

static int compare_runs(const void *left, const void *right)
{
	const struct history_run *a = *(const struct history_run *const *)left;
	const struct history_run *b = *(const struct history_run *const *)right;
	int order = memcmp(a->uuid, b->uuid, sizeof(a->uuid));

	return order ? order : (a > b) - (a < b);
}

int run_list_drop_duplicates(struct run_list *list, struct message *message)
{
	struct history_run **order =
		malloc((list->count ? list->count : 1) * sizeof(struct history_run *));
	size_t kept = 0;
	int error = 0;

	if (!order)
		return message_set_errno(message, -ENOMEM, "runs");
	for (size_t i = 0; i < list->count; i++)
		order[i] = &list->runs[i];
	qsort(order, list->count, sizeof(struct history_run *), compare_runs);
	for (size_t i = 1; i < list->count && !error; i++) {
		struct history_run *first = order[i - 1], *second = order[i];

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
