/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "ops.h"
#include "record/record.h"
#include "reports/comparison_facts.h"
#include "reports/comparison_parts.h"
#include "reports/comparison_words.h"

#define WIDTH 72
#define CELL 12

/* Plain text of 72 columns that can be posted as it is. */

static void paragraph(FILE *stream, char *text, size_t indent)
{
	if (!text)
		return;
	words_wrap(stream, text, WIDTH, indent);
	fputc('\n', stream);
	free(text);
}

static void write_head(FILE *stream, const struct comparison_report *report)
{
	char *command = facts_command(report), *machine = facts_machine(report), *text;

	if (command) {
		if (asprintf(&text, "Using \"%s\"%s%s:", command, machine ? " on " : "",
			     machine ? machine : "") >= 0)
			paragraph(stream, text, 0);
	} else if (machine && asprintf(&text, "On %s:", machine) >= 0) {
		paragraph(stream, text, 0);
	}
	free(command);
	free(machine);
	paragraph(stream, facts_runs(report), 0);
}

static int write_metric(FILE *stream, const struct comparison_report *report, size_t index)
{
	const struct comparison *comparison = report->comparisons[index];
	int error;

	if (report->count > 1 || *comparison->unit)
		fprintf(stream, "%s of each run%s%s:\n\n", comparison->metric,
			*comparison->unit ? ", " : "", comparison->unit);
	error = comparison_write_plot(stream, report, comparison, CELL);
	if (error)
		return error;
	fputc('\n', stream);
	for (size_t i = 0; i < comparison->pair_count; i++)
		paragraph(stream, words_text(comparison, &comparison->pairs[i], "."), 2);
	if (report->normalise) {
		comparison_write_normalised(stream, report, comparison);
		fputc('\n', stream);
	}
	return 0;
}

static void write_with_invalid(FILE *stream, const struct comparison_report *report)
{
	for (size_t i = 0; report->with_invalid && i < report->count; i++) {
		const struct comparison *with = report->with_invalid[i];

		fprintf(stream, "With the invalid runs, %s:\n", with->metric);
		for (size_t j = 0; j < with->pair_count; j++)
			paragraph(stream, words_text(with, &with->pairs[j], "."), 2);
	}
}

static void write_validity(FILE *stream, const struct comparison_report *report)
{
	char *losses = NULL, *text = facts_validity(report);
	size_t size;
	FILE *memory;

	if (!text)
		return;
	words_wrap(stream, text, WIDTH, 0);
	free(text);
	memory = open_memstream(&losses, &size);
	if (memory) {
		comparison_write_losses(memory, report);
		fclose(memory);
	}
	for (char *line = losses; line && *line;) {
		size_t length = strcspn(line, "\n");
		char *sentence = strndup(line, length);

		fputs("- ", stream);
		if (sentence)
			words_wrap(stream, sentence, WIDTH - 2, 2);
		free(sentence);
		line += length + (line[length] == '\n');
	}
	free(losses);
	fputc('\n', stream);
	write_with_invalid(stream, report);
}

static void write_differences(FILE *stream, const struct comparison_report *report)
{
	size_t count = json_array_size(report->differences);

	if (!count)
		return;
	fputs("Besides the arm, these differ:\n", stream);
	for (size_t i = 0; i < count && i < 12; i++) {
		fputs("- ", stream);
		words_wrap(stream, json_string_value(json_array_get(report->differences, i)),
			   WIDTH - 2, 2);
	}
	if (count > 12)
		fprintf(stream, "- and %zu more\n", count - 12);
	fputc('\n', stream);
}

static void write_caveat(FILE *stream, const char *text)
{
	words_wrap(stream, text, WIDTH, 0);
	fputc('\n', stream);
}

static void write_tool(FILE *stream, const struct comparison_report *report)
{
	const struct record *record = facts_example(report);
	const json_t *tool = record ? json_object_get(record->environment, "tool") : NULL;

	if (tool)
		fprintf(stream, "Measured with syslatency %s (%s).\n",
			json_get_string(tool, "version", "?"), json_get_string(tool, "build", "?"));
}

static int write_mail(FILE *stream, const struct comparison_report *given)
{
	struct comparison_report report = *given;
	int error = 0;

	report.width = WIDTH;
	write_head(stream, &report);
	for (size_t i = 0; i < report.count && !error; i++)
		error = write_metric(stream, &report, i);
	if (error)
		return error;
	if (report.comparisons[0]->pair_count)
		paragraph(stream, words_text(report.comparisons[0], NULL, "."), 0);
	error = comparison_write_samples(stream, &report, CELL);
	if (!error && facts_example(&report))
		fputc('\n', stream);
	write_validity(stream, &report);
	write_differences(stream, &report);
	facts_caveats(stream, &report, write_caveat);
	write_tool(stream, &report);
	return error ? error : ferror(stream) ? -EIO : 0;
}

const struct report_ops report_comparison_mail = {
	.name = "mail",
	.summary = "plain text of 72 columns to post on a mailing list",
	.compare = write_mail,
};
