/* SPDX-License-Identifier: MIT */
#include "sys/snapshot.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/proc.h"
#include "sys/snapshot_internal.h"
#include "sys/swap.h"

int snapshot_add(struct snapshot *snapshot, const char *section, const char *name, int64_t value,
		 bool level)
{
	struct snapshot_entry *entry;
	int length;

	if (array_reserve(&snapshot->entries, &snapshot->capacity, snapshot->count + 1))
		return -ENOMEM;
	entry = &snapshot->entries[snapshot->count];
	length = snprintf(entry->name, sizeof(entry->name), "%s.%s", section, name);
	if (length < 0 || (size_t)length >= sizeof(entry->name))
		return 0;
	entry->value = value;
	entry->level = level;
	snapshot->count++;
	return 0;
}

int snapshot_next_line(char **text, char **ret_key, int64_t *ret_value)
{
	while (*text && **text) {
		char *line = *text, *newline = strchr(line, '\n'), *value, *end;

		if (newline)
			*newline = '\0';
		*text = newline ? newline + 1 : line + strlen(line);
		value = strchr(line, ' ');
		if (!value || value == line)
			continue;
		*value++ = '\0';
		errno = 0;
		*ret_value = strtoll(value, &end, 10);
		if (end == value || errno == ERANGE)
			continue;
		*ret_key = line;
		return 1;
	}
	return 0;
}

/* "nr_*" of /proc/vmstat are levels, but for the ones that only ever grow. */
static bool vmstat_is_level(const char *name)
{
	static const char *const growing[] = {
		"nr_dirtied",		"nr_written",
		"nr_vmscan_write",	"nr_vmscan_immediate_reclaim",
		"nr_foll_pin_acquired", "nr_foll_pin_released",
		"nr_throttled_written",
	};

	if (strncmp(name, "nr_", 3) != 0)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(growing); i++)
		if (strcmp(name, growing[i]) == 0)
			return false;
	return true;
}

/* include/linux/vm_event_item.h, include/linux/mmzone.h: one "name value" a line. */
static int read_vmstat(struct snapshot *snapshot)
{
	char *text, *cursor, *key;
	int64_t value;
	int error = machine_read("/proc/vmstat", &text, NULL);

	if (error)
		return error == -ENOMEM ? error : 0;
	cursor = text;
	while (!error && snapshot_next_line(&cursor, &key, &value))
		error = snapshot_add(snapshot, "vmstat", key, value, vmstat_is_level(key));
	free(text);
	return error;
}

static int read_pressure(struct snapshot *snapshot)
{
	static const char *const resources[] = {"cpu", "memory", "io", "irq"};
	struct proc_pressure pressure;
	char some[32], full[32];

	for (size_t i = 0; i < ARRAY_SIZE(resources); i++) {
		if (proc_read_pressure(resources[i], &pressure))
			continue; /* off, or not this one */
		snprintf(some, sizeof(some), "%s_some", resources[i]);
		snprintf(full, sizeof(full), "%s_full", resources[i]);
		if ((pressure.some_us >= 0 &&
		     snapshot_add(snapshot, "psi_us", some, pressure.some_us, false)) ||
		    (pressure.full_us >= 0 &&
		     snapshot_add(snapshot, "psi_us", full, pressure.full_us, false)))
			return -ENOMEM;
	}
	return 0;
}

static int keep_steal(struct snapshot *snapshot, size_t cpu, int64_t ticks)
{
	if (array_reserve(&snapshot->steal_ticks, &snapshot->cpu_capacity, cpu + 1))
		return -ENOMEM;
	while (snapshot->cpu_count <= cpu)
		snapshot->steal_ticks[snapshot->cpu_count++] = -1;
	snapshot->steal_ticks[cpu] = ticks;
	return 0;
}

