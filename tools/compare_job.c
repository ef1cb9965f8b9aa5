/* SPDX-License-Identifier: MIT */
#include "compare_job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/exit.h"
#include "command.h"
#include "compare/comparable.h"
#include "record/record.h"
#include "share.h"

int compare_set_alpha(void *data, const char *argument, struct message *message)
{
	return parse_share(argument, "--alpha", 0.5,
			   &((struct compare_settings *)data)->alpha_share, message);
}

int compare_set_min_effect(void *data, const char *argument, struct message *message)
{
	return parse_share_or_zero(argument, "--min-effect", 100,
				   &((struct compare_settings *)data)->min_effect_share, message);
}

int compare_set_confidence(void *data, const char *argument, struct message *message)
{
	return parse_share(argument, "--confidence", 1,
			   &((struct compare_settings *)data)->confidence_share, message);
}

int compare_set_mix(void *data, const char *argument, struct message *message)
{
	return mix_parse(argument, &((struct compare_settings *)data)->mix, message);
}

int compare_set_without(void *data, const char *argument, struct message *message)
{
	struct compare_settings *settings = data;

	for (const char *at = argument; *at;) {
		size_t length = strcspn(at, ",");

		if (length == 11 && strncmp(at, "interrupted", length) == 0)
			settings->mix &= ~(unsigned int)MIX_INTERRUPTED; /* as without an option */
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

int compare_set_normalise(void *data, const char *argument, struct message *message)
{
	struct compare_settings *settings = data;
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

const char *const compare_plots[] = {"auto", "linear", "log", "none", NULL};

static void metrics_free(struct compare_metrics *metrics)
{
	for (size_t i = 0; i < metrics->count; i++)
		free(metrics->names[i]);
}

static int metrics_add(struct compare_metrics *metrics, const char *name, size_t length)
{
	if (metrics->count == COMPARE_METRICS_MAX)
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

static int default_metrics(const struct arm_set *set, struct compare_metrics *metrics)
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

static int choose_metrics(const struct compare_settings *settings, const struct arm_set *set,
			  struct compare_metrics *metrics, struct message *message)
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
				   "more than %d metrics; name some with --metric",
				   COMPARE_METRICS_MAX);
	if (!error && metrics->count == 0)
		return message_set(message, settings->metric ? -EINVAL : -ENODATA,
				   "no metric to compare; name one with --metric");
	if (!error && arm_set_has_plain(set) && metrics->count > 1)
		return message_set(message, -EINVAL,
				   "a plain file holds one metric; --metric takes one name here");
	return error ? message_set_errno(message, error, "metrics") : 0;
}

/* --- the comparison --- */

void compare_job_free(struct compare_job *job)
{
	for (size_t i = 0; i < COMPARE_METRICS_MAX; i++) {
		comparison_free(job->comparisons[i]);
		comparison_free(job->with_invalid[i]);
	}
	metrics_free(&job->metrics);
	json_decref(job->differences);
	arm_set_free(job->set);
}

void compare_job_options(const struct compare_job *job, struct comparison_options *ret_options)
{
	*ret_options = (struct comparison_options){
		.alpha = job->settings.alpha_share,
		.confidence = job->settings.confidence_share,
		.min_effect = job->settings.min_effect_share,
		.against = job->settings.against,
		.include_invalid = job->settings.include_invalid,
		.include_interrupted = job->settings.mix & MIX_INTERRUPTED,
		.without_suspect = job->settings.without_suspect,
	};
}

static int make_all(struct compare_job *job, bool include_invalid, struct comparison **into,
		    struct message *message)
{
	struct comparison_options options;
	int error;

	compare_job_options(job, &options);
	options.include_invalid = include_invalid;
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

int compare_job_prepare(struct compare_job *job, char *const *operands, size_t count,
			bool with_tests, struct message *message)
{
	unsigned int mix = job->settings.mix;
	/* A path into the record may lead to anything in it; mean, max, p99 do not. */
	bool path = job->settings.whole ||
		    (job->settings.metric && strpbrk(job->settings.metric, "._"));
	int error = arm_set_read_part(operands, count, (unsigned int)job->settings.column, path,
				      &job->set, message);

	if (!error)
		error = choose_metrics(&job->settings, job->set, &job->metrics, message);
	if (!error)
		error = arms_check_comparable(job->set, mix,
					      (const char *const *)job->metrics.names, message);
	if (!error && with_tests) {
		error = make_all(job, job->settings.include_invalid, job->comparisons, message);
		if (!error && job->any_invalid)
			error = make_all(job, true, job->with_invalid, message);
	}
	if (error)
		return error;
	job->differences = arms_differences(job->set);
	return job->differences ? 0 : message_set_errno(message, -ENOMEM, "differences");
}

static int find_normal(const struct compare_job *job, const char *given, const char *otherwise,
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

int compare_job_report(const struct compare_job *job, struct comparison_report *report,
		       size_t width, struct message *message)
{
	const char *plot = job->settings.plot ? job->settings.plot : "auto";
	int error = 0;

	*report = (struct comparison_report){
		.set = job->set,
		.comparisons = job->comparisons,
		.with_invalid = job->any_invalid ? job->with_invalid : NULL,
		.count = job->metrics.count,
		.differences = job->differences,
		.width = width,
		.normalise = job->settings.normalise,
	};
	for (int i = 0; compare_plots[i]; i++)
		if (strcmp(compare_plots[i], plot) == 0)
			report->plot = i;
	if (report->normalise) {
		error = find_normal(job, job->settings.zero, "baseline", &report->zero, message);
		if (!error)
			error = find_normal(job, job->settings.one, "stock", &report->one, message);
	}
	return error;
}

int compare_explain_plot(const struct comparison_report *report, int error, struct message *message)
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

int compare_main(const struct command_page *page, void *settings, int argc, char **argv,
		 int (*work)(struct compare_job *job, const void *settings, char *const *operands,
			     size_t count, struct message *message))
{
	struct compare_job job = {.set = NULL};
	struct message message = {""};
	int first = argc, status;

	if (!command_parse(page, settings, argc, argv, &first, &status))
		return status;
	job.settings = *(const struct compare_settings *)settings;
	status = work(&job, settings, argv + first, (size_t)(argc - first), &message);
	compare_job_free(&job);
	if (status >= 0)
		return status;
	command_error(page->name, "%s", message.text[0] ? message.text : strerror(-status));
	return status == -EINVAL ? EXIT_USAGE : status == -ENOTSUP ? EXIT_SKIPPED : EXIT_FAILED;
}
