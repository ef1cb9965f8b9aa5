/* SPDX-License-Identifier: MIT */
#include "undo/process.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif
#ifndef SYS_pidfd_send_signal
#define SYS_pidfd_send_signal 424
#endif

#define POLL_STEP_NS (2 * NS_PER_MS)

int process_start_ticks(pid_t pid, uint64_t *ret_ticks)
{
	struct proc_process process;
	int result = proc_read_process(pid, &process);

	if (result == 0)
		*ret_ticks = (uint64_t)process.start_ticks;
	return result;
}

bool process_alive(pid_t pid, uint64_t start_ticks)
{
	struct proc_process process;

	return proc_read_process(pid, &process) == 0 &&
	       (uint64_t)process.start_ticks == start_ticks && process.state != 'Z' &&
	       process.state != 'X';
}

bool process_stopped(pid_t pid)
{
	struct proc_process process;

	return proc_read_process(pid, &process) == 0 &&
	       (process.state == 'T' || process.state == 't');
}

int process_pidfd(pid_t pid)
{
	return (int)syscall(SYS_pidfd_open, pid, 0);
}

int process_open(pid_t pid, uint64_t start_ticks, int *ret_pidfd)
{
	int pidfd = process_pidfd(pid);

	/* The start time is read after the pidfd is held: if they agree, it is that process. */
	if (!process_alive(pid, start_ticks)) {
		if (pidfd >= 0)
			close(pidfd);
		return -ESRCH;
	}
	*ret_pidfd = pidfd;
	return 0;
}

int process_kill(pid_t pid, uint64_t start_ticks, int pidfd)
{
	int result;

	if (pidfd >= 0)
		result = (int)syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
	else if (process_alive(pid, start_ticks))
		result = kill(pid, SIGKILL);
	else
		result = 0;
	return result < 0 && errno != ESRCH ? -errno : 0;
}

int process_wait(pid_t pid, uint64_t start_ticks, int pidfd, int64_t deadline_ns)
{
	while (pidfd < 0 && process_alive(pid, start_ticks)) {
		if (clock_now_ns() >= deadline_ns)
			return -ETIMEDOUT;
		clock_sleep_for(POLL_STEP_NS);
	}
	while (pidfd >= 0) {
		struct pollfd wait = {.fd = pidfd, .events = POLLIN};
		int64_t left_ns = deadline_ns - clock_now_ns();
		int timeout_ms = left_ns <= 0 ? 0 : (int)((left_ns + NS_PER_MS - 1) / NS_PER_MS);
		int ready = poll(&wait, 1, left_ns > 60 * NS_PER_S ? 60000 : timeout_ms);

		if (ready > 0)
			break;
		if (ready < 0 && errno != EINTR)
			return -errno;
		if (left_ns <= 0)
			return -ETIMEDOUT;
	}
	return 0;
}
