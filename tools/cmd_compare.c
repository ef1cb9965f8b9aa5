/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/exit.h"
#include "base/json.h"
#include "base/options.h"
#include "base/parse.h"
#include "command.h"
#include "compare_ministat.h"
#include "ops.h"
#include "record/alike.h"
#include "record/comparison.h"
#include "record/record.h"

#define NAME "compare"
#define METRICS_MAX 32

struct settings {
	const char *metric, *against, *json, *plot;
	double alpha_share, min_effect_share, confidence_share;
	int64_t width, column;
	unsigned int mix;
	bool without_interrupted, without_suspect, include_invalid;
	bool normalise, ministat, fail_on_slower;
	char zero[128], one[128];
};

/* A share written as "1%" or "0.01". */
static int share(const char *argument, double *ret_share)
{
	size_t length = strlen(argument);
	bool percent = length && argument[length - 1] == '%';
	char *text = strndup(argument, percent ? length - 1 : length);
	int error = text ? parse_double(text, ret_share) : -ENOMEM;

	free(text);
	if (!error && percent)
		*ret_share /= 100;
	return error;
}

static int set_alpha(void *data, const char *argument, struct message *message)
{
	struct settings *settings = data;

	if (share(argument, &settings->alpha_share) || !(settings->alpha_share > 0) ||
	    settings->alpha_share >= 0.5)
		return message_set(message, -EINVAL,
				   "--alpha: \"%s\" is no share above 0 and below 0.5 (1%%, 0.01)",
				   argument);
	return 0;
}

static int set_min_effect(void *data, const char *argument, struct message *message)
{
	struct settings *settings = data;

	if (share(argument, &settings->min_effect_share) || settings->min_effect_share < 0 ||
	    settings->min_effect_share > 100)
		return message_set(message, -EINVAL, "--min-effect: \"%s\" is no share (5%%, 0.05)",
				   argument);
	return 0;
}

static int set_confidence(void *data, const char *argument, struct message *message)
{
	struct settings *settings = data;

	if (share(argument, &settings->confidence_share) || !(settings->confidence_share > 0) ||
	    settings->confidence_share >= 1)
		return message_set(message, -EINVAL,
				   "--confidence: \"%s\" is no share between 0 and 1 (95%%, 0.95)",
				   argument);
	return 0;
}

static int set_mix(void *data, const char *argument, struct message *message)
{
	return mix_parse(argument, &((struct settings *)data)->mix, message);
}

static int set_without(void *data, const char *argument, struct message *message)
{
	struct settings *settings = data;

	for (const char *at = argument; *at;) {
		size_t length = strcspn(at, ",");

		if (length == 11 && strncmp(at, "interrupted", length) == 0)
			settings->without_interrupted = true;
		else if (length == 7 && strncmp(at, "suspect", length) == 0)
			settings->without_suspect = true;
		else
			return message_set(message, -EINVAL,
					   "--without: unknown word \"%.*s\"; known: interrupted, "
					   "suspect",
					   (int)length, at);
		at += length + (at[length] == ',');
	}
	return 0;
}

static int set_normalise(void *data, const char *argument, struct message *message)
{
	struct settings *settings = data;
	const char *comma = argument ? strchr(argument, ',') : NULL;

	settings->normalise = true;
	if (!argument)
		return 0;
	if (!comma || comma == argument || !comma[1] || strlen(argument) >= sizeof(settings->one))
		return message_set(message, -EINVAL,
				   "--normalise: \"%s\": two arms are wanted, ZERO,ONE", argument);
	memcpy(settings->zero, argument, (size_t)(comma - argument));
	settings->zero[comma - argument] = '\0';
	strcpy(settings->one, comma + 1);
	return 0;
}

static const char *const plots[] = {"auto", "linear", "log", "none", NULL};

