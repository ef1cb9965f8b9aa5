/* SPDX-License-Identifier: MIT */
#include "experiment/folder.h"

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

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "record/record.h"
#include "record/store.h"

static bool good(const struct record *record)
{
	return strcmp(record->status, "ok") == 0 && !record->interrupted;
}

static void count_time(struct folder *folder, size_t arm, double seconds)
{
	if (!(seconds >= 0) || !isfinite(seconds))
		return;
	folder->arm_seconds[arm] += seconds;
	folder->arm_runs[arm]++;
}

/* Marks the slot that a good record that is on disk fills. */
static void mark_done(struct folder *folder, const struct record *record, bool warm_up)
{
	const struct experiment *experiment = folder->experiment;
	int64_t last = warm_up ? experiment->warm_up_runs : experiment->blocks;
	int64_t block = warm_up ? record->block - experiment->warm_up_runs : record->block;
	int arm = record->arm ? experiment_find_arm(experiment, record->arm) : -ENOENT;

	if (arm < 0 || record->block < 1 || record->block > last || !good(record))
		return;
	folder->arm_worked[arm] = true;
	count_time(folder, (size_t)arm, record->duration_s);
	for (size_t i = 0; i < experiment->arm_count; i++)
		if (experiment_arm_at(experiment, block, i) == (size_t)arm)
			folder->done[experiment_slot(experiment, block, i)] = true;
}

/* Values and place are what an experiment needs of a record; 60 KB of histogram is not. */
static void slim(struct record *record)
{
	free(record->histogram);
	record->histogram = NULL;
}

static int read_runs(struct folder *folder, bool warm_up, struct message *message)
{
	const char *directory = warm_up ? folder->warm_up_directory : folder->directory;
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
	folder->torn |= torn;
	for (size_t i = 0; i < count; i++) {
		mark_done(folder, records[i], warm_up);
		slim(records[i]);
	}
	if (warm_up) {
		store_free(records, count);
		return 0;
	}
	folder->records = records;
	folder->record_count = folder->record_capacity = count;
	return 0;
}

/*
 * The monitor of a running command holds the lock too: after a SIGKILL of ours, a resume waits
 * until the last command has ended.
 */
