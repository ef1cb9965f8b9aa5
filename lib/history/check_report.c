/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/markup.h"
#include "history/check.h"

static const char *commit_name(const struct check_report *report, uint32_t commit)
{
	return report->data->commits[commit].name;
}

const char *check_confirmation_name(enum check_confirmation confirmation)
{
	switch (confirmation) {
	case CHECK_NEEDED:
		return "needed";
	case CHECK_CONFIRMED:
		return "confirmed";
	case CHECK_REFUTED:
		return "refuted";
	}
	return "unknown";
}

/* "REGRESSION", "improvement", ... what a reader must know first. */
static const char *headline(const struct check_report *report, const struct check_change *change)
{
	if (change->note)
		return "known";
	if (change->confirmation == CHECK_REFUTED)
		return "not confirmed";
	if (!change->worse)
		return change->confirmation == CHECK_CONFIRMED ? "improvement, confirmed"
							       : "improvement";
	if (change->mended)
		return "mended since";
	return check_alarms(change, &report->settings) ? "REGRESSION" : "suspected regression";
}

static void write_number(FILE *stream, double value, const char *unit)
{
	fprintf(stream, "%.4g%s%s", value, *unit ? " " : "", unit);
}

static void write_range(FILE *stream, const struct check_report *report,
			const struct check_change *change)
{
	fprintf(stream, "  first commit of the new level: %s", commit_name(report, change->at));
	fprintf(stream, " (%g%%: after %s, at or before %s)\n", 100 * report->settings.confidence,
		commit_name(report, change->last_good), commit_name(report, change->first_bad));
}

static void write_need(FILE *stream, const struct check_report *report,
		       const struct check_result *result, const struct check_change *change,
		       const char *where)
{
	if (change->note || change->mended || !change->worse ||
	    change->confirmation != CHECK_NEEDED)
		return;
	fprintf(stream,
		"  fresh runs so far: %zu before, %zu after; to decide it: syslat history check%s%s "
		"--series %lld --confirm COMMAND, or measure %s and %s by turns and add each with "
		"--confirms\n",
		change->confirm_before, change->confirm_after, where ? " --db " : "",
		where ? where : "", (long long)result->series->id,
		commit_name(report, change->last_good), commit_name(report, change->first_bad));
}

static void write_change(FILE *stream, const struct check_report *report,
			 const struct check_result *result, const struct check_change *change,
			 const char *where)
{
	const struct history_series *series = result->series;

	fprintf(stream, "%s: series %lld %s %s %s on %s: ", headline(report, change),
		(long long)series->id, series->benchmark, series->arm, series->metric,
		series->machine);
	write_number(stream, change->before, series->unit);
	fputs(" -> ", stream);
	write_number(stream, change->after, series->unit);
	if (isfinite(change->ratio.estimate))
		fprintf(stream, ", x%.3g [%.3g, %.3g]", change->ratio.estimate, change->ratio.low,
			change->ratio.high);
	fprintf(stream, ", p %.2g\n", change->p);
	write_range(stream, report, change);
	if (change->note)
		fprintf(stream, "  acknowledged: %s\n", change->note);
	if (change->confirmation != CHECK_NEEDED)
		fprintf(stream, "  %s by fresh runs: %zu before, %zu after\n",
			change->confirmation == CHECK_CONFIRMED ? "confirmed" : "not confirmed",
			change->confirm_before, change->confirm_after);
	write_need(stream, report, result, change, where);
}

void check_write_text(FILE *stream, const struct check_report *report, const char *where)
{
	size_t points = 0, runs = 0, without = 0;

	for (size_t i = 0; i < report->data->series_count; i++) {
		const struct check_result *result = &report->results[i];

		points += result->points;
		runs += result->runs;
		without += result->points < 6;
		for (size_t k = 0; k < result->count; k++)
			write_change(stream, report, result, &result->changes[k], where);
		if (result->newest_invalid)
			fprintf(stream,
				"invalid: series %lld %s %s %s on %s: no run of its newest commit "
				"counts\n",
				(long long)result->series->id, result->series->benchmark,
				result->series->arm, result->series->metric,
				result->series->machine);
	}
	fprintf(stream,
		"%zu series, %zu points, %zu runs: %zu regressions, %zu suspected, %zu improvements, "
		"%zu known\n",
		report->data->series_count, points, runs, report->alarms, report->suspicions,
		report->improvements, report->acknowledged);
	if (without)
		fprintf(stream,
			"%zu series have fewer than 6 points: nothing can be said of them yet\n",
			without);
}

/* --- JSON --- */

