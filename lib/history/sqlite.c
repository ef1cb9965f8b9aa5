/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <libgen.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <sqlite3.h>

#include "base/array.h"
#include "base/file.h"
#include "history/database.h"

#define STATEMENTS_MOST 96
#define COLUMNS_MOST 24
#define WAIT_MS 60000 /* for another writer */

struct sqlite {
	struct database base;
	sqlite3 *handle;
	struct {
		const char *sql;
		sqlite3_stmt *statement;
	} statements[STATEMENTS_MOST];
	size_t count;
};

static bool sqlite_takes(const char *where)
{
	return strstr(where, "://") == NULL;
}

static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
	case SQLITE_FORMAT:
		return -EBADMSG;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_READONLY:
	case SQLITE_PERM:
	case SQLITE_AUTH:
		return -EROFS;
	default:
		return -EIO;
	}
}

static int explain(struct sqlite *sqlite, struct message *message)
{
	int code = sqlite3_extended_errcode(sqlite->handle), error = errno_of(code);

	if (error == -EBADMSG)
		return message_set(message, error,
				   "%s: %s: no history of syslat; give another --db",
				   sqlite->base.name, sqlite3_errmsg(sqlite->handle));
	if (error == -EBUSY)
		return message_set(message, error,
				   "%s: another program has been writing for %d s; try again",
				   sqlite->base.name, WAIT_MS / 1000);
	return message_set(message, error, "%s: %s", sqlite->base.name,
			   sqlite3_errmsg(sqlite->handle));
}

static void sqlite_close(struct database *database)
{
	struct sqlite *sqlite = (struct sqlite *)database;

	for (size_t i = 0; i < sqlite->count; i++)
		sqlite3_finalize(sqlite->statements[i].statement);
	sqlite3_close(sqlite->handle);
	free(sqlite->base.name);
	free(sqlite);
}

/* Write-ahead log (settle): readers go on beside a writer, a kill leaves whole transactions. */
static int prepare_file(struct sqlite *sqlite, struct message *message)
{
	static const char *const pragmas[] = {
		"PRAGMA synchronous = FULL",	     "PRAGMA foreign_keys = OFF",
		"PRAGMA cache_size = -262144",	     "PRAGMA temp_store = MEMORY",
		"PRAGMA wal_autocheckpoint = 32768", "PRAGMA mmap_size = 2147483648",
	};

	sqlite3_extended_result_codes(sqlite->handle, 1);
	sqlite3_busy_timeout(sqlite->handle, WAIT_MS);
	/* Looks first: the journal's mode would be written into another program's file. */
	if (sqlite3_exec(sqlite->handle, "SELECT COUNT(*) FROM sqlite_master", NULL, NULL, NULL))
		return explain(sqlite, message);
	for (size_t i = 0; i < ARRAY_SIZE(pragmas); i++) {
		int code = sqlite3_exec(sqlite->handle, pragmas[i], NULL, NULL, NULL);

		/* On a medium that cannot be written the journal stays as it is. */
		if (code && (code & 0xff) != SQLITE_READONLY && (code & 0xff) != SQLITE_CANTOPEN)
			return explain(sqlite, message);
	}
	return 0;
}

static int make_folder(const char *path, struct message *message)
{
	char *copy = strdup(path);
	int error = copy ? file_make_directories(dirname(copy)) : -ENOMEM;

	free(copy);
	return error ? message_set_errno(message, error, "cannot make the folder of %s", path) : 0;
}

static int sqlite_open(const char *where, bool make, struct database **ret_database,
		       struct message *message)
{
	struct sqlite *sqlite;
	struct stat status;
	int error = 0;

	if (stat(where, &status) < 0 && errno == ENOENT) {
		if (!make)
			return message_set(message, -ENOENT,
					   "%s: no history yet; syslat history add makes one",
					   where);
		error = make_folder(where, message);
		if (error)
			return error;
	}
	sqlite = calloc(1, sizeof(*sqlite));
	if (!sqlite)
		return message_set_errno(message, -ENOMEM, "%s", where);
	sqlite->base.ops = &database_sqlite;
	sqlite->base.name = strdup(where);
	if (!sqlite->base.name || sqlite3_open_v2(where, &sqlite->handle,
						  SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
							  (make ? SQLITE_OPEN_CREATE : 0),
						  NULL))
		error = sqlite->handle ? explain(sqlite, message) : -ENOMEM;
	if (!error)
		error = prepare_file(sqlite, message);
	if (error) {
		sqlite_close(&sqlite->base);
		return error;
	}
	*ret_database = &sqlite->base;
	return 0;
}

