/* SPDX-License-Identifier: MIT */
#include "experiment/monitor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/proc.h"

/* How long what a command leaves behind may take to end: first asked, then killed. */
#define LEFT_ASKED_NS (INT64_C(100) * 1000000)
#define LEFT_KILLED_NS (INT64_C(5) * 1000000000)

/* Sends @signal to every living process of @session but its leader; how many there are. */
static int signal_session(pid_t session, int signal)
{
	DIR *folder = opendir("/proc"); /* the real one, whatever the root prefix is */
	struct proc_process process;
	int count = 0;

	while (folder && proc_next_process(folder, &process)) {
		if (process.session != session || process.pid == session || process.state == 'Z' ||
		    process.state == 'X')
			continue;
		count++;
		kill(process.pid, signal);
	}
	if (folder)
		closedir(folder);
	return count;
}

/*
 * Ends what is left of the session. Its leader is a zombie that we have not reaped yet, so its
 * number cannot belong to anybody else.
 */
static void end_leftovers(pid_t session, struct monitor_report *report)
{
	int64_t begin_ns = clock_now_ns();
	int signal = SIGTERM, left;

	report->left_behind = left = signal_session(session, signal);
	while (left > 0 && clock_now_ns() - begin_ns < LEFT_KILLED_NS) {
		clock_sleep_for(10 * INT64_C(1000000));
		if (clock_now_ns() - begin_ns > LEFT_ASKED_NS)
			signal = SIGKILL;
		left = signal_session(session, signal == SIGKILL ? SIGKILL : 0);
	}
	report->stuck = left;
}

static void set_default_signals(void)
{
	sigset_t none;

	for (int signal = 1; signal < NSIG; signal++)
		if (signal != SIGKILL && signal != SIGSTOP)
			(void)!!sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

__attribute__((noreturn)) static void command_main(const struct monitor_orders *orders,
						   pid_t monitor, int failure)
{
	int error, null = open("/dev/null", O_RDONLY);
	char block[24];

	set_default_signals();
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != monitor)
		_exit(1);
	dup2(null, STDIN_FILENO);
	dup2(orders->standard_output, STDOUT_FILENO);
	dup2(orders->standard_error, STDERR_FILENO);
	if (null > STDERR_FILENO)
		close(null);
	snprintf(block, sizeof(block), "%lld", (long long)orders->block);
	if (setenv("SYSLATENCY_RECORD", orders->record_path, 1) == 0 &&
	    (!orders->block || setenv("SYSLATENCY_BLOCK", block, 1) == 0) &&
	    (!orders->working_directory || chdir(orders->working_directory) == 0))
		execvp(orders->argv[0], orders->argv);
	error = errno;
	(void)!write(failure, &error, sizeof(error));
	_exit(127);
}

/* The standard descriptors of the monitor must not keep a reader of ours waiting. */
static void leave_terminal(const struct monitor_orders *orders)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setsid();
	prctl(PR_SET_NAME, "syslat-monitor");
	for (int i = 0; i < 4; i++)
		close(orders->ours[i]);
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && null >= 0; fd++)
		dup2(null, fd);
	if (null > STDERR_FILENO)
		close(null);
	set_default_signals();
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGPIPE, SIG_IGN);
}

/* Forks the command and waits until it is executed: 0, or the errno that it failed with. */
static int start_command(const struct monitor_orders *orders, pid_t *ret_pid)
{
	pid_t monitor = getpid(), pid;
	int failure[2], error = 0;

	if (pipe2(failure, O_CLOEXEC) < 0)
		return errno;
	pid = fork();
	if (pid < 0)
		return errno;
	if (pid == 0)
		command_main(orders, monitor, failure[1]);
	close(failure[1]);
	close(orders->standard_output);
	close(orders->standard_error);
	while (read(failure[0], &error, sizeof(error)) < 0 && errno == EINTR)
		;
	close(failure[0]);
	*ret_pid = pid;
	return error;
}

static void kill_session(pid_t pid)
{
	kill(pid, SIGKILL);
	signal_session(pid, SIGKILL);
}

/* Reads orders until the command ends; the poll's timeout is the grace after a SIGTERM. */
static void attend(const struct monitor_orders *orders, pid_t pid, int pidfd)
{
	struct pollfd fds[2] = {{.fd = pidfd, .events = POLLIN},
				{.fd = orders->control, .events = POLLIN}};
	int64_t deadline_ns = 0, left_ns;
	char order;

	for (;;) {
		left_ns = deadline_ns ? deadline_ns - clock_now_ns() : -1;
		if (deadline_ns && left_ns <= 0) {
			kill_session(pid);
			deadline_ns = 0;
			continue;
		}
		if (poll(fds, 2, deadline_ns ? (int)(left_ns / 1000000) + 1 : -1) < 0)
			continue;
		if (fds[0].revents)
			return;
		if (!fds[1].revents)
			continue;
		if (read(orders->control, &order, 1) != 1) {
			fds[1].fd = -1; /* our program is dead */
			order = 't';
		}
		if (order == 'k')
			kill_session(pid);
		else
			kill(-pid, order == 'i' ? SIGINT : SIGTERM);
		if (order == 't')
			deadline_ns = clock_now_ns() + MONITOR_GRACE_NS;
	}
}

void monitor_main(const struct monitor_orders *orders)
{
	struct monitor_report report = {0};
	int64_t begin_ns = clock_now_ns();
	pid_t pid = 0;
	int pidfd;

	leave_terminal(orders);
	report.exec_error = start_command(orders, &pid);
	if (pid > 0) {
		pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
		if (pidfd >= 0 && !report.exec_error)
			attend(orders, pid, pidfd);
		waitid(P_PID, (id_t)pid, &(siginfo_t){0}, WEXITED | WNOWAIT);
		report.elapsed_ns = clock_now_ns() - begin_ns;
		end_leftovers(pid, &report);
		while (waitpid(pid, &report.wait_status, 0) < 0 && errno == EINTR)
			;
	}
	(void)!write(orders->report, &report, sizeof(report));
	_exit(0);
}
