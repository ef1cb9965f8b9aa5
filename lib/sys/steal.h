/* SPDX-License-Identifier: MIT */
#ifndef SYS_STEAL_H
#define SYS_STEAL_H

#include <stdint.h>

/*
 * What the hypervisor stole from each CPU, read at every poll, so that it can be said afterwards
 * how much of it lies around a delay. The sampling threads do no file access: the supervisor reads.
 */
struct steal_log;

struct steal_log *steal_log_new(void); /* NULL without memory */
void steal_log_free(struct steal_log *log);

/* Reads /proc/stat once. A long log is thinned: every second poll of what it has is dropped. */
void steal_log_poll(struct steal_log *log, int64_t now_ns);

/*
 * Stolen from @cpu between the last poll before @from_ns and the first after @to_ns, nanoseconds
 * with the resolution of a tick: an upper bound for the time between. -1 when polls do not enclose
 * it.
 */
int64_t steal_log_between(const struct steal_log *log, int cpu, int64_t from_ns, int64_t to_ns);

/*
 * The same around a delay. A CPU that was stopped counts what was stolen at one of its next ticks
 * (HZ is 100 or more), so the poll after it is one that is STEAL_COUNTED_NS later. -1: there is no
 * such poll (yet).
 */
#define STEAL_COUNTED_NS INT64_C(20000000)
int64_t steal_log_around(const struct steal_log *log, int cpu, int64_t when_ns, int64_t late_ns);

#endif
