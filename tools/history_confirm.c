/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "history/measure.h"
#include "history_options.h"
#include "record/record.h"
#include "record/store.h"
#include "stats/sequential.h"

/* syslat history check --confirm: fresh runs of both sides of a suspected change, by turns. */

static volatile sig_atomic_t signals_seen;

static void count_signal(int signal)
{
	(void)signal;
	signals_seen++;
}

struct confirming {
	struct history *history;
	const struct history_settings *settings;
	const struct check_report *report;
	const struct check_result *result;
	struct check_change change; /* a copy: counts grow */
	struct measure measure;
	struct random random;
	size_t added;
	struct message *message;
};

static int set_text(char **text, const json_t *value)
{
	char *copy = json_is_string(value) ? strdup(json_string_value(value)) : NULL;

	if (json_is_string(value) && !copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

static int set_loads(struct record *record, const json_t *loads)
{
	size_t count = json_array_size(loads), filled = 0;
	char **names = calloc(count + 1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		if (set_text(&names[filled], json_array_get(loads, i)) == 0 && names[filled])
			filled++;
	for (size_t i = 0; record->loads && record->loads[i]; i++)
		free(record->loads[i]);
	free(record->loads);
	record->loads = names;
	return 0;
}

/* What a series' settings hold of the record's own keys. */
static int take_settings(struct record *record, json_t *settings)
{
	int error = set_loads(record, json_object_get(settings, "loads"));

	if (!error)
		error = set_text(&record->measure, json_object_get(settings, "measure"));
	if (!error)
		error = set_text(&record->scope, json_object_get(settings, "scope"));
	if (!error)
		error = set_text(&record->backend, json_object_get(settings, "backend"));
	if (!error)
		error = set_text(&record->trace_level, json_object_get(settings, "trace_level"));
	json_decref(record->settings);
	record->settings = json_incref(settings);
	return error;
}

/* A command that describes no settings measures the series that it was asked about. */
static int take_series(struct record *record, const struct history_series *series)
{
	json_t *settings = json_loads(series->settings, 0, NULL);
	json_t *command = json_object_get(settings, "command");
	int error = 0;

	free(record->benchmark);
	free(record->arm);
	record->benchmark = strdup(series->benchmark);
	record->arm = strdup(series->arm);
	snprintf(record->machine_key, sizeof(record->machine_key), "%s", series->machine);
	if (command && !json_object_get(settings, "trace_level")) {
		json_decref(record->command);
		record->command = json_incref(command);
	} else {
		error = take_settings(record, settings);
	}
	json_decref(settings);
	return !error && record->benchmark && record->arm ? 0 : -ENOMEM;
}

/* A number that a foreign command prints is the metric of the series. */
static int name_value(struct record *record, const struct history_series *series)
{
	double value = json_get_number(json_object_get(record->metrics, "value"), "value", NAN);
	json_t *metrics, *metric;

	if (record->has_latency || isnan(value))
		return 0;
	metrics = json_object();
	metric = json_object();
	json_put(metric, "value", json_real(value));
	json_put(metric, "unit", json_string(series->unit));
	json_put(metric, "better", json_string(series->better));
	json_put(metrics, series->metric, metric);
	json_decref(record->metrics);
	record->metrics = metrics;
	return take_series(record, series);
}

/* Does the list hold a value of the series that is to be confirmed? */
static bool has_series(const struct run_list *runs, const struct history_series *series)
{
	char *wanted = NULL;
	bool found = false;

	if (asprintf(&wanted, "%s%c%s%c%s%c%s%c%s%c%s%c%s", series->machine, RUN_FIELD,
		     series->benchmark, RUN_FIELD, series->arm, RUN_FIELD, series->settings,
		     RUN_FIELD, series->metric, RUN_FIELD, series->unit, RUN_FIELD,
		     series->better) < 0)
		return false;
	for (size_t i = 0; i < runs->series.count && !found; i++)
		found = strcmp(runs->series.texts[i], wanted) == 0;
	free(wanted);
	return found;
}

/* The record goes to disk first: it is the truth, the database follows. */
static int keep(struct confirming *confirming, const struct record *record, const char *commit)
{
	struct run_labels labels = {
		.commit = commit, .commit_time_us = INT64_MIN, .purpose = PURPOSE_CONFIRM};
	const char *folder = confirming->settings->confirm_dir;
	struct run_list runs = {.runs = NULL};
	struct history_added added = {0};
	json_t *json = record_to_json(record);
	char *line = json ? json_line(json) : NULL, source[4096];
	int error = line ? 0 : -ENOMEM;

	snprintf(source, sizeof(source), "%s/runs.jsonl", folder);
	if (!error)
		error = run_list_read_text(&runs, source, line, strlen(line), &labels,
					   confirming->message);
	if (!error && !has_series(&runs, confirming->result->series))
		error = message_set(
			confirming->message, -EINVAL,
			"--confirm: the command measures another series than %lld (its "
			"machine, benchmark, arm, settings, metric): see syslat history "
			"list --json -",
			(long long)confirming->result->series->id);
	if (!error)
		error = store_append(folder, record, confirming->message);
	if (!error)
		error = history_add(confirming->history, &runs, 0, NULL, NULL, &added,
				    confirming->message);
	json_decref(json);
	free(line);
	run_list_free(&runs);
	confirming->added += added.runs;
	return error;
}

static int one_run(struct confirming *confirming, uint32_t commit)
{
	const char *name = confirming->report->data->commits[commit].name;
	struct record *record = NULL;
	int error;

	setenv("SYSLATENCY_COMMIT", name, 1);
	error = measure_run(&confirming->measure, &record, confirming->message);
	if (error) {
		struct message why = *confirming->message;

		return message_set(confirming->message, error, "--confirm, commit %s: %.300s", name,
				   why.text);
	}
	error = name_value(record, confirming->result->series);
	if (!error)
		error = keep(confirming, record, name);
	record_free(record);
	return error;
}

/* Reads the series again and looks where the change stands. */
static int look(struct confirming *confirming, struct check_change *ret_change)
{
	struct history_filter filter = {.series = confirming->result->series->id};
	struct history_data data = {.series = NULL};
	struct check_report report = {.results = NULL};
	const char *at = confirming->report->data->commits[confirming->change.at].name;
	int error = history_read(confirming->history, &filter, true, &data, confirming->message);

	if (!error)
		error = check_all(&data, &confirming->report->settings, &report,
				  confirming->message);
	for (size_t i = 0; !error && i < report.results[0].count; i++)
		if (strcmp(data.commits[report.results[0].changes[i].at].name, at) == 0)
			*ret_change = report.results[0].changes[i];
	if (report.results)
		check_report_free(&report);
	history_data_free(&data);
	return error;
}

static int confirm_change(struct confirming *confirming)
{
	struct check_change now = confirming->change;
	size_t most = confirming->report->settings.confirm_most;
	int error = 0;

	while (!error && now.confirmation == CHECK_NEEDED &&
	       (now.confirm_before < most || now.confirm_after < most)) {
		bool bad_first = random_below(&confirming->random, 2);

		error = one_run(confirming, bad_first ? now.first_bad : now.last_good);
		if (!error)
			error = one_run(confirming, bad_first ? now.last_good : now.first_bad);
		if (!error)
			error = look(confirming, &now);
	}
	return error;
}

int history_confirm(struct history *history, const struct history_settings *settings,
		    const struct check_report *report, size_t *ret_added, struct message *message)
{
	struct confirming confirming = {
		.history = history, .settings = settings, .report = report, .message = message};
	struct sigaction action = {.sa_handler = count_signal};
	int error = file_make_directories(settings->confirm_dir);

	if (error)
		return message_set_errno(message, error, "%s", settings->confirm_dir);
	error = measure_open("confirm", NULL, settings->confirm, &confirming.measure, message);
	if (error)
		return error;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	confirming.measure.interrupted = &signals_seen;
	random_seed(&confirming.random, random_fresh_seed());
	for (size_t i = 0; i < report->data->series_count && !error; i++) {
		confirming.result = &report->results[i];
		for (size_t k = 0; k < confirming.result->count && !error; k++) {
			confirming.change = confirming.result->changes[k];
			if (!confirming.change.worse || confirming.change.mended ||
			    confirming.change.note ||
			    confirming.change.confirmation != CHECK_NEEDED)
				continue;
			error = confirm_change(&confirming);
		}
	}
	measure_close(&confirming.measure);
	*ret_added = confirming.added;
	return error;
}
