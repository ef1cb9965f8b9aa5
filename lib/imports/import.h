/* SPDX-License-Identifier: MIT */
#ifndef IMPORTS_IMPORT_H
#define IMPORTS_IMPORT_H

#include <stddef.h>

#include "ops.h"
#include "record/record.h"

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
