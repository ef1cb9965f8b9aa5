/* SPDX-License-Identifier: MIT */
#include "causes/tracefs_internal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"

/* No memory for an instance: reclaim may have some in a moment. */
#define MAKE_TRIES 5
#define MAKE_PAUSE_NS (40 * NS_PER_MS)
/* Smaller than this a buffer holds less than what comes between two looks. */
#define BUFFER_LEAST_KIB 128

static const char *const places[] = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

static bool find_mounted(struct instance *instance)
{
	char path[128];

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		snprintf(path, sizeof(path), "%s/instances", places[i]);
		if (machine_exists(path)) {
			snprintf(instance->directory, sizeof(instance->directory), "%s", places[i]);
			return true;
		}
	}
	return false;
}

/* Another of our programs, whose mount it is, may be about to unmount it. */
static bool hold(struct instance *instance)
{
	char path[192];

	snprintf(path, sizeof(path), "%s/instances", instance->directory);
	instance->hold_fd = machine_open(path, O_RDONLY | O_DIRECTORY);
	return instance->hold_fd >= 0;
}

int instance_find(struct instance *instance, struct transaction *transaction,
		  struct message *message)
{
	struct message why = {""};
	int error = -ENOTSUP;

	memset(instance, 0, sizeof(*instance));
	instance->hold_fd = -1;
	for (int tries = 0; tries < 3; tries++) {
		/* Joins the mount where it is of another of our programs. */
		if (transaction && geteuid() == 0 &&
		    (!find_mounted(instance) || strcmp(instance->directory, places[0]) == 0))
			error = transaction_mount_tracefs(transaction, &why);
		if (find_mounted(instance) && hold(instance))
			return 0;
	}
	if (geteuid() != 0)
		return message_set(message, -EACCES, "no kernel events: reading %s needs root",
				   places[0]);
	return message_set(
		message, error ? error : -ENOTSUP,
		"no kernel events: tracefs is not there%s%s: mount -t tracefs tracefs %s",
		why.text[0] ? ": " : "", why.text, places[0]);
}

