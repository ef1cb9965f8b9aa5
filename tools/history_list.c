/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/exit.h"
#include "base/json.h"
#include "command.h"
#include "history_options.h"
#include "stats/series.h"

/* syslat history list and show: what is in the database. */

static const char *const states[] = {"valid", "suspect", "invalid", "failed"};

static char *when(int64_t us, char buffer[32])
{
	time_t seconds = (time_t)(us / 1000000);
	struct tm tm;

	snprintf(buffer, 32, "-");
	if (us != INT64_MIN && us != INT64_MAX && gmtime_r(&seconds, &tm))
		strftime(buffer, 32, "%Y-%m-%dT%H:%M:%SZ", &tm);
	return buffer;
}

/* --- all series --- */

static json_t *series_json(const struct history_series *series, int64_t count)
{
	json_t *object = json_object(), *settings;

	json_put(object, "series", json_integer(series->id));
	json_put(object, "machine_key", json_string_or_null(series->machine));
	json_put(object, "benchmark", json_string_or_null(series->benchmark));
	json_put(object, "arm", json_string_or_null(series->arm));
	json_put(object, "settings_key", json_string_or_null(series->settings_key));
	settings = series->settings ? json_loads(series->settings, 0, NULL) : NULL;
	json_put(object, "settings", settings ? settings : json_null());
	json_put(object, "metric", json_string_or_null(series->metric));
	json_put(object, "unit", json_string_or_null(series->unit));
	json_put(object, "better", json_string_or_null(series->better));
	json_put(object, "runs", json_integer(count));
	return object;
}

static int list_all(struct history *history, const struct history_settings *settings,
		    const struct history_data *data, struct message *message)
{
	json_t *array = settings->json ? json_array() : NULL;
	int error = 0;

	if (!array)
		printf("%8s %10s  %-16s %-18s %-12s %-8s %-16s %s\n", "series", "runs", "machine",
		       "benchmark", "arm", "metric", "settings", "unit");
	for (size_t i = 0; i < data->series_count && !error; i++) {
		const struct history_series *series = &data->series[i];
		int64_t count = 0;

		error = history_count(history, series->id, &count, message);
		if (array)
			json_array_append_new(array, series_json(series, count));
		else
			printf("%8lld %10lld  %-16s %-18s %-12s %-8s %-16s %s\n",
			       (long long)series->id, (long long)count, series->machine,
			       series->benchmark, series->arm, series->metric, series->settings_key,
			       series->unit);
	}
	if (array && !error)
		return command_write_json(settings->json, array, message);
	json_decref(array);
	return error;
}

/* --- one series: a line a commit --- */

struct commit_line {
	const struct history_commit *commit;
	size_t runs, lost, fresh;
	double median, minimum, maximum;
};

static int gather_line(const struct history_point *points, size_t count, double *values,
		       struct commit_line *line)
{
	int error;

	for (size_t i = 0; i < count; i++) {
		if (points[i].purpose != PURPOSE_HISTORY)
			line->fresh++;
		else if (points[i].state > RUN_SUSPECT || !isfinite(points[i].value))
			line->lost++;
		else
			values[line->runs++] = points[i].value;
	}
	error = series_sort(values, line->runs);
	line->median = series_median(values, line->runs);
	line->minimum = line->runs ? values[0] : NAN;
	line->maximum = line->runs ? values[line->runs - 1] : NAN;
	return error;
}

static void print_line(const struct commit_line *line)
{
	char text[32];

	printf("%-20s %-40s %6zu %12.8g %12.8g %12.8g", when(line->commit->time_us, text),
	       line->commit->name, line->runs, line->minimum, line->median, line->maximum);
	if (line->lost)
		printf("  %zu left out", line->lost);
	if (line->fresh)
		printf("  %zu to confirm", line->fresh);
	if (line->commit->tags)
		printf("  %s", line->commit->tags);
	putchar('\n');
}

static json_t *line_json(const struct commit_line *line)
{
	char text[32];
	json_t *object = json_object();

	json_put(object, "commit", json_string_or_null(line->commit->name));
	json_put(object, "time", json_string(when(line->commit->time_us, text)));
	json_put(object, "branch", json_string_or_null(line->commit->branch));
	json_put(object, "tags", json_string_or_null(line->commit->tags));
	json_put(object, "kernel", json_string_or_null(line->commit->kernel));
	json_put(object, "runs", json_integer((json_int_t)line->runs));
	json_put(object, "left_out", json_integer((json_int_t)line->lost));
	json_put(object, "to_confirm", json_integer((json_int_t)line->fresh));
	json_put(object, "min", json_number_or_null(line->minimum));
	json_put(object, "median", json_number_or_null(line->median));
	json_put(object, "max", json_number_or_null(line->maximum));
	return object;
}

static int list_one(const struct history_settings *settings, const struct history_data *data,
		    struct message *message)
{
	size_t count = data->starts[1];
	double *values = malloc((count + 1) * sizeof(double));
	json_t *array = settings->json ? json_array() : NULL;
	int error = values ? 0 : -ENOMEM;

