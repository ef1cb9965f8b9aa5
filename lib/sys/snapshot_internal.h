/* SPDX-License-Identifier: MIT */
#ifndef SYS_SNAPSHOT_INTERNAL_H
#define SYS_SNAPSHOT_INTERNAL_H

/* Shared by the files that make up sys/snapshot. */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "sys/snapshot.h"

/* A counter grows; a level is what there is now. */
struct snapshot_entry {
	char name[72]; /* "section.name" or "section.group.name" */
	int64_t value;
	bool level;
};

struct snapshot_process {
	pid_t pid, parent;
	int64_t start_ticks; /* since boot: tells a reused pid */
	int64_t cpu_ticks;
	bool ours; /* the caller or a descendant of it */
	bool kernel_thread;
	char command[16];
};

struct snapshot {
	struct snapshot_entry *entries;
	size_t count, capacity;
	int64_t *steal_ticks; /* by CPU number; -1: no such CPU */
	size_t cpu_count, cpu_capacity;
	int64_t total_steal_ticks, busy_ticks; /* -1: unknown */
	int64_t monotonic_ns, boottime_ns, realtime_ns;
	struct snapshot_process *processes; /* sorted by pid; kernel threads left out */
	size_t process_count, process_capacity;
};

/* -ENOMEM. Names that do not fit are left out: no counter of the kernel is that long. */
int snapshot_add(struct snapshot *snapshot, const char *section, const char *name, int64_t value,
		 bool level);

/* Reads the list of processes; what vanishes meanwhile is left out. -ENOMEM. */
int snapshot_read_processes(struct snapshot *snapshot);

/*
 * Processor time that user processes which are not ours used between the snapshots, in ticks, and
 * the greediest of them (NULL: none). Processes that began and ended in between are not seen.
 */
int64_t snapshot_neighbour_ticks(const struct snapshot *before, const struct snapshot *after,
				 const struct snapshot_process **ret_busiest,
				 int64_t *ret_busiest_ticks);

/* Walks "key value" lines of @text, which it cuts up; 0 at the end, 1 for each line with an
 * integer. */
int snapshot_next_line(char **text, char **ret_key, int64_t *ret_value);

#endif
