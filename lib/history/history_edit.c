/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "history/history.h"

int history_count(struct history *history, int64_t series, int64_t *ret_count,
		  struct message *message)
{
	struct database_value id[] = {VALUE_INTEGER(series)};

	if (!series)
		return database_number(history->database, "SELECT COUNT(*) FROM syslat_run", NULL,
				       0, 0, ret_count, message);
	return database_number(history->database,
			       "SELECT COUNT(*) FROM syslat_value WHERE series_id = $1", id, 1, 0,
			       ret_count, message);
}

/* --- which runs --- */

/* Ids are matched as texts by their start; the wildcards of LIKE are no part of an id. */
static bool is_id(const char *text)
{
	return strlen(text) >= 4 && strspn(text, "0123456789abcdef-") == strlen(text);
}

struct ids {
	int64_t *ids;
	size_t count, capacity;
};

static int take_id(void *data, const struct database_value *columns, size_t count)
{
	struct ids *ids = data;

	(void)count;
	if (ids->count == ids->capacity) {
		size_t capacity = ids->capacity ? 2 * ids->capacity : 64;
		int64_t *longer = reallocarray(ids->ids, capacity, sizeof(*longer));

		if (!longer)
			return -ENOMEM;
		ids->ids = longer;
		ids->capacity = capacity;
	}
	ids->ids[ids->count++] = columns[0].integer;
	return 0;
}

static int find_runs(struct history *history, const char *uuid, const char *commit, struct ids *ids,
		     struct message *message)
{
	struct database_value name[] = {value_text(commit)};
	char pattern[64];
	struct database_value like[] = {value_text(pattern)};

	if (commit)
		return database_run(history->database,
				    "SELECT syslat_run.id FROM syslat_run JOIN syslat_commit ON "
				    "syslat_commit.id = syslat_run.commit_id "
				    "WHERE syslat_commit.name = $1",
				    name, 1, take_id, ids, message);
	if (!is_id(uuid) || strlen(uuid) > 36)
		return message_set(message, -EINVAL,
				   "\"%.60s\": an id of a run is wanted, or its first digits (at "
				   "least 4)",
				   uuid);
	snprintf(pattern, sizeof(pattern), "%s%%", uuid);
	return database_run(history->database, "SELECT id FROM syslat_run WHERE uuid LIKE $1", like,
			    1, take_id, ids, message);
}

static int remove_run(struct history *history, int64_t run, struct message *message)
{
	struct database_value id[] = {VALUE_INTEGER(run)};
	int error = database_run(history->database,
				 "DELETE FROM syslat_value WHERE run_id = $1 AND commit_id = "
				 "(SELECT commit_id FROM syslat_run WHERE id = $1) "
				 "AND series_id IN (SELECT id FROM syslat_series)",
				 id, 1, NULL, NULL, message);

	if (error)
		return error;
	return database_run(history->database, "DELETE FROM syslat_run WHERE id = $1", id, 1, NULL,
			    NULL, message);
}

int history_remove(struct history *history, const char *uuid, const char *commit,
		   size_t *ret_removed, struct message *message)
{
	struct ids ids = {NULL, 0, 0};
	int error = database_begin(history->database, message);

	if (error)
		return error;
	error = find_runs(history, uuid, commit, &ids, message);
	if (!error && !ids.count)
		error = message_set(message, -ENOENT, "%s: no run of \"%s\"",
				    history->database->name, commit ? commit : uuid);
	if (!error && !commit && ids.count > 1)
		error = message_set(message, -EINVAL, "\"%s\" is the start of %zu ids: give more",
				    uuid, ids.count);
	for (size_t i = 0; i < ids.count && !error; i++)
		error = remove_run(history, ids.ids[i], message);
	if (!error)
		error = database_commit(history->database, message);
	else
		database_rollback(history->database);
	*ret_removed = error ? 0 : ids.count;
	free(ids.ids);
	return error;
}

/* --- notes --- */

static int64_t now_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* A commit by its whole name or an unambiguous start of it. */
static int find_commit(struct history *history, const char *name, int64_t *ret_id,
		       struct message *message)
{
	struct database_value whole[] = {value_text(name)};
	char pattern[280];
	struct database_value like[] = {value_text(pattern)};
	int64_t count = 0;
	int error =
		database_number(history->database, "SELECT id FROM syslat_commit WHERE name = $1",
				whole, 1, -1, ret_id, message);

