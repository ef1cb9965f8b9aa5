/* SPDX-License-Identifier: MIT */
#include "reports/pin_cycle_text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "reports/metrics_text.h"

#define COLUMN_WIDTH 12

static const char *const phases[] = {"allocate", "populate", "pin", "release", "reclaim", NULL};

static const struct {
	const char *prefix, *title;
} parts[] = {
	{"cold_", "memory free"},
	{"pressure_", "under pressure: another process of the memory group makes reclaim run"},
	{"pageout_", "what reclaim pays for asking after held pages (MADV_PAGEOUT)"},
};

static const json_t *metric_of(const struct record *record, const char *prefix, const char *phase,
			       const char *lane, const char *size, const char *kind)
{
	char name[160];

	snprintf(name, sizeof(name), "%s%s_%s_%s_%s", prefix, phase, lane, size, kind);
	return json_object_get(record->metrics, name);
}

static const char *lane_name(const struct record *record, size_t i)
{
	return json_string_value(json_array_get(json_object_get(record->settings, "lanes"), i));
}

static size_t lane_count(const struct record *record)
{
	return json_array_size(json_object_get(record->settings, "lanes"));
}

/* One row: a number of each lane; nothing when no lane has it. */
static void print_row(FILE *stream, const struct record *record, const char *prefix,
		      const char *phase, const char *size, const char *kind, const char *key,
		      const char *label)
{
	bool any = false;
	char text[32];

	for (size_t i = 0; i < lane_count(record); i++)
		any |= metric_of(record, prefix, phase, lane_name(record, i), size, kind) != NULL;
	if (!any)
		return;
	fprintf(stream, "  %-7s%-20s", size, label);
	for (size_t i = 0; i < lane_count(record); i++) {
		const json_t *metric =
			metric_of(record, prefix, phase, lane_name(record, i), size, kind);

		fprintf(stream, "%*s", COLUMN_WIDTH,
			metric ? metric_format(json_get_number(metric, key, NAN), "ns", text,
					       sizeof(text))
			       : "-");
	}
	fputc('\n', stream);
}

static void print_phase(FILE *stream, const struct record *record, const char *prefix,
			const char *phase, const char *size, bool details)
{
	static const struct {
		const char *kind, *key, *label;
	} rows[] = {
		{"page_ns", "mean", "mean"},
		{"page_ns", "p99", "p99"},
		{"page_cpu_ns", "value", "processor time"},
	};
	char label[32];

	print_row(stream, record, prefix, phase, size, "page_ns", "value", phase);
	for (size_t i = 0; i < ARRAY_SIZE(rows) && details; i++) {
		snprintf(label, sizeof(label), "  %s", rows[i].label);
		print_row(stream, record, prefix, phase, size, rows[i].kind, rows[i].key, label);
	}
}

static bool has_part(const struct record *record, const char *prefix)
{
	const char *name;
	json_t *metric;

	json_object_foreach (record->metrics, name, metric)
		if (strncmp(name, prefix, strlen(prefix)) == 0)
			return true;
	return false;
}

/* Names of sizes that a part has, in the order in which they were measured. */
static size_t sizes_of(const struct record *record, const char *prefix, char sizes[][32],
		       size_t most)
{
	size_t count = 0;
	const char *name;
	json_t *metric;

	json_object_foreach (record->metrics, name, metric) {
		const char *end = strstr(name, "_page_ns"), *begin;
		bool known = false;

		if (!end || strncmp(name, prefix, strlen(prefix)) != 0 || count == most)
			continue;
		for (begin = end; begin > name && begin[-1] != '_';)
			begin--;
		snprintf(sizes[count], 32, "%.*s", (int)(end - begin), begin);
		for (size_t i = 0; i < count; i++)
			known |= strcmp(sizes[i], sizes[count]) == 0;
		count += !known;
	}
	return count;
}

static int64_t rounds_of(const struct record *record, const char *prefix, const char *size)
{
	const char *name;
	json_t *metric;
	char ending[48];

	snprintf(ending, sizeof(ending), "_%s_page_ns", size);
	json_object_foreach (record->metrics, name, metric)
		if (strncmp(name, prefix, strlen(prefix)) == 0 && strstr(name, ending))
			return json_get_int64(metric, "count", 0);
	return 0;
}

static void print_part(FILE *stream, const struct record *record, size_t part, bool details)
{
	char sizes[20][32];
	size_t count = sizes_of(record, parts[part].prefix, sizes, 20);

	fprintf(stream, "%s; a page, median of", parts[part].title);
	for (size_t i = 0; i < count; i++)
		fprintf(stream, "%s %lld rounds (%s)", i ? "," : "",
			(long long)rounds_of(record, parts[part].prefix, sizes[i]), sizes[i]);
	fprintf(stream, "\n  %-27s", "");
	for (size_t i = 0; i < lane_count(record); i++)
		fprintf(stream, "%*s", COLUMN_WIDTH, lane_name(record, i));
	fputc('\n', stream);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; phases[k]; k++)
			print_phase(stream, record, parts[part].prefix, phases[k], sizes[i],
				    details);
}

/* "cold, 32M: mapping against stock    41.2 ns a page, 95% [40.1 ns, 42.9 ns]: dearer" */
static void print_difference(FILE *stream, const char *part, const char *phase, const char *one,
			     const char *other, const char *size, const json_t *metric)
{
	const json_t *interval = json_object_get(metric, "median_ci");
	double low = NAN, high = NAN, median = json_get_number(metric, "value", NAN);
	const char *verdict = "too few rounds to say";
	char text[3][32], label[160];

	if (json_is_array(interval)) {
		low = json_number_value(json_array_get(interval, 0));
		high = json_number_value(json_array_get(interval, 1));
		verdict = low > 0 ? "dearer" : high < 0 ? "cheaper" : "not told apart";
	}
	snprintf(label, sizeof(label), "%s, %s: %s against %s", part, size, one, other);
	fprintf(stream, "  %-44s %11s a page, 95%% [%s, %s]: %s\n", label,
		metric_format(median, "ns", text[0], sizeof(text[0])),
		metric_format(low, "ns", text[1], sizeof(text[1])),
		metric_format(high, "ns", text[2], sizeof(text[2])), verdict);
}

static void print_differences(FILE *stream, const struct record *record, const char *phase,
			      const char *heading)
{
	const char *name;
	json_t *metric;
	bool first = true;

	json_object_foreach (record->metrics, name, metric) {
		char part[16], this_phase[16], one[32], other[32], size[32];

		/* cold_release_mapping_over_stock_32M_page_cpu_ns */
		if (!strstr(name, "_page_cpu_ns") ||
		    sscanf(name, "%15[^_]_%15[^_]_%31[^_]_over_%31[^_]_%31[^_]_", part, this_phase,
			   one, other, size) != 5 ||
		    strcmp(this_phase, phase) != 0)
			continue;
		if (first)
			fprintf(stream, "%s\n", heading);
		first = false;
		print_difference(stream, part, phase, one, other, size, metric);
	}
}

int pin_cycle_text_print(FILE *stream, const struct record *record, bool details)
{
	for (size_t part = 0; part < ARRAY_SIZE(parts); part++)
		if (has_part(record, parts[part].prefix))
			print_part(stream, record, part, details);
	print_differences(stream, record, "release",
			  "releasing, in processor time, beside others of the same rounds:");
	print_differences(stream, record, "reclaim", "asking after held pages, in processor time:");
	return metrics_text_verdict(stream, record);
}
