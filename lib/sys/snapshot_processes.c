/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/proc.h"
#include "sys/snapshot_internal.h"

/* A machine with more processes than this is not read: it would cost tens of milliseconds. */
#define PROCESSES_MAX 4096

static int compare_processes(const void *a, const void *b)
{
	const struct snapshot_process *left = a, *right = b;

	return (left->pid > right->pid) - (left->pid < right->pid);
}

/* Ours: the caller and all that descend from it. */
static void mark_ours(struct snapshot_process *processes, size_t count)
{
	pid_t self = getpid();

	for (size_t i = 0; i < count; i++) {
		const struct snapshot_process *at = &processes[i];

		for (int depth = 0; at && depth < 64 && !processes[i].ours; depth++) {
			struct snapshot_process parent = {.pid = at->parent};

			processes[i].ours = at->pid == self;
			at = parent.pid > 0 ? bsearch(&parent, processes, count, sizeof(*processes),
						      compare_processes)
					    : NULL;
		}
	}
}

int snapshot_read_processes(struct snapshot *snapshot)
{
	DIR *folder = proc_open_processes();
	struct proc_process process;
	size_t count = 0;
	int error = 0;

	while (folder && !error && count < PROCESSES_MAX && proc_next_process(folder, &process)) {
		error = array_reserve(&snapshot->processes, &snapshot->process_capacity, count + 1);
		if (error)
			break;
		snapshot->processes[count++] = (struct snapshot_process){
			.pid = process.pid,
			.parent = process.parent,
			.start_ticks = process.start_ticks,
			.cpu_ticks = process.cpu_ticks,
			.kernel_thread = process.kernel_thread,
		};
		strcpy(snapshot->processes[count - 1].command, process.command);
	}
	if (folder)
		closedir(folder);
	if (count > 0)
		qsort(snapshot->processes, count, sizeof(*snapshot->processes), compare_processes);
	mark_ours(snapshot->processes, count);
	/* The work of kernel threads is done for others, among them our own loads. */
	for (size_t i = 0; i < count; i++)
		if (!snapshot->processes[i].kernel_thread)
			snapshot->processes[snapshot->process_count++] = snapshot->processes[i];
	return error;
}

int64_t snapshot_neighbour_ticks(const struct snapshot *before, const struct snapshot *after,
				 const struct snapshot_process **ret_busiest,
				 int64_t *ret_busiest_ticks)
{
	int64_t before_ticks = before->boottime_ns / proc_tick_ns();
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
