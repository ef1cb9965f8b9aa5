/* SPDX-License-Identifier: MIT */
#include "base/proc.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define KERNEL_THREAD 0x00200000 /* PF_KTHREAD, include/linux/sched.h */
#define CPUS_MAX (1 << 20)

int proc_read_memory(struct proc_memory *ret_memory)
{
	static const char *const names[] = {"MemTotal", "MemAvailable", "SwapTotal"};
	int64_t bytes[3], kib;
	char *text;
	int error = machine_read("/proc/meminfo", &text, NULL);

	if (error)
		return error;
	for (size_t i = 0; i < 3; i++)
		if (text_find_int64(text, names[i], &kib) || kib < 0 ||
		    __builtin_mul_overflow(kib, 1024, &bytes[i]))
			bytes[i] = -1;
	free(text);
	*ret_memory = (struct proc_memory){bytes[0], bytes[1], bytes[2]};
	return 0;
}

uint64_t proc_available_bytes(void)
{
	struct proc_memory memory;

	if (proc_read_memory(&memory) || memory.available_bytes < 0)
		return 0;
	return (uint64_t)memory.available_bytes;
}

int proc_read_vmstat(const char *const *names, size_t count, int64_t *ret_values)
{
	char *text;
	int error = machine_read("/proc/vmstat", &text, NULL);

	if (error)
		return error;
	for (size_t i = 0; i < count; i++)
		if (text_find_int64(text, names[i], &ret_values[i]))
			ret_values[i] = -1;
	free(text);
	return 0;
}

int proc_read_unevictable(struct proc_unevictable *ret_unevictable)
{
	static const char *const names[] = {"nr_unevictable", "nr_mlock"};
	int64_t pages[2];
	int error;

	machine_write("/proc/sys/vm/stat_refresh", "1");
	error = proc_read_vmstat(names, 2, pages);
	if (error)
		return error;
	if (pages[0] < 0 || pages[1] < 0)
		return -EBADMSG;
	*ret_unevictable = (struct proc_unevictable){pages[0], pages[1]};
	return 0;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=12345" */
static int64_t pressure_total(const char *text, const char *kind)
{
	const char *line = text, *end, *total;

	while (strncmp(line, kind, strlen(kind)) != 0) {
		line = strchr(line, '\n');
		if (!line)
			return -1;
		line++;
	}
	end = strchrnul(line, '\n');
	total = strstr(line, " total=");
	return total && total < end ? strtoll(total + strlen(" total="), NULL, 10) : -1;
}

void proc_parse_pressure(const char *text, struct proc_pressure *ret_pressure)
{
	ret_pressure->some_us = pressure_total(text, "some ");
	ret_pressure->full_us = pressure_total(text, "full ");
}

int proc_read_pressure(const char *resource, struct proc_pressure *ret_pressure)
{
	char path[64], *text;
	int error;

	snprintf(path, sizeof(path), "/proc/pressure/%s", resource);
	error = machine_read(path, &text, NULL);
	if (error)
		return error;
	proc_parse_pressure(text, ret_pressure);
	free(text);
	return 0;
}

/* The numbers of the line at @at; how many there are, @count at most. */
static size_t read_numbers(const char *at, int64_t *values, size_t count)
{
	size_t got = 0;
	char *end;

	for (; got < count; at = end) {
		at += strspn(at, " ");
		if (*at == '\n') /* strtoll would go on to the next line */
			break;
		values[got] = strtoll(at, &end, 10);
		if (end == at)
			break;
		got++;
	}
	return got;
}

bool proc_next_cpu(const char **text, struct proc_cpu *ret_cpu)
{
	/* user nice system idle iowait irq softirq steal (fs/proc/stat.c) */
	int64_t ticks[8];

	while (strncmp(*text, "cpu", 3) == 0) {
		const char *line = *text + 3;
		char *end = (char *)line;
		long cpu = -1;

		*text = strchrnul(line, '\n');
		*text += **text == '\n';
		if (*line != ' ') {
			cpu = strtol(line, &end, 10);
			if (end == line || cpu < 0 || cpu >= CPUS_MAX)
				continue;
		}
		if (*end != ' ' || read_numbers(end, ticks, 8) != 8)
			continue;
		ret_cpu->cpu = (int)cpu;
		ret_cpu->busy_ticks = ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6];
		ret_cpu->steal_ticks = ticks[7];
		return true;
	}
	return false;
}

int64_t proc_tick_ns(void)
{
	long ticks_per_s = sysconf(_SC_CLK_TCK);

	return NS_PER_S / (ticks_per_s > 0 ? ticks_per_s : 100);
}

static int parse_process(char *text, struct proc_process *ret_process)
{
	/* After the state, fields 4 to 22: parent group session terminal its_group flags (9), four
	 * of faults, user (14) system, two of children, priority nice threads timer start (22). */
	int64_t fields[19];
	struct proc_process process = {0};
	char *name, *end, *rest;

	process.pid = (pid_t)strtol(text, &rest, 10);
	name = strchr(rest, '(');
	end = strrchr(rest, ')'); /* the name may hold blanks and brackets: the last one ends it */
	if (!name || !end || end < name || end[1] != ' ' || !end[2] || end[3] != ' ' ||
	    read_numbers(end + 3, fields, 19) != 19)
		return -EBADMSG;
	*end = '\0';
	snprintf(process.command, sizeof(process.command), "%s", name + 1);
	process.state = end[2];
	process.parent = (pid_t)fields[0];
	process.session = (pid_t)fields[2];
	process.kernel_thread = (fields[5] & KERNEL_THREAD) != 0;
	process.cpu_ticks = fields[10] + fields[11];
	process.start_ticks = fields[18];
	*ret_process = process;
	return 0;
}

static int read_process(int folder, const char *path, struct proc_process *ret_process)
{
	int fd = openat(folder, path, O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t got;

	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return -ESRCH;
	text[got] = '\0';
	return parse_process(text, ret_process);
}

int proc_read_process(pid_t pid, struct proc_process *ret_process)
{
	char path[40];

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	return read_process(AT_FDCWD, path, ret_process);
}

DIR *proc_open_processes(void)
{
	char path[PATH_MAX];

	if (machine_path("/proc", path, sizeof(path))) {
		errno = ENAMETOOLONG;
		return NULL;
	}
	return opendir(path);
}

bool proc_next_process(DIR *folder, struct proc_process *ret_process)
{
	struct dirent *entry;
	char path[40];

	while ((entry = readdir(folder))) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "%.20s/stat", entry->d_name);
		if (read_process(dirfd(folder), path, ret_process) == 0)
			return true;
	}
	return false;
}
