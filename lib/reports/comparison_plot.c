/* SPDX-License-Identifier: MIT */
#include "reports/comparison_plot.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static const char symbols[PLOT_ARMS_MAX + 1] = "x+*%#@O$&=~^!;:?";

char plot_symbol(size_t arm)
{
	return arm < PLOT_ARMS_MAX ? symbols[arm] : ' ';
}

/* Letters for overlaps: none that is a symbol of an arm. */
static const char overlap_letters[] = "abcdefghijklmnopqrstuvwyzBCDEFGHIJKLNPQRSTUVWYZ";

struct plot {
	const struct comparison *comparison;
	bool log;
	double low, high;  /* ends of the axis */
	size_t columns;	   /* inside of the frame */
	size_t *marks;	   /* [arm][column]: rows */
	size_t rows, each; /* a mark is up to @each values */
	uint32_t overlaps[sizeof(overlap_letters) - 1];
	size_t overlap_count;
	bool more_overlaps;
};

/* Lower end of a column; without overflow for ends of opposite signs. */
static double edge(const struct plot *plot, size_t column)
{
	double share = (double)column / (double)plot->columns;

	if (plot->log)
		return exp(log(plot->low) * (1 - share) + log(plot->high) * share);
	return plot->low * (1 - share) + plot->high * share;
}

/* May lie outside of the columns. */
static double place(const struct plot *plot, double value)
{
	double share;

	if (plot->high == plot->low)
		return (double)(plot->columns / 2);
	if (plot->log) {
		if (!(value > 0))
			return -1;
		share = (log(value) - log(plot->low)) / (log(plot->high) - log(plot->low));
	} else {
		share = (value / 2 - plot->low / 2) / (plot->high / 2 - plot->low / 2);
	}
	if (share == 1)
		return (double)plot->columns - 1;
	return floor(share * (double)plot->columns);
}

static void find_range(struct plot *plot)
{
	const struct comparison *comparison = plot->comparison;

	plot->low = INFINITY;
	plot->high = -INFINITY;
	for (size_t i = 0; i < comparison->count; i++) {
		plot->low = fmin(plot->low, comparison->arms[i].minimum);
		plot->high = fmax(plot->high, comparison->arms[i].maximum);
	}
}

/* On the linear axis the bars belong to the picture. */
static void widen_for_bars(struct plot *plot)
{
	for (size_t i = 0; i < plot->comparison->count && !plot->log; i++) {
		const struct comparison_arm *arm = &plot->comparison->arms[i];

		if (!isfinite(arm->stddev))
			continue;
		plot->low = fmin(plot->low, fmax(arm->mean - arm->stddev, -1.7e308));
		plot->high = fmax(plot->high, fmin(arm->mean + arm->stddev, 1.7e308));
	}
}

