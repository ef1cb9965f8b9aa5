/* SPDX-License-Identifier: MIT */
#include "reports/comparison_parts.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "base/array.h"
#include "record/record.h"
#include "compare/samples.h"
#include "reports/comparison_plot.h"
#include "reports/comparison_words.h"

/* One metric: which series, picture, table. */
int comparison_write_plot(FILE *stream, const struct comparison_report *report,
			  const struct comparison *comparison, int cell)
{
	int error = 0;

	for (size_t i = 0; i < comparison->count && !error; i++) {
		char *series = words_series(report, comparison, i);

		if (series)
			fprintf(stream, "%c %s\n", plot_symbol(i), series);
		else
			error = -ENOMEM;
		free(series);
	}
	if (!error)
		error = plot_write(stream, comparison, (enum comparison_plot)report->plot,
				   report->width);
	if (!error)
		words_table(stream, comparison, cell);
	return error;
}

static int write_samples_row(FILE *stream, const struct comparison_report *report, size_t arm,
			     int cell)
{
	static const double fractions[] = {0.5, 0.9, 0.99, 0.999, 0.9999};
	struct arm_samples samples;
	char text[40];
	int error = arm_samples_merge(report->set, report->comparisons[0], arm, &samples);

	if (error || !samples.merged)
		return error;
	fprintf(stream, "%c %*llu", plot_symbol(arm), cell,
		(unsigned long long)samples.merged->total);
	for (size_t i = 0; i < ARRAY_SIZE(fractions); i++)
		fprintf(stream, " %*s", cell - 2,
			words_number(arm_samples_percentile_us(&samples, fractions[i]), cell - 2,
				     text, sizeof(text)));
	fputc('\n', stream);
	free(samples.merged);
	return 0;
}

int comparison_write_samples(FILE *stream, const struct comparison_report *report, int cell)
{
	static const char *const heads[] = {"p50", "p90", "p99", "p99.9", "p99.99"};
	bool any = false;
	int error = 0;

	for (size_t i = 0; i < report->set->count; i++)
		for (size_t j = 0; j < report->set->arms[i].record_count; j++)
			any |= record_has_histogram(report->set->arms[i].records[j]);
	if (!any)
		return 0;
	fprintf(stream, "All samples of these runs together, us:\n  %*s", cell, "Samples");
	for (size_t i = 0; i < 5; i++)
		fprintf(stream, " %*s", cell - 2, heads[i]);
	fputc('\n', stream);
	for (size_t i = 0; i < report->set->count && !error; i++)
		error = write_samples_row(stream, report, i, cell);
	return error;
}

void comparison_write_normalised(FILE *stream, const struct comparison_report *report,
				 const struct comparison *comparison)
{
	if (!report->normalise)
		return;
	fprintf(stream, "Medians of %s, 0 = %s and 1 = %s:", comparison->metric,
		comparison->arms[report->zero].name, comparison->arms[report->one].name);
	for (size_t i = 0; i < comparison->count; i++) {
		double value = comparison_normalised(comparison, i, report->zero, report->one);

		if (i == report->zero || i == report->one)
			continue;
		if (isfinite(value))
			fprintf(stream, " %s %.3f", comparison->arms[i].name, value);
		else
			fprintf(stream, " %s - (the two medians are equal)",
				comparison->arms[i].name);
	}
	fputc('\n', stream);
}

/* The reason that most of an arm's invalid (or suspect) runs give first. */
static const char *example_reason(const struct arm *arm, enum verdict verdict)
{
	for (size_t i = 0; i < arm->record_count; i++)
		if (arm->records[i]->verdict == verdict &&
		    json_array_size(arm->records[i]->reasons))
			return json_string_value(json_array_get(arm->records[i]->reasons, 0));
	return NULL;
}

void comparison_write_losses(FILE *stream, const struct comparison_report *report)
{
	const struct comparison *comparison = report->comparisons[0];

	for (size_t i = 0; i < comparison->count; i++) {
		const struct comparison_arm *arm = &comparison->arms[i];
		const char *reason;

		/* Plain numbers have no verdict; every arm of records has one. */
		if (!words_has_losses(arm) && report->set->arms[i].record_count == 0)
			continue;
		words_runs(stream, arm);
		if (!words_has_losses(arm))
			fputs("; all valid", stream);
		reason = example_reason(&report->set->arms[i],
					arm->invalid ? VERDICT_INVALID : VERDICT_SUSPECT);
		if (reason && (arm->invalid || arm->suspect))
			fprintf(stream, " (%s)", reason);
		fputc('\n', stream);
	}
}

/* The first @most sentences; the rest are counted. */
void comparison_write_list(FILE *stream, const json_t *list, const char *heading, size_t most)
{
	size_t count = json_array_size(list);

	if (!count)
		return;
	fprintf(stream, "%s\n", heading);
	for (size_t i = 0; i < count && i < most; i++)
		fprintf(stream, "  %s\n", json_string_value(json_array_get(list, i)));
	if (count > most)
		fprintf(stream, "  and %zu more\n", count - most);
}
