/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_IMPORT_H
#define HISTORY_IMPORT_H

#include <jansson.h>
#include <stddef.h>

#include "base/message.h"
#include "record/record.h"

/*
 * Results of other tools as records, so that old data start a history. Each format looks at the
 * text and says whether it is its own.
 */
struct import_settings {
	const char *arm, *kernel, *machine; /* NULL: "imported", unknown */
	const char *started;		    /* RFC 3339; NULL: the file's time */
	const char *benchmark;		    /* NULL: the tool's name */
	const char *metric, *unit;	    /* of plain numbers; NULL: "value", "" */
};

struct import_list {
	struct record **records;
	size_t count, capacity;
};

struct import_ops {
	const char *name, *summary;
	bool (*knows)(const char *text);
	/* Appends records without id's to the list. -EINVAL with the line. */
	int (*read)(const char *text, const struct import_settings *settings,
		    struct import_list *list, struct message *message);
};

extern const struct import_ops *const imports[]; /* NULL-terminated, the most particular first */

/*
 * Reads a whole text; @format NULL: the first format that knows it. Ids are made from the name and
 * the content, so that importing the same file twice gives the same records.
 */
int import_text(const char *name, const char *text, size_t size, const char *format,
		const struct import_settings *settings, struct import_list *list,
		struct message *message);
void import_list_free(struct import_list *list);

/* A record with the settings' labels, appended; NULL without memory. */
struct record *import_new(struct import_list *list, const struct import_settings *settings,
			  const char *benchmark);
int import_metric(struct record *record, const char *name, double value, const char *unit);

#endif
