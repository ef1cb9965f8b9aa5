/* SPDX-License-Identifier: MIT */
#include "undo/verbs.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/cpuset.h"
#include "base/file.h"
#include "undo/group.h"
#include "undo/mount.h"
#include "undo/process.h"

#define RETRY_NS (10 * NS_PER_MS)

typedef int undo_function(struct undo_record *record, const struct undo_context *context,
			  struct message *message);

static int kill_process(struct undo_record *record, const struct undo_context *context,
			struct message *message)
{
	pid_t pid = (pid_t)undo_field_number(record, 0);
	uint64_t start_ticks = (uint64_t)undo_field_number(record, 1);
	int result;

	if (record->pidfd < 0 && process_open(pid, start_ticks, &record->pidfd) < 0)
		return 0;
	result = process_kill(pid, start_ticks, record->pidfd);
	return result < 0 ? message_set_errno(message, result, "cannot end process %d", (int)pid)
			  : 0;
}

static int wait_process(struct undo_record *record, const struct undo_context *context,
			struct message *message)
{
	pid_t pid = (pid_t)undo_field_number(record, 0);
	uint64_t start_ticks = (uint64_t)undo_field_number(record, 1);
	int result;

	if (!process_alive(pid, start_ticks))
		return 0;
	result =
		process_wait(pid, start_ticks, record->pidfd, clock_now_ns() + context->process_ns);
	if (result < 0)
		return message_set(message, result,
				   "process %d was killed and does not end (waits in the kernel)",
				   (int)pid);
	return 0;
}

static int empty_group(struct undo_record *record, const struct undo_context *context,
		       struct message *message)
{
	return group_end_members(record->fields[0], context->program, message);
}

static int remove_group(struct undo_record *record, const struct undo_context *context,
			struct message *message)
{
	return group_remove(record->fields[0], context->program, context->busy_ns, message);
}

static int remove_segment(struct undo_record *record, const struct undo_context *context,
			  struct message *message)
{
	int id = (int)undo_field_number(record, 0);
	struct shmid_ds segment;

	/* Ids are used again: only a segment with the creator that was noted is ours. */
	if (shmctl(id, IPC_STAT, &segment) < 0)
		return errno == EINVAL || errno == EIDRM
			       ? 0
			       : message_set_errno(message, -errno, "SysV segment %d", id);
	if (segment.shm_cpid != (pid_t)undo_field_number(record, 1))
		return 0;
	if (shmctl(id, IPC_RMID, NULL) < 0 && errno != EINVAL && errno != EIDRM)
		return message_set_errno(message, -errno, "cannot remove SysV segment %d", id);
	return 0;
}

static int remove_trace_instance(struct undo_record *record, const struct undo_context *context,
				 struct message *message)
{
	int64_t deadline_ns = clock_now_ns() + context->busy_ns;
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

static int remove_tree(struct undo_record *record, const struct undo_context *context,
		       struct message *message)
{
	int result = undo_remove_tree(record->fields[0]);

	return result < 0
		       ? message_set_errno(message, result, "cannot remove %s", record->fields[0])
		       : 0;
}

/* As machine_write, again while the file says that it is busy. */
static int write_patiently(const char *path, const char *text, int64_t busy_ns)
{
	int64_t deadline_ns = clock_now_ns() + busy_ns;
	int result;

	for (;;) {
		result = machine_write(path, text);
		if ((result != -EBUSY && result != -EAGAIN) || clock_now_ns() >= deadline_ns)
			return result;
		clock_sleep_for(RETRY_NS);
	}
}

static int swap_off(const char *device, int64_t patience_ns)
{
	int64_t deadline_ns = clock_now_ns() + patience_ns;
	char name[64], path[PATH_MAX];
	int result;

	snprintf(name, sizeof(name), "/dev/%s", device);
	result = machine_path(name, path, sizeof(path));
	if (result < 0)
		return result;
	/* By number: <sys/swap.h> would find this room's own header. */
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
	result = swap_off(device, context->swap_ns);
	if (result < 0)
		return message_set_errno(message, result, "cannot swapoff /dev/%s", device);
	snprintf(path, sizeof(path), "/sys/block/%s/reset", device);
	result = write_patiently(path, "1", context->busy_ns);
	if (result < 0)
		return message_set_errno(message, result, "cannot reset %s", device);
	if (strcmp(record->fields[1], "1") == 0) {
		result = write_patiently("/sys/class/zram-control/hot_remove", device + 4,
					 context->busy_ns);
		return result < 0 && result != -ENODEV
			       ? message_set_errno(message, result, "cannot remove %s", device)
			       : 0;
	}
	snprintf(path, sizeof(path), "/sys/block/%s/comp_algorithm", device);
	result = *algorithm ? write_patiently(path, algorithm, context->busy_ns) : 0;
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

static const struct undo_step {
	enum undo_verb verb;
	undo_function *function;
	bool last; /* after it the record is done */
} steps[] = {
	{UNDO_PROCESS, kill_process, false},
	{UNDO_GROUP, empty_group, false},
	{UNDO_PROCESS, wait_process, true},
	{UNDO_SEGMENT, remove_segment, true},
	{UNDO_SWAP, remove_swap, true},
	{UNDO_GROUP, remove_group, true},
	{UNDO_TRACE_INSTANCE, remove_trace_instance, true},
	{UNDO_MOUNT, unmount, true},
	{UNDO_TREE, remove_tree, true},
	{UNDO_WRITE, restore_value, true},
	{UNDO_SCHEDULING, restore_scheduling, true},
};

static void mark_done(struct undo_record *record, const struct undo_context *context)
{
	record->done = true;
	if (record->pidfd >= 0)
		close(record->pidfd);
	record->pidfd = -1;
	if (context->done)
		context->done(context->data, record);
}

int undo_list_run(struct undo_list *list, uint64_t mark, const struct undo_context *context,
		  struct message *message)
{
	int first = 0;
	size_t step, i;

	for (step = 0; step < ARRAY_SIZE(steps); step++) {
		for (i = list->count; i-- > 0;) {
			struct undo_record *record = &list->records[i];
			int result;

			if (record->done || record->sequence <= mark ||
			    record->verb != steps[step].verb)
				continue;
			result = steps[step].function(record, context, first ? NULL : message);
			if (result < 0 && first == 0)
				first = result;
			if (result == 0 && steps[step].last)
				mark_done(record, context);
		}
	}
	return first;
}
