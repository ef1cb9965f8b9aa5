/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "base/parse.h"
#include "history/database.h"

#define STATEMENTS_MOST 96
#define COLUMNS_MOST 24
#define PARAMETERS_MOST 24

/* Object identifiers of types, as in PostgreSQL's catalog/pg_type.dat. */
enum { OID_INT8 = 20, OID_INT2 = 21, OID_INT4 = 23, OID_FLOAT8 = 701 };

struct postgres {
	struct database base;
	PGconn *connection;
	const char *statements[STATEMENTS_MOST];
	size_t count;
};

static bool postgres_takes(const char *where)
{
	return strncmp(where, "postgresql://", 13) == 0 || strncmp(where, "postgres://", 11) == 0;
}

static void postgres_close(struct database *database)
{
	struct postgres *postgres = (struct postgres *)database;

	PQfinish(postgres->connection);
	free(postgres->base.name);
	free(postgres);
}

/* The URL without what stands between the user's ':' and the '@'. */
static char *hide_password(const char *where)
{
	const char *user = strstr(where, "://") + 3, *at = strchr(user, '@');
	const char *colon = at ? memchr(user, ':', (size_t)(at - user)) : NULL;
	char *name = NULL;

	if (!colon)
		return strdup(where);
	if (asprintf(&name, "%.*s%s", (int)(colon - where), where, at) < 0)
		return NULL;
	return name;
}

/* The server's first line: the rest is context. */
static int explain(struct postgres *postgres, const PGresult *result, struct message *message)
{
	const char *text = result ? PQresultErrorMessage(result) : NULL;
	bool gone = PQstatus(postgres->connection) != CONNECTION_OK;

	if (!text || !*text)
		text = PQerrorMessage(postgres->connection);
	return message_set(message, gone ? -EPIPE : -EIO, "%s: %.*s%s", postgres->base.name,
			   (int)strcspn(text, "\n"), text,
			   gone ? ": is the server there? Nothing was changed by this" : "");
}

static void drop_notice(void *data, const PGresult *result)
{
	(void)data;
	(void)result;
}

static int postgres_open(const char *where, bool make, struct database **ret_database,
			 struct message *message)
{
	struct postgres *postgres = calloc(1, sizeof(*postgres));
	int error = 0;

	(void)make; /* a database is made by its server's owner */
	if (!postgres)
		return message_set_errno(message, -ENOMEM, "postgresql");
	postgres->base.ops = &database_postgres;
	postgres->base.name = hide_password(where);
	postgres->connection = PQconnectdb(where);
	if (!postgres->base.name || !postgres->connection)
		error = -ENOMEM;
	else if (PQstatus(postgres->connection) != CONNECTION_OK)
		error = explain(postgres, NULL, message);
	if (error) {
		postgres_close(&postgres->base);
		return error;
	}
	PQsetNoticeReceiver(postgres->connection, drop_notice, NULL);
	*ret_database = &postgres->base;
	return 0;
}

/* Statements are named by the place where they are kept. */
static int prepared(struct postgres *postgres, const char *sql, size_t parameters, char *name,
		    size_t size, struct message *message)
{
	PGresult *result;
	size_t i = 0;
	int error = 0;

	while (i < postgres->count && postgres->statements[i] != sql)
		i++;
	snprintf(name, size, "s%zu", i);
	if (i < postgres->count)
		return 0;
	if (i == STATEMENTS_MOST)
		return message_set(message, -E2BIG, "too many statements");
	result = PQprepare(postgres->connection, name, sql, (int)parameters, NULL);
	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		error = explain(postgres, result, message);
	else
		postgres->statements[postgres->count++] = sql;
	PQclear(result);
	return error;
}

struct arguments {
	char numbers[PARAMETERS_MOST][32];
	const char *texts[PARAMETERS_MOST];
};

