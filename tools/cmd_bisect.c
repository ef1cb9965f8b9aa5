/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/exit.h"
#include "base/file.h"
#include "base/json.h"
#include "base/options.h"
#include "base/parse.h"
#include "command.h"
#include "history/bisect.h"
#include "history/measure.h"
#include "compare/arms.h"
#include "record/record.h"
#include "share.h"
#include "sys/environment.h"

#define NAME "bisect"

/*
 * git bisect run takes every status from 1 to 127 but 125 for "bad": whatever is not a verdict
 * (wrong usage too) must be 125, "this tree cannot be told".
 */
#define EXIT_CANNOT_TELL 125

struct settings {
	const char *good, *bad, *metric, *json, *build, *state;
	struct bisect_settings bisect;
	int64_t most, first_look, timeout_ns;
	bool mix_machines;
};

static volatile sig_atomic_t signals_seen;

static void count_signal(int signal)
{
	(void)signal;
	signals_seen++;
}

static int take_alpha(void *data, const char *argument, struct message *message)
{
	return parse_share(argument, "--alpha", 0.2, &((struct settings *)data)->bisect.alpha,
			   message);
}

#define AT(member) .offset = offsetof(struct settings, member)

static const struct option_row rows[] = {
	{OPTION_STRING, 0, "good", "RECORDS",
	 "runs of a good tree: a folder of an experiment, records, or numbers", AT(good)},
	{OPTION_STRING, 0, "bad", "RECORDS", "runs of a bad tree", AT(bad)},
	{OPTION_STRING, 0, "metric", "NAME", "of records (mean; value of other commands)",
	 AT(metric)},
	{OPTION_CALL, 0, "alpha", "SHARE", "chance of a wrong verdict on one tree (0.5%)",
	 .call = take_alpha},
	{OPTION_INT, 0, "max-runs", "N", "runs at most (40)", AT(most), .minimum = 3,
	 .maximum = 500},
	{OPTION_INT, 0, "first-look", "N", "runs before the first look (3)", AT(first_look),
	 .minimum = 2, .maximum = 100},
	{OPTION_DURATION, 0, "timeout", "TIME", "of one run, in seconds (none)", AT(timeout_ns),
	 .minimum = 1, .maximum = 0, .unit_ns = NS_PER_S},
	{OPTION_STRING, 0, "build", "COMMAND",
	 "run in a shell first; when it fails the tree cannot be told (125)", AT(build)},
	{OPTION_STRING, 0, "state", "FILE",
	 "keep the values of this tree's runs there, and go on with them after a restart",
	 AT(state)},
	{OPTION_FLAG, 0, "mix-machines", NULL,
	 "take records of another machine than this one all the same", AT(mix_machines)},
	{OPTION_STRING, 0, "json", "FILE",
	 "what was measured and decided, as JSON ('-': in place "
	 "of the text)",
	 AT(json)},
};

/* --- the two sides --- */

struct values_list {
	double *values;
	size_t count;
};

static const char *metric_of(const struct settings *settings, const struct record *record)
{
	const char *unit;
	double value;

	if (settings->metric)
		return settings->metric;
	return record_metric(record, "mean", &value, &unit) == 0 ? "mean" : "value";
}

static int add_record(const struct settings *settings, const struct record *record,
		      const char *machine, const char *name, struct values_list *list,
		      struct message *message)
{
	const char *unit;
	double value;

	if (!record_counts(record))
		return 0;
	if (!settings->mix_machines && record->machine_key[0] &&
	    strcmp(record->machine_key, machine) != 0)
		return message_set(message, -EXDEV,
				   "%s: measured on machine %s, this one is %s: measure both sides "
				   "here, or give --mix-machines",
				   name, record->machine_key, machine);
	if (record_metric(record, metric_of(settings, record), &value, &unit) != 0 ||
	    !isfinite(value))
		return 0;
	list->values[list->count++] = value;
	return 0;
}

static int read_side(const struct settings *settings, const char *path, const char *machine,
		     struct values_list *list, struct message *message)
{
	struct arm_set *set = NULL;
	char *operands[] = {(char *)path};
	size_t room = 1;
	int error = arm_set_read(operands, 1, 1, &set, message);

	if (error)
		return error;
	for (size_t i = 0; i < set->count; i++)
		room += set->arms[i].record_count + set->arms[i].value_count;
	if (set->count != 1)
		error = message_set(message, -EINVAL, "%s: %zu arms; one side is one arm", path,
				    set->count);
	list->values = malloc(room * sizeof(double));
	if (!error && !list->values)
		error = message_set_errno(message, -ENOMEM, "%s", path);
	for (size_t i = 0; !error && i < set->arms[0].value_count; i++)
		list->values[list->count++] = set->arms[0].values[i];
	for (size_t i = 0; !error && i < set->arms[0].record_count; i++)
		error = add_record(settings, set->arms[0].records[i], machine, path, list, message);
	arm_set_free(set);
	return error;
}

/* --- one tree --- */