static const struct option_row rows[] = {
	{OPTION_SECTION, .long_name = "What is compared"},
	{OPTION_STRING, 0, "metric", "LIST",
	 "mean, max, min, stddev, p50, p90, p99, p99.9, p99.99, igt-mean, igt-max, a name\n"
	 "of the record's metrics, or a path (counters.vmstat.pswpout); commas between\n"
	 "(default: mean,max; else every metric that the records have)",
	 offsetof(struct settings, metric)},
	{OPTION_STRING, 0, "against", "ARM", "the reference (default: the first named)",
	 offsetof(struct settings, against)},
	{OPTION_CALL, 0, "mix", "LIST",
	 "compare in spite of differing units, benchmarks, trace-levels, settings,\n"
	 "interrupted, durations, or all",
	 .call = set_mix},
	{OPTION_CALL, 0, "without", "LIST", "leave out runs that are interrupted, suspect",
	 .call = set_without},
	{OPTION_FLAG, 0, "include-invalid", NULL, "take runs judged invalid too",
	 offsetof(struct settings, include_invalid)},
	{OPTION_INT, 0, "column", "N", "column of plain files (default 1)",
	 offsetof(struct settings, column), .minimum = 1, .maximum = 1000},
	{OPTION_SECTION, .long_name = "Verdict"},
	{OPTION_CALL, 0, "alpha", "SHARE",
	 "chance of any false claim in the whole report (default 1%)", .call = set_alpha},
	{OPTION_CALL, 0, "min-effect", "SHARE",
	 "least ratio that counts as a difference (default 5%)", .call = set_min_effect},
	{OPTION_CALL, 0, "confidence", "SHARE", "of the intervals shown (default 95%)",
	 .call = set_confidence},
	{OPTION_FLAG, 0, "fail-on-slower", NULL, "exit 3 when an arm is slower than the reference",
	 offsetof(struct settings, fail_on_slower)},
	{OPTION_SECTION, .long_name = "Output"},
	{OPTION_CHOICE, 0, "plot", "AXIS", "auto, linear, log, none (default auto)",
	 offsetof(struct settings, plot), .choices = plots},
	{OPTION_INT, 0, "width", "COLUMNS", "of the plot (default 74, or the terminal's)",
	 offsetof(struct settings, width), .minimum = 1, .maximum = 10000},
	{OPTION_CALL, 0, "normalise", "ZERO,ONE",
	 "medians on a scale of 0 (default baseline) to 1 (default stock)", .call = set_normalise,
	 .optional_argument = 1},
	{OPTION_FLAG, 0, "ministat", NULL, "hand the same values to the installed ministat",
	 offsetof(struct settings, ministat)},
	{OPTION_STRING, 0, "json", "FILE",
	 "the result as JSON, one line a metric (-: in place of the text)",
	 offsetof(struct settings, json)},
};

static size_t page_width(const struct settings *settings)
{
	struct winsize size;

	if (settings->width)
		return (size_t)settings->width;
	if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 &&
	    size.ws_col > 26)
		return (size_t)size.ws_col - 2;
	return 74;
}

/* --- which metrics --- */

struct metrics {
	char *names[METRICS_MAX + 1];
	size_t count;
};

static void metrics_free(struct metrics *metrics)
{
	for (size_t i = 0; i < metrics->count; i++)
		free(metrics->names[i]);
}

static int metrics_add(struct metrics *metrics, const char *name, size_t length)
{
	if (metrics->count == METRICS_MAX)
		return -E2BIG;
	metrics->names[metrics->count] = strndup(name, length);
	if (!metrics->names[metrics->count])
		return -ENOMEM;
	metrics->count++;
	return 0;
}

static const struct record *first_record(const struct arm_set *set)
{
	for (size_t i = 0; i < set->count; i++)
		for (size_t j = 0; j < set->arms[i].record_count; j++)
			if (strcmp(set->arms[i].records[j]->status, "ok") == 0)
				return set->arms[i].records[j];
	return NULL;
}

static int default_metrics(const struct arm_set *set, struct metrics *metrics)
{
	const struct record *record = first_record(set);
	const char *name;
	json_t *value;
	int error = 0;

	if (!arm_set_has_records(set) || !record)
		return metrics_add(metrics, set->plain_metric, strlen(set->plain_metric));
	if (arm_set_has_plain(set)) {
		name = strcmp(set->plain_metric, "value") == 0 ? "mean" : set->plain_metric;
		return metrics_add(metrics, name, strlen(name));
	}
	if (record->has_latency) {
		error = metrics_add(metrics, "mean", 4);
		return error ? error : metrics_add(metrics, "max", 3);
	}
	json_object_foreach (record->metrics, name, value)
		error = error ? error : metrics_add(metrics, name, strlen(name));
	return error;
}

static int choose_metrics(const struct settings *settings, const struct arm_set *set,
			  struct metrics *metrics, struct message *message)
{
	int error = 0;

