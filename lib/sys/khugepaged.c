/* SPDX-License-Identifier: MIT */
#include "sys/khugepaged.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/proc.h"

int khugepaged_find(pid_t *ret_pid)
{
	struct proc_process process;
	DIR *folder = proc_open_processes();
	int result = -ESRCH;

	if (!folder)
		return -errno;
	while (result < 0 && proc_next_process(folder, &process)) {
		if (!process.kernel_thread || strcmp(process.command, "khugepaged") != 0)
			continue;
		*ret_pid = process.pid;
		result = 0;
	}
	closedir(folder);
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
