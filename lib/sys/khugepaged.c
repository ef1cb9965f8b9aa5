/* SPDX-License-Identifier: MIT */
#include "sys/khugepaged.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"

#define KERNEL_THREAD 0x00200000 /* PF_KTHREAD, include/linux/sched.h */

static bool is_khugepaged(const char *pid)
{
	char path[64], line[512], *name, *end;
	unsigned int flags;

	snprintf(path, sizeof(path), "/proc/%.16s/stat", pid);
	if (machine_read_line(path, line, sizeof(line)) < 0)
		return false;
	/* A name may hold anything: it ends with the last parenthesis. */
	name = strchr(line, '(');
	end = strrchr(line, ')');
	if (!name || !end || sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
		return false;
	*end = '\0';
	return strcmp(name + 1, "khugepaged") == 0 && (flags & KERNEL_THREAD);
}

int khugepaged_find(pid_t *ret_pid)
{
	struct dirent *entry;
	char path[PATH_MAX];
	DIR *directory;
	int result = machine_path("/proc", path, sizeof(path));

	if (result < 0)
		return result;
	directory = opendir(path);
	if (!directory)
		return -errno;
	result = -ESRCH;
	while (result < 0 && (entry = readdir(directory))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    !is_khugepaged(entry->d_name))
			continue;
		*ret_pid = (pid_t)strtol(entry->d_name, NULL, 10);
		result = 0;
	}
	closedir(directory);
	return result;
}

int khugepaged_sample(pid_t pid, struct khugepaged_sample *ret_sample)
{
	struct khugepaged_sample sample = {.cpu_ns = -1, .waited_ns = -1};
	char path[64], line[128];
	int64_t full_scans;
	int error;

	error = machine_read_int64(KHUGEPAGED_FOLDER "/full_scans", &full_scans);
	sample.when_ns = clock_now_ns();
	if (!error)
		error = machine_read_int64(KHUGEPAGED_FOLDER "/pages_collapsed",
					   &sample.pages_collapsed);
	if (error)
		return error;
	sample.full_scans = (uint32_t)full_scans;
	snprintf(path, sizeof(path), "/proc/%d/schedstat", (int)pid);
	if (pid > 0 && machine_read_line(path, line, sizeof(line)) == 0 &&
	    sscanf(line, "%" SCNd64 " %" SCNd64, &sample.cpu_ns, &sample.waited_ns) != 2)
		sample.cpu_ns = sample.waited_ns = -1;
	*ret_sample = sample;
	return 0;
}

uint64_t khugepaged_tables_per_hold(const char *release, uint64_t pages_to_scan,
				    uint64_t pages_per_table)
{
	unsigned int major = 0, minor = 0;
	uint64_t cost = pages_per_table;

	if (sscanf(release, "%u.%u", &major, &minor) == 2 &&
	    (major > 7 || (major == 7 && minor >= 1)))
		cost = 1;
	/* The hold ends with the table that reaches the number. */
	return (pages_to_scan + cost - 1) / cost;
}
