/* SPDX-License-Identifier: MIT */
#ifndef COMPARE_JOB_H
#define COMPARE_JOB_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"
#include "base/options.h"
#include "compare/comparison.h"

/* What syslat compare and syslat report share: options, reading, comparing. */

#define COMPARE_METRICS_MAX 32

struct compare_settings {
	const char *metric, *against, *plot;
	double alpha_share, min_effect_share, confidence_share;
	int64_t column;
	unsigned int mix;
	bool whole; /* records with all that they hold: pages that show causes */
	bool without_suspect, include_invalid, normalise;
	char zero[128], one[128];
};

#define COMPARE_SETTINGS_DEFAULT                                                            \
	{                                                                                   \
		.alpha_share = COMPARISON_ALPHA, .min_effect_share = COMPARISON_MIN_EFFECT, \
		.confidence_share = COMPARISON_CONFIDENCE, .column = 1                      \
	}

/* Rows of the options table; the settings lie at the start of the program's own. */
int compare_set_alpha(void *data, const char *argument, struct message *message);
int compare_set_min_effect(void *data, const char *argument, struct message *message);
int compare_set_confidence(void *data, const char *argument, struct message *message);
int compare_set_mix(void *data, const char *argument, struct message *message);
int compare_set_without(void *data, const char *argument, struct message *message);
int compare_set_normalise(void *data, const char *argument, struct message *message);
extern const char *const compare_plots[];

/* clang-format off */
#define COMPARE_AT(member) .offset = offsetof(struct compare_settings, member)
#define COMPARE_ROWS \
	{OPTION_SECTION, .long_name = "What is compared"}, \
	{OPTION_STRING, 0, "metric", "LIST", \
	 "mean, max, min, stddev, p50, p90, p99, p99.9, p99.99, igt-mean, igt-max,\n" \
	 "a name of the record's metrics, or a path (counters.vmstat.pswpout); commas\n" \
	 "between (default: mean,max; else every metric that the records have)", COMPARE_AT(metric)}, \
	{OPTION_STRING, 0, "against", "ARM", "the reference (default: the first named)", \
	 COMPARE_AT(against)}, \
	{OPTION_CALL, 0, "mix", "LIST", \
	 "compare in spite of differing units, benchmarks, trace-levels, settings,\n" \
	 "interrupted, durations, or all", .call = compare_set_mix}, \
	{OPTION_CALL, 0, "without", "LIST", \
	 "leave out runs that are suspect (interrupted: always)", .call = compare_set_without}, \
	{OPTION_FLAG, 0, "include-invalid", NULL, "take runs judged invalid too", \
	 COMPARE_AT(include_invalid)}, \
	{OPTION_INT, 0, "column", "N", "column of plain files (default 1)", COMPARE_AT(column), \
	 .minimum = 1, .maximum = 1000}, \
	{OPTION_SECTION, .long_name = "Verdict"}, \
	{OPTION_CALL, 0, "alpha", "SHARE", \
	 "chance of any false claim in the whole report (default 1%)", .call = compare_set_alpha}, \
	{OPTION_CALL, 0, "min-effect", "SHARE", \
	 "least ratio that counts as a difference (default 5%)", .call = compare_set_min_effect}, \
	{OPTION_CALL, 0, "confidence", "SHARE", "of the intervals shown (default 95%)", \
	 .call = compare_set_confidence}, \
	{OPTION_CALL, 0, "normalise", "ZERO,ONE", \
	 "medians on a scale of 0 (default baseline) to 1 (default stock)", \
	 .call = compare_set_normalise, .optional_argument = 1}, \
	{OPTION_CHOICE, 0, "plot", "AXIS", "auto, linear, log, none (default auto)", \
	 COMPARE_AT(plot), .choices = compare_plots}
/* clang-format on */

struct compare_metrics {
	char *names[COMPARE_METRICS_MAX + 1];
	size_t count;
};

struct compare_job {
	struct compare_settings settings;
	struct arm_set *set;
	struct compare_metrics metrics;
	struct comparison *comparisons[COMPARE_METRICS_MAX], *with_invalid[COMPARE_METRICS_MAX];
	bool any_invalid;
	json_t *differences;
};

/* Reads and, @with_tests, compares. -EINVAL: wrong usage; -EBADMSG: wrong files. */
int compare_job_prepare(struct compare_job *job, char *const *operands, size_t count,
			bool with_tests, struct message *message);
void compare_job_free(struct compare_job *job);

/* Which runs count, by the settings. */
void compare_job_options(const struct compare_job *job, struct comparison_options *ret_options);

/* The job as reports take it; it points into @job. */
int compare_job_report(const struct compare_job *job, struct comparison_report *report,
		       size_t width, struct message *message);

/* Why a report with plots failed. */
int compare_explain_plot(const struct comparison_report *report, int error,
			 struct message *message);

/*
 * A command that compares: parses its options into @settings, which start with a compare_settings,
 * and calls @work, whose result is an exit code, or -errno with the line to print.
 */
struct command_page;
int compare_main(const struct command_page *page, void *settings, int argc, char **argv,
		 int (*work)(struct compare_job *job, const void *settings, char *const *operands,
			     size_t count, struct message *message));

#endif
