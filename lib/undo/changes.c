/* SPDX-License-Identifier: MIT */
/* Each verb: what is there now is noted, then changed. */
#include "undo/transaction.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cpuset.h"
#include "base/file.h"
#include "undo/guardian.h"
#include "undo/process.h"

int transaction_write_reversibly(struct transaction *transaction, const char *path,
				 const char *value, const char *undo_value, struct message *message)
{
	const char *fields[] = {path, undo_value};
	uint64_t sequence;
	int result;

	result = transaction_lock(transaction, message);
	if (result < 0)
		return result;
	result = transaction_add(transaction, UNDO_WRITE, fields, &sequence, message);
	if (result < 0)
		return result;
	result = machine_write(path, value);
	if (result < 0) {
		transaction_drop(transaction, sequence);
		return message_set_errno(message, result, "cannot write \"%.100s\" to %s", value,
					 path);
	}
	return 0;
}

/* What a later write of the same text would set again; -ENOTSUP for tables of several lines. */
static int read_value(const char *path, char *buffer, size_t size)
{
	char *text;
	size_t line;
	int result = machine_read(path, &text, NULL);

	if (result < 0)
		return result;
	line = strcspn(text, "\n");
	if (text[line] && text[line + 1])
		result = -ENOTSUP;
	free(text);
	return result < 0 ? result : machine_read_choice(path, buffer, size);
}

int transaction_write(struct transaction *transaction, const char *path, const char *value,
		      struct message *message)
{
	char now[4096];
	int result;

	/* The lock comes first: what is there while another program holds it is not the machine's.
	 */
	result = transaction_lock(transaction, message);
	if (result < 0)
		return result;
	result = read_value(path, now, sizeof(now));
	if (result < 0)
		return message_set_errno(message, result, "cannot note the value of %s", path);
	return transaction_write_reversibly(transaction, path, value, now, message);
}

/* Registers and makes a directory that the kernel fills (a group, a trace instance). */
static int make_directory(struct transaction *transaction, enum undo_verb verb, const char *path,
			  struct message *message)
{
	const char *fields[] = {path};
	char real[PATH_MAX];
	uint64_t sequence;
	int result;

	result = machine_path(path, real, sizeof(real));
	if (result < 0)
		return message_set_errno(message, result, "%.100s", path);
	if (access(real, F_OK) == 0)
		return message_set_errno(message, -EEXIST, "cannot make %s", path);
	result = transaction_add(transaction, verb, fields, &sequence, message);
	if (result < 0)
		return result;
	if (mkdir(real, 0755) < 0) {
		result = message_set_errno(message, -errno, "cannot make %s", path);
		transaction_drop(transaction, sequence);
	}
	return result;
}

int transaction_make_group(struct transaction *transaction, const char *path,
			   struct message *message)
{
	return make_directory(transaction, UNDO_GROUP, path, message);
}

int transaction_make_trace_instance(struct transaction *transaction, const char *path,
				    struct message *message)
{
	return make_directory(transaction, UNDO_TRACE_INSTANCE, path, message);
}

int transaction_mount_tracefs(struct transaction *transaction, struct message *message)
{
	const char *fields[] = {TRACEFS_PLACE};
	uint64_t sequence;
	int result;

	if (machine_root()[0])
		return message_set(message, -ENOTSUP, "a machine in a folder has no tracefs");
	result = transaction_add(transaction, UNDO_MOUNT, fields, &sequence, message);
	if (result < 0)
		return result;
	result = tracefs_mount(message);
	if (result < 0)
		transaction_drop(transaction, sequence);
	return result;
}

int transaction_own_swap(struct transaction *transaction, const char *device, bool hot_added,
			 struct message *message)
{
	char path[PATH_MAX], algorithm[64] = "";
	const char *fields[] = {device, hot_added ? "1" : "0", algorithm};
	int64_t initialised = 0;
	uint64_t sequence;
	int result;

	result = transaction_lock(transaction, message);
	if (result < 0)
		return result;
	snprintf(path, sizeof(path), "/sys/block/%.64s/initstate", device);
	if (machine_read_int64(path, &initialised) == 0 && initialised)
		return message_set(message, -EBUSY, "%s is in use", device);
	snprintf(path, sizeof(path), "/sys/block/%.64s/comp_algorithm", device);
	if (!hot_added && machine_read_choice(path, algorithm, sizeof(algorithm)) < 0)
		*algorithm = '\0';
	return transaction_add(transaction, UNDO_SWAP, fields, &sequence, message);
}

void transaction_disown_swap(struct transaction *transaction, const char *device)
{
	transaction_disown(transaction, UNDO_SWAP, device);
}

int transaction_own_process(struct transaction *transaction, pid_t pid, struct message *message)
{
	char text[16], ticks[24];
	const char *fields[] = {text, ticks};
	uint64_t start_ticks, sequence;
	int result;

	result = process_start_ticks(pid, &start_ticks);
	if (result < 0)
		return message_set_errno(message, result, "process %d", (int)pid);
	snprintf(text, sizeof(text), "%d", (int)pid);
	snprintf(ticks, sizeof(ticks), "%" PRIu64, start_ticks);
	return transaction_add(transaction, UNDO_PROCESS, fields, &sequence, message);
}

void transaction_disown_process(struct transaction *transaction, pid_t pid)
{
	char text[16];

	if (!transaction)
		return;
	snprintf(text, sizeof(text), "%d", (int)pid);
	transaction_disown(transaction, UNDO_PROCESS, text);
}

int transaction_save_scheduling(struct transaction *transaction, pid_t pid, struct message *message)
{
	char text[16], ticks[24], policy_text[16], priority[16], nice_text[16];
	const char *fields[] = {text, ticks, policy_text, priority, nice_text, NULL};
	struct sched_param parameters;
	struct cpu_list cpus = {0};
	uint64_t start_ticks, sequence;
	char *cpu_text;
	int policy, nice_value, result;

	result = transaction_lock(transaction, message);
	if (result < 0)
		return result;
	result = process_start_ticks(pid, &start_ticks);
	policy = sched_getscheduler(pid);
	if (result < 0 || policy < 0 || sched_getparam(pid, &parameters) < 0)
		return message_set_errno(message, result < 0 ? result : -errno,
					 "scheduling of task %d", (int)pid);
	if ((policy & ~SCHED_RESET_ON_FORK) == SCHED_DEADLINE)
		return message_set_errno(message, -ENOTSUP, "scheduling of deadline task %d",
					 (int)pid);
	errno = 0;
	nice_value = getpriority(PRIO_PROCESS, (id_t)pid);
	result = errno ? -errno : cpu_list_allowed(pid, &cpus);
	if (result < 0)
		return message_set_errno(message, result, "scheduling of task %d", (int)pid);
	cpu_text = cpu_list_format(&cpus);
	cpu_list_free(&cpus);
	if (!cpu_text)
		return message_set_errno(message, -ENOMEM, "scheduling of task %d", (int)pid);
	snprintf(text, sizeof(text), "%d", (int)pid);
	snprintf(ticks, sizeof(ticks), "%" PRIu64, start_ticks);
	snprintf(policy_text, sizeof(policy_text), "%d", policy);
	snprintf(priority, sizeof(priority), "%d", parameters.sched_priority);
	snprintf(nice_text, sizeof(nice_text), "%d", nice_value);
	fields[5] = cpu_text;
	result = transaction_add(transaction, UNDO_SCHEDULING, fields, &sequence, message);
	free(cpu_text);
	return result;
}