struct step {
	const struct settings *settings;
	struct measure measure;
	struct bisect *bisect;
	struct bisect_look look;
	double *values;
	size_t count, invalid, failed;
};

/* Values kept by an earlier start of the same step, one a line. */
static int read_state(struct step *step, struct message *message)
{
	const char *path = step->settings->state;
	char *text = NULL, *rest, *line;
	int error = path ? file_read(path, &text, NULL) : 0;

	if (error == -ENOENT || !path)
		return 0;
	if (error)
		return message_set_errno(message, error, "%s", path);
	rest = text;
	while (!error && (line = strsep(&rest, "\n")) && rest) {
		if (step->count == (size_t)step->settings->most ||
		    parse_double(line, &step->values[step->count]) < 0)
			error = message_set(message, -EINVAL,
					    "%s: no state of a step; remove it to begin anew",
					    path);
		step->count++;
	}
	free(text);
	return error;
}

static int write_state(const struct step *step, struct message *message)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream;
	int error;

	if (!step->settings->state)
		return 0;
	stream = open_memstream(&text, &size);
	if (!stream)
		return message_set_errno(message, -ENOMEM, "state");
	for (size_t i = 0; i < step->count; i++)
		fprintf(stream, "%.17g\n", step->values[i]);
	error = fclose(stream) ? -ENOMEM : file_replace(step->settings->state, text, size);
	free(text);
	return error ? message_set_errno(message, error, "%s", step->settings->state) : 0;
}

static int one_run(struct step *step, struct message *message)
{
	struct record *record = NULL;
	double value = NAN;
	const char *unit;
	int error;

	/* Of its own for each try: a run in virtual time that failed would fail again. */
	step->measure.block = (int64_t)(step->count + step->invalid + step->failed) + 1;
	error = measure_run(&step->measure, &record, message);

	if (error)
		return error;
	if (!record_counts(record))
		error = message_set(message, -EBADMSG, "the run is invalid: %s",
				    json_array_size(record->reasons)
					    ? json_string_value(json_array_get(record->reasons, 0))
					    : "no reason given");
	else if (record_metric(record, metric_of(step->settings, record), &value, &unit) != 0 ||
		 !isfinite(value))
		error = message_set(message, -EBADMSG, "the run has no metric %s",
				    metric_of(step->settings, record));
	record_free(record);
	if (error)
		return error;
	step->values[step->count++] = value;
	return write_state(step, message);
}

/* Runs that fail or do not count may come once in a while; three in a row are the tree's fault. */
static int measure_until_decided(struct step *step, struct message *message)
{
	size_t lost = 0;
	int error = bisect_look(step->bisect, step->values, step->count, &step->look);

	while (!error && step->look.verdict == BISECT_UNDECIDED &&
	       step->count < (size_t)step->settings->most) {
		error = one_run(step, message);
		step->invalid += error == -EBADMSG;
		step->failed += error == -EIO;
		if ((error == -EBADMSG || error == -EIO) && ++lost < 3)
			error = 0;
		else if (!error)
			lost = 0;
		if (!error)
			error = bisect_look(step->bisect, step->values, step->count, &step->look);
	}
	return error;
}

static int build(const struct settings *settings, struct message *message)
{
	int status;

	if (!settings->build)
		return 0;
	fflush(stdout);
	status = system(settings->build);
	if (status == 0)
		return 0;
	if (status > 0 && WIFEXITED(status))
		return message_set(message, -EIO, "the build failed with exit %d",
				   WEXITSTATUS(status));
	return message_set(message, -EIO, "the build failed");
}

/* --- the answer --- */

static int write_json(const struct step *step, struct message *message)
{
	json_t *object = json_object(), *values = json_array();

	for (size_t i = 0; i < step->count; i++)
		json_array_append_new(values, json_number_or_null(step->values[i]));
	json_put(object, "schema", json_string("syslatency/bisect-step/1"));
	json_put(object, "verdict", json_string(bisect_verdict_name(step->look.verdict)));
	json_put(object, "runs", json_integer((json_int_t)step->count));
	json_put(object, "invalid_runs", json_integer((json_int_t)step->invalid));
	json_put(object, "failed_runs", json_integer((json_int_t)step->failed));
	json_put(object, "p_good", json_number_or_null(exp(step->look.log_p_good)));
	json_put(object, "p_bad", json_number_or_null(exp(step->look.log_p_bad)));
	json_put(object, "ratio_good", json_number_or_null(step->look.ratio_good));
	json_put(object, "ratio_bad", json_number_or_null(step->look.ratio_bad));
	json_put(object, "values", values);
	return command_write_json(step->settings->json, object, message);
}