/* Of programs that were killed together with their guardian. */
static void remove_stale(const struct instance *instance)
{
	char path[192], real[512];
	struct dirent *entry;
	DIR *directory;

	snprintf(path, sizeof(path), "%s/instances", instance->directory);
	if (machine_path(path, real, sizeof(real)) < 0)
		return;
	directory = opendir(real);
	while (directory && (entry = readdir(directory))) {
		char *end;
		long pid;

		if (strncmp(entry->d_name, INSTANCE_PREFIX, strlen(INSTANCE_PREFIX)) != 0)
			continue;
		pid = strtol(entry->d_name + strlen(INSTANCE_PREFIX), &end, 10);
		if (pid <= 0 || *end || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
			continue;
		unlinkat(dirfd(directory), entry->d_name, AT_REMOVEDIR);
	}
	if (directory)
		closedir(directory);
}

int instance_write(const struct instance *instance, const char *file, const char *text)
{
	char path[384];

	snprintf(path, sizeof(path), "%s/%s", instance->path, file);
	return machine_write(path, text);
}

static int open_pipes(struct instance *instance)
{
	instance->cpu_count = (size_t)sysconf(_SC_NPROCESSORS_CONF);
	instance->raw_fds = calloc(instance->cpu_count, sizeof(*instance->raw_fds));
	if (!instance->raw_fds)
		return -ENOMEM;
	for (size_t cpu = 0; cpu < instance->cpu_count; cpu++) {
		char path[256];
		int fd;

		snprintf(path, sizeof(path), "%s/per_cpu/cpu%zu/trace_pipe_raw", instance->path,
			 cpu);
		fd = machine_open(path, O_RDONLY | O_NONBLOCK);
		instance->raw_fds[cpu] = fd < 0 ? -1 : fd;
	}
	return instance->raw_fds[0] < 0 ? -EACCES : 0;
}

/* Beside a load that swaps the kernel may have no memory for the buffers at once. */
static int make_with_retries(struct instance *instance, struct transaction *transaction,
			     struct message *message)
{
	int error = transaction_make_trace_instance(transaction, instance->path, message);

	for (int tries = 1; error == -ENOMEM && tries < MAKE_TRIES; tries++) {
		clock_sleep_for(MAKE_PAUSE_NS);
		error = transaction_make_trace_instance(transaction, instance->path, message);
	}
	return error;
}

/* Halves what is asked for until the kernel has the memory. */
static int set_buffer(struct instance *instance, int64_t wanted_kib)
{
	int64_t kib = wanted_kib;
	int error;

	for (;;) {
		char text[32];

		snprintf(text, sizeof(text), "%lld", (long long)kib);
		error = instance_write(instance, "buffer_size_kb", text);
		if (error != -ENOMEM || kib <= BUFFER_LEAST_KIB)
			break;
		kib = kib / 2 > BUFFER_DEFAULT_KIB ? BUFFER_DEFAULT_KIB : kib / 2;
		kib = kib < BUFFER_LEAST_KIB ? BUFFER_LEAST_KIB : kib;
	}
	instance->buffer_kib = kib;
	return error;
}

int instance_make(struct instance *instance, struct transaction *transaction, int64_t buffer_kib,
		  struct message *message)
{
	int error;

	if (!transaction)
		return message_set(message, -ENOTSUP, "no transaction to make an instance in");
	remove_stale(instance);
	snprintf(instance->path, sizeof(instance->path), "%s/instances/" INSTANCE_PREFIX "%d",
		 instance->directory, (int)getpid());
	error = make_with_retries(instance, transaction, message);
	if (error)
		return error;
	error = instance_write(instance, "trace_clock", "mono");
	if (!error)
		error = set_buffer(instance, buffer_kib);
	if (error)
		return message_set_errno(message, error, "cannot set up %s", instance->path);
	/* Of no use here, and a cost at every switch. Not every kernel has them. */
	instance_write(instance, "options/record-cmd", "0");
	instance_write(instance, "options/record-tgid", "0");
	error = open_pipes(instance);
	return error ? message_set_errno(message, error, "cannot read %s", instance->path) : 0;
}

/* "pid==12||pid==13"; false when it would be too long. */
static bool filter_text(char *buffer, size_t size, const char *field,
			const struct sampling_thread *threads, size_t count)
{
	size_t used = 0;

	for (size_t i = 0; i < count && used < size; i++)
		used += (size_t)snprintf(buffer + used, size - used, "%s%s==%d", i ? "||" : "",
					 field, (int)atomic_load(&threads[i].tid));
	return count > 0 && used < size;
}

static void filter_wakings(struct instance *instance, int level,
			   const struct sampling_thread *threads, size_t count)
{
	char pids[3072], trigger[3200];

	/* All wakings are more than the buffers need, but no less true. */
	if (!filter_text(pids, sizeof(pids), "pid", threads, count))
		return;
	instance_write(instance, "events/sched/sched_waking/filter", pids);
	if (level < 2)
		return;
	/* What the blocker was in when the timer interrupted it; an idle CPU has nothing to tell.
	 */
	snprintf(trigger, sizeof(trigger), "stacktrace if (%s) && common_pid!=0", pids);
	instance_write(instance, "events/sched/sched_waking/trigger", trigger);
}

/* "dev==265289728||...": swap areas on zram, as the kernel writes a device; false: there is none.
 */
static bool zram_swap(char *buffer, size_t size)
{
	char *text, *line, *at;
	size_t used = 0;

	if (machine_read("/proc/swaps", &text, NULL) < 0)
		return false;
	at = text;
	while ((line = strsep(&at, "\n")) && used < size) {
		struct stat status;

		if (strncmp(line, "/dev/zram", 9) != 0)
			continue;
		line[strcspn(line, " \t")] = '\0';
		if (stat(line, &status) == 0)
			used += (size_t)snprintf(
				buffer + used, size - used, "%sdev==%u", used ? "||" : "",
				major(status.st_rdev) << 20 | minor(status.st_rdev));
	}
	free(text);
	return used > 0 && used < size;
}

/* Only the sampler's own: of all tasks they are more than a run should bear. */
static bool filter_swap_io(struct instance *instance, const struct sampling_thread *threads,
			   size_t count)
{
	static const char *const files[] = {"events/block/block_bio_queue/filter",
					    "events/block/block_bio_complete/filter"};
	char pids[2048], devices[512], filter[2600];
	int error = 0;

	if (!filter_text(pids, sizeof(pids), "common_pid", threads, count) ||
	    !zram_swap(devices, sizeof(devices)))
		return false;
	snprintf(filter, sizeof(filter), "(%s)&&(%s)", devices, pids);
	for (size_t i = 0; i < ARRAY_SIZE(files) && !error; i++)
		error = instance_write(instance, files[i], filter);
	return error == 0;
}

/* Every page fault of every task takes some mmap_lock: only the sampler's own, where it counts. */
static bool filter_mmap_lock(struct instance *instance, const struct sampling_thread *threads,
			     size_t count)
{
	char pids[3072];

	return filter_text(pids, sizeof(pids), "common_pid", threads, count) &&
	       instance_write(instance, "events/mmap_lock/mmap_lock_start_locking/filter", pids) ==
		       0 &&
	       instance_write(instance, "events/mmap_lock/mmap_lock_acquire_returned/filter",
			      pids) == 0;
}

int instance_enable(struct instance *instance, const struct event_table *table, int level,
		    enum explain_subject subject, const struct sampling_thread *threads,
		    size_t count, struct message *message)
{
	bool swap_io = level >= 2 && filter_swap_io(instance, threads, count);
	bool mmap_lock = level >= 2 && subject == SUBJECT_INTERVAL &&
			 filter_mmap_lock(instance, threads, count);

	filter_wakings(instance, level, threads, count);
	for (size_t i = 0; i < table->count; i++) {
		const struct event_row *row = table->readers[i].row;
		char file[128];
		int error;

		if (!row || row->kind == TRACE_STACK || (row->cause == CAUSE_SWAP_IO && !swap_io) ||
		    (strcmp(row->system, "mmap_lock") == 0 && !mmap_lock))
			continue;
		snprintf(file, sizeof(file), "events/%s/%s/enable", row->system, row->name);
		error = instance_write(instance, file, "1");
		if (error && event_is_required(row))
			return message_set_errno(message, error, "cannot enable the event %s:%s",
						 row->system, row->name);
	}
	return 0;
}

int64_t instance_statistic(const struct instance *instance, const char *name)
{
	int64_t sum = 0;

	for (size_t cpu = 0; cpu < instance->cpu_count; cpu++) {
		char path[256], *text;
		int64_t value;

		snprintf(path, sizeof(path), "%s/per_cpu/cpu%zu/stats", instance->path, cpu);
		if (machine_read(path, &text, NULL) < 0)
			continue;
		if (text_find_int64(text, name, &value) == 0)
			sum += value;
		free(text);
	}
	return sum;
}

void instance_close(struct instance *instance)
{
	for (size_t cpu = 0; instance->raw_fds && cpu < instance->cpu_count; cpu++)
		if (instance->raw_fds[cpu] >= 0)
			close(instance->raw_fds[cpu]);
	free(instance->raw_fds);
	instance->raw_fds = NULL;
	if (instance->hold_fd >= 0)
		close(instance->hold_fd);
	instance->hold_fd = -1;
}
