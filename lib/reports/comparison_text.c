/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>

#include "ops.h"
#include "reports/comparison_parts.h"
#include "reports/comparison_words.h"

/* The same verdict twice would say that nothing hangs on the invalid runs; so say just that. */
static void write_with_invalid(FILE *stream, const struct comparison_report *report, size_t index)
{
	const struct comparison *with, *without = report->comparisons[index];

	if (!report->with_invalid)
		return;
	with = report->with_invalid[index];
	for (size_t i = 0; i < with->pair_count; i++) {
		fputs(with->pairs[i].verdict == without->pairs[i].verdict
			      ? "  with the invalid runs, the same: "
			      : "  with the invalid runs, ANOTHER verdict: ",
		      stream);
		words_verdict(stream, with, &with->pairs[i]);
		fputc('\n', stream);
	}
}

static void write_verdicts(FILE *stream, const struct comparison_report *report, size_t index)
{
	const struct comparison *comparison = report->comparisons[index];

	for (size_t i = 0; i < comparison->pair_count; i++) {
		words_verdict(stream, comparison, &comparison->pairs[i]);
		fputc('\n', stream);
	}
	write_with_invalid(stream, report, index);
	for (size_t i = 0; i < comparison->count; i++) {
		const struct comparison_arm *arm = &comparison->arms[i];

		if (arm->count >= 10 && fabs(arm->lag1) > 2 / sqrt((double)arm->count))
			fprintf(stream,
				"%s: each run follows the one before it (lag-1 correlation %.2f): "
				"drift, or memory between runs; p assumes neither\n",
				arm->name, arm->lag1);
	}
}

static int write_metric(FILE *stream, const struct comparison_report *report, size_t index)
{
	const struct comparison *comparison = report->comparisons[index];
	int error;

	if (report->count > 1)
		fprintf(stream, "%s%s%s%s%s:\n", index ? "\n" : "", comparison->metric,
			*comparison->unit ? " (" : "", comparison->unit,
			*comparison->unit ? ")" : "");
	error = comparison_write_plot(stream, report, comparison, 13);
	if (error)
		return error;
	fputc('\n', stream);
	write_verdicts(stream, report, index);
	comparison_write_normalised(stream, report, comparison);
	return 0;
}

static int write_text(FILE *stream, const struct comparison_report *report)
{
	int error = 0;

	for (size_t i = 0; i < report->count && !error; i++)
		error = write_metric(stream, report, i);
	if (error)
		return error;
	if (report->comparisons[0]->pair_count) {
		words_method(stream, report->comparisons[0]);
		fputc('\n', stream);
	}
	error = comparison_write_samples(stream, report, 13);
	comparison_write_losses(stream, report);
	comparison_write_list(stream, report->differences, "Besides the arm, these differ:", 12);
	comparison_write_list(stream, report->set->notes, "Notes:", 12);
	return error ? error : ferror(stream) ? -EIO : 0;
}

const struct report_ops report_comparison_text = {
	.name = "compare",
	.summary = "plots, table and verdicts of a comparison, for a terminal",
	.flags = REPORT_OF_COMPARISON,
	.compare = write_text,
};
