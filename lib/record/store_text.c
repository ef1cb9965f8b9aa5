/* SPDX-License-Identifier: MIT */
#include "record/store.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json.h"
#include "record/record.h"

/* One value a line, as ministat reads them. */

/* The shortest decimal text without an exponent that reads back as @value. */
static void format_value(double value, char *buffer, size_t size)
{
	for (int decimals = 0; decimals <= 12; decimals++) {
		snprintf(buffer, size, "%.*f", decimals, value);
		if (strtod(buffer, NULL) == value)
			return;
	}
	snprintf(buffer, size, "%.17g", value);
}

/* Values of one metric of one arm; without any, a file of an earlier time is removed. */
static int write_one(const char *directory, const char *arm, const char *metric,
		     struct record *const *records, size_t count, struct message *message)
{
	char path[4096], line[400];
	char *text = NULL;
	size_t size = 0;
	FILE *stream;
	int error = 0;

	if (snprintf(path, sizeof(path), "%s/%s-%s.txt", directory, arm, metric) >=
	    (int)sizeof(path))
		return message_set_errno(message, -ENAMETOOLONG, "%s", directory);
	stream = open_memstream(&text, &size);
	if (!stream)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++) {
		const char *unit;
		double value;

		if (strcmp(record_arm_name(records[i]), arm) != 0 || !record_counts(records[i]) ||
		    record_metric(records[i], metric, &value, &unit) < 0 || !isfinite(value))
			continue;
		format_value(value, line, sizeof(line));
		fprintf(stream, "%s\n", line);
	}
	if (fclose(stream) != 0) {
		free(text);
		return -ENOMEM;
	}
	if (size)
		error = file_replace(path, text, size);
	else if (unlink(path) < 0 && errno != ENOENT)
		error = -errno;
	free(text);
	return error ? message_set_errno(message, error, "%s", path) : 0;
}

/* An arm's name becomes part of a file's name: no folders, no hidden files. */
static int check_name(const char *arm, struct message *message)
{
	if (!arm[0] || arm[0] == '.' || strchr(arm, '/') || strchr(arm, '\n'))
		return message_set(message, -EINVAL, "arm \"%s\" cannot be part of a file's name",
				   arm);
	return 0;
}

static int write_arm(const char *directory, const char *arm, struct record *const *records,
		     size_t count, const struct record *example, struct message *message)
{
	const char *metric;
	json_t *value;
	int error = check_name(arm, message);

	if (error)
		return error;
	error = write_one(directory, arm, "mean", records, count, message);
	if (!error)
		error = write_one(directory, arm, "max", records, count, message);
	json_object_foreach (example->metrics, metric, value) {
		if (!error && !check_name(metric, NULL))
			error = write_one(directory, arm, metric, records, count, message);
	}
	return error;
}

/* The record of @arm that shows which metrics it has: its last that ended well, else its last. */
static const struct record *example_of(const char *arm, struct record *const *records, size_t count)
{
	const struct record *example = NULL;

	for (size_t i = 0; i < count; i++)
		if (strcmp(record_arm_name(records[i]), arm) == 0 &&
		    (!example || record_counts(records[i])))
			example = records[i];
	return example;
}

int store_write_text(const char *directory, struct record *const *records, size_t count,
		     struct message *message)
{
	for (size_t i = 0; i < count; i++) {
		const char *arm = record_arm_name(records[i]);
		bool seen = false;
		int error;

		for (size_t j = 0; j < i && !seen; j++)
			seen = strcmp(record_arm_name(records[j]), arm) == 0;
		if (seen)
			continue;
		error = write_arm(directory, arm, records, count, example_of(arm, records, count),
				  message);
		if (error)
			return error;
	}
	return 0;
}