static int prepared(struct sqlite *sqlite, const char *sql, sqlite3_stmt **ret_statement)
{
	for (size_t i = 0; i < sqlite->count; i++) {
		if (sqlite->statements[i].sql == sql) {
			*ret_statement = sqlite->statements[i].statement;
			return 0;
		}
	}
	if (sqlite->count == STATEMENTS_MOST)
		return -E2BIG;
	if (sqlite3_prepare_v3(sqlite->handle, sql, -1, SQLITE_PREPARE_PERSISTENT, ret_statement,
			       NULL))
		return -EIO;
	sqlite->statements[sqlite->count].sql = sql;
	sqlite->statements[sqlite->count++].statement = *ret_statement;
	return 0;
}

static int bind(sqlite3_stmt *statement, const struct database_value *values, size_t count)
{
	int code = SQLITE_OK;

	for (size_t i = 0; i < count && !code; i++) {
		int place = (int)i + 1;

		switch (values[i].type) {
		case DATABASE_NULL:
			code = sqlite3_bind_null(statement, place);
			break;
		case DATABASE_INTEGER:
			code = sqlite3_bind_int64(statement, place, values[i].integer);
			break;
		case DATABASE_REAL:
			code = sqlite3_bind_double(statement, place, values[i].real);
			break;
		case DATABASE_TEXT:
			code = sqlite3_bind_text(statement, place, values[i].text, -1,
						 SQLITE_STATIC);
			break;
		}
	}
	return code;
}

static void read_row(sqlite3_stmt *statement, struct database_value *columns, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int place = (int)i;

		columns[i] = (struct database_value)VALUE_NULL;
		switch (sqlite3_column_type(statement, place)) {
		case SQLITE_INTEGER:
			columns[i].type = DATABASE_INTEGER;
			columns[i].integer = sqlite3_column_int64(statement, place);
			break;
		case SQLITE_FLOAT:
			columns[i].type = DATABASE_REAL;
			columns[i].real = sqlite3_column_double(statement, place);
			break;
		case SQLITE_TEXT:
			columns[i].type = DATABASE_TEXT;
			columns[i].text = (const char *)sqlite3_column_text(statement, place);
			break;
		default:
			break;
		}
	}
}

static int sqlite_run(struct database *database, const char *sql,
		      const struct database_value *parameters, size_t count, database_row row,
		      void *data, struct message *message)
{
	struct sqlite *sqlite = (struct sqlite *)database;
	struct database_value columns[COLUMNS_MOST];
	sqlite3_stmt *statement = NULL;
	int error = prepared(sqlite, sql, &statement), code;
	size_t width;

	if (error)
		return explain(sqlite, message);
	width = (size_t)sqlite3_column_count(statement);
	if (bind(statement, parameters, count) || width > COLUMNS_MOST) {
		sqlite3_reset(statement);
		return message_set(message, -EINVAL, "%s: bad statement", sqlite->base.name);
	}
	while ((code = sqlite3_step(statement)) == SQLITE_ROW && !error) {
		if (!row)
			continue;
		read_row(statement, columns, width);
		error = row(data, columns, width);
		if (error)
			break;
	}
	if (code != SQLITE_DONE && code != SQLITE_ROW)
		error = explain(sqlite, message);
	sqlite3_reset(statement);
	sqlite3_clear_bindings(statement);
	return error;
}

static int sqlite_execute(struct database *database, const char *sql, struct message *message)
{
	struct sqlite *sqlite = (struct sqlite *)database;

	return sqlite3_exec(sqlite->handle, sql, NULL, NULL, NULL) ? explain(sqlite, message) : 0;
}

const struct database_ops database_sqlite = {
	.name = "SQLite",
	.alone = true,
	.takes = sqlite_takes,
	.open = sqlite_open,
	.close = sqlite_close,
	.run = sqlite_run,
	.execute = sqlite_execute,
	.settle = "PRAGMA journal_mode = WAL",
	.begin = "BEGIN IMMEDIATE",
	.own_table = "SELECT COUNT(*) FROM sqlite_master WHERE name = 'syslat_meta'",
	.any_table = "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table'",
	.words = {"INTEGER PRIMARY KEY", "REAL", "WITHOUT ROWID"},
};
