/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "reports/comparison_words.h"
#include "reports/html_internal.h"

/* SVG of a fixed view box that the page scales; colours come from the page's style. */

#define WIDTH 720
#define LEFT 20
#define RIGHT 700
#define ROW 64
#define MARKS_MOST 2000 /* marks of one arm; more are thinned evenly, and that is said */

struct axis {
	bool log;
	double low, high;
};

static double place(const struct axis *axis, double value)
{
	double share;

	if (axis->high <= axis->low)
		return (LEFT + RIGHT) / 2.0;
	share = axis->log ? log(value / axis->low) / log(axis->high / axis->low)
			  : (value - axis->low) / (axis->high - axis->low);
	return LEFT + share * (RIGHT - LEFT);
}

static struct axis find_axis(const struct comparison *comparison)
{
	struct axis axis = {false, INFINITY, -INFINITY};

	for (size_t i = 0; i < comparison->count; i++) {
		axis.low = fmin(axis.low, comparison->arms[i].minimum);
		axis.high = fmax(axis.high, comparison->arms[i].maximum);
	}
	axis.log = axis.low > 0;
	if (axis.log) { /* a little room on both sides */
		double room = fmax(pow(axis.high / axis.low, 0.03), 1.01);

		axis.low /= room;
		axis.high *= room;
	} else {
		double room = fmax((axis.high - axis.low) * 0.03, fabs(axis.high) * 0.01);

		axis.low -= room;
		axis.high += room;
	}
	return axis;
}

static void write_tick(FILE *stream, const struct axis *axis, double value, double height)
{
	double x = place(axis, value);

	fprintf(stream,
		"<line class=\"grid\" x1=\"%.1f\" x2=\"%.1f\" y1=\"4\" y2=\"%.0f\"/>"
		"<text class=\"tick\" x=\"%.1f\" y=\"%.0f\">%.6g</text>\n",
		x, x, height, x, height + 20, value);
}

/* 1, 2, 5 of each decade on a log axis that spans little; decades where it spans much. */
static void write_ticks(FILE *stream, const struct axis *axis, double height)
{
	double span = axis->log ? log10(axis->high / axis->low) : 0, step;
	int number = 0;

	if (axis->log && span >= 0.7) {
		for (int decade = (int)floor(log10(axis->low));
		     decade <= (int)log10(axis->high) + 1; decade++) {
			static const int digits[] = {1, 2, 5};

			for (int i = 0; i < (span > 2.5 ? 1 : 3); i++) {
				double value = digits[i] * pow(10, decade);

				if (value >= axis->low && value <= axis->high)
					write_tick(stream, axis, value, height);
			}
		}
		return;
	}
	step = pow(10, floor(log10(fmax((axis->high - axis->low) / 4, 1e-300))));
	while ((axis->high - axis->low) / step > 6)
		step *= (axis->high - axis->low) / step > 12 ? 5 : 2;
	for (double value = ceil(axis->low / step) * step; value <= axis->high && number < 12;
	     value += step, number++)
		write_tick(stream, axis, fabs(value) < step / 1e6 ? 0 : value, height);
}

static void start_picture(FILE *stream, const struct comparison *comparison, const char *what,
			  double height)
{
	fprintf(stream, "<svg viewBox=\"0 0 %d %.0f\" role=\"img\" aria-label=\"", WIDTH,
		height + 52);
	markup_escape(stream, comparison->metric);
	fprintf(stream, ": %s. ", what);
	for (size_t i = 0; i < comparison->count; i++) {
		markup_escape(stream, comparison->arms[i].name);
		fprintf(stream, ": median %.4g ", comparison->arms[i].median);
		markup_escape(stream, comparison->unit);
		fprintf(stream, " of %zu runs. ", comparison->arms[i].count);
	}
	fputs("\">\n", stream);
}

void html_metric(FILE *stream, const struct comparison *comparison)
{
	markup_escape(stream, comparison->metric);
	fputs(*comparison->unit ? ", " : "", stream);
	markup_escape(stream, comparison->unit);
}

