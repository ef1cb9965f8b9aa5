/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/exit.h"
#include "base/json.h"
#include "base/options.h"
#include "base/parse.h"
#include "command.h"
#include "compare/arms.h"
#include "record/record.h"
#include "run_progress.h"
#include "share.h"
#include "stats/plan.h"
#include "stats/series.h"

struct settings {
	const char *metric, *against, *json;
	double alpha, power, effect, min_effect;
	int64_t pairs, max_runs, simulations, seed, run_ns;
};

static int take_alpha(void *settings, const char *argument, struct message *message)
{
	return parse_share(argument, "--alpha", 0.5, &((struct settings *)settings)->alpha,
			   message);
}

static int take_power(void *settings, const char *argument, struct message *message)
{
	return parse_share(argument, "--power", 1, &((struct settings *)settings)->power, message);
}

static int take_effect(void *settings, const char *argument, struct message *message)
{
	return parse_share(argument, "--effect", 100, &((struct settings *)settings)->effect,
			   message);
}

static int take_min_effect(void *settings, const char *argument, struct message *message)
{
	return parse_share_or_zero(argument, "--min-effect", 10,
				   &((struct settings *)settings)->min_effect, message);
}

#define AT(member) .offset = offsetof(struct settings, member)

static const struct option_row rows[] = {
	{OPTION_CALL, .long_name = "effect", .argument = "SHARE",
	 .help = "suppose that a is greater than b by this much and spreads as b does (the "
		 "difference of the pilots)",
	 .call = take_effect},
	{OPTION_CALL, .long_name = "alpha", .argument = "SHARE",
	 .help = "chance of a false decision (1%)", .call = take_alpha},
	{OPTION_CALL, .long_name = "power", .argument = "SHARE",
	 .help = "chance to see the difference (99%)", .call = take_power},
	{OPTION_CALL, .long_name = "min-effect", .argument = "SHARE",
	 .help = "least effect that counts as a difference (5%)", .call = take_min_effect},
	{OPTION_INT, .long_name = "pairs", .argument = "N",
	 .help = "comparisons that share alpha (those of the operands)", AT(pairs), .minimum = 1,
	 .maximum = 64},
	{OPTION_INT, .long_name = "max-reps", .argument = "N",
	 .help = "blocks at most, as in syslat run (40)", AT(max_runs), .minimum = 2,
	 .maximum = 500},
	{OPTION_STRING, .long_name = "metric", .argument = "NAME",
	 .help = "of records: mean, max, p99... (mean; value of other commands)", AT(metric)},
	{OPTION_STRING, .long_name = "against", .argument = "ARM",
	 .help = "the reference b (the first arm)", AT(against)},
	{OPTION_DURATION, .long_name = "run-time", .argument = "TIME",
	 .help = "what a run takes, in seconds (records: their measured window)", AT(run_ns),
	 .minimum = 1, .maximum = 0, .unit_ns = NS_PER_S},
	{OPTION_INT, .long_name = "simulations", .argument = "N",
	 .help = "experiments drawn from the pilots (2000)", AT(simulations), .minimum = 100,
	 .maximum = 1000000},
	{OPTION_INT, .long_name = "seed", .argument = "N", .help = "of the drawing (1)", AT(seed),
	 .minimum = 0, .maximum = INT64_MAX},
	{OPTION_STRING, .long_name = "json", .argument = "FILE",
	 .help = "the plan as JSON; '-': in place of the text", AT(json)},
};
#define ROW_COUNT ARRAY_SIZE(rows)

/* One arm's pilot: values in a copy of its own. */
struct pilot {
	const char *name;
	double *values;
	size_t count;
	double run_s; /* median length of its runs; NaN: not known */
};

static const char *metric_of(const struct arm_set *set, const char *wanted)
{
	const char *unit;
	double value;

	if (wanted)
		return wanted;
	for (size_t i = 0; i < set->count; i++)
		for (size_t j = 0; j < set->arms[i].record_count; j++)
			if (record_counts(set->arms[i].records[j]))
				return record_metric(set->arms[i].records[j], "mean", &value,
						     &unit) == 0
					       ? "mean"
					       : "value";
	return "mean";
}