static size_t values_below(const struct comparison_arm *arm, double bound)
{
	size_t low = 0, high = arm->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (arm->sorted[middle] < bound)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void count_arm(struct plot *plot, size_t index)
{
	const struct comparison_arm *arm = &plot->comparison->arms[index];
	size_t *marks = plot->marks + index * plot->columns, below = 0;

	if (plot->high == plot->low) {
		marks[plot->columns / 2] = arm->count;
		return;
	}
	for (size_t column = 0; column < plot->columns; column++) {
		size_t next = column + 1 == plot->columns
				      ? arm->count
				      : values_below(arm, edge(plot, column + 1));

		marks[column] = next > below ? next - below : 0;
		below = next > below ? next : below;
	}
}

static void scale_heights(struct plot *plot)
{
	size_t cells = plot->comparison->count * plot->columns, highest = 0;

	for (size_t i = 0; i < cells; i++)
		highest = plot->marks[i] > highest ? plot->marks[i] : highest;
	plot->each = (highest + PLOT_ROWS_MAX - 1) / PLOT_ROWS_MAX;
	plot->each = plot->each ? plot->each : 1;
	for (size_t i = 0; i < cells; i++)
		plot->marks[i] = (plot->marks[i] + plot->each - 1) / plot->each;
	plot->rows = (highest + plot->each - 1) / plot->each;
}

static char overlap_letter(struct plot *plot, uint32_t arms)
{
	const size_t most = sizeof(overlap_letters) - 1;

	if (plot->comparison->count == 2)
		return '*';
	for (size_t i = 0; i < plot->overlap_count; i++)
		if (plot->overlaps[i] == arms)
			return overlap_letters[i];
	if (plot->overlap_count == most) {
		plot->more_overlaps = true;
		return '.';
	}
	plot->overlaps[plot->overlap_count] = arms;
	return overlap_letters[plot->overlap_count++];
}

static char cell(struct plot *plot, size_t column, size_t row)
{
	uint32_t arms = 0;
	size_t only = 0;

	for (size_t i = 0; i < plot->comparison->count; i++) {
		if (plot->marks[i * plot->columns + column] < row)
			continue;
		arms |= UINT32_C(1) << i;
		only = i;
	}
	if (!arms)
		return ' ';
	return arms & (arms - 1) ? overlap_letter(plot, arms) : symbols[only];
}

static void write_rows(FILE *stream, struct plot *plot)
{
	for (size_t row = plot->rows; row > 0; row--) {
		fputc('|', stream);
		for (size_t column = 0; column < plot->columns; column++)
			fputc(cell(plot, column, row), stream);
		fputs("|\n", stream);
	}
}

static void write_rule(FILE *stream, const struct plot *plot)
{
	fputc('+', stream);
	for (size_t i = 0; i < plot->columns; i++)
		fputc('-', stream);
	fputs("+\n", stream);
}

/* Puts @mark at @at; outside of the axis an arrow at its end. */
static void put(char *line, double at, char mark, size_t columns)
{
	if (!(at >= 0))
		line[0] = line[0] == ' ' || line[0] == '_' ? '<' : line[0];
	else if (at >= (double)columns)
		line[columns - 1] = line[columns - 1] == ' ' || line[columns - 1] == '_'
					    ? '>'
					    : line[columns - 1];
	else
		line[(size_t)at] = mark;
}

static int write_bar(FILE *stream, const struct plot *plot, const struct comparison_arm *arm)
{
	char *line = malloc(plot->columns + 1);

	if (!line)
		return -ENOMEM;
	memset(line, ' ', plot->columns);
	line[plot->columns] = '\0';
	if (isfinite(arm->stddev)) {
		double from = place(plot, arm->mean - arm->stddev);
		double to = place(plot, arm->mean + arm->stddev);

		for (size_t i = 0; i < plot->columns; i++)
			if ((double)i > from && (double)i < to)
				line[i] = '_';
		put(line, from, '|', plot->columns);
		put(line, to, '|', plot->columns);
	}
	put(line, place(plot, arm->median), 'M', plot->columns);
	put(line, place(plot, arm->mean), 'A', plot->columns);
	fprintf(stream, "|%s|\n", line);
	free(line);
	return 0;
}

static void write_overlaps(FILE *stream, const struct plot *plot)
{
	if (!plot->overlap_count)
		return;
	fputs("overlaps:", stream);
	for (size_t i = 0; i < plot->overlap_count; i++) {
		fprintf(stream, " %c = ", overlap_letters[i]);
		for (size_t arm = 0; arm < plot->comparison->count; arm++)
			if (plot->overlaps[i] & (UINT32_C(1) << arm))
				fputc(symbols[arm], stream);
	}
	fprintf(stream, "%s\n", plot->more_overlaps ? " . = others" : "");
}

static void write_scale(FILE *stream, const struct plot *plot, enum comparison_plot kind)
{
	const char *unit = plot->comparison->unit;

	if (plot->log)
		fprintf(stream, "log axis, %.4g to %.4g%s%s%s\n", plot->low, plot->high,
			*unit ? " " : "", unit,
			kind == PLOT_AUTO ? ", for its range (else: --plot linear)" : "");
	if (plot->each > 1)
		fprintf(stream, "each mark is up to %zu values of its column\n", plot->each);
}

static int choose_axis(struct plot *plot, enum comparison_plot kind)
{
	if (kind == PLOT_LOG && !(plot->low > 0))
		return -ERANGE;
	plot->log = kind == PLOT_LOG ||
		    (kind == PLOT_AUTO && plot->low > 0 && plot->high / plot->low >= 100);
	return 0;
}

int plot_write(FILE *stream, const struct comparison *comparison, enum comparison_plot kind,
	       size_t width)
{
	struct plot plot = {.comparison = comparison, .columns = (width < 24 ? 24 : width) - 2};
	int error;

	if (kind == PLOT_NONE)
		return 0;
	if (comparison->count > PLOT_ARMS_MAX)
		return -E2BIG;
	find_range(&plot);
	error = choose_axis(&plot, kind);
	if (error)
		return error;
	widen_for_bars(&plot);
	plot.marks = calloc(comparison->count * plot.columns, sizeof(*plot.marks));
	if (!plot.marks)
		return -ENOMEM;
	for (size_t i = 0; i < comparison->count; i++)
		count_arm(&plot, i);
	scale_heights(&plot);
	write_rule(stream, &plot);
	write_rows(stream, &plot);
	for (size_t i = 0; i < comparison->count && !error; i++)
		error = write_bar(stream, &plot, &comparison->arms[i]);
	write_rule(stream, &plot);
	write_overlaps(stream, &plot);
	write_scale(stream, &plot, kind);
	free(plot.marks);
	return error;
}