static int read_processor_times(struct snapshot *snapshot)
{
	struct proc_cpu cpu;
	const char *line;
	char *text;
	int error = machine_read("/proc/stat", &text, NULL);

	if (error)
		return error == -ENOMEM ? error : 0;
	for (line = text; !error && proc_next_cpu(&line, &cpu);) {
		if (cpu.cpu >= 0) {
			error = keep_steal(snapshot, (size_t)cpu.cpu, cpu.steal_ticks);
		} else {
			snapshot->total_steal_ticks = cpu.steal_ticks;
			snapshot->busy_ticks = cpu.busy_ticks;
		}
	}
	free(text);
	return error;
}

/* memory.stat of v1 and v2 mixes levels (bytes, pages held) with counts of events. */
static bool memcg_is_level(const char *name)
{
	return strncmp(name, "pg", 2) != 0 && strncmp(name, "workingset_", 11) != 0 &&
	       strncmp(name, "thp_fault", 9) != 0 && strncmp(name, "thp_collapse", 12) != 0 &&
	       strncmp(name, "thp_swpout", 10) != 0 && strncmp(name, "zswp", 4) != 0 &&
	       strncmp(name, "swp", 3) != 0 && strncmp(name, "numa_", 5) != 0;
}

static int group_path(const struct cgroup *group, const char *file, char *path, size_t size)
{
	int length = snprintf(path, size, "%s/%s", group->path, file);

	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

static int read_group_lines(struct snapshot *snapshot, const struct cgroup *group, const char *file,
			    const char *prefix)
{
	char path[PATH_MAX], *text, *cursor, *key;
	int64_t value;
	int error;

	if (group_path(group, file, path, sizeof(path)) || machine_read(path, &text, NULL))
		return 0;
	cursor = text;
	for (error = 0; !error && snapshot_next_line(&cursor, &key, &value);) {
		char name[64];

		if (strncmp(key, "total_", 6) == 0)
			continue; /* v1's hierarchical copies: a group of ours has no children */
		snprintf(name, sizeof(name), "%s%s", prefix, key);
		error = snapshot_add(snapshot, "memcg", name, value,
				     !*prefix && memcg_is_level(key));
	}
	free(text);
	return error;
}

static int read_group_value(struct snapshot *snapshot, const struct cgroup *group, const char *file,
			    const char *name, bool level)
{
	char path[PATH_MAX];
	int64_t value;

	/* "max" is no number: no limit, and absent here */
	if (group_path(group, file, path, sizeof(path)) || machine_read_int64(path, &value))
		return 0;
	return snapshot_add(snapshot, "memcg", name, value, level);
}

/* v1 memory.oom_control and v2 memory.events count the kills; both have other lines beside. */
static int read_group_events(struct snapshot *snapshot, const struct cgroup *group)
{
	bool v1 = group->version == CGROUP_V1;
	char path[PATH_MAX], *text, *cursor, *key;
	int64_t value;
	int error = 0;

	if (group_path(group, v1 ? "memory.oom_control" : "memory.events", path, sizeof(path)) ||
	    machine_read(path, &text, NULL))
		return 0;
	cursor = text;
	while (!error && snapshot_next_line(&cursor, &key, &value)) {
		if (strcmp(key, "oom_kill") == 0)
			error = snapshot_add(snapshot, "memcg", "oom_kills", value, false);
		else if (!v1 && strcmp(key, "max") == 0)
			error = snapshot_add(snapshot, "memcg", "limit_hits", value, false);
		else if (!v1 && strcmp(key, "high") == 0)
			error = snapshot_add(snapshot, "memcg", "high_hits", value, false);
	}
	free(text);
	return error;
}

static int read_group(struct snapshot *snapshot, const struct cgroup *group)
{
	bool v1;

	if (!group || group->version == CGROUP_NONE)
		return 0;
	v1 = group->version == CGROUP_V1;
	if (snapshot_add(snapshot, "memcg", "version", v1 ? 1 : 2, true) ||
	    read_group_lines(snapshot, group, "memory.stat", "") ||
	    read_group_events(snapshot, group))
		return -ENOMEM;
	if (!v1)
		return read_group_value(snapshot, group, "memory.current", "usage_bytes", true) ||
				       read_group_value(snapshot, group, "memory.max",
							"limit_bytes", true) ||
				       read_group_value(snapshot, group, "memory.swap.current",
							"swap_usage_bytes", true)
			       ? -ENOMEM
			       : 0;
	if (read_group_value(snapshot, group, "memory.usage_in_bytes", "usage_bytes", true) ||
	    read_group_value(snapshot, group, "memory.limit_in_bytes", "limit_bytes", true) ||
	    read_group_value(snapshot, group, "memory.failcnt", "failcnt", false) ||
	    read_group_value(snapshot, group, "memory.failcnt", "limit_hits", false))
		return -ENOMEM;
	return 0;
}

/* Documentation/admin-guide/blockdev/zram.rst: mm_stat and io_stat, one line of columns each. */
static int read_zram_device(struct snapshot *snapshot, const char *device)
{
	static const char *const memory_names[] = {
		"original_bytes", "compressed_bytes", "used_bytes", NULL,
		"max_used_bytes", "same_pages",	      NULL,	    "huge_pages"};
	static const char *const io_names[] = {"failed_reads", "failed_writes", "invalid_io",
					       "notify_free"};
	char path[128], section[64], line[256], *cursor;
	int64_t value;

	snprintf(section, sizeof(section), "zram.%s", device);
	snprintf(path, sizeof(path), "/sys/block/%s/disksize", device);
	if (machine_read_int64(path, &value) || value == 0)
		return 0; /* not in use */
	if (snapshot_add(snapshot, section, "disk_bytes", value, true))
		return -ENOMEM;
	for (int file = 0; file < 2; file++) {
		const char *const *names = file ? io_names : memory_names;
		size_t count = file ? 4 : 8;

		snprintf(path, sizeof(path), "/sys/block/%s/%s", device,
			 file ? "io_stat" : "mm_stat");
		if (machine_read_line(path, line, sizeof(line)))
			continue;
		cursor = line;
		for (size_t i = 0; i < count; i++) {
			char *end;

			value = strtoll(cursor, &end, 10);
			if (end == cursor)
				break;
			cursor = end;
			if (names[i] && snapshot_add(snapshot, section, names[i], value, !file))
				return -ENOMEM;
		}
	}
	return 0;
}

static int read_zram(struct snapshot *snapshot)
{
	char path[PATH_MAX];
	struct dirent *entry;
	DIR *directory;
	int error = 0;

	if (machine_path("/sys/block", path, sizeof(path)))
		return 0;
	directory = opendir(path);
	if (!directory)
		return 0;
	while (!error && (entry = readdir(directory)))
		if (strncmp(entry->d_name, "zram", 4) == 0 && strlen(entry->d_name) < 32)
			error = read_zram_device(snapshot, entry->d_name);
	closedir(directory);
	return error;
}

static int read_swaps(struct snapshot *snapshot)
{
	uint64_t total, left;

	if (!machine_exists("/proc/swaps") || swap_total(&total, &left))
		return 0;
	return snapshot_add(snapshot, "swap", "total_bytes", (int64_t)total, true) ||
			       snapshot_add(snapshot, "swap", "used_bytes", (int64_t)(total - left),
					    true)
		       ? -ENOMEM
		       : 0;
}

/* Statistics of one size (since 6.8): each file is one number. */
static int read_huge_size(struct snapshot *snapshot, const char *directory_path, const char *size)
{
	char path[PATH_MAX], file[PATH_MAX], section[48];
	struct dirent *entry;
	DIR *directory;
	int error = 0;

	if (snprintf(file, sizeof(file), "%s/hugepages-%s/stats", directory_path, size) >=
		    (int)sizeof(file) ||
	    machine_path(file, path, sizeof(path)))
		return 0;
	directory = opendir(path);
	if (!directory)
		return 0;
	snprintf(section, sizeof(section), "thp.%s", size);
	while (!error && (entry = readdir(directory))) {
		int64_t value;

		if (entry->d_name[0] == '.' ||
		    snprintf(path, sizeof(path), "%s/%s", file, entry->d_name) >=
			    (int)sizeof(path) ||
		    machine_read_int64(path, &value))
			continue;
		error = snapshot_add(snapshot, section, entry->d_name, value,
				     strncmp(entry->d_name, "nr_", 3) == 0);
	}
	closedir(directory);
	return error;
}

/* Only sizes that may be used at all: ten sizes of 17 files would cost several milliseconds. */
static int read_huge_sizes(struct snapshot *snapshot)
{
	static const char base[] = "/sys/kernel/mm/transparent_hugepage";
	char path[PATH_MAX], choice[32];
	struct dirent *entry;
	DIR *directory;
	int error = 0;

	if (machine_path(base, path, sizeof(path)))
		return 0;
	directory = opendir(path);
	if (!directory)
		return 0;
	while (!error && (entry = readdir(directory))) {
		if (strncmp(entry->d_name, "hugepages-", 10) != 0 || strlen(entry->d_name) > 40)
			continue;
		snprintf(path, sizeof(path), "%s/%s/enabled", base, entry->d_name);
		if (machine_read_choice(path, choice, sizeof(choice)) == 0 &&
		    strcmp(choice, "never") != 0)
			error = read_huge_size(snapshot, base, entry->d_name + 10);
	}
	closedir(directory);
	return error;
}

static int64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	return clock_gettime(clock, &now) ? 0 : timespec_to_ns(&now);
}