static json_t *change_to_json(const struct check_report *report, const struct check_change *change)
{
	json_t *object = json_object(), *ratio = json_array();

	json_array_append_new(ratio, json_number_or_null(change->ratio.low));
	json_array_append_new(ratio, json_number_or_null(change->ratio.high));
	json_put(object, "kind", json_string(change->worse ? "regression" : "improvement"));
	json_put(object, "alarm", json_boolean(check_alarms(change, &report->settings)));
	json_put(object, "confirmation",
		 json_string(check_confirmation_name(change->confirmation)));
	json_put(object, "mended", json_boolean(change->mended));
	json_put(object, "acknowledged", json_string_or_null(change->note));
	json_put(object, "last_good", json_string_or_null(commit_name(report, change->last_good)));
	json_put(object, "at", json_string_or_null(commit_name(report, change->at)));
	json_put(object, "first_bad", json_string_or_null(commit_name(report, change->first_bad)));
	json_put(object, "before", json_number_or_null(change->before));
	json_put(object, "after", json_number_or_null(change->after));
	json_put(object, "ratio", json_number_or_null(change->ratio.estimate));
	json_put(object, "ratio_ci", ratio);
	json_put(object, "p", json_number_or_null(change->p));
	json_put(object, "confirm_runs_before", json_integer((json_int_t)change->confirm_before));
	json_put(object, "confirm_runs_after", json_integer((json_int_t)change->confirm_after));
	return object;
}

static json_t *result_to_json(const struct check_report *report, const struct check_result *result)
{
	const struct history_series *series = result->series;
	json_t *object = json_object(), *changes = json_array();

	json_put(object, "series", json_integer(series->id));
	json_put(object, "machine_key", json_string_or_null(series->machine));
	json_put(object, "benchmark", json_string_or_null(series->benchmark));
	json_put(object, "arm", json_string_or_null(series->arm));
	json_put(object, "settings_key", json_string_or_null(series->settings_key));
	json_put(object, "metric", json_string_or_null(series->metric));
	json_put(object, "unit", json_string_or_null(series->unit));
	json_put(object, "better", json_string_or_null(series->better));
	json_put(object, "points", json_integer((json_int_t)result->points));
	json_put(object, "runs", json_integer((json_int_t)result->runs));
	json_put(object, "invalid_runs", json_integer((json_int_t)result->invalid));
	json_put(object, "failed_runs", json_integer((json_int_t)result->failed));
	json_put(object, "newest_invalid", json_boolean(result->newest_invalid));
	json_put(object, "level", json_number_or_null(result->level));
	for (size_t i = 0; i < result->count; i++)
		json_array_append_new(changes, change_to_json(report, &result->changes[i]));
	json_put(object, "changes", changes);
	return object;
}

json_t *check_to_json(const struct check_report *report)
{
	json_t *object = json_object(), *series = json_array();

	json_put(object, "schema", json_string("syslatency/check/1"));
	json_put(object, "alpha", json_real(report->settings.alpha));
	json_put(object, "confirm_alpha", json_real(report->settings.confirm_alpha));
	json_put(object, "min_effect", json_real(report->settings.min_effect));
	json_put(object, "confidence", json_real(report->settings.confidence));
	json_put(object, "regressions", json_integer((json_int_t)report->alarms));
	json_put(object, "suspected", json_integer((json_int_t)report->suspicions));
	json_put(object, "improvements", json_integer((json_int_t)report->improvements));
	json_put(object, "acknowledged", json_integer((json_int_t)report->acknowledged));
	for (size_t i = 0; i < report->data->series_count; i++)
		json_array_append_new(series, result_to_json(report, &report->results[i]));
	json_put(object, "series", series);
	return object;
}

/* --- JUnit --- */

static void write_failure(FILE *stream, const struct check_report *report,
			  const struct check_result *result, const struct check_change *change)
{
	fprintf(stream, "<failure type=\"regression\" message=\"%.4g to %.4g ", change->before,
		change->after);
	markup_escape(stream, result->series->unit);
	fputs(" at ", stream);
	markup_escape(stream, commit_name(report, change->at));
	fputs("\"/>", stream);
}

void check_write_junit(FILE *stream, const struct check_report *report)
{
	size_t failures = 0;

	for (size_t i = 0; i < report->data->series_count; i++)
		for (size_t k = 0; k < report->results[i].count; k++)
			if (check_alarms(&report->results[i].changes[k], &report->settings)) {
				failures++;
				break;
			}
	fprintf(stream,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<testsuite name=\"syslat history check\" tests=\"%zu\" failures=\"%zu\" "
		"errors=\"0\" skipped=\"%zu\">\n",
		report->data->series_count, failures, report->invalid);
	for (size_t i = 0; i < report->data->series_count; i++) {
		const struct check_result *result = &report->results[i];

		fputs("<testcase classname=\"", stream);
		markup_escape(stream, result->series->machine);
		fputs("\" name=\"", stream);
		markup_escape(stream, result->series->benchmark);
		fputc(' ', stream);
		markup_escape(stream, result->series->arm);
		fputc(' ', stream);
		markup_escape(stream, result->series->metric);
		fprintf(stream, " series %lld\">", (long long)result->series->id);
		for (size_t k = 0; k < result->count; k++)
			if (check_alarms(&result->changes[k], &report->settings))
				write_failure(stream, report, result, &result->changes[k]);
		if (result->newest_invalid)
			fputs("<skipped message=\"no run of the newest commit counts\"/>", stream);
		fputs("</testcase>\n", stream);
	}
	fputs("</testsuite>\n", stream);
}
