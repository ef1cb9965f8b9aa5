/* SPDX-License-Identifier: MIT */
#include "undo/journal.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/cpuset.h"
#include "base/file.h"
#include "undo/process.h"

#define RETRY_NS (10 * NS_PER_MS)
#define PROCESS_NS (10 * NS_PER_S) /* what a killed process may take to die */
#define BUSY_NS (5 * NS_PER_S)	   /* how long a group, device or trace instance may be busy */
#define SWAP_NS (30 * NS_PER_S)	   /* how long swapoff may be refused for want of memory */
#define TRACEFS_SOURCE "syslatency"

typedef int undo_function(struct undo_record *record, const struct undo_context *context,
			  struct message *message);

static int64_t deadline(const struct undo_context *context, int64_t usual_ns)
{
	return clock_now_ns() + (usual_ns < context->limit_ns ? usual_ns : context->limit_ns);
}

/* --- processes --- */

static int kill_process(struct undo_record *record, const struct undo_context *context,
			struct message *message)
{
	pid_t pid = (pid_t)undo_field_number(record, 0);
	uint64_t start_ticks = (uint64_t)undo_field_number(record, 1);
	int pidfd, result;

	if (process_open(pid, start_ticks, &pidfd) < 0)
		return 0;
	result = process_kill(pid, start_ticks, pidfd);
	if (pidfd >= 0)
		close(pidfd);
	return result < 0 ? message_set_errno(message, result, "cannot end process %d", (int)pid)
			  : 0;
}

static int wait_process(struct undo_record *record, const struct undo_context *context,
			struct message *message)
{
	pid_t pid = (pid_t)undo_field_number(record, 0);
	uint64_t start_ticks = (uint64_t)undo_field_number(record, 1);
	int pidfd, result;

	if (process_open(pid, start_ticks, &pidfd) < 0)
		return 0;
	result = process_wait(pid, start_ticks, pidfd, deadline(context, PROCESS_NS));
	if (pidfd >= 0)
		close(pidfd);
	if (result < 0)
		return message_set(message, result,
				   "process %d was killed and does not end (waits in the kernel)",
				   (int)pid);
	return 0;
}

/* --- control groups --- */

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

static int read_members(const char *path, char **ret_text)
{
	char procs[PATH_MAX];

	if (snprintf(procs, sizeof(procs), "%s/cgroup.procs", path) >= (int)sizeof(procs))
		return -ENAMETOOLONG;
	return machine_read(procs, ret_text, NULL);
}

