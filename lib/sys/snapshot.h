/* SPDX-License-Identifier: MIT */
#ifndef SYS_SNAPSHOT_H
#define SYS_SNAPSHOT_H

#include <jansson.h>
#include <stdint.h>

#include "sys/cgroup.h"

/* Counters of the machine (and of a group) at one moment; reading costs well under a millisecond. */
struct snapshot;

int snapshot_take(const struct cgroup *group, struct snapshot **ret_snapshot); /* group: NULL or v1/v2 */
void snapshot_free(struct snapshot *snapshot);

/* "vmstat.pgscan_anon", "psi_us.memory_full", "memcg.failcnt", "steal_ms"...; -ENOENT. */
int snapshot_get(const struct snapshot *snapshot, const char *name, int64_t *ret_value);

/*
 * The "counters" object of a record: {"vmstat": {name: delta of those that moved, and of all that
 * claims read}, "level": {name: value after, for counts that are levels (nr_*)}, "psi_us": {...},
 * "memcg": {...}, "zram": {...}, "thp": {...}, "steal_ms": n, "steal_ms_per_cpu": [...]}.
 */
json_t *snapshot_delta(const struct snapshot *before, const struct snapshot *after);

/* Steal of one CPU, nanoseconds since boot (tick resolution); -1 when unknown. Cheap. */
int64_t snapshot_cpu_steal_ns(int cpu);

#endif
