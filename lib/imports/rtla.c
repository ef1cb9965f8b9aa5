/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imports/bins.h"

/*
 * rtla timerlat hist: "# RTLA timerlat histogram", a line that names the columns
 * ("Index IRQ-000 Thr-000 Usr-000 ..."), bins, then "over:", "count:", "min:", "avg:", "max:".
 * The latency of the threads is taken (Thr-), as users feel it; osnoise histograms have their own
 * columns ("CPU-000").
 */
#define COLUMNS_MOST 8192

struct table {
	bool takes[COLUMNS_MOST];
	size_t columns;
	struct import_bins bins;
};

static bool knows(const char *text)
{
	return strstr(text, "# RTLA ") && strstr(text, "Index");
}

static void read_head(const char *text, const char *end, struct table *table)
{
	bool threads = memmem(text, (size_t)(end - text), "Thr-", 4) != NULL;

	text += strlen("Index");
	table->columns = 0;
	while (text < end && table->columns < COLUMNS_MOST) {
		text += strspn(text, " \t");
		if (text >= end)
			break;
		table->takes[table->columns++] = !threads || strncmp(text, "Thr-", 4) == 0;
		text += strcspn(text, " \t\r\n");
	}
}

/* Numbers of a line, of the columns that are taken: their sum or the greatest. */
static int read_columns(const char *text, const char *end, const struct table *table,
			int64_t *ret_sum, int64_t *ret_max)
{
	size_t column = 0;

	*ret_sum = 0;
	*ret_max = -1;
	while (text < end && column < table->columns) {
		char *after;
		long long number;

		text += strspn(text, " \t\r");
		if (text >= end)
			break;
		number = strtoll(text, &after, 10);
		if (after == text && *text == '-') { /* "-": that column saw nothing */
			after = (char *)text + 1;
			number = 0;
		} else if (after == text || after > end) {
			return -EINVAL;
		} else if (table->takes[column]) {
			*ret_max = number > *ret_max ? number : *ret_max;
		}
		if (table->takes[column])
			*ret_sum += number;
		column++;
		text = after;
	}
	return column == table->columns ? 0 : -EINVAL;
}

static int read_line(const char *text, const char *end, struct table *table)
{
	int64_t sum, greatest;
	char *after;
	int error;

	if (strncmp(text, "Index", 5) == 0) {
		read_head(text, end, table);
		return 0;
	}
	if (!table->columns || text == end)
		return 0;
	if (strncmp(text, "over:", 5) == 0 || strncmp(text, "max:", 4) == 0) {
		error = read_columns(strchr(text, ':') + 1, end, table, &sum, &greatest);
		if (!error && *text == 'o')
			table->bins.overflows += sum;
		else if (!error && greatest >= 0)
			table->bins.max_us = (double)greatest;
		return error;
	}
	if (*text < '0' || *text > '9')
		return 0;
	sum = strtoll(text, &after, 10);
	error = read_columns(after, end, table, &greatest, &(int64_t){0});
	return error ? error : import_bins_add(&table->bins, sum, greatest);
}

static int read_runs(const char *text, const struct import_settings *settings,
		     struct import_list *list, struct message *message)
{
	struct table *table = calloc(1, sizeof(*table));
	struct record *record;
	size_t line = 0;
	int error = table ? 0 : -ENOMEM;

	if (table)
		table->bins.max_us = NAN;
	while (!error && *text) {
		const char *end = text + strcspn(text, "\n");

		line++;
		/* "ALL:" begins a second table of sums over the columns. */
		if (table->columns && strncmp(text, "ALL:", 4) == 0)
			break;
		error = read_line(text, end, table);
		if (error)
			message_set(message, error, "line %zu: no line of rtla's histogram", line);
		text = *end ? end + 1 : end;
	}
	record = error ? NULL : import_new(list, settings, "rtla");
	if (record)
		error = import_bins_finish(&table->bins, record);
	else if (!error)
		error = -ENOMEM;
	if (table)
		free(table->bins.counts);
	free(table);
	return error;
}

const struct import_ops import_rtla = {
	.name = "rtla",
	.summary = "histograms of rtla timerlat and osnoise",
	.knows = knows,
	.read = read_runs,
};
