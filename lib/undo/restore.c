/* SPDX-License-Identifier: MIT */
/* Journals of others, whose guardian is dead: judged, counted, undone. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "undo/journal.h"
#include "undo/transaction.h"
#include "undo/process.h"

enum journal_state {
	JOURNAL_GUARDED, /* its guardian lives, or another program undoes it */
	JOURNAL_ACTIVE,	 /* its program lives */
	JOURNAL_STALE,	 /* of another boot, or nothing is left to undo */
	JOURNAL_ABANDONED,
};

static int check_file(int fd, const char *name, struct message *message)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return message_set_errno(message, -errno, "%s", name);
	if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) ||
	    status.st_nlink > 1)
		return message_set(message, -EACCES,
				   "%s is not trusted: it must be a file of yours that nobody else "
				   "can write; remove it",
				   name);
	return 0;
}

static enum journal_state judge(const struct journal_content *content, pid_t self)
{
	if (content->pid == 0 || !content->this_boot)
		return JOURNAL_STALE;
	if (content->pid != self && process_alive(content->pid, content->start_ticks))
		return JOURNAL_ACTIVE;
	if (undo_list_left(&content->list) == 0 && !content->damaged)
		return JOURNAL_STALE;
	return JOURNAL_ABANDONED;
}

/* Opens, checks (owner, mode, regular file, one link), locks and loads @name; its descriptor. */
static int claim(int directory_fd, const char *name, pid_t self,
		 struct journal_content *ret_content, enum journal_state *ret_state,
		 struct message *message)
{
	int fd =
		openat(directory_fd, name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	int result;

	if (fd < 0)
		return message_set_errno(message, -errno, "cannot open journal %s", name);
	*ret_content = (struct journal_content){0};
	result = check_file(fd, name, message);
	if (result == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		*ret_state = JOURNAL_GUARDED;
		return fd;
	}
	if (result == 0)
		result = journal_load(fd, ret_content, message);
	if (result < 0) {
		close(fd);
		return result;
	}
	*ret_state = judge(ret_content, self);
	return fd;
}

/* Takes the machine-wide lock where something is left that needs it, and undoes. */
static int undo(int directory_fd, struct journal_content *content, int lock_fd,
		const struct undo_context *context, const char *name, struct message *message)
{
	int64_t wait_ns = lock_wait_ns();
	int fd = lock_fd, result = 0;

	if (undo_list_is_global(&content->list)) {
		if (fd < 0)
			fd = lock_open(directory_fd, message);
		result = fd < 0 ? fd
				: lock_take(fd, "syslatency restore", getpid(),
					    wait_ns < context->limit_ns ? wait_ns
									: context->limit_ns,
					    NULL, message);
	}
	if (result == 0)
		result = undo_list_run(&content->list, 0, context, message);
	if (result == 0 && content->damaged)
		result = message_set(
			message, -EBADMSG,
			"journal %s has lines that cannot be read; the rest was put back", name);
	if (fd >= 0 && fd != lock_fd)
		close(fd);
	return result;
}

int journal_undo_alone(int directory_fd, const char *name, pid_t self, int lock_fd,
		       int64_t limit_ns, struct message *message)
{
	struct journal_content content;
	enum journal_state state;
	int fd = claim(directory_fd, name, self, &content, &state, message), result = 0;
	struct undo_context context = {.program = self, .limit_ns = limit_ns, .journal_fd = fd};
	bool is_theirs;

	if (fd < 0) /* -ENOENT: its guardian had come to the end of its work */
		return fd == -ENOENT ? 0 : fd;
	is_theirs = state == JOURNAL_GUARDED || state == JOURNAL_ACTIVE;
	if (is_theirs && self)
		result = message_set(message, -EBUSY, "another program puts its changes back");
	if (state == JOURNAL_ABANDONED)
		result = undo(directory_fd, &content, lock_fd, &context, name, message);
	if (result == 0 && !is_theirs)
		unlinkat(directory_fd, name, 0);
	undo_list_clear(&content.list);
	close(fd);
	return result < 0 ? result : state == JOURNAL_ABANDONED;
}

/* "123.journal", "123.1.journal" */
static bool is_journal(const char *name)
{
	static const char suffix[] = ".journal";
	size_t length = strlen(name);

	return length >= sizeof(suffix) && length < JOURNAL_NAME_BYTES &&
	       strcmp(name + length - sizeof(suffix) + 1, suffix) == 0;
}

static int find_state(int directory_fd, const char *name, enum journal_state *ret_state,
		      struct message *message)
{
	struct journal_content content;
	int fd = claim(directory_fd, name, 0, &content, ret_state, message);

	if (fd < 0)
		return fd;
	undo_list_clear(&content.list);
	close(fd);
	return 0;
}

typedef int visitor(int directory_fd, const char *name, struct message *message);

/* 1: it is to be undone. */
static int is_abandoned(int directory_fd, const char *name, struct message *message)
{
	enum journal_state state;
	int result = find_state(directory_fd, name, &state, message);

	return result < 0 ? result : state == JOURNAL_ABANDONED;
}

/* 1: its guardian lives alone; the name says whose journal it is. */
static int is_unfinished(int directory_fd, const char *name, struct message *message)
{
	enum journal_state state;
	uint64_t ticks;

	return process_start_ticks((pid_t)strtol(name, NULL, 10), &ticks) == -ESRCH &&
	       find_state(directory_fd, name, &state, NULL) == 0 && state == JOURNAL_GUARDED;
}

/* 1: it was undone. */
static int restore(int directory_fd, const char *name, struct message *message)
{
	return journal_undo_alone(directory_fd, name, 0, -1, INT64_MAX, message);
}

/* Counts the journals that @visit gives 1 for; the first error. */
static int visit_all(visitor *visit, int *ret_count, struct message *message)
{
	int directory_fd = journal_open_directory(false, message), result, first = 0;
	struct dirent *entry;
	DIR *directory;

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
		if (!is_journal(entry->d_name))
			continue;
		result = visit(directory_fd, entry->d_name, first ? NULL : message);
		if (result > 0)
			++*ret_count;
		else if (result < 0 && result != -ENOENT && first == 0)
			first = result;
	}
	closedir(directory);
	return first;
}

int transaction_restore(int *ret_count, struct message *message)
{
	return visit_all(restore, ret_count, message);
}

int transaction_count_abandoned(int *ret_count)
{
	return visit_all(is_abandoned, ret_count, NULL);
}

int transaction_count_unfinished(int *ret_count)
{
	return visit_all(is_unfinished, ret_count, NULL);
}
