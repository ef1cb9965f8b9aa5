/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/exit.h"
#include "command.h"
#include "history_options.h"

/*
 * syslat history rebuild: a new database from the records, with what only the old one knows (the
 * commits that were given, purposes, notes). SQLite: made beside and renamed over the old one.
 */

static int take_source(void *data, const char *path)
{
	struct intern *sources = data;
	uint32_t number;

	return intern_add(sources, path, strlen(path), &number);
}

struct relabel {
	struct run_list *runs;
	struct intern uuids;
	struct history_run **by_number;
};

static int find_run(struct relabel *relabel, const char *uuid, struct history_run **ret_run)
{
	size_t before = relabel->uuids.count;
	uint32_t number = 0;
	int error = intern_add(&relabel->uuids, uuid, strlen(uuid), &number);

	*ret_run = error || number >= before ? NULL : relabel->by_number[number];
	return error;
}

static int take_label(void *data, const struct history_label *label)
{
	struct relabel *relabel = data;
	struct history_run *run = NULL;
	char *text = NULL, when[24] = "";
	int error = find_run(relabel, label->uuid, &run), length;

	if (error || !run)
		return error;
	if (label->time_us != INT64_MIN)
		snprintf(when, sizeof(when), "%lld", (long long)label->time_us);
	length = asprintf(&text, "%s%c%s%c%s%c%s%c%s", label->commit, RUN_FIELD,
			  label->branch ? label->branch : "", RUN_FIELD,
			  label->tags ? label->tags : "", RUN_FIELD,
			  label->kernel ? label->kernel : "", RUN_FIELD, when);
	if (length < 0)
		return -ENOMEM;
	run->purpose = (uint8_t)label->purpose;
	error = intern_add(&relabel->runs->commits, text, (size_t)length, &run->commit);
	free(text);
	return error;
}

/* Commits and purposes of runs that the old database knows. */
static int keep_labels(struct history *old, struct run_list *runs, struct message *message)
{
	struct relabel relabel = {.runs = runs};
	uint32_t number;
	int error = 0;

	relabel.by_number = calloc(runs->count + 1, sizeof(*relabel.by_number));
	if (!relabel.by_number)
		return message_set_errno(message, -ENOMEM, "rebuild");
	for (size_t i = 0; i < runs->count && !error; i++) {
		error = intern_add(&relabel.uuids, runs->runs[i].uuid, 36, &number);
		relabel.by_number[number] = &runs->runs[i];
	}
	if (!error)
		error = history_labels(old, take_label, &relabel, message);
	intern_free(&relabel.uuids);
	free(relabel.by_number);
	return error;
}

static int read_sources(struct history_settings *settings, char *const *operands, size_t count,
			struct history *old, struct run_list *runs, struct message *message)
{
	struct run_labels labels = {.commit_time_us = INT64_MIN,
				    .mix_machines = true,
				    .drop_torn = settings->drop_torn};
	struct intern sources = {.texts = NULL};
	int error = 0;

	for (size_t i = 0; i < count && !error; i++)
		error = take_source(&sources, operands[i]);
	if (!count && old->database)
		error = history_sources(old, take_source, &sources, message);
	if (!error && !sources.count)
		error = message_set(message, -ENOENT, "nothing to rebuild from: give the folders");
	for (size_t i = 0; i < sources.count && !error && !count; i++)
		if (access(sources.texts[i], R_OK) < 0)
			error = message_set(message, -ENOENT,
					    "\"%s\" cannot be read again: name the folders to "
					    "rebuild from",
					    sources.texts[i]);
	for (size_t i = 0; i < sources.count && !error; i++)
		error = run_list_read(runs, sources.texts[i], &labels, message);
	intern_free(&sources);
	if (!error)
		error = run_list_drop_duplicates(runs, message);
	if (!error && old->database)
		error = keep_labels(old, runs, message);
	return error;
}

static int fill(const char *path, struct history *old, const struct run_list *runs,
		struct history_added *added, struct message *message)
{
	struct history new = {.database = NULL};
	int error = history_open(path, true, &new, message);

	if (!error)
		error = history_add(&new, runs, 0, NULL, NULL, added, message);
	if (!error && old->database)
		error = history_copy_notes(old, &new, message);
	history_close(&new);
	return error;
}

/* The new one takes the old one's place in one step; its journals are gone with the closing. */
static int replace(const char *new, const char *path, struct message *message)
{
	char journal[PATH_MAX + 8];

	if (rename(new, path) < 0)
		return message_set_errno(message, -errno, "%s", path);
	snprintf(journal, sizeof(journal), "%s-wal", path);
	unlink(journal);
	snprintf(journal, sizeof(journal), "%s-shm", path);
	unlink(journal);
	return 0;
}

static int rebuild(struct history_settings *settings, char *const *operands, size_t count)
{
	struct history old = {.database = NULL};
	struct run_list runs = {.runs = NULL};
	struct history_added added = {0};
	struct message message = {""};
	char beside[PATH_MAX];
	int error;

	if (strstr(settings->db, "://")) {
		command_error(HISTORY_NAME, "rebuild: on a server, make a new database and add the "
					    "folders to it");
		return EXIT_USAGE;
	}
	snprintf(beside, sizeof(beside), "%s.new-%d", settings->db, (int)getpid());
	error = history_open(settings->db, false, &old, &message);
	if (error == -ENOENT && count)
		error = 0;
	if (!error)
		error = read_sources(settings, operands, count, &old, &runs, &message);
	if (!error)
		error = fill(beside, &old, &runs, &added, &message);
	history_close(&old);
	if (!error)
		error = replace(beside, settings->db, &message);
	if (error)
		unlink(beside);
	run_list_free(&runs);
	if (error)
		return history_fail(error, &message);
	printf("%s: rebuilt from the records: %zu runs, %zu values\n", settings->db, added.runs,
	       added.values);
	return EXIT_DONE;
}

static const struct option_row rebuild_rows[] = {
	HISTORY_ROW_DB,
	{OPTION_FLAG, 0, "drop-torn", NULL, "drop torn last lines", HISTORY_AT(drop_torn)},
};

const struct history_part history_part_rebuild = {
	"rebuild",
	"make the database anew from the records (of all known sources, or those named)",
	"syslat history rebuild [OPTION]... [DIR|RECORD]...",
	rebuild,
	rebuild_rows,
	HISTORY_ROW_COUNT(rebuild_rows),
};
