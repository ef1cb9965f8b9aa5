/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "exports/export.h"

/*
 * Go benchmark text (golang.org/design/14313-benchmark-format), which benchstat reads: a line a
 * run, "BenchmarkName/arm=ARM count value unit ...", units named after the metric so that none is
 * taken for time an operation.
 */

/* Names hold no blanks; a slash would begin a part of its own. */
static void write_name(FILE *stream, const char *name)
{
	for (; *name; name++)
		fputc(isspace((unsigned char)*name) || *name == '/' ? '_' : *name, stream);
}

static void write_unit(FILE *stream, const char *metric, const char *unit)
{
	write_name(stream, metric);
	if (*unit) {
		fputc('-', stream);
		write_name(stream, unit);
	}
}

static void write_run(FILE *stream, const struct record *record, const char *arm,
		      const struct export_settings *settings)
{
	unsigned long long count =
		record->has_latency ? (unsigned long long)record->latency.count : 1;

	fprintf(stream, "Benchmark%c", toupper((unsigned char)record->benchmark[0]));
	write_name(stream, record->benchmark + 1);
	fputs("/arm=", stream);
	write_name(stream, arm);
	fprintf(stream, " %llu", count ? count : 1);
	for (size_t i = 0; settings->metrics[i]; i++) {
		double value = NAN;
		const char *unit = "";

		if (record_metric(record, settings->metrics[i], &value, &unit) || !isfinite(value))
			continue;
		fputc(' ', stream);
		export_number(stream, value);
		fputc(' ', stream);
		write_unit(stream, settings->metrics[i], unit);
	}
	fputc('\n', stream);
}

static void write_units(FILE *stream, const struct record *record,
			const struct export_settings *settings)
{
	for (size_t i = 0; settings->metrics[i]; i++) {
		double value;
		const char *unit = "";

		if (record_metric(record, settings->metrics[i], &value, &unit))
			continue;
		fputs("Unit ", stream);
		write_unit(stream, settings->metrics[i], unit);
		fprintf(stream, " better=%s\n",
			record_metric_higher_is_better(record, settings->metrics[i]) ? "higher"
										     : "lower");
	}
}

static int write_gobench(FILE *stream, const struct arm_set *set,
			 const struct export_settings *settings, struct message *message)
{
	bool head = false;

	(void)message;
	for (size_t i = 0; i < set->count; i++) {
		for (size_t k = 0; k < set->arms[i].record_count; k++) {
			const struct record *record = set->arms[i].records[k];

			if (!export_takes(record, settings))
				continue;
			if (!head) {
				fprintf(stream, "goos: linux\npkg: syslatency\ncpu: %s\n",
					json_get_string(record->environment, "cpu_model",
							"unknown"));
				write_units(stream, record, settings);
				head = true;
			}
			write_run(stream, record, set->arms[i].name, settings);
		}
		for (size_t k = 0; k < set->arms[i].value_count; k++) {
			fputs("BenchmarkValue/arm=", stream);
			write_name(stream, set->arms[i].name);
			fputs(" 1 ", stream);
			export_number(stream, set->arms[i].values[k]);
			fputs(" value\n", stream);
		}
	}
	return 0;
}

const struct export_ops export_gobench = {
	.name = "gobench",
	.summary = "Go benchmark text, for benchstat",
	.write = write_gobench,
};
