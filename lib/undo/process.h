/* SPDX-License-Identifier: MIT */
#ifndef UNDO_PROCESS_H
#define UNDO_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A process is known by its pid and its start time (field 22 of /proc/<pid>/stat, clock ticks since
 * boot), because pids are used again. Always the real /proc, whatever the root prefix.
 */

/* Start time of @pid; -ESRCH. */
int process_start_ticks(pid_t pid, uint64_t *ret_ticks);

/* Is it there and not a zombie? */
bool process_alive(pid_t pid, uint64_t start_ticks);

/* Was it stopped by a signal? */
bool process_stopped(pid_t pid);

/* A pidfd, or -1 where the kernel has none (before 5.3, some sandboxes). */
int process_pidfd(pid_t pid);

/*
 * A pidfd of the very process that started at @start_ticks (-1 where there are none);
 * -ESRCH when that process is gone.
 */
int process_open(pid_t pid, uint64_t start_ticks, int *ret_pidfd);

/* SIGKILL; 0 also when it is gone. @pidfd -1: by pid, start time checked just before. */
int process_kill(pid_t pid, uint64_t start_ticks, int pidfd);

/* Waits for its end (not reaping); -ETIMEDOUT. */
int process_wait(pid_t pid, uint64_t start_ticks, int pidfd, int64_t deadline_ns);

#endif
