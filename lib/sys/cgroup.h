/* SPDX-License-Identifier: MIT */
#ifndef SYS_CGROUP_H
#define SYS_CGROUP_H

#include <limits.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"

struct transaction;

enum cgroup_version { CGROUP_NONE, CGROUP_V1, CGROUP_V2 };

/* A memory group of our own; v1 and v2 hidden behind the same calls. */
struct cgroup {
	enum cgroup_version version;
	char path[PATH_MAX]; /* without the root prefix */
};

/* Which memory controller this machine has, and where groups can be made (read from mounts and
 * /proc/self/cgroup). -ENOTSUP (none), -EACCES (no permission to make one), with what would help.
 */
int cgroup_detect(struct cgroup *ret_parent, struct message *message);

/* The caller's group in the hierarchy of the v1 @controller ("": of v2); "/" when it is not told.
 */
void cgroup_own_path(const char *controller, char *buffer, size_t size);

/* Makes a group "syslatency-<pid>-<name>" by transaction. */
int cgroup_make(struct transaction *transaction, const char *name, struct cgroup *ret_group,
		struct message *message);

/* Memory limit; swap stays unlimited. -EINVAL below 1 MiB. */
int cgroup_set_limit(const struct cgroup *group, uint64_t bytes, struct message *message);

/*
 * Moves the whole process @pid (0: the caller, -ESRCH: gone) into @group. What it has in memory
 * already stays counted where it was. -errno of the write: -EACCES without permission, -EBUSY where
 * a v2 group hands controllers on.
 */
int cgroup_enter(const struct cgroup *group, pid_t pid);

struct cgroup_usage {
	uint64_t usage_bytes, limit_bytes; /* no limit: UINT64_MAX */
	int64_t limit_hits; /* v1 failcnt; v2 memory.events max; -1: the kernel does not tell */
	int64_t oom_kills;  /* -1: the kernel does not tell (v1 before 4.13) */
};

int cgroup_read_usage(const struct cgroup *group, struct cgroup_usage *ret_usage);

/* What the limits of the caller's own group and of those above it leave; UINT64_MAX: no limit, or
 * none that can be read. */
uint64_t cgroup_room(void);

#endif
