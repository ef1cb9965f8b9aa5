/* SPDX-License-Identifier: MIT */
#ifndef BASE_CPUSET_H
#define BASE_CPUSET_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/message.h"

/* A sorted list of CPU numbers without repeats; any number of CPUs, holes allowed. */
struct cpu_list {
	int *cpus;
	size_t count;
};

void cpu_list_free(struct cpu_list *list);
bool cpu_list_contains(const struct cpu_list *list, int cpu);
int cpu_list_copy(const struct cpu_list *from, struct cpu_list *ret_list);

/* "0-3,8"; "0-", "3-1", "a" and "" are -EINVAL with a message. */
int cpu_list_parse(const char *text, struct cpu_list *ret_list, struct message *message);

/* "0-3,8": allocated, to be freed by the caller; NULL without memory. */
char *cpu_list_format(const struct cpu_list *list);

/* What sched_getaffinity allows @pid (0: the caller); the mask grows as the kernel asks (>1024
 * CPUs). */
int cpu_list_allowed(pid_t pid, struct cpu_list *ret_list);

/* /sys/devices/system/cpu/online, under the root prefix. */
int cpu_list_online(struct cpu_list *ret_list);

/*
 * Checks every CPU of @wanted: -ENXIO "CPU 9 does not exist" / "CPU 3 is offline" / "CPU 5 is not
 * in the allowed set 0-3 (cpuset or taskset)".
 */
int cpu_list_check(const struct cpu_list *wanted, struct message *message);

/* Affinity of a task (0: the caller) to one CPU or to a list; the mask is sized at run time. */
int cpu_pin(pid_t pid, int cpu);
int cpu_pin_list(pid_t pid, const struct cpu_list *list);

#endif
