/* SPDX-License-Identifier: MIT */
#include "undo/group.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "undo/process.h"

#define RETRY_NS (5 * NS_PER_MS)

static bool lists_pid(const char *text, pid_t pid)
{
	while (*text) {
		char *end;
		long listed = strtol(text, &end, 10);

		if (end == text)
			break;
		if (listed == pid)
			return true;
		text = end + strspn(end, "\n");
	}
	return false;
}

static int move_to_parent(const char *path, pid_t pid)
{
	char procs[PATH_MAX], text[16];
	const char *slash = strrchr(path, '/');

	snprintf(procs, sizeof(procs), "%.*s/cgroup.procs", (int)(slash - path), path);
	snprintf(text, sizeof(text), "%d", (int)pid);
	return machine_write(procs, text);
}

/* Only a process that is still in the group after its pidfd was taken is a member. */
static int end_member(const char *path, const char *procs, pid_t pid)
{
	uint64_t start_ticks;
	int pidfd = -1, result = 0;
	char *again;

	if (process_start_ticks(pid, &start_ticks) < 0 ||
	    process_open(pid, start_ticks, &pidfd) < 0)
		return 0;
	if (machine_read(procs, &again, NULL) == 0) {
		if (lists_pid(again, pid))
			result = process_kill(pid, start_ticks, pidfd);
		free(again);
	}
	if (pidfd >= 0)
		close(pidfd);
	return result;
}

static int end_own_members(const char *path, pid_t spare, struct message *message)
{
	char procs[PATH_MAX], *text, *at, *line;
	int result, first = 0;

	result = snprintf(procs, sizeof(procs), "%s/cgroup.procs", path);
	if (result >= (int)sizeof(procs))
		return message_set_errno(message, -ENAMETOOLONG, "%s", path);
	result = machine_read(procs, &text, NULL);
	if (result < 0)
		return result == -ENOENT || result == -ENODEV
			       ? 0
			       : message_set_errno(message, result, "%s", procs);
	at = text;
	while ((line = strsep(&at, "\n"))) {
		pid_t pid = (pid_t)strtol(line, NULL, 10);

		if (pid <= 1) /* 0: a process of another pid namespace */
			continue;
		if (pid == spare || pid == getpid())
			result = move_to_parent(path, pid);
		else
			result = end_member(path, procs, pid);
		if (result < 0 && first == 0)
			first = message_set_errno(message, result, "process %d in group %s",
						  (int)pid, path);
	}
	free(text);
	return first;
}

/* Calls @call for each group below, deepest first is up to @call; first error. */
static int each_below(const char *path, pid_t spare, struct message *message,
		      int (*call)(const char *path, pid_t spare, struct message *message))
{
	char real[PATH_MAX], below[PATH_MAX];
	struct dirent *entry;
	int result, first = 0;
	DIR *directory;

	result = machine_path(path, real, sizeof(real));
	if (result < 0)
		return result;
	directory = opendir(real);
	if (!directory)
		return errno == ENOENT ? 0 : message_set_errno(message, -errno, "%s", path);
	while ((entry = readdir(directory))) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		if (snprintf(below, sizeof(below), "%s/%s", path, entry->d_name) >=
		    (int)sizeof(below))
			continue;
		result = call(below, spare, message);
		if (result < 0 && first == 0)
			first = result;
	}
	closedir(directory);
	return first;
}

int group_end_members(const char *path, pid_t spare, struct message *message)
{
	int below = each_below(path, spare, message, group_end_members);
	int result = end_own_members(path, spare, message);

	return result < 0 ? result : below;
}

static int remove_once(const char *path, pid_t spare, struct message *message)
{
	char real[PATH_MAX];
	int result;

	result = machine_path(path, real, sizeof(real));
	if (result < 0)
		return result;
	if (rmdir(real) == 0 || errno == ENOENT)
		return 0;
	each_below(path, spare, message, remove_once);
	if (rmdir(real) == 0 || errno == ENOENT)
		return 0;
	return -errno;
}

static pid_t first_member(const char *path)
{
	char procs[PATH_MAX];
	int64_t pid;

	if (snprintf(procs, sizeof(procs), "%s/cgroup.procs", path) >= (int)sizeof(procs) ||
	    machine_read_int64(procs, &pid) < 0)
		return 0;
	return (pid_t)pid;
}

int group_remove(const char *path, pid_t spare, int64_t busy_ns, struct message *message)
{
	int64_t deadline_ns = clock_now_ns() + busy_ns;
	pid_t member;
	int result;

	for (;;) {
		result = remove_once(path, spare, message);
		if (result == 0)
			return 0;
		if ((result != -EBUSY && result != -ENOTEMPTY) || clock_now_ns() >= deadline_ns)
			break;
		group_end_members(path, spare, NULL);
		clock_sleep_for(RETRY_NS);
	}
	member = first_member(path);
	if (member > 0)
		return message_set(message, result,
				   "cannot remove group %s: process %d is still in it", path,
				   (int)member);
	return message_set_errno(message, result, "cannot remove group %s", path);
}