/* Only a process that is still in the group after its pidfd was taken is a member. */
static int end_member(const char *path, pid_t pid)
{
	uint64_t start_ticks;
	int pidfd = -1, result = 0;
	char *again;

	if (process_start_ticks(pid, &start_ticks) < 0 ||
	    process_open(pid, start_ticks, &pidfd) < 0)
		return 0;
	if (read_members(path, &again) == 0) {
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
	char *text, *at, *line;
	int result, first = 0;

	result = read_members(path, &text);
	if (result < 0)
		return result == -ENOENT || result == -ENODEV
			       ? 0
			       : message_set_errno(message, result, "members of group %s", path);
	at = text;
	while ((line = strsep(&at, "\n"))) {
		pid_t pid = (pid_t)strtol(line, NULL, 10);

		if (pid <= 1) /* 0: a process of another pid namespace */
			continue;
		if (pid == spare || pid == getpid())
			result = move_to_parent(path, pid);
		else
			result = end_member(path, pid);
		if (result < 0 && first == 0)
			first = message_set_errno(message, result, "process %d in group %s",
						  (int)pid, path);
	}
	free(text);
	return first;
}

/* Calls @call for each group right below; first error. */
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

/*
 * SIGKILL to every process in the group and in groups below it; @spare (the program itself, 0:
 * none) and the caller are moved to the parent group instead. 0 also when there is no such group.
 */
static int end_members(const char *path, pid_t spare, struct message *message)
{
	int below = each_below(path, spare, message, end_members);
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

static int empty_group(struct undo_record *record, const struct undo_context *context,
		       struct message *message)
{
	return end_members(record->fields[0], context->program, message);
}

/* And those below it, ending members for as long as it is busy. */
static int remove_group(struct undo_record *record, const struct undo_context *context,
			struct message *message)
{
	int64_t deadline_ns = deadline(context, BUSY_NS);
	const char *path = record->fields[0];
	char *members;
	int result;

	for (;;) {
		result = remove_once(path, context->program, message);
		if (result == 0)
			return 0;
		if ((result != -EBUSY && result != -ENOTEMPTY) || clock_now_ns() >= deadline_ns)
			break;
		end_members(path, context->program, NULL);
		clock_sleep_for(RETRY_NS);
	}
	if (read_members(path, &members) == 0) {
		long first = strtol(members, NULL, 10);

		free(members);
		if (first > 0)
			return message_set(message, result,
					   "cannot remove group %s: process %ld is still in it",
					   path, first);
	}
	return message_set_errno(message, result, "cannot remove group %s", path);
}

/* --- tracefs --- */

enum tracefs_owner tracefs_owner(void)
{
	enum tracefs_owner owner = TRACEFS_NOT_MOUNTED;
	char *text, *at, *line;

	if (machine_read("/proc/self/mounts", &text, NULL) < 0)
		return owner;
	at = text;
	while ((line = strsep(&at, "\n"))) {
		char source[64], place[64];

		/* A longer source is not ours, a longer place is not the one. */
		if (sscanf(line, "%63s %63s", source, place) == 2 &&
		    strcmp(place, TRACEFS_PLACE) == 0)
			owner = strcmp(source, TRACEFS_SOURCE) == 0 ? TRACEFS_OURS : TRACEFS_OTHERS;
	}
	free(text);
	return owner;
}

int tracefs_mount(struct message *message)
{
	int error;

	if (tracefs_owner() == TRACEFS_OURS)
		return 0;
	if (tracefs_owner() == TRACEFS_OTHERS)
		return message_set(message, -EBUSY, "%s is mounted already", TRACEFS_PLACE);
	if (mount(TRACEFS_SOURCE, TRACEFS_PLACE, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL) == 0)
		return 0;
	error = -errno;
	/* Another of our programs was quicker. */
	return tracefs_owner() == TRACEFS_OURS
		       ? 0
		       : message_set_errno(message, error, "cannot mount tracefs at %s",
					   TRACEFS_PLACE);
}

static int remove_trace_instance(struct undo_record *record, const struct undo_context *context,
				 struct message *message)
{
	int64_t deadline_ns = deadline(context, BUSY_NS);
	char path[PATH_MAX];
	int result = machine_path(record->fields[0], path, sizeof(path));

	while (result == 0 && rmdir(path) < 0 && errno != ENOENT) {
		result = -errno;
		if (result != -EBUSY || clock_now_ns() >= deadline_ns)
			break;
		result = 0;
		clock_sleep_for(RETRY_NS);
	}
	return result < 0 ? message_set_errno(message, result, "cannot remove trace instance %s",
					      record->fields[0])
			  : 0;
}

/* While another program uses it, it stays; if that is ours, it unmounts it. */
static int unmount(struct undo_record *record, const struct undo_context *context,
		   struct message *message)
{
	if (tracefs_owner() != TRACEFS_OURS)
		return 0;
	if (umount2(record->fields[0], UMOUNT_NOFOLLOW) < 0 && errno != EBUSY && errno != EINVAL &&
	    errno != ENOENT)
		return message_set_errno(message, -errno, "cannot unmount %s", record->fields[0]);
	return 0;
}

/* As machine_write, again while the file says that it is busy. */
static int write_patiently(const char *path, const char *text, const struct undo_context *context)
{
	int64_t deadline_ns = deadline(context, BUSY_NS);
	int result;

	for (;;) {
		result = machine_write(path, text);
		if ((result != -EBUSY && result != -EAGAIN) || clock_now_ns() >= deadline_ns)
			return result;
		clock_sleep_for(RETRY_NS);
	}
}

static int swap_off(const char *device, const struct undo_context *context)
{
	int64_t deadline_ns = deadline(context, SWAP_NS);
	char name[64], path[PATH_MAX];
	int result;

	snprintf(name, sizeof(name), "/dev/%s", device);
	result = machine_path(name, path, sizeof(path));
	if (result < 0)
		return result;
	/* By number: <sys/swap.h> would find the header of the room "sys". */
	while (syscall(SYS_swapoff, path) < 0) {
		result = -errno;
		if (result == -EINVAL || result == -ENOENT) /* it is no swap area (any more) */
			return 0;
		if ((result != -EINTR && result != -ENOMEM) || clock_now_ns() >= deadline_ns)
			return result;
		clock_sleep_for(10 * RETRY_NS);
	}
	return 0;
}

static int remove_swap(struct undo_record *record, const struct undo_context *context,
		       struct message *message)
{
	const char *device = record->fields[0], *algorithm = record->fields[2];
	char path[PATH_MAX];
	int result;

	snprintf(path, sizeof(path), "/sys/block/%s", device);
	if (!machine_exists(path))
		return 0;
	result = swap_off(device, context);
	if (result < 0)
		return message_set_errno(message, result, "cannot swapoff /dev/%s", device);
	snprintf(path, sizeof(path), "/sys/block/%s/reset", device);
	result = write_patiently(path, "1", context);
	if (result < 0)
		return message_set_errno(message, result, "cannot reset %s", device);
	if (strcmp(record->fields[1], "1") == 0) {
		result = write_patiently("/sys/class/zram-control/hot_remove", device + 4, context);
		return result < 0 && result != -ENODEV
			       ? message_set_errno(message, result, "cannot remove %s", device)
			       : 0;
	}
	snprintf(path, sizeof(path), "/sys/block/%s/comp_algorithm", device);
	result = *algorithm ? write_patiently(path, algorithm, context) : 0;
	return result < 0
		       ? message_set_errno(message, result, "cannot set %s to %s", path, algorithm)
		       : 0;
}

static int restore_value(struct undo_record *record, const struct undo_context *context,
			 struct message *message)
{
	const char *path = record->fields[0], *value = record->fields[1];
	int result = machine_write(path, *value ? value : "\n");

	/* What is gone (an instance's file, a device's attribute) needs no old value. */
	if (result < 0 && result != -ENOENT && result != -ENODEV)
		return message_set_errno(message, result, "cannot put %s back to \"%.100s\"", path,
					 value);
	return 0;
}

static int restore_affinity(pid_t pid, const char *text)
{
	struct cpu_list wanted = {0}, now = {0};
	char *now_text = NULL;
	int result = cpu_list_parse(text, &wanted, NULL);

	if (result == 0)
		result = cpu_list_allowed(pid, &now);
	if (result == 0) {
		now_text = cpu_list_format(&now);
		/* Tasks that may not be moved refuse even to stay where they are. */
		if (!now_text || strcmp(now_text, text) != 0)
			result = cpu_pin_list(pid, &wanted);
	}
	free(now_text);
	cpu_list_free(&now);
	cpu_list_free(&wanted);
	return result;
}

static int restore_scheduling(struct undo_record *record, const struct undo_context *context,
			      struct message *message)
{
	pid_t pid = (pid_t)undo_field_number(record, 0);
	int policy = (int)undo_field_number(record, 2);
	struct sched_param parameters = {.sched_priority = (int)undo_field_number(record, 3)};
	int nice_value = (int)undo_field_number(record, 4), result = 0;

	if (!process_alive(pid, (uint64_t)undo_field_number(record, 1)))
		return 0;
	if (sched_setscheduler(pid, policy, &parameters) < 0)
		result = -errno;
	errno = 0;
	if (getpriority(PRIO_PROCESS, (id_t)pid) != nice_value &&
	    setpriority(PRIO_PROCESS, (id_t)pid, nice_value) < 0 && result == 0)
		result = -errno;
	if (result == 0)
		result = restore_affinity(pid, record->fields[5]);
	if (result < 0 && result != -ESRCH)
		return message_set_errno(message, result, "cannot put scheduling of task %d back",
					 (int)pid);
	return 0;
}

/* In each pass newest first. */
static const struct {
	bool completes; /* after it a record is done */
	undo_function *functions[UNDO_VERBS];
} passes[] = {
	{false, {[UNDO_PROCESS] = kill_process, [UNDO_GROUP] = empty_group}},
	{true, {[UNDO_PROCESS] = wait_process}},
	{true,
	 {[UNDO_WRITE] = restore_value,
	  [UNDO_GROUP] = remove_group,
	  [UNDO_TRACE_INSTANCE] = remove_trace_instance,
	  [UNDO_MOUNT] = unmount,
	  [UNDO_SWAP] = remove_swap,
	  [UNDO_SCHEDULING] = restore_scheduling}},
};

static void mark_done(struct undo_record *record, const struct undo_context *context)
{
	record->done = true;
	/* When the disk is full: undoing twice does no harm. */
	journal_mark_done(context->journal_fd, record->sequence);
}

/* An older value of the same file stands: a newer one that could not be written must not follow. */
static void mark_newer_writes(struct undo_list *list, const struct undo_record *older,
			      const struct undo_context *context)
{
	struct undo_record *end = list->records + list->count;

	for (struct undo_record *newer = list->records; newer < end; newer++)
		if (!newer->done && newer->verb == UNDO_WRITE &&
		    newer->sequence > older->sequence &&
		    strcmp(newer->fields[0], older->fields[0]) == 0)
			mark_done(newer, context);
}

static bool is_left(const struct undo_record *record, uint64_t mark)
{
	return !record->done && record->sequence > mark;
}

int undo_list_run(struct undo_list *list, uint64_t mark, const struct undo_context *context,
		  struct message *message)
{
	bool all_done = true;
	size_t pass, i;
	int first = 0;

	for (pass = 0; pass < ARRAY_SIZE(passes); pass++) {
		for (i = list->count; i-- > 0;) {
			struct undo_record *record = &list->records[i];
			undo_function *function = passes[pass].functions[record->verb];
			int result;

			if (!function || !is_left(record, mark))
				continue;
			result = function(record, context, first ? NULL : message);
			if (result < 0 && first == 0)
				first = result;
			if (result == 0 && passes[pass].completes) {
				mark_done(record, context);
				if (record->verb == UNDO_WRITE)
					mark_newer_writes(list, record, context);
			}
		}
	}
	for (i = 0; i < list->count; i++)
		all_done &= !is_left(&list->records[i], mark);
	return all_done ? 0 : first;
}

bool undo_may_pass(int error)
{
	return error == -ETIMEDOUT || error == -EBUSY || error == -ENOMEM || error == -EAGAIN;
}
