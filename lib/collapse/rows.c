/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "collapse/state.h"

#define SCAN (ROW_NEEDS_KNOBS | ROW_SCANS | ROW_TIMES_REFERENCE)
#define CALL ROW_NEEDS_COLLAPSE

/* In the order in which they run: rows that need the same memory stand together. */
const struct collapse_row collapse_rows[] = {
	{"khugepaged", "mail", "khugepaged with nothing to collapse: every table is huge", SCAN,
	 REGION_HUGE, collapse_scan_row, 0},
	{"collapse", "mail", "MADV_COLLAPSE of memory that is huge already, by length",
	 CALL | ROW_TIMES_REFERENCE, REGION_HUGE, collapse_lengths_row, 0},
	{"walked", "mail",
	 "tables walked in full, then refused for their last page (max_ptes_none 0)", SCAN,
	 REGION_HOLE_LAST, collapse_scan_row, 0},
	{"scan-middle", "scan", "tables refused at a hole half-way", SCAN, REGION_HOLE_MIDDLE,
	 collapse_scan_row, 0},
	{"scan-first", "scan", "tables refused at their first page", SCAN, REGION_HOLE_FIRST,
	 collapse_scan_row, 0},
	{"scan-unreferenced", "scan", "full tables refused because no page was used lately", SCAN,
	 REGION_UNREFERENCED, collapse_scan_row, 0},
	{"scan-empty", "scan", "no tables at all", SCAN, REGION_EMPTY, collapse_scan_row, 0},
	{"collapse-small", "state", "MADV_COLLAPSE of a table full of small pages", CALL, 0,
	 collapse_of_state_row, TABLE_SMALL},
	{"collapse-half", "state", "of a table half full", CALL, 0, collapse_of_state_row,
	 TABLE_HALF},
	{"collapse-one", "state", "of a table with one page", CALL, 0, collapse_of_state_row,
	 TABLE_ONE},
	{"collapse-swapped", "state", "of a table whose pages are in swap", CALL, 0,
	 collapse_of_state_row, TABLE_SWAPPED},
	{"collapse-shmem", "state", "of a table of a memfd", CALL, 0, collapse_of_state_row,
	 TABLE_SHMEM},
	{"collapse-file", "state", "of a table of a file open for writing", CALL, 0,
	 collapse_of_state_row, TABLE_FILE},
	{"collapse-no-table", "state", "where there is no table", CALL, 0, collapse_of_state_row,
	 TABLE_NONE},
	{"collapse-unaligned", "state", "of a range that holds no whole table", CALL, 0,
	 collapse_of_state_row, TABLE_UNALIGNED},
	{"remote", "state", "MADV_COLLAPSE of huge memory by process_madvise, against one's own",
	 CALL, REGION_HUGE, collapse_remote_row, 0},
	{"populate", "fault", "populating by method", 0, 0, collapse_populate_row, 0},
	{"fault", "fault", "page faults by size", 0, 0, collapse_fault_row, 0},
	{"fork", "fault", "copying on write after fork, by size", 0, 0, collapse_fork_row, 0},
	{"beside-idle", "neighbours", "neighbours, when nothing is scanned or collapsed", 0, 0,
	 collapse_neighbours_row, NEIGHBOURS_IDLE},
	{"beside-scan", "neighbours", "neighbours, while khugepaged scans huge memory",
	 ROW_NEEDS_KNOBS | CALL, 0, collapse_neighbours_row, NEIGHBOURS_SCAN},
	{"beside-collapse", "neighbours", "neighbours, while small pages are collapsed", CALL, 0,
	 collapse_neighbours_row, NEIGHBOURS_COLLAPSE},
	{"beside-loop", "neighbours", "neighbours, while MADV_COLLAPSE loops over huge memory",
	 CALL, 0, collapse_neighbours_row, NEIGHBOURS_LOOP},
	{.name = NULL},
};

size_t collapse_row_names(struct collapse_row_name *ret_names, size_t capacity)
{
	size_t i = 0;

	for (const struct collapse_row *row = collapse_rows; row->name && i < capacity; row++)
		ret_names[i++] = (struct collapse_row_name){row->name, row->group, row->summary};
	return i;
}

/* Does the word ask for @row: by name, by group, or for all? */
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

static int refuse(const char *word, size_t length, struct message *message)
{
	const struct collapse_row *row;
	char known[400] = "";
	size_t used = 0;

	for (row = collapse_rows; row->name && used < sizeof(known); row++)
		used += (size_t)snprintf(known + used, sizeof(known) - used, "%s, ", row->name);
	for (row = collapse_rows; row->name && used < sizeof(known); row++)
		if (row == collapse_rows || strcmp(row->group, row[-1].group) != 0)
			used += (size_t)snprintf(known + used, sizeof(known) - used, "%s, ",
						 row->group);
	return message_set(message, -EINVAL, "--rows: no row '%.*s': one of %sall",
			   (int)(length < 40 ? length : 40), word, known);
}

int collapse_check_rows(const char *rows, struct message *message)
{
	if (rows && !*rows)
		return message_set(message, -EINVAL, "--rows: names no row");
	for (const char *at = rows; at && *at; at += *at == ',') {
		size_t length = strcspn(at, ",");
		const struct collapse_row *row = collapse_rows;

		while (row->name && !asks_for(at, length, row))
			row++;
		if (!row->name)
			return refuse(at, length, message);
		at += length;
	}
	return 0;
}