static int read_pilot(const struct arm *arm, const char *metric, struct pilot *pilot,
		      struct message *message)
{
	size_t most = arm->values ? arm->value_count : arm->record_count, timed = 0;
	double *lengths = calloc(most ? most : 1, sizeof(*lengths)), value;
	const char *unit;

	*pilot = (struct pilot){.name = arm->name, .run_s = NAN};
	pilot->values = calloc(most ? most : 1, sizeof(*pilot->values));
	if (!pilot->values || !lengths) {
		free(lengths);
		return message_set_errno(message, -ENOMEM, "%s", arm->name);
	}
	if (arm->values) {
		memcpy(pilot->values, arm->values, most * sizeof(*pilot->values));
		pilot->count = most;
	}
	for (size_t i = 0; i < arm->record_count; i++) {
		const struct record *record = arm->records[i];

		if (!record_counts(record) || record_metric(record, metric, &value, &unit) != 0 ||
		    !isfinite(value))
			continue;
		pilot->values[pilot->count++] = value;
		if (isfinite(record->duration_s))
			lengths[timed++] = record->duration_s;
	}
	if (timed && series_sort(lengths, timed) == 0)
		pilot->run_s = series_median(lengths, timed);
	free(lengths);
	if (pilot->count < 4)
		return message_set(message, -EINVAL,
				   "%s: %zu runs with a value of %s; a pilot needs at least 4",
				   arm->name, pilot->count, metric);
	return 0;
}

/* One row of the answer: how many runs a pair needs. */
struct row {
	const struct pilot *a, *b;
	struct plan_answer answer;
};

struct plan_report {
	const struct settings *settings;
	const char *metric;
	struct pilot *pilots;
	size_t pilot_count;
	struct row *rows;
	size_t row_count, pairs;
	double run_s; /* of any run; NaN: not known */
};

static int answer_row(const struct plan_report *report, struct row *row, struct message *message)
{
	const struct settings *settings = report->settings;
	struct plan_question question = {
		.alpha = settings->alpha,
		.power = settings->power,
		.ratio = settings->effect > 0 ? 1 + settings->effect : 0,
		.min_effect = settings->min_effect,
		.pairs = report->pairs,
		.max_runs = (size_t)settings->max_runs,
		.simulations = (size_t)settings->simulations,
		.seed = (uint64_t)settings->seed,
	};
	int error = plan_runs(&question, row->a->values, row->a->count, row->b->values,
			      row->b->count, &row->answer);

	if (error == -EINVAL)
		return message_set(message, error,
				   "%s, %s: the values do not allow it: ratios need numbers above "
				   "zero",
				   row->a->name, row->b->name);
	return error ? message_set_errno(message, error, "%s, %s", row->a->name, row->b->name) : 0;
}

static int answer_all(struct plan_report *report, size_t reference, struct message *message)
{
	bool alone = report->pilot_count == 1;
	double seconds = 0;
	size_t timed = 0;
	int error = 0;

	report->rows = calloc(report->pilot_count, sizeof(*report->rows));
	if (!report->rows)
		return message_set_errno(message, -ENOMEM, "plan");
	report->pairs = report->settings->pairs ? (size_t)report->settings->pairs
			: alone			? 1
						: report->pilot_count - 1;
	for (size_t i = 0; i < report->pilot_count && !error; i++) {
		if (isfinite(report->pilots[i].run_s)) {
			seconds += report->pilots[i].run_s;
			timed++;
		}
		if (i == reference && !alone)
			continue;
		report->rows[report->row_count] =
			(struct row){&report->pilots[i], &report->pilots[reference]};
		error = answer_row(report, &report->rows[report->row_count++], message);
	}
	report->run_s = report->settings->run_ns ? (double)report->settings->run_ns / 1e9
			: timed			 ? seconds / (double)timed
						 : NAN;
	return error;
}

/* "34 (4 min 32 s)": runs of each of two arms and the time of both. */
static void print_runs(const struct plan_report *report, size_t runs)
{
	char span[32];

	printf("%zu", runs);
	if (isfinite(report->run_s))
		printf(" (%s)", format_span((int64_t)(2e9 * (double)runs * report->run_s), span,
					    sizeof(span)));
}