	if (!settings->metric)
		error = default_metrics(set, metrics);
	for (const char *at = settings->metric; at && *at && !error;) {
		size_t length = strcspn(at, ",");

		if (length)
			error = metrics_add(metrics, at, length);
		at += length + (at[length] == ',');
	}
	if (error == -E2BIG)
		return message_set(message, -EINVAL,
				   "more than %d metrics; name some with --metric", METRICS_MAX);
	if (!error && metrics->count == 0)
		return message_set(message, settings->metric ? -EINVAL : -ENODATA,
				   "no metric to compare; name one with --metric");
	if (!error && arm_set_has_plain(set) && metrics->count > 1)
		return message_set(message, -EINVAL,
				   "a plain file holds one metric; --metric takes one name here");
	return error ? message_set_errno(message, error, "metrics") : 0;
}

/* --- the comparison --- */

struct job {
	struct settings settings;
	struct arm_set *set;
	struct metrics metrics;
	struct comparison *comparisons[METRICS_MAX], *with_invalid[METRICS_MAX];
	bool any_invalid;
	json_t *differences;
};

static void job_free(struct job *job)
{
	for (size_t i = 0; i < METRICS_MAX; i++) {
		comparison_free(job->comparisons[i]);
		comparison_free(job->with_invalid[i]);
	}
	metrics_free(&job->metrics);
	json_decref(job->differences);
	arm_set_free(job->set);
}

static int make_all(struct job *job, bool include_invalid, struct comparison **into,
		    struct message *message)
{
	struct comparison_options options = {
		.alpha = job->settings.alpha_share,
		.confidence = job->settings.confidence_share,
		.min_effect = job->settings.min_effect_share,
		.against = job->settings.against,
		.include_invalid = include_invalid,
		.without_interrupted = job->settings.without_interrupted,
		.without_suspect = job->settings.without_suspect,
	};
	int error;

	for (size_t i = 0; i < job->metrics.count; i++) {
		error = comparison_make(job->set, job->metrics.names[i], &options, &into[i],
					message);
		if (error)
			return error;
		job->any_invalid |= comparison_left_out_invalid(into[i]);
	}
	error = comparison_decide(into, job->metrics.count);
	return error ? message_set_errno(message, error, "verdicts") : 0;
}

static int prepare(struct job *job, char *const *operands, size_t count, struct message *message)
{
	unsigned int mix = job->settings.mix;
	int error = arm_set_read(operands, count, (unsigned int)job->settings.column, &job->set,
				 message);

	if (job->settings.without_interrupted)
		mix |= MIX_INTERRUPTED;
	if (!error)
		error = choose_metrics(&job->settings, job->set, &job->metrics, message);
	if (!error)
		error = arms_check_alike(job->set, mix, (const char *const *)job->metrics.names,
					 message);
	if (!error && !job->settings.ministat) {
		error = make_all(job, job->settings.include_invalid, job->comparisons, message);
		if (!error && job->any_invalid)
			error = make_all(job, true, job->with_invalid, message);
	}
	if (error)
		return error;
	job->differences = arms_differences(job->set);
	return job->differences ? 0 : message_set_errno(message, -ENOMEM, "differences");
}

static int find_normal(const struct job *job, const char *given, const char *otherwise,
		       size_t *ret_arm, struct message *message)
{
	const char *name = *given ? given : otherwise;
	int found = arm_set_find(job->set, name);

	if (found < 0)
		return message_set(message, -EINVAL,
				   "--normalise: there is no arm called \"%s\"; name two: "
				   "--normalise=ZERO,ONE",
				   name);
	*ret_arm = (size_t)found;
	return 0;
}

static int fill_report(const struct job *job, struct comparison_report *report,
		       struct message *message)
{
	const char *plot = job->settings.plot ? job->settings.plot : "auto";
	int error = 0;

	*report = (struct comparison_report){
		.set = job->set,
		.comparisons = job->comparisons,
		.with_invalid = job->any_invalid ? job->with_invalid : NULL,
		.count = job->metrics.count,
		.differences = job->differences,
		.width = page_width(&job->settings),
		.normalise = job->settings.normalise,
	};
	for (int i = 0; plots[i]; i++)
		if (strcmp(plots[i], plot) == 0)
			report->plot = i;
	if (report->normalise) {
		error = find_normal(job, job->settings.zero, "baseline", &report->zero, message);
		if (!error)
			error = find_normal(job, job->settings.one, "stock", &report->one, message);
	}
	return error;
}

static int write_json(const struct job *job, FILE *stream)
{
	for (size_t i = 0; i < job->metrics.count; i++) {
		json_t *json = comparison_to_json(job->comparisons[i]);
		char *line = json ? json_line(json) : NULL;

		json_decref(json);
		if (!line)
			return -ENOMEM;
		fprintf(stream, "%s\n", line);
		free(line);
	}
	return ferror(stream) ? -EIO : 0;
}

