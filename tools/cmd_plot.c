/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/exit.h"
#include "base/json.h"
#include "base/options.h"
#include "command.h"
#include "compare/samples.h"
#include "compare_job.h"
#include "plot_gnuplot.h"
#include "record/record.h"
#include "reports/comparison_plot.h"

#define NAME "plot"

struct settings {
	struct compare_settings compare; /* first: COMPARE_ROWS fill it */
	const char *kind, *output, *counter;
};

static const char *const kinds[] = {"runs",	"ecdf",	  "percentiles", "heat",
				    "counters", "causes", NULL};

static const struct option_row rows[] = {
	{OPTION_SECTION, .long_name = "Picture"},
	{OPTION_CHOICE, 0, "kind", "KIND",
	 "runs: every run a mark, median and interval (default)\n"
	 "ecdf: share of the runs at or below a value\n"
	 "percentiles: of the samples of all runs of an arm\n"
	 "heat: latency of the samples, a column a run, in order of time\n"
	 "counters: a counter within each run (--counter)\n"
	 "causes: late time by cause, stacked, where the records have causes",
	 offsetof(struct settings, kind), .choices = kinds},
	{OPTION_STRING, 'o', "output", "FILE",
	 "a .svg or .png, with .gp and .dat beside it (default: in the terminal)",
	 offsetof(struct settings, output)},
	{OPTION_STRING, 0, "counter", "NAME", "of the records' series (nr_free_pages)",
	 offsetof(struct settings, counter)},
	COMPARE_ROWS,
};

static void axis_label(FILE *script, const char *axis, const struct comparison *comparison)
{
	char label[200];

	snprintf(label, sizeof(label), "%.120s%s%.40s", comparison->metric,
		 *comparison->unit ? ", " : "", comparison->unit);
	fprintf(script, "set %slabel ", axis);
	picture_string(script, label);
	fputc('\n', script);
}

static bool wants_log(const struct settings *settings, const struct comparison *comparison)
{
	const char *plot = settings->compare.plot;

	if (plot && strcmp(plot, "linear") == 0)
		return false;
	for (size_t i = 0; i < comparison->count; i++)
		if (!(comparison->arms[i].minimum > 0))
			return false;
	return true;
}

/* --- runs and shares --- */

static void plot_runs(struct picture *picture, const struct settings *settings,
		      const struct comparison *comparison)
{
	FILE *script = picture->script, *data = picture->data;

	if (wants_log(settings, comparison))
		fputs("set logscale y\n", script);
	axis_label(script, "y", comparison);
	fputs("set xtics (", script);
	for (size_t i = 0; i < comparison->count; i++) {
		const struct comparison_arm *arm = &comparison->arms[i];

		if (i)
			fputs(", ", script);
		picture_string(script, arm->name);
		fprintf(script, " %zu", i);
		for (size_t k = 0; k < arm->count; k++)
			fprintf(data, "%g %.17g\n", (double)i + ((double)(k % 9) - 4) * 0.04,
				arm->sorted[k]);
		fprintf(data, "\n\n%zu %.17g %.17g %.17g\n\n\n", i, arm->median, arm->median_ci.low,
			arm->median_ci.high);
	}
	fprintf(script, ")\nset xrange [-0.6:%zu.6]\nplot ", comparison->count - 1);
	for (size_t i = 0; i < comparison->count; i++)
		fprintf(script,
			"%sdata index %zu using 1:2 with points pt 7 ps 0.5 lc %zu notitle, "
			"data index %zu using 1:2:3:4 with yerrorbars lw 2 pt 5 lc %zu notitle",
			i ? ", " : "", 2 * i, i + 1, 2 * i + 1, i + 1);
	fputc('\n', script);
}

static void plot_ecdf(struct picture *picture, const struct settings *settings,
		      const struct comparison *comparison)
{
	FILE *script = picture->script;

	if (wants_log(settings, comparison))
		fputs("set logscale x\n", script);
	axis_label(script, "x", comparison);
	fputs("set ylabel \"share of the runs at or below\"\nset yrange [0:1]\nplot ", script);
	for (size_t i = 0; i < comparison->count; i++) {
		const struct comparison_arm *arm = &comparison->arms[i];

		for (size_t k = 0; k < arm->count; k++)
			fprintf(picture->data, "%.17g %.17g\n", arm->sorted[k],
				(double)(k + 1) / (double)arm->count);
		fputs("\n\n", picture->data);
		fprintf(script, "%sdata index %zu using 1:2 with steps lw 2 lc %zu title ",
			i ? ", " : "", i, i + 1);
		picture_string(script, arm->name);
	}
	fputc('\n', script);
}

