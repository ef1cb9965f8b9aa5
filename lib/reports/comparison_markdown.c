/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"
#include "record/record.h"
#include "reports/comparison_facts.h"
#include "reports/comparison_parts.h"
#include "reports/comparison_words.h"

/* Markdown (CommonMark with tables): plots in fences, verdicts as a table. */

/* Words of users (arm names, reasons) must not become markup. */
static void escape(FILE *stream, const char *text)
{
	for (; *text; text++) {
		if (strchr("\\`*_{}[]<>|#", *text))
			fputc('\\', stream);
		fputc(*text == '\n' ? ' ' : *text, stream);
	}
}

static void write_line(FILE *stream, const char *text)
{
	if (!text)
		return;
	escape(stream, text);
	fputs("\n\n", stream);
}

static void line(FILE *stream, char *text)
{
	write_line(stream, text);
	free(text);
}

static void write_head(FILE *stream, const struct comparison_report *report)
{
	char *command = facts_command(report), *machine = facts_machine(report);

	fputs("# Comparison\n\n", stream);
	if (command)
		fprintf(stream, "    %s\n\n", command);
	free(command);
	line(stream, machine);
	line(stream, facts_runs(report));
}

static void write_interval(FILE *stream, double low, double high)
{
	if (isfinite(low) && isfinite(high))
		fprintf(stream, "%.3g to %.3g", low, high);
	else
		fputs("too few runs", stream);
}

static void write_pair(FILE *stream, const struct comparison *comparison,
		       const struct comparison_pair *pair)
{
	const struct interval *effect =
		pair->shift.has_ratio ? &pair->shift.ratio : &pair->shift.shift;
	char p[32];

	fputs("| ", stream);
	escape(stream, comparison->arms[pair->a].name);
	fputs(" | ", stream);
	escape(stream, comparison->arms[pair->b].name);
	fprintf(stream, " | **%s** | %s%.3g | ", comparison_verdict_name(pair->verdict),
		pair->shift.has_ratio ? "x" : "", effect->estimate);
	write_interval(stream, effect->low, effect->high);
	fprintf(stream, " | %.2g | %s | ",
		comparison->higher_is_better ? 1 - pair->superiority.estimate
					     : pair->superiority.estimate,
		words_probability(pair->log_p_holm, p, sizeof(p)));
	escape(stream, pair->why);
	fputs(" |\n", stream);
}

static void write_pairs(FILE *stream, const struct comparison *comparison)
{
	if (!comparison->pair_count)
		return;
	fputs("| arm | against | verdict | effect | interval | P(slower) | p | why |\n"
	      "|---|---|---|---|---|---|---|---|\n",
	      stream);
	for (size_t i = 0; i < comparison->pair_count; i++)
		write_pair(stream, comparison, &comparison->pairs[i]);
	fputc('\n', stream);
}

static int write_metric(FILE *stream, const struct comparison_report *report, size_t index)
{
	const struct comparison *comparison = report->comparisons[index];
	int error;

	fputs("## ", stream);
	escape(stream, comparison->metric);
	fprintf(stream, "%s%s\n\n```\n", *comparison->unit ? ", " : "", comparison->unit);
	error = comparison_write_plot(stream, report, comparison, 13);
	fputs("```\n\n", stream);
	if (error)
		return error;
	write_pairs(stream, comparison);
	if (report->normalise) {
		comparison_write_normalised(stream, report, comparison);
		fputc('\n', stream);
	}
	return 0;
}

static void write_list(FILE *stream, const json_t *list)
{
	const json_t *text;
	size_t i;

	json_array_foreach (list, i, text) {
		fputs("- ", stream);
		escape(stream, json_string_value(text));
		fputc('\n', stream);
	}
	if (json_array_size(list))
		fputc('\n', stream);
}

static void write_validity(FILE *stream, const struct comparison_report *report)
{
	char *text = facts_validity(report);

	if (text)
		fputs("## Validity\n\n", stream);
	line(stream, text);
	for (size_t i = 0; report->with_invalid && i < report->count; i++) {
		fputs("With the invalid runs, ", stream);
		escape(stream, report->with_invalid[i]->metric);
		fputs(":\n\n", stream);
		write_pairs(stream, report->with_invalid[i]);
	}
	if (json_array_size(report->differences))
		fputs("Besides the arm, these differ:\n\n", stream);
	write_list(stream, report->differences);
	facts_caveats(stream, report, write_line);
}

static int write_markdown(FILE *stream, const struct comparison_report *report)
{
	int error = 0;

	write_head(stream, report);
	for (size_t i = 0; i < report->count && !error; i++)
		error = write_metric(stream, report, i);
	if (error)
		return error;
	if (report->comparisons[0]->pair_count)
		line(stream, words_text(report->comparisons[0], NULL, ""));
	if (facts_example(report)) {
		fputs("```\n", stream);
		error = comparison_write_samples(stream, report, 13);
		comparison_write_losses(stream, report);
		fputs("```\n\n", stream);
	}
	write_validity(stream, report);
	return error ? error : ferror(stream) ? -EIO : 0;
}

const struct report_ops report_comparison_markdown = {
	.name = "markdown",
	.summary = "the same for a web page or a merge request",
	.compare = write_markdown,
};
