/* SPDX-License-Identifier: MIT */
#include "undo/knob.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "undo/journal.h"
#include "undo/process.h"

/* "123.journal", "123.1.journal"; and "123.new", killed before its guardian was there. */
static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), end = strlen(suffix);

	return length > end && strcmp(name + length - end, suffix) == 0 &&
	       length < JOURNAL_NAME_BYTES;
}

static void discard_unfinished(int directory_fd, const char *name)
{
	uint64_t ticks;

	if (process_start_ticks((pid_t)strtol(name, NULL, 10), &ticks) == -ESRCH)
		unlinkat(directory_fd, name, 0);
}

/* One journal; *ret_abandoned: it was (or is) to be undone. */
static int visit(int directory_fd, const char *name, bool undo, bool *ret_abandoned,
		 struct message *message)
{
	struct journal_content content;
	enum journal_state state;
	struct journal journal;
	int result;

	*ret_abandoned = false;
	result = journal_claim(directory_fd, name, 0, &journal, &content, &state, message);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	if (state == JOURNAL_STALE && undo)
		journal_remove(&journal);
	if (state == JOURNAL_ABANDONED) {
		*ret_abandoned = true;
		if (undo)
			result = journal_undo(&journal, &content, 0, INT64_MAX, message);
	}
	journal_content_free(&content);
	journal_close(&journal);
	return result;
}

/* A guardian holds its journal's lock; the name says whose journal it is. */
static bool is_unfinished(int directory_fd, const char *name)
{
	struct journal_content content;
	enum journal_state state;
	struct journal journal;
	bool guarded;
	uint64_t ticks;

	if (process_start_ticks((pid_t)strtol(name, NULL, 10), &ticks) != -ESRCH ||
	    journal_claim(directory_fd, name, 0, &journal, &content, &state, NULL) < 0)
		return false;
	guarded = journal.fd < 0;
	journal_content_free(&content);
	journal_close(&journal);
	return guarded;
}

int knobs_count_unfinished(int *ret_count)
{
	int directory_fd = journal_open_directory(false, NULL);
	struct dirent *entry;
	DIR *directory;

	*ret_count = 0;
	if (directory_fd < 0)
		return directory_fd == -ENOENT ? 0 : directory_fd;
	directory = fdopendir(directory_fd);
	if (!directory) {
		close(directory_fd);
		return -ENOMEM;
	}
	while ((entry = readdir(directory)))
		*ret_count += has_suffix(entry->d_name, ".journal") &&
			      is_unfinished(directory_fd, entry->d_name);
	closedir(directory);
	return 0;
}

static int visit_all(bool undo, int *ret_count, struct message *message)
{
	int directory_fd = journal_open_directory(false, message), result, first = 0;
	struct dirent *entry;
	DIR *directory;
	bool abandoned;

	*ret_count = 0;
	if (directory_fd < 0)
		return directory_fd == -ENOENT ? 0 : directory_fd;
	directory = fdopendir(directory_fd);
	if (!directory) {
		result = message_set_errno(message, -errno, "journals");
		close(directory_fd);
		return result;
	}
	while ((entry = readdir(directory))) {
		if (undo && has_suffix(entry->d_name, ".new"))
			discard_unfinished(directory_fd, entry->d_name);
		if (!has_suffix(entry->d_name, ".journal"))
			continue;
		result = visit(directory_fd, entry->d_name, undo, &abandoned,
			       first ? NULL : message);
		if (result < 0 && first == 0)
			first = result;
		*ret_count += abandoned && result == 0;
	}
	closedir(directory);
	return first;
}

int knobs_restore(int *ret_count, struct message *message)
{
	return visit_all(true, ret_count, message);
}

int knobs_count_abandoned(int *ret_count)
{
	return visit_all(false, ret_count, NULL);
}
