/* SPDX-License-Identifier: MIT */
#include "history/schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATEMENTS_MOST 8

/*
 * Versions are added at the end and never edited: databases of users are at every one of them.
 * Numbers: state and purpose as in history/history.h; times are microseconds since 1970.
 */
static const char *const versions[HISTORY_SCHEMA][STATEMENTS_MOST] = {
	{
		"CREATE TABLE syslat_meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)",
		"CREATE TABLE syslat_commit (id @ID@, name TEXT NOT NULL UNIQUE, branch TEXT, "
		"tags TEXT, kernel TEXT, time_us BIGINT, first_us BIGINT)",
		"CREATE TABLE syslat_series (id @ID@, machine TEXT NOT NULL, "
		"benchmark TEXT NOT NULL, arm TEXT NOT NULL, settings_key TEXT NOT NULL, "
		"metric TEXT NOT NULL, unit TEXT NOT NULL, better TEXT NOT NULL, settings TEXT, "
		"UNIQUE (machine, benchmark, arm, settings_key, metric, unit))",
		"CREATE TABLE syslat_source (id @ID@, path TEXT NOT NULL UNIQUE)",
		"CREATE TABLE syslat_run (id @ID@, uuid TEXT NOT NULL UNIQUE, "
		"content TEXT NOT NULL, commit_id BIGINT NOT NULL, source_id BIGINT NOT NULL, "
		"started_us BIGINT, state BIGINT NOT NULL, purpose BIGINT NOT NULL)",
		"CREATE TABLE syslat_value (series_id BIGINT NOT NULL, commit_id BIGINT NOT NULL, "
		"run_id BIGINT NOT NULL, state BIGINT NOT NULL, purpose BIGINT NOT NULL, "
		"value @REAL@, PRIMARY KEY (series_id, commit_id, run_id)) @CLUSTERED@",
	},
	{
		"CREATE TABLE syslat_note (id @ID@, series_id BIGINT NOT NULL, "
		"commit_id BIGINT NOT NULL, text TEXT NOT NULL, made_us BIGINT NOT NULL, "
		"UNIQUE (series_id, commit_id))",
	},
};

/* @ID@, @REAL@ and @CLUSTERED@ in the words of the database; the caller frees it. */
static char *translate(const struct database_ops *ops, const char *sql)
{
	static const char *const marks[] = {"@ID@", "@REAL@", "@CLUSTERED@"};
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	while (stream && *sql) {
		size_t i = 0;

		while (i < 3 && strncmp(sql, marks[i], strlen(marks[i])) != 0)
			i++;
		if (i == 3) {
			fputc(*sql++, stream);
			continue;
		}
		fputs(ops->words[i], stream);
		sql += strlen(marks[i]);
	}
	if (!stream || fclose(stream) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static int take_version(void *data, const struct database_value *columns, size_t count)
{
	if (count && columns[0].type == DATABASE_TEXT)
		*(int64_t *)data = atoll(columns[0].text);
	return 0;
}

/* 0: nothing there yet. */
static int find_version(struct database *database, int64_t *ret_version, struct message *message)
{
	int64_t own = 0, any = 0;
	int error = database_number(database, database->ops->own_table, NULL, 0, 0, &own, message);

	*ret_version = 0;
	if (!error && !own)
		error = database_number(database, database->ops->any_table, NULL, 0, 0, &any,
					message);
	if (error)
		return error;
	if (own) {
		error = database_run(database,
				     "SELECT value FROM syslat_meta WHERE name = 'schema'", NULL, 0,
				     take_version, ret_version, message);
		if (error)
			return error;
	}
	if ((own || any) && *ret_version < 1)
		return message_set(message, -EBADMSG,
				   "%s: a database of another program; give another --db",
				   database->name);
	if (*ret_version > HISTORY_SCHEMA)
		return message_set(message, -EPROTO,
				   "%s: made by a newer syslatency (schema %lld, this one knows "
				   "%d): upgrade syslatency",
				   database->name, (long long)*ret_version, HISTORY_SCHEMA);
	return 0;
}

static int run_once(struct database *database, const char *sql, struct message *message)
{
	char *text = translate(database->ops, sql);
	int error = text ? database->ops->execute(database, text, message)
			 : message_set_errno(message, -ENOMEM, "schema");

	free(text);
	return error;
}

static int migrate(struct database *database, int64_t version, struct message *message)
{
	char number[24];
	struct database_value parameters[] = {value_text(number)};
	int error = 0;

	for (size_t i = 0; i < STATEMENTS_MOST && versions[version][i] && !error; i++)
		error = run_once(database, versions[version][i], message);
	snprintf(number, sizeof(number), "%lld", (long long)version + 1);
	if (!error)
		error = database_run(database,
				     "INSERT INTO syslat_meta (name, value) VALUES ('schema', $1) "
				     "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
				     parameters, 1, NULL, NULL, message);
	return error;
}

/* All missing versions in one transaction, one program at a time. */
static int migrate_all(struct database *database, struct message *message)
{
	int64_t version = 0;
	int error = database_begin(database, message);

	if (error)
		return error;
	if (database->ops->lock)
		error = database_run(database, database->ops->lock, NULL, 0, NULL, NULL, message);
	if (!error)
		error = find_version(database, &version, message);
	for (; !error && version < HISTORY_SCHEMA; version++)
		error = migrate(database, version, message);
	if (!error)
		return database_commit(database, message);
	database_rollback(database);
	return error;
}

int schema_prepare(struct database *database, struct message *message)
{
	int64_t version = 0;
	int error = find_version(database, &version, message);

	if (error)
		return error;
	/* On a medium that cannot be written the journal stays as it is, and reading goes on. */
	if (database->ops->settle)
		database->ops->execute(database, database->ops->settle, NULL);
	if (version == HISTORY_SCHEMA)
		return 0;
	return migrate_all(database, message);
}