static void format_arguments(struct arguments *arguments, const struct database_value *values,
			     size_t count)
{
	for (size_t i = 0; i < count; i++) {
		arguments->texts[i] = arguments->numbers[i];
		switch (values[i].type) {
		case DATABASE_NULL:
			arguments->texts[i] = NULL;
			break;
		case DATABASE_INTEGER:
			snprintf(arguments->numbers[i], sizeof(arguments->numbers[i]), "%lld",
				 (long long)values[i].integer);
			break;
		case DATABASE_REAL:
			snprintf(arguments->numbers[i], sizeof(arguments->numbers[i]), "%.17g",
				 values[i].real);
			break;
		case DATABASE_TEXT:
			arguments->texts[i] = values[i].text;
			break;
		}
	}
}

static int read_column(const PGresult *result, int row, int column, struct database_value *value)
{
	const char *text = PQgetvalue(result, row, column);

	*value = (struct database_value)VALUE_NULL;
	if (PQgetisnull(result, row, column))
		return 0;
	switch (PQftype(result, column)) {
	case OID_INT8:
	case OID_INT4:
	case OID_INT2:
		value->type = DATABASE_INTEGER;
		return parse_int64(text, INT64_MIN, INT64_MAX, &value->integer);
	case OID_FLOAT8:
		value->type = DATABASE_REAL;
		return parse_double(text, &value->real);
	default:
		value->type = DATABASE_TEXT;
		value->text = text;
		return 0;
	}
}

static int read_rows(const PGresult *result, database_row row, void *data)
{
	struct database_value columns[COLUMNS_MOST];
	int width = PQnfields(result), error = 0;

	if (width > COLUMNS_MOST)
		return -E2BIG;
	for (int i = 0; i < PQntuples(result) && !error; i++) {
		for (int column = 0; column < width && !error; column++)
			error = read_column(result, i, column, &columns[column]);
		if (!error)
			error = row(data, columns, (size_t)width);
	}
	return error;
}

/* One row at a time, so that a million of them take no memory. */
static int postgres_run(struct database *database, const char *sql,
			const struct database_value *parameters, size_t count, database_row row,
			void *data, struct message *message)
{
	struct postgres *postgres = (struct postgres *)database;
	struct arguments arguments;
	PGresult *result;
	char name[24];
	int error;

	if (count > PARAMETERS_MOST)
		return -E2BIG;
	error = prepared(postgres, sql, count, name, sizeof(name), message);
	if (error)
		return error;
	format_arguments(&arguments, parameters, count);
	if (!PQsendQueryPrepared(postgres->connection, name, (int)count, arguments.texts, NULL,
				 NULL, 0))
		return explain(postgres, NULL, message);
	PQsetSingleRowMode(postgres->connection);
	while ((result = PQgetResult(postgres->connection))) {
		ExecStatusType status = PQresultStatus(result);

		if (status != PGRES_SINGLE_TUPLE && status != PGRES_TUPLES_OK &&
		    status != PGRES_COMMAND_OK)
			error = error ? error : explain(postgres, result, message);
		else if (row && !error)
			error = read_rows(result, row, data);
		PQclear(result);
	}
	return error;
}

static int postgres_execute(struct database *database, const char *sql, struct message *message)
{
	struct postgres *postgres = (struct postgres *)database;
	PGresult *result = PQexec(postgres->connection, sql);
	int error = 0;

	if (PQresultStatus(result) != PGRES_COMMAND_OK)
		error = explain(postgres, result, message);
	PQclear(result);
	return error;
}

const struct database_ops database_postgres = {
	.name = "PostgreSQL",
	.takes = postgres_takes,
	.open = postgres_open,
	.close = postgres_close,
	.run = postgres_run,
	.execute = postgres_execute,
	.begin = "BEGIN",
	.lock = "SELECT 1 FROM (SELECT pg_advisory_xact_lock(7308325643)) AS locked",
	.own_table = "SELECT COUNT(*) FROM information_schema.tables "
		     "WHERE table_schema = current_schema() AND table_name = 'syslat_meta'",
	.any_table = "SELECT COUNT(*) FROM information_schema.tables "
		     "WHERE table_schema = current_schema() AND table_name LIKE 'syslat%'",
	.words = {"BIGINT GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY", "DOUBLE PRECISION", ""},
};