/* --- samples --- */

static int plot_percentiles(struct picture *picture, const struct arm_set *set,
			    const struct comparison *comparison, struct message *message)
{
	FILE *script = picture->script;
	size_t drawn = 0;

	fputs("set logscale xy\nset xlabel \"1 of so many samples is at least as late\"\n"
	      "set ylabel \"latency, us\"\nplot ",
	      script);
	for (size_t i = 0; i < set->count; i++) {
		struct arm_samples samples = {.merged = NULL};
		struct histogram *merged;

		if (arm_samples_merge(set, comparison, i, &samples) < 0)
			return message_set_errno(message, -ENOMEM, "percentiles");
		merged = samples.merged;
		if (!merged)
			continue;
		/* To the rarest sample that there is, in steps of a tenth of a decade. */
		for (double rare = 1; rare <= (double)merged->total; rare *= 1.2589254)
			fprintf(picture->data, "%.6g %.6g\n", rare,
				(double)histogram_percentile(merged, 1 - 1 / rare, INT64_MAX) /
					1000);
		fputs("\n\n", picture->data);
		fprintf(script, "%sdata index %zu using 1:2 with lines lw 2 lc %zu title ",
			drawn ? ", " : "", drawn, i + 1);
		picture_string(script, set->arms[i].name);
		drawn++;
		free(merged);
	}
	fputc('\n', script);
	return drawn ? 0 : message_set(message, -ENODATA, "no record has a histogram");
}

/* A column a run; within it the samples by octave of latency, as a share of the run. */
static int plot_heat(struct picture *picture, const struct arm_set *set,
		     const struct comparison *comparison, struct message *message)
{
	size_t column = 0;

	for (size_t i = 0; i < set->count; i++) {
		for (size_t k = 0; k < set->arms[i].record_count; k++) {
			const struct record *record = set->arms[i].records[k];
			const struct histogram *histogram = record->histogram;
			double octaves[64] = {0};

			if (!histogram || !histogram->total ||
			    !comparison_takes(record, &comparison->options))
				continue;
			for (size_t b = 0; b < HISTOGRAM_BUCKETS; b++)
				if (histogram->counts[b])
					octaves[(int)log2((double)histogram_lowest(b) + 1)] +=
						(double)histogram->counts[b];
			for (int o = 4; o < 44; o++)
				fprintf(picture->data, "%zu %g %.6g\n", column,
					exp2(o) / 1000 * 1.5,
					octaves[o] > 0
						? log10(octaves[o] / (double)histogram->total)
						: NAN);
			fputc('\n', picture->data);
			column++;
		}
	}
	fputs("set logscale y\nset xlabel \"run\"\nset ylabel \"latency, us\"\n"
	      "set cblabel \"log10 of the share of the run's samples\"\n"
	      "plot data using 1:2:3 with points pt 5 ps 1 palette notitle\n",
	      picture->script);
	return column ? 0 : message_set(message, -ENODATA, "no record has a histogram");
}

static int plot_counters(struct picture *picture, const struct settings *settings,
			 const struct arm_set *set, struct message *message)
{
	const char *name = settings->counter ? settings->counter : "nr_free_pages";
	FILE *script = picture->script;
	size_t drawn = 0;

	fputs("set xlabel \"time within the run, s\"\nset ylabel ", script);
	picture_string(script, name);
	fputs("\nplot ", script);
	for (size_t i = 0; i < set->count; i++) {
		for (size_t k = 0; k < set->arms[i].record_count; k++) {
			const json_t *series =
				json_object_get(set->arms[i].records[k]->counters, "series");
			const json_t *times = json_object_get(series, "t_ms"), *time;
			const json_t *values = json_object_get(series, name);
			size_t at;

			if (!json_array_size(values))
				continue;
			json_array_foreach (times, at, time)
				fprintf(picture->data, "%.3f %.17g\n",
					json_number_value(time) / 1000,
					json_number_value(json_array_get(values, at)));
			fputs("\n\n", picture->data);
			fprintf(script, "%sdata index %zu using 1:2 with lines lc %zu ",
				drawn ? ", " : "", drawn, i + 1);
			if (k == 0) {
				fputs("title ", script);
				picture_string(script, set->arms[i].name);
			} else {
				fputs("notitle", script);
			}
			drawn++;
		}
	}
	fputc('\n', script);
	return drawn ? 0
		     : message_set(message, -ENODATA, "no record has a series of %s (--counter)",
				   name);
}

