/* SPDX-License-Identifier: MIT */
#include "experiment/run.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/exit.h"
#include "base/json.h"
#include "experiment/command.h"
#include "experiment/record.h"
#include "experiment/folder.h"
#include "experiment/stop.h"
#include "record/record.h"
#include "sys/environment.h"
#include "undo/transaction.h"

#define LOCK_WAIT_S 25 /* longer than a monitor's grace */
#define ATTEMPTS 2
#define GUARDIANS_NS (30 * NS_PER_S)

/* One execution of the plan. */
struct execution {
	struct experiment *experiment;
	const struct experiment_events *events;
	struct folder *folder;
	json_t *environment;
	char machine_key[17];
	struct experiment_step step;
	int64_t left_at_begin_ns;
	enum experiment_outcome outcome;
	bool stop;
	struct message *message;
};

static bool interrupted(const struct execution *execution)
{
	return execution->events->interrupted && *execution->events->interrupted > 0;
}

static void note(const struct execution *execution, const char *text)
{
	if (execution->events->note)
		execution->events->note(execution->events->data, text);
}

static void set_elapsed(struct execution *execution, int64_t elapsed_ns)
{
	struct experiment_step *step = &execution->step;

	step->elapsed_ns = elapsed_ns;
	if (execution->left_at_begin_ns < 0)
		return;
	step->left_ns = execution->left_at_begin_ns - elapsed_ns;
	if (step->left_ns < 0)
		step->left_ns = 0;
}

static void on_tick(void *data, int64_t elapsed_ns)
{
	struct execution *execution = data;

	set_elapsed(execution, elapsed_ns);
	if (execution->events->tick)
		execution->events->tick(execution->events->data, &execution->step);
}

static void set_step(struct execution *execution, size_t slot, int attempt)
{
	struct experiment *experiment = execution->experiment;
	struct experiment_step *step = &execution->step;
	int64_t missing, block = experiment_block_of(experiment, slot);

	step->experiment = experiment;
	step->arm = &experiment->arms[experiment->order[slot]];
	step->warm_up = block < 1;
	step->block = block < 1 ? block + experiment->warm_up_runs : block;
	step->attempt = attempt;
	step->elapsed_ns = 0;
	step->left_ns = folder_left_ns(execution->folder, 0, &missing);
	execution->left_at_begin_ns = step->left_ns;
	step->total = 0;
	for (size_t i = 0; i < experiment_slots(experiment); i++)
		step->total += !folder_dropped(execution->folder, i);
	step->number = step->total - missing + 1;
}

/* Can the arm never work here? Then going on makes no sense, and the execution stops. */
static void stop_if_hopeless(struct execution *execution, const struct command_result *result,
			     size_t arm, const char *why)
{
	const char *name = execution->experiment->arms[arm].name;
	int code = result->exec_error		    ? 127
		   : WIFEXITED(result->wait_status) ? WEXITSTATUS(result->wait_status)
						    : 0;

	if (execution->folder->arm_worked[arm] || result->told)
		return;
	if (code == EXIT_SKIPPED)
		execution->outcome = EXPERIMENT_SKIPPED;
	else if (code == EXIT_USAGE || code == 126 || code == 127)
		execution->outcome = EXPERIMENT_UNUSABLE;
	else
		return;
	message_set(execution->message, 0, "arm %s cannot run: %s", name, why);
	execution->stop = true;
}

/* What the run before has left to its guardian process must not disturb this one. */
static void await_guardians(struct execution *execution)
{
	int64_t deadline_ns = clock_now_ns() + GUARDIANS_NS;
	int unfinished = 0;

	while (transaction_count_unfinished(&unfinished) == 0 && unfinished > 0) {
		if (interrupted(execution))
			return;
		if (clock_now_ns() >= deadline_ns) {
			note(execution,
			     "the guardian process of a run before has not put everything "
			     "back (stopped?): the next run begins all the same");
			return;
		}
		clock_sleep_for(20 * NS_PER_MS);
	}
}

static int command_once(struct execution *execution, size_t arm, int64_t block,
			struct command_result *result, struct message *message)
{
	struct command_settings settings = {
		.argv = execution->experiment->arms[arm].argv,
		.working_directory = execution->experiment->working_directory,
		.record_path = execution->folder->record_path,
		.block = block,
		.timeout_ns = execution->experiment->timeout_ns,
		.interrupted = execution->events->interrupted,
		.tick = on_tick,
		.tick_data = execution,
	};

	if (unlink(execution->folder->record_path) < 0 && errno != ENOENT)
		return message_set_errno(message, -errno, "cannot remove %s",
					 execution->folder->record_path);
	await_guardians(execution);
	return command_execute(&settings, result, message);
}

