/* SPDX-License-Identifier: MIT */
#include "ops.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

#include "base/array.h"
#include "base/parse.h"
#include "record/record.h"

/* One run for a person: latencies in one table, then what the run held, what it proves and notes.
 */

static void print_time(FILE *stream, int64_t ns, bool known)
{
	char text[32];

	fprintf(stream, " %10s", known ? format_duration(ns, text, sizeof(text)) : "-");
}

static void print_row(FILE *stream, const char *name, const struct latency_summary *latency)
{
	bool any = latency->count > 0;

	if (!any)
		return;
	fprintf(stream, "%-10s %9" PRIu64, name, latency->count);
	print_time(stream, (int64_t)llround(latency->mean_ns), isfinite(latency->mean_ns));
	print_time(stream, latency->p50_ns, latency->p50_ns >= 0);
	print_time(stream, latency->p99_ns, latency->p99_ns >= 0);
	print_time(stream, latency->p99_9_ns, latency->p99_9_ns >= 0);
	print_time(stream, latency->max_ns, true);
	fputc('\n', stream);
}

static void print_phases(FILE *stream, const json_t *phases)
{
	static const char *const keys[] = {"mean_us", "p50_us", "p99_us", "p99_9_us", "max_us"};
	const char *name;
	json_t *phase;

	json_object_foreach ((json_t *)phases, name, phase) {
		if (!json_is_object(phase))
			continue;
		fprintf(stream, "%-10s %9lld", name,
			(long long)json_integer_value(json_object_get(phase, "count")));
		for (size_t i = 0; i < ARRAY_SIZE(keys); i++) {
			json_t *value = json_object_get(phase, keys[i]);

			print_time(stream, llround(json_number_value(value) * 1000),
				   json_is_number(value));
		}
		fputc('\n', stream);
	}
}

static void print_strings(FILE *stream, const char *label, const json_t *strings)
{
	size_t index;
	json_t *text;

	json_array_foreach (strings, index, text) {
		fprintf(stream, "%s: %s\n", label, json_string_value(text));
	}
}

static void print_loads(FILE *stream, const struct record *record)
{
	const char *name;
	json_t *load;

	json_object_foreach (record->load_stats, name, load) {
		const json_t *died = json_object_get(load, "died");

		fprintf(stream, "load %s: %.0f operations, %.1f/s%s\n", name,
			json_number_value(json_object_get(load, "ops")),
			json_number_value(json_object_get(load, "ops_per_s")),
			json_is_true(died) ? ", ended by itself" : "");
	}
	if (record->pinned_bytes > 0) {
		char size[32];

		fprintf(stream, "pinned: %s, %s by %s\n",
			format_size((uint64_t)record->pinned_bytes, size, sizeof(size)),
			record->variant ? record->variant : "?",
			record->pin_method ? record->pin_method : "?");
	}
}

static int run(FILE *stream, const struct record *record)
{
	char text[32];

	fprintf(stream, "%-10s %9s %10s %10s %10s %10s %10s\n",
		record->measure ? record->measure : "", "samples", "mean", "p50", "p99", "p99.9",
		"max");
	print_row(stream, record->has_corrected ? "observed" : "latency", &record->latency);
	if (record->has_corrected)
		print_row(stream, "corrected", &record->corrected);
	print_phases(stream, record->phases);
	if (record->latency.missed || record->latency.early)
		fprintf(stream, "missed deadlines: %" PRIu64 ", early wakes: %" PRIu64 "\n",
			record->latency.missed, record->latency.early);
	if (record->latency.stall_ns > 0)
		fprintf(stream, "still waiting at the end: at least %s\n",
			format_duration(record->latency.stall_ns, text, sizeof(text)));
	print_loads(stream, record);
	print_strings(stream, "note", record->notes);
	fprintf(stream, "verdict: %s\n", verdict_name(record->verdict));
	print_strings(stream, "  because", record->reasons);
	return ferror(stream) ? -EIO : 0;
}

const struct report_ops report_text = {
	.name = "text",
	.summary = "one run as a table for people",
	.flags = REPORT_OF_RUN,
	.run = run,
};