static void print_row(const struct plan_report *report, const struct row *row)
{
	const struct plan_answer *answer = &row->answer;
	const struct settings *settings = report->settings;

	if (settings->effect > 0)
		printf("\n%s + %g%% against %s (%zu runs):\n", row->b->name, 100 * settings->effect,
		       row->b->name, row->b->count);
	else
		printf("\n%s (%zu runs) against %s (%zu runs):\n", row->a->name, row->a->count,
		       row->b->name, row->b->count);
	printf("  fixed:       ");
	if (answer->fixed_runs)
		print_runs(report, answer->fixed_runs);
	else
		printf("more than %lld", (long long)settings->max_runs);
	printf(" runs an arm, power %.3g there\n", answer->fixed_power);
	printf("  sequential:  median ");
	print_runs(report, answer->sequential_median);
	printf(", 90%% of experiments ");
	print_runs(report, answer->sequential_p90);
	printf(", 99%% ");
	print_runs(report, answer->sequential_p99);
	printf("\n               power %.3g, wrong way %.2g, at most %lld runs an arm\n",
	       answer->sequential_power, answer->sequential_wrong, (long long)settings->max_runs);
	if (answer->least_runs)
		printf("  below %zu runs an arm no data can decide\n", answer->least_runs);
}

static void print_text(const struct plan_report *report)
{
	const struct settings *settings = report->settings;
	char span[32];

	printf("Runs an arm for metric %s: alpha %g%% over %zu pair%s, power %g%%, least effect "
	       "%g%%, %lld experiments drawn from the pilots\n",
	       report->metric, 100 * settings->alpha, report->pairs, report->pairs == 1 ? "" : "s",
	       100 * settings->power, 100 * settings->min_effect, (long long)settings->simulations);
	if (isfinite(report->run_s))
		printf("(in brackets the time of both arms, %s a run%s)\n",
		       format_span((int64_t)(1e9 * report->run_s), span, sizeof(span)),
		       settings->run_ns ? "" : ": the measured windows alone");
	else
		printf("(--run-time tells how long that takes)\n");
	for (size_t i = 0; i < report->row_count; i++)
		print_row(report, &report->rows[i]);
	printf("\nsyslat run --until-decided --max-reps %lld makes the sequential one; a plan knows "
	       "no more than its pilot.\n",
	       (long long)settings->max_runs);
}

static json_t *row_to_json(const struct plan_report *report, const struct row *row)
{
	const struct plan_answer *answer = &row->answer;
	json_t *object = json_object();

	json_put(object, "a", json_string_or_null(row->a->name));
	json_put(object, "b", json_string_or_null(row->b->name));
	json_put(object, "pilot_a", json_integer((json_int_t)row->a->count));
	json_put(object, "pilot_b", json_integer((json_int_t)row->b->count));
	json_put(object, "fixed_runs",
		 answer->fixed_runs ? json_integer((json_int_t)answer->fixed_runs) : json_null());
	json_put(object, "fixed_power", json_number_or_null(answer->fixed_power));
	json_put(object, "sequential_median_runs",
		 json_integer((json_int_t)answer->sequential_median));
	json_put(object, "sequential_p90_runs", json_integer((json_int_t)answer->sequential_p90));
	json_put(object, "sequential_p99_runs", json_integer((json_int_t)answer->sequential_p99));
	json_put(object, "sequential_mean_runs", json_number_or_null(answer->sequential_mean));
	json_put(object, "sequential_power", json_number_or_null(answer->sequential_power));
	json_put(object, "sequential_wrong", json_number_or_null(answer->sequential_wrong));
	json_put(object, "least_runs", json_integer((json_int_t)answer->least_runs));
	json_put(object, "fixed_s",
		 json_number_or_null(answer->fixed_runs
					     ? 2 * (double)answer->fixed_runs * report->run_s
					     : NAN));
	json_put(object, "sequential_median_s",
		 json_number_or_null(2 * (double)answer->sequential_median * report->run_s));
	return object;
}