/* One attempt, recorded: 0 good, 1 failed, -errno the experiment cannot go on. */
static int attempt(struct execution *execution, size_t slot, int number)
{
	struct experiment *experiment = execution->experiment;
	char why[512], started[32];
	struct experiment_place place = {
		.arm = experiment->order[slot],
		.started = clock_rfc3339(started, sizeof(started)),
		.machine_key = execution->machine_key,
		.environment = execution->environment,
		.order = (int64_t)slot + 1,
	};
	struct command_result result = {0};
	struct record *record;
	int error;

	set_step(execution, slot, number);
	place.block = execution->step.block;
	if (execution->events->begin)
		execution->events->begin(execution->events->data, &execution->step);
	error = command_once(execution, place.arm, place.block, &result, execution->message);
	if (error)
		return error;
	error = experiment_record(experiment, &place, &result, execution->folder->record_path,
				  &record, why, sizeof(why));
	unlink(execution->folder->record_path);
	if (error) {
		message_set_errno(execution->message, error, "record of arm %s",
				  experiment->arms[place.arm].name);
		goto out;
	}
	if (!why[0])
		error = experiment_choose_metric(experiment, record, execution->message);
	if (error) {
		record_free(record);
		goto out;
	}
	set_elapsed(execution, result.elapsed_ns);
	if (execution->events->end)
		execution->events->end(execution->events->data, &execution->step, record, why);
	error = folder_add(execution->folder, slot, record, result.elapsed_ns, execution->message);
	if (!error && why[0]) {
		stop_if_hopeless(execution, &result, place.arm, why);
		error = 1;
	}
out:
	command_result_free(&result);
	return error;
}

/* A failed run is tried again once. */
static int run_slot(struct execution *execution, size_t slot)
{
	int error = 1;

	for (int number = 1; number <= ATTEMPTS && error == 1; number++) {
		if (interrupted(execution) || execution->stop)
			break;
		error = attempt(execution, slot, number);
	}
	return error < 0 ? error : 0;
}

static int run_block(struct execution *execution, int64_t block)
{
	const struct experiment *experiment = execution->experiment;
	size_t first = experiment_slot(experiment, block, 0);
	int error = 0;

	for (size_t slot = first; slot < first + experiment->arm_count && !error; slot++) {
		if (execution->stop || interrupted(execution))
			return 0;
		if (folder_missing(execution->folder, slot) &&
		    folder_served(execution->folder, experiment->order[slot]))
			error = run_slot(execution, slot);
	}
	return error;
}

static int look_after(struct execution *execution, int64_t block)
{
	struct experiment *experiment = execution->experiment;
	char line[1024], *text = NULL;
	int error;

	if (experiment->stopping.rule == RULE_FIXED || block < 1 || !experiment->stopping.metric ||
	    experiment_looked(experiment, block) || !folder_block_over(execution->folder, block))
		return 0;
	error = experiment_look(experiment, execution->folder->records,
				execution->folder->record_count, block, &text, execution->message);
	if (text) {
		snprintf(line, sizeof(line), "look after block %lld: %s", (long long)block, text);
		note(execution, line);
		free(text);
	}
	if (error)
		return error;
	return experiment_save(experiment, execution->folder->directory, execution->message);
}

static int run_plan(struct execution *execution)
{
	struct experiment *experiment = execution->experiment;
	int error = 0;

	for (int64_t block = 1 - experiment->warm_up_runs; block <= experiment->blocks && !error;
	     block++) {
		if (experiment->rule_met)
			break;
		error = run_block(execution, block);
		if (execution->stop || interrupted(execution))
			break;
		if (!error)
			error = look_after(execution, block);
	}
	return error;
}

static void count_totals(const struct execution *execution, struct experiment_totals *totals)
{
	const struct experiment *experiment = execution->experiment;
	const struct folder *folder = execution->folder;

	*totals = (struct experiment_totals){0};
	for (size_t slot = experiment_slot(experiment, 1, 0); slot < experiment_slots(experiment);
	     slot++) {
		if (folder_dropped(folder, slot))
			continue;
		totals->planned++;
		totals->done += folder->done[slot];
		totals->failed += folder->tried[slot] && !folder->done[slot];
	}
	for (size_t i = 0; i < folder->record_count; i++)
		totals->invalid += folder->records[i]->verdict == VERDICT_INVALID &&
				   strcmp(folder->records[i]->status, "ok") == 0;
}