static int take_lock(struct folder *folder, int64_t wait_ns, struct message *message)
{
	int64_t deadline_ns = clock_now_ns() + wait_ns;

	folder->lock = open(folder->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (folder->lock < 0)
		return message_set_errno(message, -errno, "cannot open %s", folder->directory);
	while (flock(folder->lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return message_set_errno(message, -errno, "cannot lock %s",
						 folder->directory);
		if (clock_now_ns() >= deadline_ns)
			return message_set(message, -EBUSY,
					   "%s: another syslat run, or its last command, is still "
					   "at work there; wait for it or end it",
					   folder->directory);
		clock_sleep_for(INT64_C(50000000));
	}
	return 0;
}

static int set_paths(struct folder *folder, const char *directory, struct message *message)
{
	char absolute[PATH_MAX];

	if (!realpath(directory, absolute))
		return message_set_errno(message, -errno, "%s", directory);
	if (strlen(absolute) > PATH_MAX - 64)
		return message_set_errno(message, -ENAMETOOLONG, "%.100s...", directory);
	snprintf(folder->directory, sizeof(folder->directory), "%s", absolute);
	snprintf(folder->warm_up_directory, sizeof(folder->warm_up_directory), "%.*s/warm-up",
		 PATH_MAX - 32, absolute);
	snprintf(folder->record_path, sizeof(folder->record_path), "%.*s/current-run.json",
		 PATH_MAX - 32, absolute);
	return 0;
}

int folder_open(struct experiment *experiment, const char *directory, int64_t lock_wait_ns,
		struct folder **ret_folder, struct message *message)
{
	struct folder *folder = calloc(1, sizeof(*folder));
	size_t slots = experiment_slots(experiment);
	struct utsname names;
	int error;

	if (!folder)
		return message_set_errno(message, -ENOMEM, "%s", directory);
	folder->experiment = experiment;
	folder->lock = -1;
	folder->done = calloc(slots, sizeof(*folder->done));
	folder->tried = calloc(slots, sizeof(*folder->tried));
	if (uname(&names) == 0)
		snprintf(folder->kernel, sizeof(folder->kernel), "%.64s", names.release);
	error = folder->done && folder->tried
			? set_paths(folder, directory, message)
			: message_set_errno(message, -ENOMEM, "%s", directory);
	if (!error && lock_wait_ns >= 0)
		error = take_lock(folder, lock_wait_ns, message);
	if (!error)
		error = read_runs(folder, true, message);
	if (!error)
		error = read_runs(folder, false, message);
	if (error) {
		folder_close(folder);
		return error;
	}
	*ret_folder = folder;
	return 0;
}

void folder_close(struct folder *folder)
{
	if (!folder)
		return;
	store_free(folder->records, folder->record_count);
	free(folder->done);
	free(folder->tried);
	if (folder->lock >= 0)
		close(folder->lock);
	free(folder);
}

bool folder_dropped(const struct folder *folder, size_t slot)
{
	const struct experiment *experiment = folder->experiment;
	const struct experiment_arm *arm = &experiment->arms[experiment->order[slot]];

	return arm->decision && experiment_block_of(experiment, slot) > arm->decided_after;
}

bool folder_served(const struct folder *folder, size_t arm)
{
	const char *kernel = folder->experiment->arms[arm].kernel;

	return !kernel || strcmp(kernel, folder->kernel) == 0;
}

bool folder_missing(const struct folder *folder, size_t slot)
{
	return !folder->done[slot] && !folder_dropped(folder, slot);
}

bool folder_block_over(const struct folder *folder, int64_t block)
{
	size_t first = experiment_slot(folder->experiment, block, 0);

	for (size_t i = first; i < first + folder->experiment->arm_count; i++)
		if (folder_missing(folder, i) && !folder->tried[i])
			return false;
	return true;
}

static int keep_record(struct folder *folder, struct record *record)
{
	int error =
		array_reserve(&folder->records, &folder->record_capacity, folder->record_count + 1);

	if (!error) {
		slim(record);
		folder->records[folder->record_count++] = record;
	}
	return error;
}

int folder_add(struct folder *folder, size_t slot, struct record *record, int64_t elapsed_ns,
	       struct message *message)
{
	size_t arm = folder->experiment->order[slot];
	bool warm_up = experiment_block_of(folder->experiment, slot) < 1;
	int error = 0;

	if (warm_up)
		error = file_make_directories(folder->warm_up_directory);
	if (error) {
		message_set_errno(message, error, "cannot make %s", folder->warm_up_directory);
		goto failed;
	}
	error = store_append(warm_up ? folder->warm_up_directory : folder->directory, record,
			     message);
	if (error)
		goto failed;
	folder->done[slot] = good(record);
	folder->tried[slot] = !good(record);
	if (good(record)) {
		folder->arm_worked[arm] = true;
		count_time(folder, arm, (double)elapsed_ns / 1e9);
	}
	if (warm_up) {
		record_free(record);
		return 0;
	}
	error = keep_record(folder, record);
	if (error) {
		message_set_errno(message, error, "records in memory");
		goto failed;
	}
	return store_write_text(folder->directory, folder->records, folder->record_count, message);
failed:
	record_free(record);
	return error;
}

int64_t folder_left_ns(const struct folder *folder, int64_t run_ns, int64_t *ret_missing)
{
	const struct experiment *experiment = folder->experiment;
	double all_seconds = 0, seconds = 0;
	int64_t all_runs = 0, missing = 0;

	for (size_t arm = 0; arm < experiment->arm_count; arm++) {
		all_seconds += folder->arm_seconds[arm];
		all_runs += folder->arm_runs[arm];
	}
	for (size_t slot = 0; slot < experiment_slots(experiment); slot++) {
		size_t arm = experiment->order[slot];

		if (!folder_missing(folder, slot) || folder->tried[slot])
			continue;
		missing++;
		if (folder->arm_runs[arm])
			seconds += folder->arm_seconds[arm] / (double)folder->arm_runs[arm];
		else if (all_runs)
			seconds += all_seconds / (double)all_runs;
		else
			seconds += (double)run_ns / 1e9;
	}
	*ret_missing = missing;
	if (missing && !all_runs && run_ns <= 0)
		return -1;
	return (int64_t)(seconds * 1e9);
}
