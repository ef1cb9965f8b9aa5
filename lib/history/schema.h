/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_SCHEMA_H
#define HISTORY_SCHEMA_H

#include "base/message.h"
#include "history/database.h"

/* The schema that this program writes; see docs/history.md for its tables. */
#define HISTORY_SCHEMA 2

/*
 * Brings the database to HISTORY_SCHEMA, each version in a transaction of its own. -EBADMSG: it
 * holds something else; -EPROTO: a newer program made it. Nothing is changed then.
 */
int schema_prepare(struct database *database, struct message *message);

#endif