int snapshot_take(const struct cgroup *group, struct snapshot **ret_snapshot)
{
	static int (*const readers[])(struct snapshot * snapshot) = {
		read_vmstat, read_pressure,   read_processor_times,    read_zram,
		read_swaps,  read_huge_sizes, snapshot_read_processes,
	};
	struct snapshot *snapshot = calloc(1, sizeof(*snapshot));
	int error = 0;

	if (!snapshot)
		return -ENOMEM;
	snapshot->total_steal_ticks = snapshot->busy_ticks = -1;
	/* The three clocks close together: their differences tell a suspend and a set clock. */
	snapshot->monotonic_ns = clock_ns(CLOCK_MONOTONIC);
	snapshot->boottime_ns = clock_ns(CLOCK_BOOTTIME);
	snapshot->realtime_ns = clock_ns(CLOCK_REALTIME);
	for (size_t i = 0; !error && i < ARRAY_SIZE(readers); i++)
		error = readers[i](snapshot);
	if (!error)
		error = read_group(snapshot, group);
	if (error) {
		snapshot_free(snapshot);
		return error;
	}
	*ret_snapshot = snapshot;
	return 0;
}

void snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	free(snapshot->entries);
	free(snapshot->steal_ticks);
	free(snapshot->processes);
	free(snapshot);
}

int snapshot_get(const struct snapshot *snapshot, const char *name, int64_t *ret_value)
{
	if (strcmp(name, "steal_ms") == 0) {
		if (snapshot->total_steal_ticks < 0)
			return -ENOENT;
		*ret_value = snapshot->total_steal_ticks * 1000 / sysconf(_SC_CLK_TCK);
		return 0;
	}
	for (size_t i = 0; i < snapshot->count; i++) {
		if (strcmp(snapshot->entries[i].name, name) == 0) {
			*ret_value = snapshot->entries[i].value;
			return 0;
		}
	}
	return -ENOENT;
}

int64_t snapshot_cpu_steal_ns(int cpu)
{
	struct proc_cpu found;
	int64_t steal_ns = -1;
	const char *line;
	char *text;

	if (cpu < 0 || machine_read("/proc/stat", &text, NULL))
		return -1;
	for (line = text; steal_ns < 0 && proc_next_cpu(&line, &found);)
		if (found.cpu == cpu)
			steal_ns = found.steal_ticks * proc_tick_ns();
	free(text);
	return steal_ns;
}
