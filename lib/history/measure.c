/* SPDX-License-Identifier: MIT */
#include "history/measure.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "experiment/experiment.h"
#include "experiment/command.h"
#include "experiment/record.h"
#include "record/record.h"
#include "sys/environment.h"

static int add_shell_arm(struct experiment *experiment, const char *name, const char *text,
			 struct message *message)
{
	char *const argv[] = {(char *)"/bin/sh", (char *)"-c", (char *)text, NULL};

	return experiment_add_arm(experiment, name, argv, NULL, message);
}

int measure_open(const char *name, char *const *argv, const char *text, struct measure *ret_measure,
		 struct message *message)
{
	struct measure measure = {.experiment = experiment_new(name)};
	int fd, error = 0;

	measure.environment = environment_describe();
	if (!measure.experiment || !measure.environment)
		error = message_set_errno(message, -ENOMEM, "%s", name);
	if (!error)
		error = argv ? experiment_add_arm(measure.experiment, name, argv, NULL, message)
			     : add_shell_arm(measure.experiment, name, text, message);
	if (!error) {
		environment_machine_key(measure.environment, measure.machine_key);
		snprintf(measure.record_path, sizeof(measure.record_path),
			 "/tmp/syslat-measure.XXXXXX");
		fd = mkstemp(measure.record_path);
		if (fd < 0)
			error = message_set_errno(message, -errno, "%s", measure.record_path);
		else
			close(fd);
	}
	if (error) {
		measure.record_path[0] = '\0';
		measure_close(&measure);
		return error;
	}
	*ret_measure = measure;
	return 0;
}

void measure_close(struct measure *measure)
{
	if (measure->record_path[0])
		unlink(measure->record_path);
	experiment_free(measure->experiment);
	json_decref(measure->environment);
	*measure = (struct measure){.experiment = NULL};
}

static int take_result(struct measure *measure, const char *started,
		       const struct command_result *result, struct record **ret_record,
		       struct message *message)
{
	struct experiment_place place = {.block = 1,
					 .order = 1,
					 .started = started,
					 .machine_key = measure->machine_key,
					 .environment = measure->environment};
	struct record *record = NULL;
	char why[512];
	int error = experiment_record(measure->experiment, &place, result, measure->record_path,
				      &record, why, sizeof(why));

	if (error)
		return message_set_errno(message, error, "the run's record");
	if (why[0]) {
		record_free(record);
		return message_set(message, -EIO, "%s", why);
	}
	*ret_record = record;
	return 0;
}

int measure_run(struct measure *measure, struct record **ret_record, struct message *message)
{
	struct command_settings settings = {.argv = measure->experiment->arms[0].argv,
					    .record_path = measure->record_path,
					    .block = measure->block,
					    .timeout_ns = measure->timeout_ns,
					    .interrupted = measure->interrupted};
	struct command_result result = {0};
	char started[32];
	int error;

	if (truncate(measure->record_path, 0) < 0)
		return message_set_errno(message, -errno, "%s", measure->record_path);
	clock_rfc3339(started, sizeof(started));
	error = command_execute(&settings, &result, message);
	if (error)
		return error;
	if (measure->interrupted && *measure->interrupted)
		error = message_set(message, -EINTR, "interrupted");
	else
		error = take_result(measure, started, &result, ret_record, message);
	command_result_free(&result);
	return error;
}
