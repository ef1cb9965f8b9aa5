/* SPDX-License-Identifier: MIT */
#ifndef BASE_PROC_H
#define BASE_PROC_H

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Text files of the kernel that more than one room reads, under the root prefix of base/file.
 * -errno: the file cannot be read, or -EBADMSG: it is not of the kernel's form. What a kernel does
 * not tell is -1.
 */

/* /proc/meminfo, in bytes. */
struct proc_memory {
	int64_t total_bytes, available_bytes, swap_total_bytes;
};
int proc_read_memory(struct proc_memory *ret_memory);
uint64_t proc_available_bytes(void); /* MemAvailable; 0 when it is not told */

/* /proc/vmstat: the values of @names, in their order. */
int proc_read_vmstat(const char *const *names, size_t count, int64_t *ret_values);

/* Pages on the unevictable list and those held by mlock, with what each CPU had not added yet (for
 * root alone: the others get older values). */
struct proc_unevictable {
	int64_t pages, mlock_pages;
};
int proc_read_unevictable(struct proc_unevictable *ret_unevictable);

/* /proc/pressure/@resource ("memory", "io", "cpu", "irq"): microseconds of stall since boot.
 * -EOPNOTSUPP: off. */
struct proc_pressure {
	int64_t some_us, full_us;
};
int proc_read_pressure(const char *resource, struct proc_pressure *ret_pressure);
void proc_parse_pressure(const char *text, struct proc_pressure *ret_pressure);

/* One "cpu" line of /proc/stat, in ticks of proc_tick_ns(). */
struct proc_cpu {
	int cpu;	    /* -1: the sum of all */
	int64_t busy_ticks; /* user, nice, system, irq and softirq */
	int64_t steal_ticks;
};

/*
 * The next line of *@text (the whole of /proc/stat at first), which moves on. Lines that cannot be
 * read are passed over. false: there is none left.
 */
bool proc_next_cpu(const char **text, struct proc_cpu *ret_cpu);
int64_t proc_tick_ns(void);

/* /proc/PID/stat, Documentation/filesystems/proc.rst table 1-4. */
struct proc_process {
	pid_t pid, parent, session;
	char state; /* 'R', 'S', 'T', 'Z'... */
	bool kernel_thread;
	char command[16];    /* may hold any character but NUL */
	int64_t cpu_ticks;   /* user and system */
	int64_t start_ticks; /* since boot: tells a reused pid */
};

/* Always of the running kernel, whatever the root prefix: whom a signal would reach. -ESRCH: gone.
 */
int proc_read_process(pid_t pid, struct proc_process *ret_process);

/* All processes: open the folder, ask until false, closedir(3). NULL with errno. */
DIR *proc_open_processes(void);
/* What ends meanwhile is passed over. @folder may be any opendir("/proc"). */
bool proc_next_process(DIR *folder, struct proc_process *ret_process);

#endif