	if (error || *ret_id >= 0)
		return error;
	if (strpbrk(name, "%_\\") || strlen(name) < 4)
		return message_set(message, -ENOENT, "no commit \"%.80s\" in the history", name);
	snprintf(pattern, sizeof(pattern), "%.270s%%", name);
	error = database_number(history->database,
				"SELECT COUNT(*) FROM syslat_commit WHERE name LIKE $1", like, 1, 0,
				&count, message);
	if (!error && !count)
		return message_set(message, -ENOENT, "no commit \"%.80s\" in the history", name);
	if (!error && count != 1)
		return message_set(message, -ENOENT, "%lld commits start with \"%.80s\"",
				   (long long)count, name);
	return error ? error
		     : database_number(history->database,
				       "SELECT id FROM syslat_commit WHERE name LIKE $1", like, 1,
				       -1, ret_id, message);
}

int history_acknowledge(struct history *history, int64_t series, const char *commit,
			const char *text, struct message *message)
{
	struct database_value id[] = {VALUE_INTEGER(series)};
	int64_t known = 1, commit_id = -1;
	int error = 0;

	if (series)
		error = database_number(history->database,
					"SELECT COUNT(*) FROM syslat_series WHERE id = $1", id, 1,
					0, &known, message);
	if (!error && !known)
		error = message_set(message, -ENOENT, "%s: no series %lld", history->database->name,
				    (long long)series);
	if (!error)
		error = find_commit(history, commit, &commit_id, message);
	if (!error) {
		struct database_value values[] = {VALUE_INTEGER(series), VALUE_INTEGER(commit_id),
						  value_text(text), VALUE_INTEGER(now_us())};

		error = database_run(
			history->database,
			"INSERT INTO syslat_note (series_id, commit_id, text, made_us) "
			"VALUES ($1, $2, $3, $4) ON CONFLICT (series_id, commit_id) "
			"DO UPDATE SET text = excluded.text, made_us = excluded.made_us",
			values, 4, NULL, NULL, message);
	}
	return error;
}

/* --- show --- */

struct showing {
	int (*row)(void *data, const struct history_run_row *run);
	void *data;
	size_t count;
};

static const char *text_of(const struct database_value *value)
{
	return value->type == DATABASE_TEXT ? value->text : NULL;
}

static int take_shown(void *data, const struct database_value *c, size_t count)
{
	struct showing *showing = data;
	struct history_run_row row = {
		.uuid = text_of(&c[0]),
		.commit = text_of(&c[1]),
		.branch = text_of(&c[2]),
		.tags = text_of(&c[3]),
		.kernel = text_of(&c[4]),
		.source = text_of(&c[5]),
		.started_us = c[6].type == DATABASE_INTEGER ? c[6].integer : INT64_MIN,
		.state = c[7].integer,
		.purpose = c[8].integer,
		.series = c[9].type == DATABASE_INTEGER ? c[9].integer : 0,
		.value = c[10].type == DATABASE_REAL	  ? c[10].real
			 : c[10].type == DATABASE_INTEGER ? (double)c[10].integer
							  : NAN,
		.machine = text_of(&c[11]),
		.arm = text_of(&c[12]),
		.metric = text_of(&c[13]),
		.unit = text_of(&c[14]),
	};

	(void)count;
	showing->count++;
	return showing->row(showing->data, &row);
}

#define SHOW                                                                                     \
	"SELECT r.uuid, c.name, c.branch, c.tags, c.kernel, o.path, r.started_us, r.state, "     \
	"r.purpose, v.series_id, v.value, s.machine, s.arm, s.metric, s.unit FROM syslat_run r " \
	"JOIN syslat_commit c ON c.id = r.commit_id JOIN syslat_source o ON o.id = r.source_id " \
	"LEFT JOIN syslat_value v ON v.run_id = r.id AND v.commit_id = r.commit_id "             \
	"AND v.series_id IN (SELECT id FROM syslat_series) "                                     \
	"LEFT JOIN syslat_series s ON s.id = v.series_id WHERE "

