/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "exports/export.h"

/*
 * KCIDB, schema 5.0 (github.com/kernelci/kcidb-io): a checkout and a build for each kernel, and,
 * since a test holds one number, a test for each metric of each run: BENCHMARK.ARM.METRIC, status
 * DONE, or ERROR when the run is invalid.
 */

/* Parts of a path hold letters, digits, '_' and '-' alone. */
static void add_part(char *path, size_t size, const char *part)
{
	size_t at = strlen(path);

	if (at && at + 1 < size)
		path[at++] = '.';
	for (; *part && at + 1 < size; part++) {
		bool plain = (*part >= 'a' && *part <= 'z') || (*part >= 'A' && *part <= 'Z') ||
			     (*part >= '0' && *part <= '9') || *part == '_' || *part == '-';

		path[at++] = plain ? *part : '_';
	}
	path[at] = '\0';
}

static bool is_origin(const char *text)
{
	return *text && strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(text);
}

static bool is_full_hash(const char *text)
{
	size_t length = strlen(text);

	return (length == 40 || length == 64) && strspn(text, "0123456789abcdef") == length;
}

struct report {
	const struct export_settings *settings;
	json_t *checkouts, *builds, *tests;
	json_t *known; /* builds that are there, by id */
};

/* ORIGIN:COMMIT of both; the build is the kernel that ran. */
static void add_build(struct report *report, const struct record *record, const char *commit,
		      const char *build_id)
{
	const struct export_settings *settings = report->settings;
	json_t *checkout, *build;
	char id[400];

	if (json_object_get(report->known, build_id))
		return;
	json_put(report->known, build_id, json_true());
	snprintf(id, sizeof(id), "%s:%s", settings->origin, commit);
	if (!json_object_get(report->known, id)) {
		json_put(report->known, id, json_true());
		checkout = json_object();
		json_put(checkout, "id", json_string_or_null(id));
		json_put(checkout, "origin", json_string(settings->origin));
		if (is_full_hash(commit))
			json_put(checkout, "git_commit_hash", json_string(commit));
		else
			json_put(checkout, "git_commit_name", json_string_or_null(commit));
		if (settings->branch)
			json_put(checkout, "git_repository_branch",
				 json_string_or_null(settings->branch));
		json_array_append_new(report->checkouts, checkout);
	}
	build = json_object();
	json_put(build, "id", json_string_or_null(build_id));
	json_put(build, "origin", json_string(settings->origin));
	json_put(build, "checkout_id", json_string_or_null(id));
	json_put(build, "architecture",
		 json_string_or_null(
			 json_get_string(record->environment, "architecture", "unknown")));
	json_put(build, "comment", json_string_or_null(export_kernel(record)));
	json_array_append_new(report->builds, build);
}

static json_t *number_of(double value, const char *unit)
{
	json_t *number = json_object();

	json_put(number, "value", json_real(value));
	if (*unit)
		json_put(number, "unit", json_string_or_null(unit));
	return number;
}

static void add_test(struct report *report, const struct record *record, const char *arm,
		     const char *metric, const char *build_id)
{
	char id[400], path[512] = "";
	const char *unit = "";
	double value = NAN;
	json_t *test, *environment;

	if (record_metric(record, metric, &value, &unit) || !isfinite(value))
		return;
	add_part(path, sizeof(path), record->benchmark);
	add_part(path, sizeof(path), arm);
	add_part(path, sizeof(path), metric);
	snprintf(id, sizeof(id), "%s:%s.%s", report->settings->origin, record->id, metric);
	test = json_object();
	json_put(test, "id", json_string_or_null(id));
	json_put(test, "origin", json_string(report->settings->origin));
	json_put(test, "build_id", json_string_or_null(build_id));
	json_put(test, "path", json_string(path));
	json_put(test, "status",
		 json_string(record->verdict == VERDICT_INVALID ? "ERROR" : "DONE"));
	json_put(test, "number", number_of(value, unit));
	if (record->started[0])
		json_put(test, "start_time", json_string(record->started));
	if (isfinite(record->duration_s))
		json_put(test, "duration", json_real(record->duration_s));
	environment = json_object();
	json_put(environment, "comment", json_string_or_null(record->machine_key));
	json_put(test, "environment", environment);
	json_array_append_new(report->tests, test);
}

static void add_record(struct report *report, const struct record *record, const char *arm)
{
	char buffer[256], build_id[600];
	const char *commit = export_commit(record, report->settings, buffer);

	snprintf(build_id, sizeof(build_id), "%s:%s.%s", report->settings->origin, commit,
		 export_kernel(record));
	add_build(report, record, commit, build_id);
	for (size_t i = 0; report->settings->metrics[i]; i++)
		add_test(report, record, arm, report->settings->metrics[i], build_id);
}

static int write_kcidb(FILE *stream, const struct arm_set *set,
		       const struct export_settings *settings, struct message *message)
{
	struct report report = {settings, json_array(), json_array(), json_array(), json_object()};
	json_t *root = json_object(), *version = json_object();
	char *line;
	int error = 0;

	if (!is_origin(settings->origin))
		error = message_set(message, -EINVAL,
				    "--origin %s: small letters, digits and '_' are wanted",
				    settings->origin);
	for (size_t i = 0; i < set->count && !error; i++)
		for (size_t k = 0; k < set->arms[i].record_count; k++)
			if (export_takes(set->arms[i].records[k], settings))
				add_record(&report, set->arms[i].records[k], set->arms[i].name);
	json_decref(report.known);
	json_put(version, "major", json_integer(5));
	json_put(version, "minor", json_integer(0));
	json_put(root, "version", version);
	json_put(root, "checkouts", report.checkouts);
	json_put(root, "builds", report.builds);
	json_put(root, "tests", report.tests);
	line = json_line(root);
	json_decref(root);
	if (!error && !line)
		error = message_set_errno(message, -ENOMEM, "kcidb");
	if (!error)
		fprintf(stream, "%s\n", line);
	free(line);
	return error;
}

const struct export_ops export_kcidb = {
	.name = "kcidb",
	.summary = "KCIDB JSON, schema 5.0",
	.write = write_kcidb,
};
