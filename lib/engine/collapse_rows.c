/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "engine/collapse_state.h"

/* In the order in which they run: rows that need the same memory stand together. */
const struct collapse_row collapse_rows[] = {
	{.name = "khugepaged",
	 .group = "mail",
	 .summary = "khugepaged with nothing to collapse: every table is huge",
	 .needs = ROW_NEEDS_KNOBS,
	 .state = REGION_HUGE,
	 .run = collapse_scan_row},
	{.name = "collapse",
	 .group = "mail",
	 .summary = "MADV_COLLAPSE of memory that is huge already, by length",
	 .needs = ROW_NEEDS_COLLAPSE,
	 .state = REGION_HUGE,
	 .run = collapse_lengths_row},
	{.name = "walked",
	 .group = "mail",
	 .summary = "tables walked in full, then refused for their last page (max_ptes_none 0)",
	 .needs = ROW_NEEDS_KNOBS,
	 .state = REGION_HOLE_LAST,
	 .run = collapse_scan_row},
	{.name = NULL},
};

size_t collapse_row_names(struct collapse_row_name *ret_names, size_t capacity)
{
	size_t count = 0;

	for (; collapse_rows[count].name && count < capacity; count++)
		ret_names[count] = (struct collapse_row_name){collapse_rows[count].name,
							      collapse_rows[count].group,
							      collapse_rows[count].summary};
	return count;
}

/* Does the comma-separated list @rows ask for @row: by name, by group, or for all? */
static bool asks_for(const char *word, size_t length, const struct collapse_row *row)
{
	const char *const names[] = {row->name, row->group, "all"};

	for (size_t i = 0; i < 3; i++)
		if (strlen(names[i]) == length && strncmp(names[i], word, length) == 0)
			return true;
	return false;
}

bool collapse_row_wanted(const char *rows, const struct collapse_row *row)
{
	for (const char *at = rows ? rows : "mail"; *at; at += *at == ',') {
		size_t length = strcspn(at, ",");

		if (asks_for(at, length, row))
			return true;
		at += length;
	}
	return false;
}

static void list_known(char *text, size_t size)
{
	size_t used = 0;

	for (size_t i = 0; collapse_rows[i].name && used < size; i++)
		used += (size_t)snprintf(text + used, size - used, "%s, ", collapse_rows[i].name);
	for (size_t i = 0; collapse_rows[i].name && used < size; i++)
		if (i == 0 || strcmp(collapse_rows[i].group, collapse_rows[i - 1].group) != 0)
			used += (size_t)snprintf(text + used, size - used, "%s, ",
						 collapse_rows[i].group);
	if (used < size)
		snprintf(text + used, size - used, "all");
}

int collapse_check_rows(const char *rows, struct message *message)
{
	for (const char *at = rows; at && *at; at += *at == ',') {
		size_t length = strcspn(at, ",");
		char known[400];
		bool found = false;

		for (size_t i = 0; collapse_rows[i].name && !found; i++)
			found = asks_for(at, length, &collapse_rows[i]);
		if (!found) {
			list_known(known, sizeof(known));
			return message_set(message, -EINVAL, "--rows: no row '%.*s': one of %s",
					   (int)(length < 40 ? length : 40), at, known);
		}
		at += length;
	}
	if (rows && !*rows)
		return message_set(message, -EINVAL, "--rows: names no row");
	return 0;
}