static int answer(const struct step *step, struct message *message)
{
	const struct settings *settings = step->settings;
	int error = settings->json ? write_json(step, message) : 0;

	if (error)
		return error;
	if (!settings->json || !command_is_stdout(settings->json))
		printf("%s after %zu runs: x%.3g of good (p %.2g), x%.3g of bad (p %.2g)\n",
		       bisect_verdict_name(step->look.verdict), step->count, step->look.ratio_good,
		       exp(step->look.log_p_good), step->look.ratio_bad, exp(step->look.log_p_bad));
	if (step->look.verdict == BISECT_UNDECIDED)
		return message_set(message, -ERANGE,
				   "not decided after %zu runs: raise --max-runs, or measure more "
				   "runs of both sides",
				   step->count);
	if (step->look.verdict == BISECT_BETWEEN)
		return message_set(message, -ERANGE,
				   "this tree is neither like the good nor like the bad one");
	return 0;
}

static int prepare(struct step *step, char *const *command, struct message *message)
{
	const struct settings *settings = step->settings;
	struct values_list good = {NULL, 0}, bad = {NULL, 0};
	int error = measure_open("bisect-step", command, NULL, &step->measure, message);

	if (error)
		return error;
	step->measure.timeout_ns = settings->timeout_ns;
	step->measure.interrupted = &signals_seen;
	error = read_side(settings, settings->good, step->measure.machine_key, &good, message);
	if (!error)
		error = read_side(settings, settings->bad, step->measure.machine_key, &bad,
				  message);
	if (!error)
		error = bisect_new(good.values, good.count, bad.values, bad.count,
				   &settings->bisect, &step->bisect, message);
	free(good.values);
	free(bad.values);
	step->values = calloc((size_t)settings->most + 1, sizeof(double));
	if (!error && !step->values)
		error = message_set_errno(message, -ENOMEM, "bisect");
	return error ? error : read_state(step, message);
}

static int run_step(const struct settings *settings, char *const *command)
{
	struct step step = {.settings = settings, .look = {.ratio_good = NAN, .ratio_bad = NAN}};
	struct message message = {""};
	struct sigaction action = {.sa_handler = count_signal};
	enum bisect_verdict verdict;
	int error;

	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	error = build(settings, &message);
	if (!error)
		error = prepare(&step, command, &message);
	if (!error)
		error = measure_until_decided(&step, &message);
	if (!error)
		error = answer(&step, &message);
	verdict = step.look.verdict;
	if (settings->state && !error)
		remove(settings->state); /* the next tree begins anew */
	bisect_free(step.bisect);
	free(step.values);
	if (step.measure.experiment)
		measure_close(&step.measure);
	if (error) {
		command_error(NAME, "%s", message.text[0] ? message.text : strerror(-error));
		/* A user who ends it wants the whole bisection to end: git stops at 128. */
		return error == -EINTR ? 128 + SIGINT : EXIT_CANNOT_TELL;
	}
	return verdict == BISECT_BAD ? 1 : EXIT_DONE;
}

static int wrong_usage(const char *why)
{
	command_error(NAME, "%s", why);
	return EXIT_CANNOT_TELL;
}

static int parse_step(int argc, char **argv)
{
	struct settings settings = {.bisect = BISECT_SETTINGS_DEFAULT, .most = 40, .first_look = 3};
	struct message message = {""};
	int first = argc;
	int parsed =
		options_parse(rows, ARRAY_SIZE(rows), &settings, argc, argv, 1, &first, &message);

	if (parsed == OPTIONS_HELP) {
		options_help(
			stdout,
			"syslat bisect step --good RECORDS --bad RECORDS [OPTION]... -- "
			"COMMAND [ARGUMENT]...",
			"Measures with COMMAND until it is decided which side this tree belongs "
			"to.\nExit: 0 good, 1 bad, 125 cannot tell (git bisect run skips it).",
			rows, ARRAY_SIZE(rows));
		return EXIT_DONE;
	}
	if (parsed == OPTIONS_VERSION) {
		command_version();
		return EXIT_DONE;
	}
	if (parsed < 0)
		return wrong_usage(message.text);
	if (!settings.good || !settings.bad)
		return wrong_usage("--good and --bad are wanted: runs of a good and a bad tree");
	if (first == argc)
		return wrong_usage("a command that measures is wanted after --");
	settings.bisect.most = (size_t)settings.most;
	settings.bisect.first_look = (size_t)settings.first_look;
	return run_step(&settings, argv + first);
}

static int run_bisect(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "step") == 0)
		return parse_step(argc - 1, argv + 1);
	if (argc > 1 && strcmp(argv[1], "--version") == 0) {
		command_version();
		return EXIT_DONE;
	}
	if (argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
		fputs("usage: git bisect run syslat bisect step --good RECORDS --bad RECORDS -- "
		      "COMMAND\n"
		      "Tells which side of a regression a tree belongs to: 0 good, 1 bad, 125 "
		      "cannot tell.\nsyslat bisect step --help tells the options.\n",
		      stdout);
		return EXIT_DONE;
	}
	command_error(NAME, "\"step\" is wanted: syslat bisect step --help");
	return EXIT_USAGE;
}

const struct command command_bisect = {
	NAME,
	"decide which side of a regression a tree belongs to",
	run_bisect,
};
