/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "history/history.h"

/* An array that grows. */
struct growing {
	void *items;
	size_t count, capacity, size;
};

static void *next_item(struct growing *growing)
{
	if (growing->count == growing->capacity) {
		size_t capacity = growing->capacity ? 2 * growing->capacity : 256;
		void *longer = reallocarray(growing->items, capacity, growing->size);

		if (!longer)
			return NULL;
		growing->items = longer;
		growing->capacity = capacity;
	}
	return memset((char *)growing->items + growing->size * growing->count++, 0, growing->size);
}

static char *copy_text(const struct database_value *value)
{
	return value->type == DATABASE_TEXT ? strdup(value->text) : NULL;
}

static int take_series(void *data, const struct database_value *c, size_t count)
{
	struct history_series *series = next_item(data);

	(void)count;
	if (!series)
		return -ENOMEM;
	series->id = c[0].integer;
	series->machine = copy_text(&c[1]);
	series->benchmark = copy_text(&c[2]);
	series->arm = copy_text(&c[3]);
	series->settings_key = copy_text(&c[4]);
	series->metric = copy_text(&c[5]);
	series->unit = copy_text(&c[6]);
	series->better = copy_text(&c[7]);
	series->settings = copy_text(&c[8]);
	return 0;
}

static int take_commit(void *data, const struct database_value *c, size_t count)
{
	struct history_commit *commit = next_item(data);

	(void)count;
	if (!commit)
		return -ENOMEM;
	commit->id = c[0].integer;
	commit->name = copy_text(&c[1]);
	commit->branch = copy_text(&c[2]);
	commit->tags = copy_text(&c[3]);
	commit->kernel = copy_text(&c[4]);
	commit->time_is_own = c[5].type == DATABASE_INTEGER;
	commit->time_us = commit->time_is_own		  ? c[5].integer
			  : c[6].type == DATABASE_INTEGER ? c[6].integer
							  : INT64_MAX;
	return 0;
}

static int take_note(void *data, const struct database_value *c, size_t count)
{
	struct history_note *note = next_item(data);

	(void)count;
	if (!note)
		return -ENOMEM;
	note->series = c[0].integer;
	note->commit = c[1].integer;
	note->text = copy_text(&c[2]);
	return 0;
}

static int compare_commits(const void *left, const void *right)
{
	const struct history_commit *a = left, *b = right;

	if (a->time_us != b->time_us)
		return a->time_us < b->time_us ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

/* --- points --- */

struct rank {
	int64_t id;
	uint32_t place;
};

static int compare_ranks(const void *left, const void *right)
{
	const struct rank *a = left, *b = right;

	return (a->id > b->id) - (a->id < b->id);
}

struct reading {
	struct rank *ranks; /* commits by id */
	size_t rank_count;
	int64_t last_id;
	uint32_t last_place;
	struct growing points;
};

static int take_point(void *data, const struct database_value *c, size_t count)
{
	struct reading *reading = data;
	struct history_point *point = next_item(&reading->points);

	(void)count;
	if (!point)
		return -ENOMEM;
	if (c[0].integer != reading->last_id) {
		struct rank key = {.id = c[0].integer}, *found;

		found = bsearch(&key, reading->ranks, reading->rank_count, sizeof(key),
				compare_ranks);
		if (!found) { /* of another branch, or a commit that came just now */
			reading->points.count--;
			return 0;
		}
		reading->last_id = key.id;
		reading->last_place = found->place;
	}
	point->commit = reading->last_place;
	point->state = (uint8_t)c[1].integer;
	point->purpose = (uint8_t)c[2].integer;
	point->value = c[3].type == DATABASE_REAL      ? c[3].real
		       : c[3].type == DATABASE_INTEGER ? (double)c[3].integer
						       : NAN;
	return 0;
}

static int compare_points(const void *left, const void *right)
{
	const struct history_point *a = left, *b = right;

	return (a->commit > b->commit) - (a->commit < b->commit);
}

/* Ids of commits follow the order in which they came; only where that is not the order of time
 * there is something to sort. */
static void sort_points(struct history_point *points, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		if (points[i].commit < points[i - 1].commit) {
			qsort(points, count, sizeof(*points), compare_points);
			return;
		}
	}
}

