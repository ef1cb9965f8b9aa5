/* SPDX-License-Identifier: MIT */
#include "ops.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/json.h"
#include "base/parse.h"
#include "record/record.h"

/* The worst delays of a run, each with its split and its cause in a sentence; then the tail. */

static void print_time(FILE *stream, int width, const json_t *us)
{
	char text[32];

	if (json_is_number(us))
		fprintf(stream, " %*s", width,
			format_duration((int64_t)(json_number_value(us) * 1e3), text,
					sizeof(text)));
	else
		fprintf(stream, " %*s", width, "-");
}

/* The columns of the split, by what there is: the three of a wakeup or the two of a sample. */
static bool is_interval(const json_t *list)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (list, i, entry) {
		if (json_at(entry, "split_us.on_cpu"))
			return true;
	}
	return false;
}

static void print_entry(FILE *stream, const json_t *entry, const char *const *phases)
{
	const json_t *split = json_object_get(entry, "split_us");
	double percent = json_get_number(entry, "explained_percent", 0);

	fprintf(stream, "%10.6f s %4" PRId64, json_get_number(entry, "when_us", 0) / 1e6,
		json_get_int64(entry, "cpu", -1));
	print_time(stream, 9, json_object_get(entry, "late_us"));
	for (size_t i = 0; phases[i]; i++)
		print_time(stream, 9, json_object_get(split, phases[i]));
	fprintf(stream, "\n    %s\n", json_get_string(entry, "sentence", ""));
	if (json_is_object(split) && percent < 95)
		fprintf(stream, "    (%.0f%% of it explained)\n", percent);
}

static void print_tail(FILE *stream, const struct record *record)
{
	const json_t *tail = json_at(record->counters, "causes.tail"), *entry;
	size_t i;

	if (json_get_int64(tail, "delays", 0) == 0)
		return;
	fprintf(stream, "late time above the 99.9th percentile");
	fprintf(stream,
		" (%" PRId64 " of %" PRId64 " delays seen):", json_get_int64(tail, "delays", 0),
		json_get_int64(tail, "of", 0));
	json_array_foreach (json_object_get(tail, "by_cause"), i, entry) {
		double percent = json_get_number(entry, "percent", 0);

		if (percent >= 0.5)
			fprintf(stream, "%s %s %.0f%%", i ? "," : "",
				json_get_string(entry, "cause", "unknown"), percent);
	}
	fputc('\n', stream);
}

static int run(FILE *stream, const struct record *record)
{
	static const char *const wakeup[] = {"timer", "dispatch", "return", NULL};
	static const char *const interval[] = {"on_cpu", "off_cpu", NULL};
	const char *const *phases = is_interval(record->causes) ? interval : wakeup;
	const json_t *entry;
	size_t i;

	if (json_array_size(record->causes) == 0) {
		fprintf(stream, "no causes were collected: run with --explain\n");
		return ferror(stream) ? -EIO : 0;
	}
	fprintf(stream, "%12s %4s %9s", "when", "CPU", phases == interval ? "took" : "late");
	for (i = 0; phases[i]; i++)
		fprintf(stream, " %9s", phases[i]);
	fputc('\n', stream);
	json_array_foreach (record->causes, i, entry) {
		print_entry(stream, entry, phases);
	}
	print_tail(stream, record);
	return ferror(stream) ? -EIO : 0;
}

const struct report_ops report_causes = {
	.name = "causes",
	.summary = "why the worst delays of a run happened",
	.flags = REPORT_OF_CAUSES,
	.run = run,
};