static int write_json_file(const struct job *job, struct message *message)
{
	FILE *stream;
	int error;

	if (strcmp(job->settings.json, "-") == 0)
		return write_json(job, stdout);
	stream = fopen(job->settings.json, "we");
	if (!stream)
		return message_set_errno(message, -errno, "%s", job->settings.json);
	error = write_json(job, stream);
	if (fclose(stream) != 0 && !error)
		error = -errno;
	return error ? message_set_errno(message, error, "%s", job->settings.json) : 0;
}

static int explain_plot(const struct comparison_report *report, int error, struct message *message)
{
	if (error == -ERANGE)
		return message_set(message, -EDOM,
				   "--plot log: a value is zero or negative; --plot linear shows "
				   "it");
	if (error == -E2BIG)
		return message_set(message, -EDOM,
				   "a plot takes at most 16 arms, here are %zu: --plot none",
				   report->set->count);
	return message_set_errno(message, error, "report");
}

/* The text is made in full before any of it is shown, so that a failure shows one line alone. */
static int write_text(const struct comparison_report *report, struct message *message)
{
	const struct report_ops *ops = report_find("compare");
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	int error;

	if (!stream)
		return message_set_errno(message, -ENOMEM, "report");
	error = ops->compare(stream, report);
	if (fclose(stream) != 0 && !error)
		error = -ENOMEM;
	if (error)
		explain_plot(report, error, message);
	else
		fwrite(text, 1, size, stdout);
	free(text);
	return error;
}

static bool any_slower(const struct job *job)
{
	for (size_t i = 0; i < job->metrics.count; i++)
		for (size_t j = 0; j < job->comparisons[i]->pair_count; j++)
			if (job->comparisons[i]->pairs[j].verdict == COMPARISON_SLOWER)
				return true;
	return false;
}

static int fail(int error, const struct message *message)
{
	command_error(NAME, "%s", message->text);
	switch (error) {
	case -EINVAL:
		return EXIT_USAGE;
	case -ENOTSUP:
		return EXIT_SKIPPED;
	default:
		return EXIT_FAILED;
	}
}

static int compare(struct job *job, char *const *operands, size_t count)
{
	struct comparison_report report;
	struct message message = {""};
	int error = prepare(job, operands, count, &message);

	/* What is wrong in a file is no wrong usage. */
	if (error == -EINVAL && !job->metrics.count && job->set == NULL)
		error = -EBADMSG;
	if (error)
		return fail(error, &message);
	if (job->settings.ministat) {
		error = ministat_run(job->set, job->metrics.names, job->metrics.count,
				     job->settings.alpha_share, page_width(&job->settings),
				     &message);
		return error ? fail(error, &message) : EXIT_DONE;
	}
	error = fill_report(job, &report, &message);
	if (!error && job->settings.json)
		error = write_json_file(job, &message);
	if (!error && (!job->settings.json || strcmp(job->settings.json, "-") != 0))
		error = write_text(&report, &message);
	if (error)
		return fail(error, &message);
	return job->settings.fail_on_slower && any_slower(job) ? EXIT_REGRESSION : EXIT_DONE;
}

static int run_compare(int argc, char **argv)
{
	struct job job = {
		.settings = {.alpha_share = COMPARISON_ALPHA,
			     .min_effect_share = COMPARISON_MIN_EFFECT,
			     .confidence_share = COMPARISON_CONFIDENCE,
			     .column = 1},
	};
	struct message message = {""};
	int first = argc, status;
	int parsed = options_parse(rows, sizeof(rows) / sizeof(rows[0]), &job.settings, argc, argv,
				   0, &first, &message);

	if (parsed == OPTIONS_HELP) {
		options_help(stdout, "syslat compare [OPTION]... DIR|RECORD|FILE|-...",
			     "Compares arms: experiments, records, files of numbers (one a line), "
			     "each also as NAME=PATH.",
			     rows, sizeof(rows) / sizeof(rows[0]));
		return EXIT_DONE;
	}
	if (parsed == OPTIONS_VERSION) {
		command_version();
		return EXIT_DONE;
	}
	if (parsed < 0)
		return fail(-EINVAL, &message);
	if (first == argc) {
		command_error(NAME, "nothing to compare: give an experiment's folder, records, or "
				    "files of numbers");
		return EXIT_USAGE;
	}
	status = compare(&job, argv + first, (size_t)(argc - first));
	job_free(&job);
	return status;
}

const struct command command_compare = {
	NAME,
	"compare arms: table, plots, verdicts",
	run_compare,
};
