/* SPDX-License-Identifier: MIT */
#include "history/history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/parse.h"
#include "history/schema.h"

#define BATCH 2000
#define BATCH_ALONE_MOST 50000
#define BATCHES_ALONE 20
#define FIELDS_MOST 8

int history_open(const char *where, bool make, struct history *ret_history, struct message *message)
{
	struct database *database = NULL;
	int error = database_open(where, make, &database, message);

	if (!error)
		error = schema_prepare(database, message);
	if (error) {
		database_close(database);
		return error;
	}
	ret_history->database = database;
	return 0;
}

void history_close(struct history *history)
{
	database_close(history->database);
	history->database = NULL;
}

/* --- add --- */

/* A text of fields taken apart, in a copy that the caller frees. */
static char *split_fields(const char *text, const char *fields[FIELDS_MOST])
{
	char *copy = strdup(text), *rest = copy;

	for (int i = 0; i < FIELDS_MOST; i++) {
		char *field = rest ? strsep(&rest, "\x1f") : NULL;

		fields[i] = field ? field : "";
	}
	return copy;
}

static const char *or_null(const char *text)
{
	return *text ? text : NULL;
}

struct adding {
	struct database *database;
	const struct run_list *runs;
	int64_t *series, *commits, *sources; /* ids in the database, by number in the list */
	bool *new_source;		     /* a run of it is new */
	int64_t *first_us;		     /* earliest run of each commit; INT64_MAX: none */
	struct message *message;
};

static int add_source(struct adding *adding, size_t index)
{
	struct database_value name[] = {value_text(adding->runs->sources.texts[index])};
	int error = database_run(adding->database,
				 "INSERT INTO syslat_source (path) VALUES ($1) "
				 "ON CONFLICT DO NOTHING",
				 name, 1, NULL, NULL, adding->message);

	if (error)
		return error;
	return database_number(adding->database, "SELECT id FROM syslat_source WHERE path = $1",
			       name, 1, -1, &adding->sources[index], adding->message);
}

/* What is told of a commit later adds to what is known, and wins. */
static int add_commit(struct adding *adding, size_t index)
{
	const char *fields[FIELDS_MOST];
	char *copy = split_fields(adding->runs->commits.texts[index], fields);
	int64_t time_us = 0;
	bool timed = copy && parse_int64(fields[4], INT64_MIN, INT64_MAX, &time_us) == 0;
	struct database_value values[] = {
		value_text(fields[0]),		value_text(or_null(fields[1])),
		value_text(or_null(fields[2])), value_text(or_null(fields[3])),
		VALUE_INTEGER(time_us),		VALUE_INTEGER(adding->first_us[index])};
	int error;

	if (!copy)
		return message_set_errno(adding->message, -ENOMEM, "commits");
	if (!timed)
		values[4] = (struct database_value)VALUE_NULL;
	if (adding->first_us[index] == INT64_MAX)
		values[5] = (struct database_value)VALUE_NULL;
	error = database_run(adding->database,
			     "INSERT INTO syslat_commit (name, branch, tags, kernel, time_us, "
			     "first_us) "
			     "VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (name) DO UPDATE SET "
			     "branch = COALESCE(excluded.branch, syslat_commit.branch), "
			     "tags = COALESCE(excluded.tags, syslat_commit.tags), "
			     "kernel = COALESCE(excluded.kernel, syslat_commit.kernel), "
			     "time_us = COALESCE(excluded.time_us, syslat_commit.time_us), "
			     "first_us = CASE WHEN syslat_commit.first_us IS NULL OR "
			     "excluded.first_us < syslat_commit.first_us "
			     "THEN excluded.first_us ELSE syslat_commit.first_us END",
			     values, 6, NULL, NULL, adding->message);
	if (!error)
		error = database_number(adding->database,
					"SELECT id FROM syslat_commit WHERE name = $1", values, 1,
					-1, &adding->commits[index], adding->message);
	free(copy);
	return error;
}

static int add_series(struct adding *adding, size_t index)
{
	const char *f[FIELDS_MOST];
	char *copy = split_fields(adding->runs->series.texts[index], f), key[20];
	struct database_value values[] = {value_text(f[0]), value_text(f[1]), value_text(f[2]),
					  value_text(key),  value_text(f[4]), value_text(f[5]),
					  value_text(f[6]), value_text(f[3])};
	int error;

	if (!copy)
		return message_set_errno(adding->message, -ENOMEM, "series");
	snprintf(key, sizeof(key), "%016llx",
		 (unsigned long long)hash_json(f[3], strlen(f[3]), false));
	error = database_run(adding->database,
			     "INSERT INTO syslat_series (machine, benchmark, arm, settings_key, "
			     "metric, unit, better, settings) VALUES ($1, $2, $3, $4, $5, $6, $7, "
			     "$8) ON CONFLICT DO NOTHING",
			     values, 8, NULL, NULL, adding->message);
	if (!error)
		error = database_number(adding->database,
					"SELECT id FROM syslat_series WHERE machine = $1 AND "
					"benchmark = $2 AND arm = $3 AND settings_key = $4 AND "
					"metric = $5 AND unit = $6",
					values, 6, -1, &adding->series[index], adding->message);
	free(copy);
	return error;
}

