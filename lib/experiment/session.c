/* SPDX-License-Identifier: MIT */
#include "experiment/session.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "record/record.h"
#include "record/store.h"

static bool good(const struct record *record)
{
	return strcmp(record->status, "ok") == 0 && !record->interrupted;
}

size_t session_slot(const struct session *session, int64_t block, size_t position)
{
	size_t row = (size_t)(block + session->experiment->warm_up_runs - 1);

	return row * session->experiment->arm_count + position;
}

static void count_time(struct session *session, size_t arm, double seconds)
{
	if (!(seconds >= 0) || !isfinite(seconds))
		return;
	session->arm_seconds[arm] += seconds;
	session->arm_runs[arm]++;
}

/* Marks the slot that a good record of an earlier session fills. */
static void mark_done(struct session *session, const struct record *record, bool warm_up)
{
	const struct experiment *experiment = session->experiment;
	int64_t last = warm_up ? experiment->warm_up_runs : experiment->blocks;
	int64_t block = warm_up ? record->block - experiment->warm_up_runs : record->block;
	int arm = record->arm ? experiment_find_arm(experiment, record->arm) : -ENOENT;

	if (arm < 0 || record->block < 1 || record->block > last || !good(record))
		return;
	session->arm_worked[arm] = true;
	count_time(session, (size_t)arm, record->duration_s);
	for (size_t i = 0; i < experiment->arm_count; i++)
		if (experiment_arm_at(experiment, block, i) == (size_t)arm)
			session->done[session_slot(session, block, i)] = true;
}

/* Values and place are what an experiment needs of a record; 60 KB of histogram is not. */
static void slim(struct record *record)
{
	free(record->histogram);
	record->histogram = NULL;
}

static int read_runs(struct session *session, bool warm_up, struct message *message)
{
	const char *directory = warm_up ? session->warm_up_directory : session->directory;
	char path[PATH_MAX + 16];
	struct record **records;
	struct stat status;
	size_t count;
	bool torn = false;
	int error;

	snprintf(path, sizeof(path), "%s/runs.jsonl", directory);
	if (stat(path, &status) < 0)
		return errno == ENOENT ? 0 : message_set_errno(message, -errno, "%s", path);
	error = store_read(path, &records, &count, &torn, message);
	if (error)
		return error;
	session->torn |= torn;
	for (size_t i = 0; i < count; i++) {
		mark_done(session, records[i], warm_up);
		slim(records[i]);
	}
	if (warm_up) {
		store_free(records, count);
		return 0;
	}
	session->records = records;
	session->record_count = session->record_capacity = count;
	return 0;
}

/*
 * The keeper of a running command holds the lock too: after a SIGKILL of ours, a resume waits until
 * the last command has ended.
 */