int history_show(struct history *history, const char *what,
		 int (*row)(void *data, const struct history_run_row *run), void *data,
		 struct message *message)
{
	struct showing showing = {row, data, 0};
	char pattern[64];
	struct database_value name[] = {value_text(what)}, like[] = {value_text(pattern)};
	int error = database_run(history->database, SHOW "c.name = $1 ORDER BY r.id, v.series_id",
				 name, 1, take_shown, &showing, message);

	if (!error && !showing.count && is_id(what) && strlen(what) <= 36) {
		snprintf(pattern, sizeof(pattern), "%s%%", what);
		error = database_run(history->database,
				     SHOW "r.uuid LIKE $1 ORDER BY r.id, v.series_id", like, 1,
				     take_shown, &showing, message);
	}
	if (!error && !showing.count)
		error = message_set(message, -ENOENT,
				    "%s: neither a commit nor a run is called \"%.80s\"",
				    history->database->name, what);
	return error;
}

struct sources {
	int (*source)(void *data, const char *path);
	void *data;
};

static int take_source(void *data, const struct database_value *columns, size_t count)
{
	struct sources *sources = data;

	(void)count;
	return sources->source(sources->data, columns[0].text);
}

int history_sources(struct history *history, int (*source)(void *data, const char *path),
		    void *data, struct message *message)
{
	struct sources sources = {source, data};

	return database_run(history->database, "SELECT path FROM syslat_source ORDER BY id", NULL,
			    0, take_source, &sources, message);
}

/* --- labels and notes, for a rebuild --- */

struct labels {
	int (*label)(void *data, const struct history_label *label);
	void *data;
};

static int take_label(void *data, const struct database_value *c, size_t count)
{
	struct labels *labels = data;
	struct history_label label = {
		.uuid = text_of(&c[0]),
		.purpose = c[1].integer,
		.commit = text_of(&c[2]),
		.branch = text_of(&c[3]),
		.tags = text_of(&c[4]),
		.kernel = text_of(&c[5]),
		.time_us = c[6].type == DATABASE_INTEGER ? c[6].integer : INT64_MIN,
	};

	(void)count;
	return labels->label(labels->data, &label);
}

int history_labels(struct history *history,
		   int (*label)(void *data, const struct history_label *label), void *data,
		   struct message *message)
{
	struct labels labels = {label, data};

	return database_run(
		history->database,
		"SELECT r.uuid, r.purpose, c.name, c.branch, c.tags, c.kernel, "
		"c.time_us FROM syslat_run r JOIN syslat_commit c ON c.id = r.commit_id",
		NULL, 0, take_label, &labels, message);
}

struct copying {
	struct history *to;
	struct message *message;
};

/* A note on one series goes with it; where the series is not there any more, it is dropped. */
static int copy_note(void *data, const struct database_value *c, size_t count)
{
	struct copying *copying = data;
	struct database *database = copying->to->database;
	struct database_value values[] = {VALUE_INTEGER(0), c[6], c[7], c[8]};
	int64_t id = 0;
	int error = 0;

	(void)count;
	if (c[0].type != DATABASE_NULL)
		error = database_number(database,
					"SELECT id FROM syslat_series WHERE machine = $1 AND "
					"benchmark = $2 AND arm = $3 AND settings_key = $4 AND "
					"metric = $5 AND unit = $6",
					c, 6, -1, &id, copying->message);
	if (error || id < 0)
		return error;
	values[0].integer = id;
	return database_run(database,
			    "INSERT INTO syslat_note (series_id, text, made_us, commit_id) "
			    "SELECT CAST($1 AS BIGINT), $2, CAST($3 AS BIGINT), id "
			    "FROM syslat_commit WHERE name = $4 ON CONFLICT DO NOTHING",
			    values, 4, NULL, NULL, copying->message);
}

int history_copy_notes(struct history *from, struct history *to, struct message *message)
{
	struct copying copying = {to, message};

	return database_run(from->database,
			    "SELECT s.machine, s.benchmark, s.arm, s.settings_key, s.metric, "
			    "s.unit, n.text, n.made_us, c.name FROM syslat_note n "
			    "JOIN syslat_commit c ON c.id = n.commit_id "
			    "LEFT JOIN syslat_series s ON s.id = n.series_id",
			    NULL, 0, copy_note, &copying, message);
}