static void content_text(uint64_t content, char text[20])
{
	snprintf(text, 20, "%016llx", (unsigned long long)content);
}

static int take_content(void *data, const struct database_value *columns, size_t count)
{
	if (count && columns[0].type == DATABASE_TEXT)
		snprintf(data, 20, "%s", columns[0].text);
	return 0;
}

/* Is the run there? *ret_known; -EEXIST when with another content. */
static int look_up(struct adding *adding, const struct history_run *run, bool *ret_known)
{
	struct database_value uuid[] = {value_text(run->uuid)};
	char there[20] = "", wanted[20];
	int error = database_run(adding->database, "SELECT content FROM syslat_run WHERE uuid = $1",
				 uuid, 1, take_content, there, adding->message);

	if (error)
		return error;
	content_text(run->content, wanted);
	*ret_known = there[0] != '\0';
	if (there[0] && strcmp(there, wanted) != 0)
		return message_set(adding->message, -EEXIST,
				   "%s: run %s is in the history with another content; nothing "
				   "was added (syslat history rm %s takes that one out)",
				   adding->runs->sources.texts[run->source], run->uuid, run->uuid);
	return 0;
}

static int insert_values(struct adding *adding, const struct history_run *run, int64_t id)
{
	int error = 0;

	for (size_t i = 0; i < run->value_count && !error; i++) {
		const struct run_value *value = &adding->runs->values[run->first_value + i];
		struct database_value values[] = {
			VALUE_INTEGER(adding->series[value->series]),
			VALUE_INTEGER(adding->commits[run->commit]),
			VALUE_INTEGER(id),
			VALUE_INTEGER(run->state),
			VALUE_INTEGER(run->purpose),
			VALUE_REAL(value->value),
		};

		error = database_run(
			adding->database,
			"INSERT INTO syslat_value (series_id, commit_id, run_id, state, "
			"purpose, value) VALUES ($1, $2, $3, $4, $5, $6)",
			values, 6, NULL, NULL, adding->message);
	}
	return error;
}

static int insert_run(struct adding *adding, const struct history_run *run, bool *ret_known)
{
	char content[20];
	struct database_value values[] = {
		value_text(run->uuid),
		value_text(content),
		VALUE_INTEGER(adding->commits[run->commit]),
		VALUE_INTEGER(adding->sources[run->source]),
		VALUE_INTEGER(run->started_us),
		VALUE_INTEGER(run->state),
		VALUE_INTEGER(run->purpose),
	};
	int64_t id = -1;
	int error;

	content_text(run->content, content);
	if (run->started_us == INT64_MIN)
		values[4] = (struct database_value)VALUE_NULL;
	error = database_number(adding->database,
				"INSERT INTO syslat_run (uuid, content, commit_id, source_id, "
				"started_us, state, purpose) VALUES ($1, $2, $3, $4, $5, $6, $7) "
				"ON CONFLICT (uuid) DO NOTHING RETURNING id",
				values, 7, -1, &id, adding->message);
	*ret_known = !error && id < 0;
	if (error)
		return error;
	return id < 0 ? look_up(adding, run, ret_known) : insert_values(adding, run, id);
}

static int compare_uuids(const void *left, const void *right)
{
	const struct history_run *a = *(const struct history_run *const *)left;
	const struct history_run *b = *(const struct history_run *const *)right;

	return memcmp(a->uuid, b->uuid, sizeof(a->uuid));
}

/* Runs [start, end) in one transaction, in the order of their ids: two writers of the same runs
 * then wait for each other and never in a circle. */
static int add_batch(struct adding *adding, const struct history_run **order, size_t start,
		     size_t end, struct history_added *added)
{
	struct history_added more = {0};
	int error = database_begin(adding->database, adding->message);

	if (error)
		return error;
	for (size_t i = start; i < end; i++)
		order[i - start] = &adding->runs->runs[i];
	qsort(order, end - start, sizeof(*order), compare_uuids);
	for (size_t i = 0; i < end - start && !error; i++) {
		bool known = false;

		error = insert_run(adding, order[i], &known);
		more.known += known;
		more.runs += !known;
		more.values += known ? 0 : order[i]->value_count;
	}
	if (!error)
		error = database_commit(adding->database, adding->message);
	else
		database_rollback(adding->database);
	if (error)
		return error;
	added->runs += more.runs;
	added->known += more.known;
	added->values += more.values;
	return 0;
}