	if (!array)
		printf("series %lld: %s %s %s, %s, machine %s\n%-20s %-40s %6s %12s %12s %12s\n",
		       (long long)data->series[0].id, data->series[0].benchmark,
		       data->series[0].arm, data->series[0].metric,
		       *data->series[0].unit ? data->series[0].unit : "no unit",
		       data->series[0].machine, "time", "commit", "runs", "min", "median", "max");
	for (size_t i = 0, end; i < count && !error; i = end) {
		struct commit_line line = {.commit = &data->commits[data->points[i].commit]};

		for (end = i + 1;
		     end < count && data->points[end].commit == data->points[i].commit;)
			end++;
		error = gather_line(data->points + i, end - i, values, &line);
		if (array)
			json_array_append_new(array, line_json(&line));
		else
			print_line(&line);
	}
	free(values);
	if (array && !error)
		return command_write_json(settings->json, array, message);
	json_decref(array);
	return error;
}

static int list_any(struct history *history, const struct history_settings *settings,
		    struct history_data *data, struct message *message)
{
	return settings->series ? list_one(settings, data, message)
				: list_all(history, settings, data, message);
}

static int list(struct history_settings *settings, char *const *operands, size_t count)
{
	(void)operands;
	return history_on_data(settings, "list", count, settings->series != 0, list_any);
}

static const struct option_row list_rows[] = {
	HISTORY_ROW_DB,
	HISTORY_ROWS_SERIES,
	{OPTION_STRING, 0, "json", "FILE", "as JSON; '-': in place of the text", HISTORY_AT(json)},
};

const struct history_part history_part_list = {
	"list",
	"all series, or with --series the commits of one",
	"syslat history list [OPTION]...",
	list,
	list_rows,
	HISTORY_ROW_COUNT(list_rows),
};

/* --- show --- */

struct showing {
	char uuid[37];
	json_t *array, *run, *values;
};

static void start_run(struct showing *showing, const struct history_run_row *row)
{
	char text[32];

	snprintf(showing->uuid, sizeof(showing->uuid), "%s", row->uuid);
	if (!showing->array) {
		printf("run %s: %s, commit %s%s%s, kernel %s, %s%s\n  from %s\n", row->uuid,
		       when(row->started_us, text), row->commit, row->tags ? ", tags " : "",
		       row->tags ? row->tags : "", row->kernel ? row->kernel : "unknown",
		       states[row->state & 3],
		       row->purpose == PURPOSE_CONFIRM ? ", to confirm a change" : "", row->source);
		return;
	}
	showing->run = json_object();
	showing->values = json_array();
	json_put(showing->run, "id", json_string_or_null(row->uuid));
	json_put(showing->run, "commit", json_string_or_null(row->commit));
	json_put(showing->run, "branch", json_string_or_null(row->branch));
	json_put(showing->run, "tags", json_string_or_null(row->tags));
	json_put(showing->run, "kernel", json_string_or_null(row->kernel));
	json_put(showing->run, "source", json_string_or_null(row->source));
	json_put(showing->run, "started", json_string(when(row->started_us, text)));
	json_put(showing->run, "state", json_string(states[row->state & 3]));
	json_put(showing->run, "confirms", json_boolean(row->purpose == PURPOSE_CONFIRM));
	json_put(showing->run, "values", showing->values);
	json_array_append_new(showing->array, showing->run);
}

static int show_row(void *data, const struct history_run_row *row)
{
	struct showing *showing = data;
	json_t *value;

	if (strcmp(showing->uuid, row->uuid) != 0)
		start_run(showing, row);
	if (!row->series)
		return 0;
	if (!showing->array) {
		printf("  series %lld: %s %s %.8g %s\n", (long long)row->series, row->arm,
		       row->metric, row->value, row->unit);
		return 0;
	}
	value = json_object();
	json_put(value, "series", json_integer(row->series));
	json_put(value, "metric", json_string_or_null(row->metric));
	json_put(value, "unit", json_string_or_null(row->unit));
	json_put(value, "value", json_number_or_null(row->value));
	return json_array_append_new(showing->values, value) ? -ENOMEM : 0;
}

static int show(struct history_settings *settings, char *const *operands, size_t count)
{
	struct history history = {.database = NULL};
	struct showing showing = {.array = settings->json ? json_array() : NULL};
	struct message message = {""};
	int error;

	if (count != 1) {
		json_decref(showing.array);
		command_error(HISTORY_NAME, "show: give one commit, or the id of a run");
		return EXIT_USAGE;
	}
	error = history_open(settings->db, false, &history, &message);
	if (!error)
		error = history_show(&history, operands[0], show_row, &showing, &message);
	history_close(&history);
	if (!error && showing.array)
		error = command_write_json(settings->json, json_incref(showing.array), &message);
	json_decref(showing.array);
	return error ? history_fail(error, &message) : EXIT_DONE;
}

static const struct option_row show_rows[] = {
	HISTORY_ROW_DB,
	{OPTION_STRING, 0, "json", "FILE", "as JSON; '-': in place of the text", HISTORY_AT(json)},
};

const struct history_part history_part_show = {
	"show",
	"every value of a run or of a commit",
	"syslat history show [OPTION]... COMMIT|ID",
	show,
	show_rows,
	HISTORY_ROW_COUNT(show_rows),
};
