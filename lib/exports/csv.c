/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "base/array.h"
#include "exports/export.h"

/* One line a run, for spreadsheets and data frames (RFC 4180); plain values have an arm alone. */

static void write_head(FILE *stream, const struct export_settings *settings)
{
	fputs("id,started,benchmark,arm,variant,measure,scope,backend,machine_key,kernel,commit,"
	      "verdict,trace_level,block,order,duration_s",
	      stream);
	for (size_t i = 0; settings->metrics[i]; i++) {
		fputc(',', stream);
		export_csv_field(stream, settings->metrics[i]);
		fputc(',', stream);
		export_csv_field(stream, settings->metrics[i]);
		fputs("_unit", stream);
	}
	fputs("\r\n", stream);
}

static void write_metrics(FILE *stream, const struct record *record,
			  const struct export_settings *settings)
{
	for (size_t i = 0; settings->metrics[i]; i++) {
		double value = NAN;
		const char *unit = "";
		int error = record_metric(record, settings->metrics[i], &value, &unit);

		fputc(',', stream);
		export_number(stream, error ? NAN : value);
		fputc(',', stream);
		export_csv_field(stream, error || isnan(value) ? "" : unit);
	}
}

static void write_record(FILE *stream, const struct record *record, const char *arm,
			 const struct export_settings *settings)
{
	char buffer[256];
	const char *const texts[] = {record->id,
				     record->started,
				     record->benchmark,
				     arm,
				     record->variant,
				     record->measure,
				     record->scope,
				     record->backend,
				     record->machine_key,
				     export_kernel(record),
				     export_commit(record, settings, buffer),
				     verdict_name(record->verdict),
				     record->trace_level};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (i)
			fputc(',', stream);
		export_csv_field(stream, texts[i]);
	}
	fputc(',', stream);
	if (record->block >= 0)
		fprintf(stream, "%lld", (long long)record->block);
	fputc(',', stream);
	if (record->order >= 0)
		fprintf(stream, "%lld", (long long)record->order);
	fputc(',', stream);
	export_number(stream, record->duration_s);
	write_metrics(stream, record, settings);
	fputs("\r\n", stream);
}

static void write_value(FILE *stream, const char *arm, double value)
{
	fputs(",,,", stream);
	export_csv_field(stream, arm);
	fputs(",,,,,,,,,,,,,", stream);
	export_number(stream, value);
	fputs(",\r\n", stream);
}

static int write_csv(FILE *stream, const struct arm_set *set,
		     const struct export_settings *settings, struct message *message)
{
	(void)message;
	write_head(stream, settings);
	for (size_t i = 0; i < set->count; i++) {
		const struct arm *arm = &set->arms[i];

		for (size_t k = 0; k < arm->record_count; k++)
			if (export_takes(arm->records[k], settings))
				write_record(stream, arm->records[k], arm->name, settings);
		for (size_t k = 0; k < arm->value_count; k++)
			write_value(stream, arm->name, arm->values[k]);
	}
	return 0;
}

const struct export_ops export_csv = {
	.name = "csv",
	.summary = "a line a run, for spreadsheets and data frames",
	.write = write_csv,
};
