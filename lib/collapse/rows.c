/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collapse/beside.h"
#include "collapse/by_state.h"

#define STATE_ROW(row_name, text, state_of)                                                       \
	{                                                                                         \
		.name = row_name, .group = "state", .summary = text, .needs = ROW_NEEDS_COLLAPSE, \
		.run = collapse_of_state_row, .argument = state_of,                               \
	}

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
	{.name = "scan-middle",
	 .group = "scan",
	 .summary = "tables refused at a hole half-way",
	 .needs = ROW_NEEDS_KNOBS,
	 .state = REGION_HOLE_MIDDLE,
	 .run = collapse_scan_row},
	{.name = "scan-first",
	 .group = "scan",
	 .summary = "tables refused at their first page",
	 .needs = ROW_NEEDS_KNOBS,
	 .state = REGION_HOLE_FIRST,
	 .run = collapse_scan_row},
	{.name = "scan-unreferenced",
	 .group = "scan",
	 .summary = "full tables refused because no page was used lately",
	 .needs = ROW_NEEDS_KNOBS,
	 .state = REGION_UNREFERENCED,
	 .run = collapse_scan_row},
	{.name = "scan-empty",
	 .group = "scan",
	 .summary = "no tables at all",
	 .needs = ROW_NEEDS_KNOBS,
	 .state = REGION_EMPTY,
	 .run = collapse_scan_row},
	STATE_ROW("collapse-small", "MADV_COLLAPSE of a table full of small pages",
		  COLLAPSED_SMALL),
	STATE_ROW("collapse-half", "of a table half full", COLLAPSED_HALF),
	STATE_ROW("collapse-one", "of a table with one page", COLLAPSED_ONE),
	STATE_ROW("collapse-swapped", "of a table whose pages are in swap", COLLAPSED_SWAPPED),
	STATE_ROW("collapse-shmem", "of a table of a memfd", COLLAPSED_SHMEM),
	STATE_ROW("collapse-file", "of a table of a file open for writing", COLLAPSED_FILE),
	STATE_ROW("collapse-no-table", "where there is no table", COLLAPSED_NO_TABLE),
	STATE_ROW("collapse-unaligned", "of a range that holds no whole table",
		  COLLAPSED_UNALIGNED),
	{.name = "remote",
	 .group = "state",
	 .summary = "MADV_COLLAPSE of huge memory by process_madvise, against one's own",
	 .needs = ROW_NEEDS_COLLAPSE,
	 .state = REGION_HUGE,
	 .run = collapse_remote_row},
	{.name = "populate",
	 .group = "fault",
	 .summary = "populating by method",
	 .run = collapse_populate_row},
	{.name = "fault",
	 .group = "fault",
	 .summary = "page faults by size",
	 .run = collapse_fault_row},
	{.name = "fork",
	 .group = "fault",
	 .summary = "copying on write after fork, by size",
	 .run = collapse_fork_row},
	{.name = "beside-idle",
	 .group = "neighbours",
	 .summary = "neighbours, when nothing is scanned or collapsed",
	 .run = collapse_beside_row,
	 .argument = BESIDE_IDLE},
	{.name = "beside-scan",
	 .group = "neighbours",
	 .summary = "neighbours, while khugepaged scans huge memory",
	 .needs = ROW_NEEDS_KNOBS | ROW_NEEDS_COLLAPSE,
	 .run = collapse_beside_row,
	 .argument = BESIDE_SCAN},
	{.name = "beside-collapse",
	 .group = "neighbours",
	 .summary = "neighbours, while small pages are collapsed",
	 .needs = ROW_NEEDS_COLLAPSE,
	 .run = collapse_beside_row,
	 .argument = BESIDE_COLLAPSE},
	{.name = "beside-loop",
	 .group = "neighbours",
	 .summary = "neighbours, while MADV_COLLAPSE loops over huge memory",
	 .needs = ROW_NEEDS_COLLAPSE,
	 .run = collapse_beside_row,
	 .argument = BESIDE_LOOP},
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
