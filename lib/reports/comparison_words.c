/* SPDX-License-Identifier: MIT */
#include "reports/comparison_words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "reports/comparison_plot.h"

char *words_number(double value, int width, char *buffer, size_t size)
{
	if (!isfinite(value)) {
		snprintf(buffer, size, "-");
		return buffer;
	}
	for (int digits = 8; digits > 1; digits--) {
		snprintf(buffer, size, "%.*g", digits, value);
		if (strlen(buffer) <= (size_t)width)
			break;
	}
	return buffer;
}

char *words_probability(double log_p, char *buffer, size_t size)
{
	double log10_p = log_p / M_LN10, exponent = floor(log10_p);
	double digit = rint(pow(10, log10_p - exponent));

	if (log10_p > -3) {
		snprintf(buffer, size, "%.2g", exp(log_p));
		return buffer;
	}
	if (digit >= 10) {
		digit = 1;
		exponent++;
	}
	snprintf(buffer, size, "%.0fe%.0f", digit, exponent);
	return buffer;
}

static void print_interval(FILE *stream, double low, double high)
{
	if (isfinite(low) && isfinite(high))
		fprintf(stream, " [%.3g, %.3g]", low, high);
	else
		fputs(" [no interval: too few runs]", stream);
}

/* Ratio, or the difference where no ratio exists; then how often, and p. */
static void print_effect(FILE *stream, const struct comparison *comparison,
			 const struct comparison_pair *pair)
{
	double slower = comparison->higher_is_better ? 1 - pair->superiority.estimate
						     : pair->superiority.estimate;
	const struct interval *ratio = &pair->shift.ratio, *shift = &pair->shift.shift;
	char p[32];

	if (pair->shift.has_ratio && isfinite(ratio->estimate)) {
		fprintf(stream, "x%.3g", ratio->estimate);
		print_interval(stream, ratio->low, ratio->high);
	} else {
		fprintf(stream, "%+.4g%s%s", shift->estimate, *comparison->unit ? " " : "",
			comparison->unit);
		print_interval(stream, shift->low, shift->high);
	}
	fprintf(stream, ", P(slower) %.2g, p %s", slower,
		words_probability(pair->log_p_holm, p, sizeof(p)));
}

void words_verdict(FILE *stream, const struct comparison *comparison,
		   const struct comparison_pair *pair)
{
	const char *a = comparison->arms[pair->a].name, *b = comparison->arms[pair->b].name;

	switch (pair->verdict) {
	case COMPARISON_SLOWER:
		fprintf(stream, "%s is slower than %s: ", a, b);
		break;
	case COMPARISON_FASTER:
		fprintf(stream, "%s is faster than %s: ", a, b);
		break;
	case COMPARISON_EQUIVALENT:
		fprintf(stream, "%s is equivalent to %s within %g%%: ", a, b,
			100 * comparison->options.min_effect);
		break;
	case COMPARISON_UNDECIDED:
		fprintf(stream, "%s against %s is undecided: ", a, b);
		break;
	}
	print_effect(stream, comparison, pair);
	if (pair->verdict == COMPARISON_UNDECIDED)
		fprintf(stream, "; %s", pair->why);
}

void words_method(FILE *stream, const struct comparison *comparison)
{
	const struct comparison_options *options = &comparison->options;
	const struct comparison_pair *pair = comparison->pairs;

	fprintf(stream, "Mann-Whitney, %s; ", rank_method_name(pair->test.method));
	if (comparison->family > 1)
		fprintf(stream, "p adjusted for %zu comparisons (Holm); ", comparison->family);
	fprintf(stream,
		"alpha %g%%, least effect %g%%; ratios are Hodges-Lehmann's, intervals %g%%",
		100 * options->alpha, 100 * options->min_effect, 100 * options->confidence);
	if (pair->shift.method == SHIFT_COMPRESSED)
		fprintf(stream, " (from %d quantiles of each series)", SHIFT_QUANTILES);
}

char *words_text(const struct comparison *comparison, const struct comparison_pair *pair,
		 const char *end)
{
	char *text = NULL;
	size_t size;
	FILE *stream = open_memstream(&text, &size);

	if (!stream)
		return NULL;
	if (pair)
		words_verdict(stream, comparison, pair);
	else
		words_method(stream, comparison);
	fputs(end, stream);
	fclose(stream);
	return text;
}

bool words_has_losses(const struct comparison_arm *arm)
{
	return arm->invalid || arm->failed || arm->interrupted || arm->without_value ||
	       arm->suspect;
}

void words_runs(FILE *stream, const struct comparison_arm *arm)
{
	const struct {
		size_t count;
		const char *what;
	} losses[] = {
		{arm->invalid, "invalid"},
		{arm->failed, "failed"},
		{arm->interrupted, "interrupted"},
		{arm->without_value, "without a value"},
	};
	bool first = true;

	fprintf(stream, "%s: %zu %s", arm->name, arm->count, arm->count == 1 ? "run" : "runs");
	for (size_t i = 0; i < ARRAY_SIZE(losses); i++) {
		if (!losses[i].count)
			continue;
		fprintf(stream, "%s%zu %s", first ? "; left out: " : ", ", losses[i].count,
			losses[i].what);
		first = false;
	}
	if (arm->suspect)
		fprintf(stream, "; suspect: %zu", arm->suspect);
}

char *words_series(const struct comparison_report *report, const struct comparison *comparison,
		   size_t arm)
{
	const struct arm *given = &report->set->arms[arm];
	const struct arm_source *source = &report->set->sources[given->source];
	bool file =
		strcmp(comparison->metric, "mean") == 0 || strcmp(comparison->metric, "max") == 0;
	char *text = NULL;
	int length;

	if (source->plain)
		length = asprintf(&text, "%s",
				  strcmp(source->path, "-") == 0 ? given->name : source->path);
	else
		length = asprintf(&text, "%s-%s%s", given->name, comparison->metric,
				  file ? ".txt" : "");
	return length < 0 ? NULL : text;
}

void words_table(FILE *stream, const struct comparison *comparison, int cell)
{
	static const char *const heads[] = {"Min", "Max", "Median", "Avg", "Stddev"};
	int digits = 3;
	char text[40];

	for (size_t i = 0; i < comparison->count; i++) {
		int length = snprintf(NULL, 0, "%zu", comparison->arms[i].count);

		digits = length > digits ? length : digits;
	}
	fprintf(stream, "  %*s", digits, "N");
	for (size_t i = 0; i < 5; i++)
		fprintf(stream, " %*s", cell, heads[i]);
	fputc('\n', stream);
	for (size_t i = 0; i < comparison->count; i++) {
		const struct comparison_arm *arm = &comparison->arms[i];
		const double values[] = {arm->minimum, arm->maximum, arm->median, arm->mean,
					 arm->stddev};

		fprintf(stream, "%c %*zu", plot_symbol(i), digits, arm->count);
		for (size_t j = 0; j < 5; j++)
			fprintf(stream, " %*s", cell,
				words_number(values[j], cell, text, sizeof(text)));
		fputc('\n', stream);
	}
}

void words_wrap(FILE *stream, const char *text, size_t width, size_t indent)
{
	size_t column = 0;
	bool start = true;

	while (*text) {
		size_t length = strcspn(text, " \n");

		if (!start && column + 1 + length > width) {
			fprintf(stream, "\n%*s", (int)indent, "");
			column = indent;
		} else if (!start) {
			fputc(' ', stream);
			column++;
		}
		start = false;
		fwrite(text, 1, length, stream);
		column += length;
		text += length;
		text += strspn(text, " \n");
	}
	fputc('\n', stream);
}