/* Series, commits and sources, each by itself, before any run: no writer holds one for long. */
static int add_names(struct adding *adding)
{
	const struct run_list *runs = adding->runs;
	int error = 0;

	for (size_t i = 0; i < runs->sources.count && !error; i++)
		error = adding->new_source[i] ? add_source(adding, i) : 0;
	for (size_t i = 0; i < runs->commits.count && !error; i++)
		error = adding->commits[i] < 0 ? 0 : add_commit(adding, i);
	for (size_t i = 0; i < runs->series.count && !error; i++)
		error = add_series(adding, i);
	return error;
}

/* SQLite writes a commit to the disk for each statement outside of a transaction; a server with
 * other writers must not hold names through one. */
static int add_names_at_once(struct adding *adding)
{
	bool alone = adding->database->ops->alone;
	int error = alone ? database_begin(adding->database, adding->message) : 0;

	if (error)
		return error;
	error = add_names(adding);
	if (alone && !error)
		error = database_commit(adding->database, adding->message);
	else if (alone)
		database_rollback(adding->database);
	return error;
}

/* Which runs are there already? In one transaction: else a lock is taken and left for each. */
static int check_known(struct adding *adding)
{
	int64_t any = 0;
	int error = database_run(adding->database, "BEGIN", NULL, 0, NULL, NULL, adding->message);

	if (error)
		return error;
	error = database_number(adding->database,
				"SELECT COUNT(*) FROM (SELECT id FROM syslat_run "
				"LIMIT 1) AS one",
				NULL, 0, 0, &any, adding->message);
	for (size_t i = 0; i < adding->runs->count && !error; i++) {
		bool known = false;

		if (any)
			error = look_up(adding, &adding->runs->runs[i], &known);
		adding->new_source[adding->runs->runs[i].source] |= !known;
	}
	if (!error)
		return database_commit(adding->database, adding->message);
	database_rollback(adding->database);
	return error;
}

/*
 * A transaction writes nearly every page of the index of ids anew, for ids are random: few large
 * ones write a tenth of what many small ones do. On a server other writers wait for each.
 */
static size_t choose_batch(const struct adding *adding, size_t wanted)
{
	size_t share = adding->runs->count / BATCHES_ALONE;

	if (wanted)
		return wanted;
	if (!adding->database->ops->alone || share < BATCH)
		return BATCH;
	return share < BATCH_ALONE_MOST ? share : BATCH_ALONE_MOST;
}

/* Of the commits that have runs; the others (id -1) are not written. */
static void find_first(struct adding *adding)
{
	for (size_t i = 0; i < adding->runs->commits.count; i++) {
		adding->first_us[i] = INT64_MAX;
		adding->commits[i] = -1;
	}
	for (size_t i = 0; i < adding->runs->count; i++) {
		const struct history_run *run = &adding->runs->runs[i];

		adding->commits[run->commit] = 0;

		if (run->started_us != INT64_MIN && run->started_us < adding->first_us[run->commit])
			adding->first_us[run->commit] = run->started_us;
	}
}

int history_add(struct history *history, const struct run_list *runs, size_t batch,
		void (*acknowledge)(void *data, size_t runs), void *data,
		struct history_added *ret_added, struct message *message)
{
	struct adding adding = {.database = history->database, .runs = runs, .message = message};
	struct history_added added = {0};
	const struct history_run **order;
	int error = 0;

	batch = choose_batch(&adding, batch);
	adding.series = calloc(runs->series.count + 1, sizeof(int64_t));
	adding.commits = calloc(runs->commits.count + 1, sizeof(int64_t));
	adding.sources = calloc(runs->sources.count + 1, sizeof(int64_t));
	adding.first_us = calloc(runs->commits.count + 1, sizeof(int64_t));
	adding.new_source = calloc(runs->sources.count + 1, sizeof(bool));
	order = calloc(batch, sizeof(*order));
	if (!adding.new_source || !adding.first_us || !adding.series || !adding.commits ||
	    !adding.sources || !order)
		error = message_set_errno(message, -ENOMEM, "history");
	if (!error)
		find_first(&adding);
	if (!error)
		error = check_known(&adding);
	if (!error)
		error = add_names_at_once(&adding);
	for (size_t start = 0; start < runs->count && !error; start += batch) {
		size_t end = start + batch < runs->count ? start + batch : runs->count;

		error = add_batch(&adding, order, start, end, &added);
		if (!error && acknowledge)
			acknowledge(data, end);
	}
	free(adding.series);
	free(adding.commits);
	free(adding.sources);
	free(adding.first_us);
	free(adding.new_source);
	free(order);
	if (!error)
		*ret_added = added;
	return error;
}
