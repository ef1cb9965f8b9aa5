/* SPDX-License-Identifier: MIT */
#include "reports/collapse_mail.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/parse.h"
#include "reports/metrics_text.h"

#define LABEL_WIDTH 38
#define COLUMN_WIDTH 13
/* Reference times of two columns may differ by this share before it is told. */
#define SPEEDS_MOST 0.10

struct mail_line {
	const char *metric; /* NULL: a heading */
	const char *label;  /* NULL: the title of the metric */
};

static const struct mail_line lines[] = {
	{NULL, "khugepaged, nothing to collapse:"},
	{"khugepaged_passes", NULL},
	{"khugepaged_cpu_pct", "khugepaged CPU"},
	{"khugepaged_table_ns", "cost per refused table"},
	{NULL, "MADV_COLLAPSE, already huge:"},
	{"collapse_512M_p50_ns", "512M per call, p50"},
	{"collapse_2M_p50_ns", "2M per call, p50"},
	{NULL, "tables walked in full then refused"},
	{"walked_passes", "(max_ptes_none 0), passes in"},
};

static const json_t *metric_of(const struct record *record, const char *name)
{
	return json_object_get(record->metrics, name);
}

/* As records of other windows or sizes may stand side by side, each says its own. */
static void print_sizes(FILE *stream, struct record *const *records, size_t count)
{
	char text[32];

	fprintf(stream, "  %-*s", LABEL_WIDTH - 2, "memory, window");
	for (size_t i = 0; i < count; i++) {
		const json_t *settings = records[i]->settings;
		char cell[48];

		snprintf(cell, sizeof(cell), "%s, %gs",
			 format_size((uint64_t)json_get_int64(settings, "size_bytes", 0), text,
				     sizeof(text)),
			 json_get_number(settings, "window_s", NAN));
		fprintf(stream, "%*s", COLUMN_WIDTH, cell);
	}
	fputc('\n', stream);
}

static bool same_setting(struct record *const *records, size_t count, const char *key)
{
	for (size_t i = 1; i < count; i++)
		if (json_get_number(records[i]->settings, key, -1) !=
		    json_get_number(records[0]->settings, key, -1))
			return false;
	return true;
}

static void print_line(FILE *stream, const struct mail_line *line, struct record *const *records,
		       size_t count, bool alike)
{
	const char *label = line->label;
	char with_window[64], text[32];

	for (size_t i = 0; i < count && !label; i++)
		label = json_get_string(metric_of(records[i], line->metric), "title", NULL);
	if (!label || (!alike && !line->label))
		label = "full passes in the window";
	if (strcmp(line->metric, "walked_passes") == 0) {
		snprintf(with_window, sizeof(with_window), "%s %gs", label,
			 json_get_number(records[0]->settings, "window_s", NAN));
		label = alike ? with_window : "(max_ptes_none 0), passes";
	}
	fprintf(stream, "  %-*s", LABEL_WIDTH - 2, label);
	for (size_t i = 0; i < count; i++) {
		const json_t *metric = metric_of(records[i], line->metric);

		fprintf(stream, "%*s", COLUMN_WIDTH,
			metric_format(json_get_number(metric, "value", NAN),
				      json_get_string(metric, "unit", ""), text, sizeof(text)));
	}
	fputc('\n', stream);
}

static double reference_of(const struct record *record)
{
	const json_t *metric = metric_of(record, "collapse_reference_p50_ns")
				       ?: metric_of(record, "khugepaged_reference_p50_ns");

	return json_get_number(metric, "value", NAN);
}

/* Columns of machines that were not equally fast (the same one on a busier host, it may be). */
static void print_speeds(FILE *stream, struct record *const *records, size_t count)
{
	double low = INFINITY, high = 0;
	char text[2][32];

	for (size_t i = 0; i < count; i++) {
		double ns = reference_of(records[i]);

		low = ns < low ? ns : low;
		high = ns > high ? ns : high;
	}
	if (high > low * (1 + SPEEDS_MOST))
		fprintf(stream,
			"note: fixed work of the kernel beside these rows took %s to %s: the "
			"machines (or their hosts) were not equally fast\n",
			metric_format(low, "ns", text[0], sizeof(text[0])),
			metric_format(high, "ns", text[1], sizeof(text[1])));
}

int collapse_mail_print(FILE *stream, struct record *const *records, const char *const *names,
			size_t count)
{
	bool alike = same_setting(records, count, "size_bytes") &&
		     same_setting(records, count, "window_s");

	fprintf(stream, "%-*s", LABEL_WIDTH, "");
	for (size_t i = 0; i < count; i++)
		fprintf(stream, "%*.*s", COLUMN_WIDTH, COLUMN_WIDTH - 1, names[i]);
	fputc('\n', stream);
	if (!alike)
		print_sizes(stream, records, count);
	for (size_t i = 0; i < ARRAY_SIZE(lines); i++) {
		if (lines[i].metric)
			print_line(stream, &lines[i], records, count, alike);
		else
			fprintf(stream, "%s\n", lines[i].label);
	}
	print_speeds(stream, records, count);
	return ferror(stream) ? -EIO : 0;
}
