/* SPDX-License-Identifier: MIT */
#include "reports/metrics_text.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json.h"

/* Digits in threes. */
static void format_count(double value, char *buffer, size_t size)
{
	char digits[32];
	size_t length, used = 0;

	snprintf(digits, sizeof(digits), "%.0f", value);
	length = strlen(digits);
	for (size_t i = 0; i < length && used + 2 < size; i++) {
		if (i > 0 && (length - i) % 3 == 0 && digits[i - 1] != '-')
			buffer[used++] = ',';
		buffer[used++] = digits[i];
	}
	buffer[used] = '\0';
}

/* Three digits, not in the form 1.2e+03. */
static void format_three(double value, const char *unit, char *buffer, size_t size)
{
	double magnitude = fabs(value);
	int decimals = magnitude >= 99.95 ? 0 : magnitude >= 9.995 ? 1 : 2;

	snprintf(buffer, size, "%.*f%s%s", decimals, value, *unit ? " " : "", unit);
}

char *metric_format(double value, const char *unit, char *buffer, size_t size)
{
	static const struct {
		const char *unit;
		double ns;
	} scales[] = {{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}};

	if (!isfinite(value)) {
		snprintf(buffer, size, "n/a");
	} else if (strcmp(unit, "%") == 0) {
		snprintf(buffer, size, "%.0f%%", value);
	} else if (strcmp(unit, "ns") == 0) {
		size_t scale = 0;

		while (scale < 3 && fabs(value) < scales[scale].ns * 0.9995)
			scale++;
		format_three(value / scales[scale].ns, scales[scale].unit, buffer, size);
	} else if (fabs(value) >= 100) {
		format_count(value, buffer, size);
	} else {
		format_three(value, "", buffer, size);
	}
	return buffer;
}

static const struct metrics_heading *heading_of(const char *name,
						const struct metrics_heading *headings)
{
	const struct metrics_heading *best = NULL;
	size_t best_length = 0;

	for (; headings->prefix; headings++) {
		size_t length = strlen(headings->prefix);
		bool same = true;

		for (size_t i = 0; i < length && same; i++)
			same = name[i] == headings->prefix[i] ||
			       (name[i] == '_' && headings->prefix[i] == '-');
		if (same && name[length] == '_' && length >= best_length) {
			best = headings;
			best_length = length;
		}
	}
	return best;
}

static void print_metric(FILE *stream, const char *name, const json_t *metric)
{
	const char *unit = json_get_string(metric, "unit", "");
	char median[32], low[32], high[32], left_out[48] = "";
	int64_t out = json_get_int64(metric, "left_out", 0);

	/* Too few samples to say it. */
	if (json_get_int64(metric, "count", 0) == 0 && strstr(name, "_p99"))
		return;

	metric_format(json_get_number(metric, "value", NAN), unit, median, sizeof(median));
	metric_format(json_get_number(metric, "min", NAN), unit, low, sizeof(low));
	metric_format(json_get_number(metric, "max", NAN), unit, high, sizeof(high));
	if (out > 0)
		snprintf(left_out, sizeof(left_out), "  (%lld left out)", (long long)out);
	fprintf(stream, "  %-46s %11s  %11s to %-11s %lld%s\n",
		json_get_string(metric, "title", name), median, low, high,
		(long long)json_get_int64(metric, "count", 0), left_out);
}

int metrics_text_print(FILE *stream, const struct record *record,
		       const struct metrics_heading *headings)
{
	const struct metrics_heading *last = NULL;
	const char *name;
	json_t *metric;

	if (json_object_size(record->metrics) > 0)
		fprintf(stream, "%-48s %11s  %26s  %s\n", "", "median", "lowest to highest",
			"runs");
	json_object_foreach (record->metrics, name, metric) {
		const struct metrics_heading *heading = heading_of(name, headings);

		if (heading && heading != last)
			fprintf(stream, "%s\n", heading->text);
		last = heading;
		print_metric(stream, name, metric);
	}
	return ferror(stream) ? -EIO : 0;
}

int metrics_text_verdict(FILE *stream, const struct record *record)
{
	fprintf(stream, "%s\n", verdict_name(record->verdict));
	for (size_t i = 0; i < json_array_size(record->reasons); i++)
		fprintf(stream, "  %s\n", json_string_value(json_array_get(record->reasons, i)));
	for (size_t i = 0; i < json_array_size(record->notes); i++)
		fprintf(stream, "note: %s\n", json_string_value(json_array_get(record->notes, i)));
	return ferror(stream) ? -EIO : 0;
}
