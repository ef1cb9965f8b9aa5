/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_DATABASE_H
#define HISTORY_DATABASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/array.h"
#include "base/message.h"

/*
 * What the history needs of a database: statements with parameters. One text of SQL serves SQLite
 * and PostgreSQL: parameters are $1, $2... in the order of their first use, numbers BIGINT.
 */
enum database_type { DATABASE_NULL, DATABASE_INTEGER, DATABASE_REAL, DATABASE_TEXT };

struct database_value {
	enum database_type type;
	int64_t integer;
	double real;
	const char *text; /* of a row: valid until the row function returns */
};

#define VALUE_INTEGER(value)                                 \
	{                                                    \
		.type = DATABASE_INTEGER, .integer = (value) \
	}
#define VALUE_REAL(value)                              \
	{                                              \
		.type = DATABASE_REAL, .real = (value) \
	}
#define VALUE_NULL                    \
	{                             \
		.type = DATABASE_NULL \
	}

/* NULL is the database's NULL. */
static inline struct database_value value_text(const char *text)
{
	struct database_value value = {.type = text ? DATABASE_TEXT : DATABASE_NULL, .text = text};

	return value;
}

/* Nonzero ends the statement and is returned. */
typedef int (*database_row)(void *data, const struct database_value *columns, size_t count);

struct database {
	const struct database_ops *ops;
	char *name; /* for messages: the path, or the URL without its password */
};

struct database_ops {
	const char *name;
	bool alone; /* no server: one writer at a time, and a commit writes to the disk */
	/* Does @where name a database of this kind? */
	bool (*takes)(const char *where);
	/* -ENOENT: not there and not to be made; -EBADMSG: no database. */
	int (*open)(const char *where, bool make, struct database **ret_database,
		    struct message *message);
	void (*close)(struct database *database);
	/*
	 * Runs one statement. @sql must stay at its address: statements are prepared once and
	 * known by it. @row NULL: rows are not looked at.
	 */
	int (*run)(struct database *database, const char *sql,
		   const struct database_value *parameters, size_t count, database_row row,
		   void *data, struct message *message);
	/* Any one statement without parameters or rows, not prepared: for the schema. */
	int (*execute)(struct database *database, const char *sql, struct message *message);
	const char *settle;    /* once it is known to be ours; NULL: nothing */
	const char *begin;     /* a transaction that will write */
	const char *lock;      /* in a transaction: one migration at a time; NULL: begin does */
	const char *own_table; /* SQL: is syslat_meta there? */
	const char *any_table; /* SQL: number of tables that would be in our way */
	/* Words of the schema that differ: @ID@, @REAL@, @CLUSTERED@. */
	const char *words[3];
};

/* By what @where is: a URL (postgresql://, postgres://) or a file. */
int database_open(const char *where, bool make, struct database **ret_database,
		  struct message *message);
void database_close(struct database *database); /* NULL is well */

int database_run(struct database *database, const char *sql,
		 const struct database_value *parameters, size_t count, database_row row,
		 void *data, struct message *message);
int database_begin(struct database *database, struct message *message);
int database_commit(struct database *database, struct message *message);
void database_rollback(struct database *database);

#define VALUE_COUNT(array) (ARRAY_SIZE(array))

/* The first column of the first row as a number; @fallback when there is no row. */
int database_number(struct database *database, const char *sql,
		    const struct database_value *parameters, size_t count, int64_t fallback,
		    int64_t *ret_number, struct message *message);

extern const struct database_ops database_sqlite, database_postgres;

#endif
