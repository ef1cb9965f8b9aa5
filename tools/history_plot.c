/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "command.h"
#include "history_options.h"
#include "plot_gnuplot.h"
#include "stats/series.h"

/* syslat history plot: one series over its commits, with the changes of level. */

#define ROWS 16
#define COLUMNS 72

struct level {
	uint32_t commit;
	double median;
};

static int find_levels(const struct history_data *data, struct level **ret_levels,
		       size_t *ret_count)
{
	size_t count = data->starts[1], found = 0;
	struct level *levels = malloc((count + 1) * sizeof(*levels));
	double *values = malloc((count + 1) * sizeof(*values));
	int error = levels && values ? 0 : -ENOMEM;

	for (size_t i = 0, end; i < count && !error; i = end) {
		size_t runs = 0;

		for (end = i; end < count && data->points[end].commit == data->points[i].commit;
		     end++)
			if (data->points[end].purpose == PURPOSE_HISTORY &&
			    data->points[end].state <= RUN_SUSPECT &&
			    isfinite(data->points[end].value))
				values[runs++] = data->points[end].value;
		error = series_sort(values, runs);
		if (!error && runs)
			levels[found++] =
				(struct level){data->points[i].commit, series_median(values, runs)};
	}
	free(values);
	*ret_levels = levels;
	*ret_count = found;
	return error;
}

static bool is_change(const struct check_result *result, const struct level *levels, size_t from,
		      size_t to)
{
	for (size_t i = 0; i < result->count; i++)
		for (size_t k = from; k < to; k++)
			if (levels[k].commit == result->changes[i].at)
				return true;
	return false;
}

/* In the terminal: a column is one or more commits, '|' where a new level begins. */
static void write_terminal(const struct history_data *data, const struct check_result *result,
			   const struct level *levels, size_t count)
{
	size_t columns = count < COLUMNS ? count : COLUMNS;
	double low = INFINITY, high = -INFINITY;
	char grid[ROWS][COLUMNS + 1];

	for (size_t i = 0; i < count; i++) {
		low = fmin(low, levels[i].median);
		high = fmax(high, levels[i].median);
	}
	memset(grid, ' ', sizeof(grid));
	for (size_t c = 0; c < columns; c++) {
		size_t from = c * count / columns, to = (c + 1) * count / columns;

		if (is_change(result, levels, from, to))
			for (int row = 0; row < ROWS; row++)
				grid[row][c] = '|';
		for (size_t i = from; i < to; i++) {
			double share = high > low ? (levels[i].median - low) / (high - low) : 0.5;

			grid[ROWS - 1 - (int)(share * (ROWS - 1) + 0.5)][c] = 'x';
		}
	}
	for (int row = 0; row < ROWS; row++) {
		grid[row][columns] = '\0';
		if (row == 0 || row == ROWS - 1)
			printf("%10.4g %s\n", row ? low : high, grid[row]);
		else
			printf("%10s %s\n", "", grid[row]);
	}
	printf("%10s %s to %s, %zu commits; x: median of a commit, |: a new level\n", "",
	       data->commits[levels[0].commit].name, data->commits[levels[count - 1].commit].name,
	       count);
}

static void write_script(struct picture *picture, const struct history_data *data,
			 const struct check_result *result, const struct level *levels,
			 size_t count)
{
	const struct history_series *series = &data->series[0];
	FILE *script = picture->script;
	char title[400];

	snprintf(title, sizeof(title), "%.80s %.80s %.60s on %.60s", series->benchmark, series->arm,
		 series->metric, series->machine);
	fputs("set title ", script);
	picture_string(script, title);
	fputs("\nset xlabel \"commit\"\nset ylabel ", script);
	picture_string(script, *series->unit ? series->unit : series->metric);
	fputs("\n", script);
	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < result->count; k++)
			if (result->changes[k].at == levels[i].commit)
				fprintf(script,
					"set arrow from %zu, graph 0 to %zu, graph 1 nohead lw 2 "
					"dt 2 lc \"%s\"\n",
					i, i, result->changes[k].worse ? "red" : "dark-green");
	for (size_t i = 0; i < data->starts[1]; i++)
		for (size_t k = 0; k < count; k++)
			if (levels[k].commit == data->points[i].commit &&
			    data->points[i].purpose == PURPOSE_HISTORY)
				fprintf(picture->data, "%zu %.17g\n", k, data->points[i].value);
	fputs("\n\n", picture->data);
	for (size_t k = 0; k < count; k++)
		fprintf(picture->data, "%zu %.17g\n", k, levels[k].median);
	/* Names of at most twenty commits, so that they can be read. */
	fputs("set xtics rotate by -45 (", script);
	for (size_t k = 0; k < count; k += count / 20 + 1) {
		char name[16];

		snprintf(name, sizeof(name), "%.12s", data->commits[levels[k].commit].name);
		fputs(k ? ", " : "", script);
		picture_string(script, name);
		fprintf(script, " %zu", k);
	}
	fputs(")\n", script);
	fputs("plot data index 0 using 1:2 with points pt 7 ps 0.3 lc \"gray\" title \"runs\", data "
	      "index 1 using 1:2 with linespoints pt 7 ps 0.5 lc 1 title \"median of a "
	      "commit\"\n",
	      script);
}

static int draw(struct history *history, const struct history_settings *settings,
		struct history_data *data, struct message *message)
{
	struct check_report report = {.results = NULL};
	struct level *levels = NULL;
	struct picture picture;
	size_t count = 0;
	int error;

	(void)history;
	error = check_all(data, &settings->check, &report, message);

	if (error)
		return error;
	error = find_levels(data, &levels, &count);
	if (!error && !count)
		error = message_set(message, -ENODATA, "no run of the series counts");
	if (!error && !settings->output)
		write_terminal(data, &report.results[0], levels, count);
	if (!error && settings->output) {
		error = picture_open(settings->output, 1000, 540, &picture, message);
		if (!error) {
			write_script(&picture, data, &report.results[0], levels, count);
			error = picture_finish(&picture, message);
		}
	}
	free(levels);
	check_report_free(&report);
	return error;
}

static int plot(struct history_settings *settings, char *const *operands, size_t count)
{
	(void)operands;
	if (settings->series)
		return history_on_data(settings, "plot", count, true, draw);
	command_error(HISTORY_NAME, "plot: give --series N (see list)");
	return EXIT_USAGE;
}

static const struct option_row plot_rows[] = {
	HISTORY_ROW_DB,
	HISTORY_ROWS_SERIES,
	{OPTION_STRING, 'o', "output", "FILE",
	 "a .svg or .png, with .gp and .dat beside it (default: in the terminal)",
	 HISTORY_AT(output)},
};

const struct history_part history_part_plot = {
	"plot",
	"draw a series with its changes of level",
	"syslat history plot --series N [OPTION]...",
	plot,
	plot_rows,
	HISTORY_ROW_COUNT(plot_rows),
};