static int plot_causes(struct picture *picture, const struct arm_set *set, struct message *message)
{
	json_t *names = json_object();
	const char *name;
	json_t *unused;
	size_t first = 1;

	for (size_t i = 0; i < set->count; i++) {
		for (size_t k = 0; k < set->arms[i].record_count; k++) {
			const json_t *list = json_at(set->arms[i].records[k]->counters,
						     "causes.tail.by_cause"),
				     *entry;
			size_t e;

			json_array_foreach (list, e, entry)
				json_put(names, json_get_string(entry, "cause", "unknown"),
					 json_true());
		}
	}
	fputs("set style data histograms\nset style histogram rowstacked\nset style fill solid "
	      "0.8\nset boxwidth 0.8\nset ylabel \"late time above the 99.9th percentile, % of the "
	      "run\"\nset xtics rotate by -45\nplot ",
	      picture->script);
	json_object_foreach (names, name, unused) {
		fprintf(picture->script, "%sdata using %zu%s title ", first > 1 ? ", " : "",
			first + 1, first == 1 ? ":xtic(1)" : "");
		picture_string(picture->script, name);
		first++;
	}
	fputc('\n', picture->script);
	for (size_t i = 0; i < set->count; i++) {
		for (size_t k = 0; k < set->arms[i].record_count; k++) {
			const json_t *list = json_at(set->arms[i].records[k]->counters,
						     "causes.tail.by_cause"),
				     *entry;
			size_t e;

			if (!json_array_size(list))
				continue;
			picture_string(picture->data, set->arms[i].name);
			json_object_foreach (names, name, unused) {
				double percent = 0;

				json_array_foreach (list, e, entry)
					if (strcmp(json_get_string(entry, "cause", "unknown"),
						   name) == 0)
						percent = json_get_number(entry, "percent", 0);
				fprintf(picture->data, " %.6g", percent);
			}
			fputc('\n', picture->data);
		}
	}
	json_decref(names);
	return first > 1 ? 0
			 : message_set(message, -ENODATA,
				       "no record has causes: measure with --explain");
}

/* --- the command --- */

static int draw(const struct settings *settings, const struct compare_job *job,
		struct message *message)
{
	const struct comparison *comparison = job->comparisons[0];
	const char *kind = settings->kind ? settings->kind : "runs";
	struct picture picture;
	int error = picture_open(settings->output, 900, 540, &picture, message);

	if (error)
		return error;
	if (strcmp(kind, "runs") == 0)
		plot_runs(&picture, settings, comparison);
	else if (strcmp(kind, "ecdf") == 0)
		plot_ecdf(&picture, settings, comparison);
	else if (strcmp(kind, "percentiles") == 0)
		error = plot_percentiles(&picture, job->set, comparison, message);
	else if (strcmp(kind, "heat") == 0)
		error = plot_heat(&picture, job->set, comparison, message);
	else if (strcmp(kind, "counters") == 0)
		error = plot_counters(&picture, settings, job->set, message);
	else
		error = plot_causes(&picture, job->set, message);
	if (error)
		picture_discard(&picture);
	return error ? error : picture_finish(&picture, message);
}

static int plot(struct compare_job *job, const void *data, char *const *operands, size_t count,
		struct message *message)
{
	const struct settings *settings = data;
	struct comparison_report report;
	int error;

	if (!settings->output && settings->kind && strcmp(settings->kind, "runs") != 0)
		return message_set(message, -EINVAL,
				   "--kind %s is a picture: give -o FILE.svg or FILE.png",
				   settings->kind);
	error = compare_job_prepare(job, operands, count, true, message);
	if (!error && settings->output)
		return draw(settings, job, message);
	if (!error)
		error = compare_job_report(job, &report, 74, message);
	return error ? error : plot_write(stdout, job->comparisons[0], report.plot, report.width);
}

static const struct command_page page = {
	.name = NAME,
	.usage = "syslat plot [OPTION]... DIR|RECORD|FILE|-...",
	.about = "Draws the first metric of a comparison, or the samples of its runs.",
	.rows = rows,
	.row_count = ARRAY_SIZE(rows),
	.wanted = "nothing to plot: give an experiment's folder, records, or "
		  "files of numbers",
};

static int run_plot(int argc, char **argv)
{
	struct settings settings = {.compare = COMPARE_SETTINGS_DEFAULT};

	settings.compare.whole = true;
	return compare_main(&page, &settings, argc, argv, plot);
}

const struct command command_plot = {
	NAME,
	"draw runs and samples: terminal, SVG, PNG",
	run_plot,
};