static int take_lock(struct session *session, int64_t wait_ns, struct message *message)
{
	int64_t deadline_ns = clock_now_ns() + wait_ns;

	session->lock = open(session->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (session->lock < 0)
		return message_set_errno(message, -errno, "cannot open %s", session->directory);
	while (flock(session->lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return message_set_errno(message, -errno, "cannot lock %s",
						 session->directory);
		if (clock_now_ns() >= deadline_ns)
			return message_set(message, -EBUSY,
					   "%s: another syslat run, or its last command, is still "
					   "at work there; wait for it or end it",
					   session->directory);
		clock_sleep_for(INT64_C(50000000));
	}
	return 0;
}

static int set_paths(struct session *session, const char *directory, struct message *message)
{
	char absolute[PATH_MAX];

	if (!realpath(directory, absolute))
		return message_set_errno(message, -errno, "%s", directory);
	if (strlen(absolute) > PATH_MAX - 64)
		return message_set_errno(message, -ENAMETOOLONG, "%.100s...", directory);
	snprintf(session->directory, sizeof(session->directory), "%s", absolute);
	snprintf(session->warm_up_directory, sizeof(session->warm_up_directory), "%.*s/warm-up",
		 PATH_MAX - 32, absolute);
	snprintf(session->record_path, sizeof(session->record_path), "%.*s/current-run.json",
		 PATH_MAX - 32, absolute);
	return 0;
}

int session_open(struct experiment *experiment, const char *directory, int64_t lock_wait_ns,
		 struct session **ret_session, struct message *message)
{
	struct session *session = calloc(1, sizeof(*session));
	size_t slots =
		(size_t)(experiment->warm_up_runs + experiment->blocks) * experiment->arm_count;
	struct utsname names;
	int error;

	if (!session)
		return message_set_errno(message, -ENOMEM, "%s", directory);
	session->experiment = experiment;
	session->lock = -1;
	session->done = calloc(slots, sizeof(*session->done));
	session->tried = calloc(slots, sizeof(*session->tried));
	if (uname(&names) == 0)
		snprintf(session->kernel, sizeof(session->kernel), "%.64s", names.release);
	error = session->done && session->tried
			? set_paths(session, directory, message)
			: message_set_errno(message, -ENOMEM, "%s", directory);
	if (!error && lock_wait_ns >= 0)
		error = take_lock(session, lock_wait_ns, message);
	if (!error)
		error = read_runs(session, true, message);
	if (!error)
		error = read_runs(session, false, message);
	if (error) {
		session_close(session);
		return error;
	}
	*ret_session = session;
	return 0;
}

void session_close(struct session *session)
{
	if (!session)
		return;
	store_free(session->records, session->record_count);
	free(session->done);
	free(session->tried);
	if (session->lock >= 0)
		close(session->lock);
	free(session);
}

bool session_dropped(const struct session *session, int64_t block, size_t arm)
{
	const struct experiment_arm *it = &session->experiment->arms[arm];

	return it->decision && block > it->decided_after;
}

bool session_served(const struct session *session, size_t arm)
{
	const char *kernel = session->experiment->arms[arm].kernel;

	return !kernel || strcmp(kernel, session->kernel) == 0;
}

bool session_missing(const struct session *session, int64_t block, size_t position)
{
	size_t arm = experiment_arm_at(session->experiment, block, position);

	return !session->done[session_slot(session, block, position)] &&
	       !session_dropped(session, block, arm);
}

bool session_block_over(const struct session *session, int64_t block)
{
	for (size_t i = 0; i < session->experiment->arm_count; i++)
		if (session_missing(session, block, i) &&
		    !session->tried[session_slot(session, block, i)])
			return false;
	return true;
}

static int keep_record(struct session *session, struct record *record)
{
	if (session->record_count == session->record_capacity) {
		size_t capacity = session->record_capacity ? 2 * session->record_capacity : 64;
		struct record **longer =
			reallocarray(session->records, capacity, sizeof(*session->records));

		if (!longer)
			return -ENOMEM;
		session->records = longer;
		session->record_capacity = capacity;
	}
	slim(record);
	session->records[session->record_count++] = record;
	return 0;
}

int session_add(struct session *session, int64_t block, size_t position, struct record *record,
		int64_t elapsed_ns, struct message *message)
{
	size_t arm = experiment_arm_at(session->experiment, block, position);
	size_t slot = session_slot(session, block, position);
	bool warm_up = block < 1;
	int error = 0;

	if (warm_up)
		error = file_make_directories(session->warm_up_directory);
	if (error) {
		message_set_errno(message, error, "cannot make %s", session->warm_up_directory);
		goto failed;
	}
	error = store_append(warm_up ? session->warm_up_directory : session->directory, record,
			     message);
	if (error)
		goto failed;
	session->done[slot] = good(record);
	session->tried[slot] = !good(record);
	if (good(record)) {
		session->arm_worked[arm] = true;
		count_time(session, arm, (double)elapsed_ns / 1e9);
	}
	if (warm_up) {
		record_free(record);
		return 0;
	}
	error = keep_record(session, record);
	if (error) {
		message_set_errno(message, error, "records in memory");
		goto failed;
	}
	return store_write_text(session->directory, session->records, session->record_count,
				message);
failed:
	record_free(record);
	return error;
}

int64_t session_left_ns(const struct session *session, int64_t run_ns, int64_t *ret_missing)
{
	const struct experiment *experiment = session->experiment;
	double all_seconds = 0, seconds = 0;
	int64_t all_runs = 0, missing = 0;

	for (size_t arm = 0; arm < experiment->arm_count; arm++) {
		all_seconds += session->arm_seconds[arm];
		all_runs += session->arm_runs[arm];
	}
	for (int64_t block = 1 - experiment->warm_up_runs; block <= experiment->blocks; block++)
		for (size_t i = 0; i < experiment->arm_count; i++) {
			size_t arm = experiment_arm_at(experiment, block, i);

			if (!session_missing(session, block, i) ||
			    session->tried[session_slot(session, block, i)])
				continue;
			missing++;
			if (session->arm_runs[arm])
				seconds +=
					session->arm_seconds[arm] / (double)session->arm_runs[arm];
			else if (all_runs)
				seconds += all_seconds / (double)all_runs;
			else
				seconds += (double)run_ns / 1e9;
		}
	if (ret_missing)
		*ret_missing = missing;
	if (missing && !all_runs && run_ns <= 0)
		return -1;
	return (int64_t)(seconds * 1e9);
}
