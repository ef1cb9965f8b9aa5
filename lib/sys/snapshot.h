/* SPDX-License-Identifier: MIT */
#ifndef SYS_SNAPSHOT_H
#define SYS_SNAPSHOT_H

#include <jansson.h>
#include <stdint.h>

#include "sys/cgroup.h"

/*
 * Counters of the machine (and of a group) at one moment: /proc/vmstat, /proc/pressure, /proc/stat,
 * the group's memory.*, zram, swap, THP statistics, the three clocks, and the processor time of
 * processes that are not ours. Costs 1 to 2 ms of processor time, most of it for the list of
 * processes.
 */
struct snapshot;

/*
 * Reads all of it; what this machine has not, or the caller may not read, is left out. @group:
 * whose memory.* is read too; NULL or CGROUP_NONE for none. 0 with a snapshot that the caller
 * frees, or -ENOMEM.
 */
int snapshot_take(const struct cgroup *group, struct snapshot **ret_snapshot);
void snapshot_free(struct snapshot *snapshot);

/* "vmstat.pgscan_anon", "psi_us.memory_full", "memcg.failcnt", "steal_ms"...; -ENOENT. */
int snapshot_get(const struct snapshot *snapshot, const char *name, int64_t *ret_value);

/*
 * The "counters" object of a record: {"vmstat": {name: delta of those that moved, and of all that
 * claims read}, "level": {name: value after, for counts that are levels (nr_*)}, "psi_us": {...},
 * "memcg": {...}, "zram": {device: {...}}, "swap": {...}, "thp": {size: {...}}, "steal_ms": n,
 * "steal_ms_per_cpu": [by CPU number; empty when nothing was stolen], "clock": {"elapsed_ms",
 * "suspended_ms", "wall_jump_ms"}, "cpu": {"busy_ms", "neighbours_ms", "busiest_neighbour",
 * "busiest_neighbour_ms"}}. What the machine has not is absent. NULL without memory.
 *
 * Take "after" while the loads still hold their memory: what is pinned is judged by the difference.
 */
json_t *snapshot_delta(const struct snapshot *before, const struct snapshot *after);

/* Steal of one CPU, nanoseconds since boot (tick resolution); -1 when unknown. Cheap. */
int64_t snapshot_cpu_steal_ns(int cpu);

/*
 * A few counters once a second while the run is under way, for "counters.series". The files stay
 * open; one sample is a few pread calls (about 0.1 ms) and allocates nothing.
 */
struct snapshot_series;

#define SNAPSHOT_SERIES_POINTS 32

int snapshot_series_open(const struct cgroup *group, struct snapshot_series **ret_series);

/*
 * Adds a point at @now_ns when a second (or the longer interval that a long run has come to) has
 * passed since the last; call it as often as you like. When all points are used, every second one
 * is dropped and the interval doubles, so the points always span the whole run. Never fails: what
 * cannot be read is null in the point.
 */
void snapshot_series_sample(struct snapshot_series *series, int64_t now_ns);

/*
 * {"interval_ms", "t_ms": [...], "pgscan_anon": [...], ...}: counters as the increase since the
 * point before (the first point is 0), levels (nr_*, *_bytes) as they were.
 */
json_t *snapshot_series_json(const struct snapshot_series *series);
void snapshot_series_close(struct snapshot_series *series);

#endif