static void end_picture(FILE *stream, const struct comparison *comparison, const struct axis *axis,
			double height)
{
	fprintf(stream,
		"<line class=\"axis\" x1=\"%d\" x2=\"%d\" y1=\"%.0f\" y2=\"%.0f\"/>"
		"<text class=\"tick\" x=\"%d\" y=\"%.0f\">",
		LEFT, RIGHT, height, height, (LEFT + RIGHT) / 2, height + 45);
	html_metric(stream, comparison);
	fprintf(stream, " (%s axis)</text>\n</svg>\n", axis->log ? "log" : "linear");
}

/* Every how many runs have a mark. */
static size_t thinned_by(const struct comparison_arm *arm)
{
	return arm->count > MARKS_MOST ? (arm->count + MARKS_MOST - 1) / MARKS_MOST : 1;
}

static void write_arm(FILE *stream, const struct comparison_arm *arm, const struct axis *axis,
		      size_t index)
{
	double middle = (double)index * ROW + 40;
	size_t step = thinned_by(arm);

	fprintf(stream, "<text class=\"name\" x=\"%d\" y=\"%.0f\">", LEFT, middle - 20);
	markup_escape(stream, arm->name);
	fprintf(stream, "</text>\n<g class=\"arm%zu\">\n", index % 6);
	/* Marks of neighbours in value lie on five levels, so that none hides another. */
	for (size_t i = 0; i < arm->count; i += step)
		fprintf(stream, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\"/>\n",
			place(axis, arm->sorted[i]), middle - 8 + (double)(i % 5) * 4);
	if (isfinite(arm->median_ci.low) && isfinite(arm->median_ci.high))
		fprintf(stream,
			"<rect class=\"interval\" x=\"%.1f\" y=\"%.0f\" width=\"%.1f\" "
			"height=\"6\"/>\n",
			place(axis, arm->median_ci.low), middle + 12,
			fmax(place(axis, arm->median_ci.high) - place(axis, arm->median_ci.low),
			     1));
	fprintf(stream,
		"<line class=\"median\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.0f\" y2=\"%.0f\"/>\n</g>\n",
		place(axis, arm->median), place(axis, arm->median), middle - 12, middle + 20);
}

void html_picture_runs(FILE *stream, const struct comparison *comparison)
{
	double height = (double)comparison->count * ROW + 6;
	struct axis axis = find_axis(comparison);

	start_picture(stream, comparison, "every run a mark, with median and its interval", height);
	write_ticks(stream, &axis, height);
	for (size_t i = 0; i < comparison->count; i++)
		write_arm(stream, &comparison->arms[i], &axis, i);
	end_picture(stream, comparison, &axis, height);
}

static void write_steps(FILE *stream, const struct comparison_arm *arm, const struct axis *axis,
			size_t index, double height)
{
	size_t step = thinned_by(arm);

	fprintf(stream, "<polyline class=\"line arm%zu\" points=\"%.1f,%.1f", index % 6,
		place(axis, arm->minimum), height);
	for (size_t i = 0; i < arm->count; i += step) {
		double x = place(axis, arm->sorted[i]);
		double before = height - (height - 10) * (double)i / (double)arm->count;
		double after = height - (height - 10) * (double)(i + 1) / (double)arm->count;

		fprintf(stream, " %.1f,%.1f %.1f,%.1f", x, before, x, after);
	}
	fprintf(stream, " %.1f,10\"/>\n", place(axis, arm->maximum));
}

void html_picture_ecdf(FILE *stream, const struct comparison *comparison)
{
	const double height = 200;
	struct axis axis = find_axis(comparison);

	start_picture(stream, comparison, "share of the runs at or below a value", height);
	write_ticks(stream, &axis, height);
	for (int share = 0; share <= 100; share += 50)
		fprintf(stream, "<text class=\"share\" x=\"%d\" y=\"%.0f\">%d%%</text>\n", LEFT,
			height - (height - 10) * share / 100 + (share == 100 ? 12 : -3), share);
	for (size_t i = 0; i < comparison->count; i++)
		write_steps(stream, &comparison->arms[i], &axis, i, height);
	for (size_t i = 0; i < comparison->count; i++) {
		fprintf(stream, "<text class=\"legend arm%zu\" x=\"%d\" y=\"%zu\">", i % 6, RIGHT,
			height > 60 ? 160 - 18 * (comparison->count - 1 - i) % 160 : 20);
		markup_escape(stream, comparison->arms[i].name);
		fputs("</text>\n", stream);
	}
	end_picture(stream, comparison, &axis, height);
}
