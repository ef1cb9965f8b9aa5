/* SPDX-License-Identifier: MIT */
#ifndef SYS_KHUGEPAGED_H
#define SYS_KHUGEPAGED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define KHUGEPAGED_FOLDER "/sys/kernel/mm/transparent_hugepage/khugepaged"

/*
 * khugepaged's pid: the kernel thread of that name. -ESRCH: there is none that can be seen: the
 * kernel ends it while no size of huge page is enabled, and other pid namespaces do not show it.
 */
int khugepaged_find(pid_t *ret_pid);

/* Its work at one moment (mm/khugepaged.c; /proc/<pid>/schedstat). */
struct khugepaged_sample {
	int64_t when_ns;	 /* CLOCK_MONOTONIC */
	uint32_t full_scans;	 /* wraps at 2^32: subtract as uint32_t */
	int64_t pages_collapsed; /* of all processes */
	int64_t cpu_ns;		 /* on a CPU; -1: not told, or @pid is 0 */
	int64_t waited_ns;	 /* ready to run, but without a CPU; -1 likewise */
};

/* -ENOENT: a kernel without khugepaged. @pid 0: its processor time is not known. */
int khugepaged_sample(pid_t pid, struct khugepaged_sample *ret_sample);

/*
 * Tables that one hold of the mmap lock covers at @pages_to_scan, when every table is already a
 * huge page: up to Linux 7.0 such a table counts as all its pages (@pages_per_table), from 7.1 as
 * one. @release: "6.18.44".
 */
uint64_t khugepaged_tables_per_hold(const char *release, uint64_t pages_to_scan,
				    uint64_t pages_per_table);

#endif
