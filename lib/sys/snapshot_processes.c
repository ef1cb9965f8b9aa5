/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "sys/snapshot_internal.h"

/* include/linux/sched.h PF_KTHREAD: their work is done for others, among them our own loads. */
#define FLAG_KERNEL_THREAD 0x00200000

/* A machine with more processes than this is not read: it would cost tens of milliseconds. */
#define PROCESSES_MOST 4096

struct process_line {
	struct snapshot_process process;
	pid_t parent;
	bool kernel;
};

/* Documentation/filesystems/proc.rst table 1-4: the command may itself hold blanks and brackets. */
static int read_process(const char *pid_text, struct process_line *ret_line)
{
	char path[64], text[1024], *open, *close_bracket;
	int64_t user, system;
	unsigned int flags;
	ssize_t got;
	int fd, parent;

	snprintf(path, sizeof(path), "/proc/%.16s/stat", pid_text);
	fd = machine_open(path, O_RDONLY);
	if (fd < 0)
		return fd;
	got = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (got <= 0)
		return -ESRCH;
	text[got] = '\0';
	open = strchr(text, '(');
	close_bracket = strrchr(text, ')');
	if (!open || !close_bracket || close_bracket < open)
		return -EINVAL;
	*close_bracket = '\0';
	memset(ret_line, 0, sizeof(*ret_line));
	snprintf(ret_line->process.command, sizeof(ret_line->process.command), "%.15s", open + 1);
	if (sscanf(close_bracket + 1,
		   " %*c %d %*d %*d %*d %*d %u %*s %*s %*s %*s %" SCNd64 " %" SCNd64
		   " %*s %*s %*s %*s %*s %*s %" SCNd64,
		   &parent, &flags, &user, &system, &ret_line->process.start_ticks) != 5)
		return -EINVAL;
	ret_line->process.pid = (pid_t)atoi(pid_text);
	ret_line->process.cpu_ticks = user + system;
	ret_line->parent = parent;
	ret_line->kernel = (flags & FLAG_KERNEL_THREAD) != 0;
	return 0;
}

static int compare_lines(const void *a, const void *b)
{
	const struct process_line *left = a, *right = b;

	return (left->process.pid > right->process.pid) - (left->process.pid < right->process.pid);
}

static struct process_line *find_line(struct process_line *lines, size_t count, pid_t pid)
{
	struct process_line wanted = {.process = {.pid = pid}};

	return bsearch(&wanted, lines, count, sizeof(*lines), compare_lines);
}

/* Ours: the caller and all that descend from it. */
static void mark_ours(struct process_line *lines, size_t count)
{
	pid_t self = getpid();

	for (size_t i = 0; i < count; i++) {
		struct process_line *line = &lines[i];

		for (int depth = 0; line && depth < 64; depth++) {
			if (line->process.pid == self) {
				lines[i].process.ours = true;
				break;
			}
			line = line->parent > 0 ? find_line(lines, count, line->parent) : NULL;
		}
	}
}

static int read_lines(DIR *directory, struct process_line **ret_lines, size_t *ret_count)
{
	struct process_line *lines = NULL, *grown;
	size_t count = 0, capacity = 0;
	struct dirent *entry;

	while ((entry = readdir(directory)) && count < PROCESSES_MOST) {
		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		if (count == capacity) {
			capacity = capacity ? capacity * 2 : 256;
			grown = reallocarray(lines, capacity, sizeof(*lines));
			if (!grown) {
				free(lines);
				return -ENOMEM;
			}
			lines = grown;
		}
		if (read_process(entry->d_name, &lines[count]) == 0)
			count++;
	}
	*ret_lines = lines;
	*ret_count = count;
	return 0;
}

int snapshot_read_processes(struct snapshot *snapshot)
{
	struct process_line *lines;
	char path[PATH_MAX];
	DIR *directory;
	size_t count;
	int error;

	if (machine_path("/proc", path, sizeof(path)))
		return 0;
	directory = opendir(path);
	if (!directory)
		return 0;
	error = read_lines(directory, &lines, &count);
	closedir(directory);
	if (error || count == 0)
		return error;
	qsort(lines, count, sizeof(*lines), compare_lines);
	mark_ours(lines, count);
	snapshot->processes = calloc(count, sizeof(*snapshot->processes));
	if (!snapshot->processes) {
		free(lines);
		return -ENOMEM;
	}
	for (size_t i = 0; i < count; i++)
		if (!lines[i].kernel)
			snapshot->processes[snapshot->process_count++] = lines[i].process;
	free(lines);
	return 0;
}

int64_t snapshot_neighbour_ticks(const struct snapshot *before, const struct snapshot *after,
				 const struct snapshot_process **ret_busiest,
				 int64_t *ret_busiest_ticks)
{
	int64_t before_ticks = before->boottime_ns / (INT64_C(1000000000) / sysconf(_SC_CLK_TCK));
	int64_t total = 0;
	size_t j = 0;

	*ret_busiest = NULL;
	*ret_busiest_ticks = 0;
	for (size_t i = 0; i < after->process_count; i++) {
		const struct snapshot_process *now = &after->processes[i];
		int64_t ticks = now->cpu_ticks;

		while (j < before->process_count && before->processes[j].pid < now->pid)
			j++;
		if (j < before->process_count && before->processes[j].pid == now->pid &&
		    before->processes[j].start_ticks == now->start_ticks)
			ticks -= before->processes[j].cpu_ticks;
		else if (now->start_ticks < before_ticks)
			continue; /* was there before, but could not be read then */
		if (now->ours || ticks <= 0)
			continue;
		total += ticks;
		if (ticks > *ret_busiest_ticks) {
			*ret_busiest = now;
			*ret_busiest_ticks = ticks;
		}
	}
	return total;
}