/* Which kernels the missing runs wait for: "boot 6.8.0 for tip". false: none. */
static bool waits_for_kernel(struct execution *execution)
{
	const struct experiment *experiment = execution->experiment;
	char text[300] = "";
	size_t used = 0;
	bool waits = false;

	for (size_t arm = 0; arm < experiment->arm_count; arm++) {
		bool missing = false;

		for (size_t slot = 0; slot < experiment_slots(experiment); slot++)
			missing |= experiment->order[slot] == arm &&
				   folder_missing(execution->folder, slot);
		if (!missing || folder_served(execution->folder, arm))
			continue;
		if (used < sizeof(text))
			used += (size_t)snprintf(text + used, sizeof(text) - used,
						 "%s%s for arm %s", waits ? ", " : "",
						 experiment->arms[arm].kernel,
						 experiment->arms[arm].name);
		waits = true;
	}
	if (waits)
		message_set(execution->message, 0, "boot kernel %s (booted: %s)", text,
			    execution->folder->kernel);
	return waits;
}

/* Names the end, and the reason for experiment.json. */
static int conclude(struct execution *execution, const struct experiment_totals *totals)
{
	struct experiment *experiment = execution->experiment;
	bool rule_met = experiment->rule_met;

	if (execution->stop)
		return 0;
	if (interrupted(execution)) {
		execution->outcome = EXPERIMENT_INTERRUPTED;
		message_set(execution->message, 0, "interrupted after %lld of %lld runs",
			    (long long)totals->done, (long long)totals->planned);
		return 0;
	}
	if (!rule_met && waits_for_kernel(execution)) {
		execution->outcome = EXPERIMENT_OTHER_KERNEL;
		return 0;
	}
	if (!rule_met && totals->failed) {
		execution->outcome = EXPERIMENT_WITH_FAILURES;
		message_set(execution->message, 0,
			    "%lld of %lld runs failed twice; runs.jsonl holds why",
			    (long long)totals->failed, (long long)totals->planned);
		return 0;
	}
	execution->outcome = EXPERIMENT_COMPLETE;
	if (rule_met)
		return 0;
	return experiment_set_text(&experiment->stopped,
				   experiment->stopping.rule == RULE_FIXED
					   ? "all blocks are done"
					   : "--max-reps reached before the rule was met");
}

static int describe_host(struct execution *execution)
{
	struct experiment *experiment = execution->experiment;
	const char *key;

	execution->environment = environment_describe();
	if (!execution->environment)
		return -ENOMEM;
	environment_machine_key(execution->environment, execution->machine_key);
	key = json_get_string(experiment->host, "machine_key", NULL);
	if (key && strcmp(key, execution->machine_key) != 0)
		note(execution, "this is not the machine that the experiment began on: its runs "
				"are recorded with another machine key");
	if (experiment->host)
		return 0;
	experiment->host = json_pack("{s:s, s:s}", "machine_key", execution->machine_key, "kernel",
				     execution->folder->kernel);
	return experiment->host ? 0 : -ENOMEM;
}

int experiment_execute(struct experiment *experiment, const char *directory,
		       const struct experiment_events *events, enum experiment_outcome *ret_outcome,
		       struct experiment_totals *ret_totals, struct message *message)
{
	struct execution execution = {
		.experiment = experiment, .events = events, .message = message};
	struct experiment_totals totals;
	struct message ignored;
	int error = experiment_check_stopping(experiment, message);
	int64_t wait_ns = 0;

	if (!error)
		wait_ns = transaction_lock_wait_ns(LOCK_WAIT_S * NS_PER_S, message);
	if (!error && wait_ns < 0)
		error = (int)wait_ns;
	if (!error)
		error = folder_open(experiment, directory, wait_ns, &execution.folder, message);
	if (error)
		return error;
	if (execution.folder->torn)
		note(&execution, "the last line of runs.jsonl was torn (a kill while it was "
				 "written); it is dropped and its run is made again");
	error = describe_host(&execution);
	if (error)
		message_set_errno(message, error, "description of this machine");
	if (!error)
		error = experiment_save(experiment, execution.folder->directory, message);
	if (!error)
		error = run_plan(&execution);
	count_totals(&execution, &totals);
	if (!error)
		error = conclude(&execution, &totals);
	/* After an error its own message counts; the plan is on disk since the last look. */
	if (!error)
		error = experiment_save(experiment, execution.folder->directory, message);
	else
		experiment_save(experiment, execution.folder->directory, &ignored);
	json_decref(execution.environment);
	folder_close(execution.folder);
	if (!error) {
		*ret_outcome = execution.outcome;
		*ret_totals = totals;
	}
	return error;
}

int experiment_look_ahead(const struct experiment *experiment, const char *directory,
			  int64_t run_ns, struct experiment_preview *ret_preview,
			  struct message *message)
{
	struct experiment copy = *experiment; /* only its blocks and arms are read */
	struct folder *folder;
	int error = folder_open(&copy, directory, -1, &folder, message);

	if (error)
		return error;
	ret_preview->left_ns = folder_left_ns(folder, run_ns, &ret_preview->missing);
	ret_preview->torn = folder->torn;
	folder_close(folder);
	return 0;
}
