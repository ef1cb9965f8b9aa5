/* SPDX-License-Identifier: MIT */
#include "history/database.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "config.h"

static const struct database_ops *const kinds[] = {
#if HAVE_LIBPQ
	&database_postgres,
#endif
#if HAVE_SQLITE
	&database_sqlite,
#endif
	NULL,
};

static bool is_url(const char *where)
{
	return strstr(where, "://") != NULL;
}

int database_open(const char *where, bool make, struct database **ret_database,
		  struct message *message)
{
	for (size_t i = 0; kinds[i]; i++)
		if (kinds[i]->takes(where))
			return kinds[i]->open(where, make, ret_database, message);
	if (!is_url(where))
		return message_set(message, -ENOTSUP,
				   "%s: built without SQLite: install libsqlite3-dev and build "
				   "again, or give --db postgresql://...",
				   where);
	if (strncmp(where, "postgres", 8) == 0)
		return message_set(message, -ENOTSUP,
				   "built without libpq: install libpq-dev and build again");
	return message_set(message, -EINVAL,
			   "%s: a file or postgresql://USER@HOST/DATABASE is wanted", where);
}

void database_close(struct database *database)
{
	if (database)
		database->ops->close(database);
}

int database_run(struct database *database, const char *sql,
		 const struct database_value *parameters, size_t count, database_row row,
		 void *data, struct message *message)
{
	return database->ops->run(database, sql, parameters, count, row, data, message);
}

int database_begin(struct database *database, struct message *message)
{
	return database_run(database, database->ops->begin, NULL, 0, NULL, NULL, message);
}

int database_commit(struct database *database, struct message *message)
{
	return database_run(database, "COMMIT", NULL, 0, NULL, NULL, message);
}

void database_rollback(struct database *database)
{
	database_run(database, "ROLLBACK", NULL, 0, NULL, NULL, NULL);
}

struct number {
	int64_t value;
	bool found;
};

static int take_number(void *data, const struct database_value *columns, size_t count)
{
	struct number *number = data;

	if (!number->found && count && columns[0].type == DATABASE_INTEGER)
		*number = (struct number){columns[0].integer, true};
	return 0;
}

int database_number(struct database *database, const char *sql,
		    const struct database_value *parameters, size_t count, int64_t fallback,
		    int64_t *ret_number, struct message *message)
{
	struct number number = {fallback, false};
	int error = database_run(database, sql, parameters, count, take_number, &number, message);

	if (!error)
		*ret_number = number.value;
	return error;
}
