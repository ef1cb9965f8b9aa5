/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/exit.h"
#include "base/file.h"
#include "command.h"
#include "history_options.h"

/* syslat history add, rebuild, rm, acknowledge: what changes the database. */

static struct run_labels labels_of(const struct history_settings *settings)
{
	return (struct run_labels){.commit = settings->commit,
				   .branch = settings->branch,
				   .tags = settings->tags,
				   .machine = settings->machine,
				   .commit_time_us = settings->commit_time_us,
				   .purpose =
					   settings->confirms ? PURPOSE_CONFIRM : PURPOSE_HISTORY,
				   .mix_machines = settings->mix_machines,
				   .drop_torn = settings->drop_torn};
}

static void acknowledge(void *data, size_t runs)
{
	const struct history_settings *settings = data;

	if (!settings->progress)
		return;
	printf("on disk: %zu runs\n", runs);
	fflush(stdout);
}

static int check_labels(const struct history_settings *settings, struct message *message)
{
	const char *const texts[] = {settings->commit, settings->branch, settings->tags,
				     settings->machine};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		if (texts[i] && (!*texts[i] || strlen(texts[i]) > 200))
			return message_set(message, -EINVAL,
					   "a commit, branch, tag or machine has 1 to 200 letters");
		for (const char *at = texts[i]; at && *at; at++)
			if ((unsigned char)*at < 0x20)
				return message_set(message, -EINVAL,
						   "a commit, branch, tag or machine holds no "
						   "control characters");
	}
	return 0;
}

static int add(struct history_settings *settings, char *const *operands, size_t count)
{
	struct run_labels labels = labels_of(settings);
	struct run_list runs = {.runs = NULL};
	struct history history = {.database = NULL};
	struct history_added added = {0};
	struct message message = {""};
	int error = 0;

	if (!count || check_labels(settings, &message)) {
		command_error(HISTORY_NAME, "%s",
			      count ? message.text
				    : "nothing to add: give an experiment's folder or records");
		return EXIT_USAGE;
	}
	for (size_t i = 0; i < count && !error; i++)
		error = run_list_read(&runs, operands[i], &labels, &message);
	if (!error)
		error = run_list_drop_duplicates(&runs, &message);
	if (!error)
		error = history_open(settings->db, true, &history, &message);
	if (!error)
		error = history_add(&history, &runs, (size_t)settings->batch, acknowledge, settings,
				    &added, &message);
	history_close(&history);
	run_list_free(&runs);
	if (error)
		return history_fail(error, &message);
	printf("%s: %zu runs added, %zu known already, %zu values\n", settings->db, added.runs,
	       added.known, added.values);
	return EXIT_DONE;
}

static const struct option_row add_rows[] = {
	HISTORY_ROW_DB,
	{OPTION_STRING, 0, "commit", "NAME",
	 "of the runs (default: the hash in the record's kernel release, else the release)",
	 HISTORY_AT(commit)},
	{OPTION_CALL, 0, "commit-time", "TIME",
	 "of the commit: seconds since 1970 or RFC 3339; orders the history\n"
	 "(default: start of the commit's first run)",
	 .call = history_take_when},
	{OPTION_STRING, 0, "branch", "NAME", "that the commit is on", HISTORY_AT(branch)},
	{OPTION_STRING, 0, "tags", "LIST", "of the commit, commas between", HISTORY_AT(tags)},
	{OPTION_STRING, 0, "machine", "KEY", "in place of the records' machine key",
	 HISTORY_AT(machine)},
	{OPTION_FLAG, 0, "confirms", NULL,
	 "these are fresh runs that confirm or refute a suspected change", HISTORY_AT(confirms)},
	{OPTION_FLAG, 0, "mix-machines", NULL, "take a folder with runs of several machines",
	 HISTORY_AT(mix_machines)},
	{OPTION_FLAG, 0, "drop-torn", NULL, "drop a torn last line and add the others",
	 HISTORY_AT(drop_torn)},
	{OPTION_INT, 0, "batch", "N", "runs of one transaction (2000; into SQLite up to 50000)",
	 HISTORY_AT(batch), .minimum = 1, .maximum = 1000000},
	{OPTION_FLAG, 0, "progress", NULL, "tell after each transaction what is on disk",
	 HISTORY_AT(progress)},
};

const struct history_part history_part_add = {
	"add",
	"add the runs of folders or records",
	"syslat history add [OPTION]... DIR|RECORD|-...",
	add,
	add_rows,
	HISTORY_ROW_COUNT(add_rows),
};

/* --- rm --- */

static int rm(struct history_settings *settings, char *const *operands, size_t count)
{
	struct history history = {.database = NULL};
	struct message message = {""};
	size_t removed = 0, all = 0;
	int error;

	if (!count == !settings->commit) {
		command_error(HISTORY_NAME, "rm: give ids of runs, or --commit NAME");
		return EXIT_USAGE;
	}
	error = history_open(settings->db, false, &history, &message);
	if (!error && settings->commit)
		error = history_remove(&history, NULL, settings->commit, &all, &message);
	for (size_t i = 0; i < count && !error; i++) {
		error = history_remove(&history, operands[i], NULL, &removed, &message);
		all += removed;
	}
	history_close(&history);
	if (error)
		return history_fail(error, &message);
	printf("%s: %zu runs removed\n", settings->db, all);
	return EXIT_DONE;
}

static const struct option_row rm_rows[] = {
	HISTORY_ROW_DB,
	{OPTION_STRING, 0, "commit", "NAME", "every run of that commit", HISTORY_AT(commit)},
};

const struct history_part history_part_rm = {
	"rm", "take runs out", "syslat history rm [OPTION]... ID...",
	rm,   rm_rows,	       HISTORY_ROW_COUNT(rm_rows),
};

/* --- acknowledge --- */

static int note(struct history_settings *settings, char *const *operands, size_t count)
{
	struct history history = {.database = NULL};
	struct message message = {""};
	int error;

	if (count != 1 || !settings->note || !*settings->note) {
		command_error(HISTORY_NAME, "acknowledge: give one commit and --note TEXT");
		return EXIT_USAGE;
	}
	error = history_open(settings->db, false, &history, &message);
	if (!error)
		error = history_acknowledge(&history, settings->series, operands[0], settings->note,
					    &message);
	history_close(&history);
	return error ? history_fail(error, &message) : EXIT_DONE;
}

static const struct option_row note_rows[] = {
	HISTORY_ROW_DB,
	{OPTION_STRING, 0, "note", "TEXT", "why it is no alarm", HISTORY_AT(note)},
	{OPTION_INT, 0, "series", "N", "of that series alone (default: of all)", HISTORY_AT(series),
	 .minimum = 1, .maximum = INT64_MAX},
};

const struct history_part history_part_acknowledge = {
	"acknowledge",
	"say that a change at a commit is known: it alarms no more",
	"syslat history acknowledge [OPTION]... --note TEXT COMMIT",
	note,
	note_rows,
	HISTORY_ROW_COUNT(note_rows),
};