static int write_json(const struct plan_report *report, struct message *message)
{
	const struct settings *settings = report->settings;
	json_t *json = json_object(), *plans = json_array();

	for (size_t i = 0; i < report->row_count; i++)
		json_array_append_new(plans, row_to_json(report, &report->rows[i]));
	json_put(json, "schema", json_string("syslatency/plan/1"));
	json_put(json, "metric", json_string_or_null(report->metric));
	json_put(json, "alpha", json_real(settings->alpha));
	json_put(json, "power", json_real(settings->power));
	json_put(json, "effect", settings->effect > 0 ? json_real(settings->effect) : json_null());
	json_put(json, "min_effect", json_real(settings->min_effect));
	json_put(json, "pairs", json_integer((json_int_t)report->pairs));
	json_put(json, "max_runs", json_integer(settings->max_runs));
	json_put(json, "simulations", json_integer(settings->simulations));
	json_put(json, "seed", json_integer(settings->seed));
	json_put(json, "run_s", json_number_or_null(report->run_s));
	json_put(json, "plans", plans);
	return command_write_json(settings->json, json, message);
}

static int find_reference(const struct arm_set *set, const struct settings *settings,
			  size_t *ret_reference, struct message *message)
{
	int reference = settings->against ? arm_set_find(set, settings->against) : 0;

	if (reference < 0)
		return message_set(message, -EINVAL, "--against: no arm is called \"%.80s\"",
				   settings->against);
	if (set->count == 1 && !(settings->effect > 0))
		return message_set(message, -EINVAL,
				   "one pilot alone: say --effect SHARE, or give another");
	*ret_reference = (size_t)reference;
	return 0;
}

static int make_plan(const struct settings *settings, const struct arm_set *set,
		     struct message *message)
{
	struct plan_report report = {.settings = settings,
				     .metric = set->plain_metric && !arm_set_has_records(set)
						       ? set->plain_metric
						       : metric_of(set, settings->metric)};
	size_t reference = 0;
	int error = find_reference(set, settings, &reference, message);

	report.pilots = calloc(set->count, sizeof(*report.pilots));
	if (!report.pilots)
		return message_set_errno(message, -ENOMEM, "plan");
	for (size_t i = 0; i < set->count && !error; i++) {
		error = read_pilot(&set->arms[i], report.metric, &report.pilots[i], message);
		report.pilot_count++;
	}
	if (!error)
		error = answer_all(&report, reference, message);
	if (!error && settings->json)
		error = write_json(&report, message);
	if (!error && (!settings->json || !command_is_stdout(settings->json)))
		print_text(&report);
	for (size_t i = 0; i < report.pilot_count; i++)
		free(report.pilots[i].values);
	free(report.pilots);
	free(report.rows);
	return error;
}

static int plan(const struct settings *settings, char *const *operands, size_t count)
{
	struct arm_set *set = NULL;
	struct message message = {""};
	int error;

	error = arm_set_read(operands, count, 1, &set, &message);
	if (!error)
		error = make_plan(settings, set, &message);
	arm_set_free(set);
	if (!error)
		return EXIT_DONE;
	command_error("plan", "%s", message.text);
	return error == -EINVAL ? EXIT_USAGE : EXIT_FAILED;
}

static const struct command_page page = {
	.name = "plan",
	.usage = "syslat plan [OPTION]... REFERENCE OTHER...",
	.about = "How many runs does a question need? Answered from pilot runs: files of "
		 "numbers, records, or a folder of results. The first is the reference.",
	.rows = rows,
	.row_count = ROW_COUNT,
	.wanted = "a pilot is wanted: syslat plan A B; see --help",
};

static int run_plan(int argc, char **argv)
{
	struct settings settings = {
		.alpha = 0.01,
		.power = 0.99,
		.min_effect = 0.05,
		.max_runs = 40,
		.simulations = 2000,
		.seed = 1,
	};
	int first = argc, status;

	if (!command_parse(&page, &settings, argc, argv, &first, &status))
		return status;
	return plan(&settings, argv + first, (size_t)(argc - first));
}

const struct command command_plan = {"plan", "how many runs a question needs", run_plan};