static int read_points(struct history *history, struct history_data *data, struct message *message)
{
	struct reading reading = {.rank_count = data->commit_count,
				  .points = {.size = sizeof(struct history_point)}};
	int error = 0;

	reading.ranks = calloc(data->commit_count + 1, sizeof(*reading.ranks));
	data->starts = calloc(data->series_count + 1, sizeof(*data->starts));
	if (!reading.ranks || !data->starts)
		error = message_set_errno(message, -ENOMEM, "history");
	for (size_t i = 0; i < data->commit_count && !error; i++)
		reading.ranks[i] = (struct rank){data->commits[i].id, (uint32_t)i};
	if (!error)
		qsort(reading.ranks, reading.rank_count, sizeof(*reading.ranks), compare_ranks);
	for (size_t i = 0; i < data->series_count && !error; i++) {
		struct database_value id[] = {VALUE_INTEGER(data->series[i].id)};

		reading.last_id = -1;
		error = database_run(history->database,
				     "SELECT commit_id, state, purpose, value FROM syslat_value "
				     "WHERE series_id = $1 ORDER BY series_id, commit_id, run_id",
				     id, 1, take_point, &reading, message);
		data->starts[i + 1] = reading.points.count;
		if (!error && reading.points.items)
			sort_points((struct history_point *)reading.points.items + data->starts[i],
				    reading.points.count - data->starts[i]);
	}
	free(reading.ranks);
	data->points = reading.points.items;
	return error;
}

/* --- all --- */

static struct database_value text_or_any(const char *text)
{
	return value_text(text ? text : "");
}

/* "" stands for any: parameters of unknown type are no use to PostgreSQL. */
static int read_series(struct history *history, const struct history_filter *filter,
		       struct growing *series, struct message *message)
{
	struct database_value values[] = {VALUE_INTEGER(filter->series),
					  text_or_any(filter->machine),
					  text_or_any(filter->benchmark), text_or_any(filter->arm),
					  text_or_any(filter->metric)};

	return database_run(
		history->database,
		"SELECT id, machine, benchmark, arm, settings_key, metric, unit, "
		"better, settings FROM syslat_series "
		"WHERE (CAST($1 AS BIGINT) = 0 OR id = $1) AND ($2 = '' OR machine = $2) "
		"AND ($3 = '' OR benchmark = $3) AND ($4 = '' OR arm = $4) "
		"AND ($5 = '' OR metric = $5) ORDER BY id",
		values, 5, take_series, series, message);
}

static int read_commits(struct history *history, const struct history_filter *filter,
			struct growing *commits, struct message *message)
{
	struct database_value branch[] = {text_or_any(filter->branch)};

	return database_run(history->database,
			    "SELECT id, name, branch, tags, kernel, time_us, first_us "
			    "FROM syslat_commit WHERE ($1 = '' OR branch = $1)",
			    branch, 1, take_commit, commits, message);
}

int history_read(struct history *history, const struct history_filter *filter, bool points,
		 struct history_data *ret_data, struct message *message)
{
	struct growing series = {.size = sizeof(struct history_series)};
	struct growing commits = {.size = sizeof(struct history_commit)};
	struct growing notes = {.size = sizeof(struct history_note)};
	struct history_data data = {.series = NULL};
	int error = read_series(history, filter, &series, message);

	if (!error)
		error = read_commits(history, filter, &commits, message);
	if (!error)
		error = database_run(history->database,
				     "SELECT series_id, commit_id, text FROM syslat_note", NULL, 0,
				     take_note, &notes, message);
	data = (struct history_data){.series = series.items,
				     .series_count = series.count,
				     .commits = commits.items,
				     .commit_count = commits.count,
				     .notes = notes.items,
				     .note_count = notes.count};
	if (!error && !data.series_count)
		error = message_set(message, -ENOENT,
				    "%s: no such series; syslat history list names them",
				    history->database->name);
	if (data.commit_count)
		qsort(data.commits, data.commit_count, sizeof(*data.commits), compare_commits);
	if (!error && points)
		error = read_points(history, &data, message);
	if (error)
		history_data_free(&data);
	else
		*ret_data = data;
	return error;
}

void history_data_free(struct history_data *data)
{
	for (size_t i = 0; i < data->series_count; i++) {
		struct history_series *series = &data->series[i];

		free(series->machine);
		free(series->benchmark);
		free(series->arm);
		free(series->settings_key);
		free(series->metric);
		free(series->unit);
		free(series->better);
		free(series->settings);
	}
	for (size_t i = 0; i < data->commit_count; i++) {
		free(data->commits[i].name);
		free(data->commits[i].branch);
		free(data->commits[i].tags);
		free(data->commits[i].kernel);
	}
	for (size_t i = 0; i < data->note_count; i++)
		free(data->notes[i].text);
	free(data->series);
	free(data->commits);
	free(data->notes);
	free(data->points);
	free(data->starts);
	*data = (struct history_data){.series = NULL};
}
