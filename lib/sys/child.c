/* SPDX-License-Identifier: MIT */
#include "sys/child.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "sys/cgroup.h"
#include "undo/transaction.h"
#include "undo/process.h"

#define POLL_STEP_NS (2 * NS_PER_MS)

static void reset_signals(void)
{
	sigset_t none;
	int number;

	for (number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	signal(SIGINT, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	/* A reader that went, a file size limit: errors of a write that are told, not deaths. */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In the child: waits until the parent has registered and placed it, then runs the body. */
static void child_main(const struct child_settings *settings, int (*body)(void *argument),
		       void *argument, pid_t parent, int go)
{
	ssize_t got;
	char byte;
	int result;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent) /* it died before the signal was asked for */
		_exit(0);
	if (settings->name)
		prctl(PR_SET_NAME, settings->name);
	reset_signals();
	do {
		got = read(go, &byte, 1);
	} while (got < 0 && errno == EINTR);
	if (got != 1)
		_exit(0);
	close(go);
	result = body(argument);
	if (result < 0)
		result = -result;
	/* An errno over 255 cannot be told in an exit status, but must not read as success. */
	_exit(result > 255 ? 255 : result);
}

static void set_oom_score(pid_t pid, int wanted)
{
	char path[40], text[16];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
	snprintf(text, sizeof(text), "%d", wanted);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	(void)!write(fd, text, strlen(text));
	close(fd);
}

/* What the parent does with a child that still waits. */
static int place_child(const struct child_settings *settings, pid_t pid, struct message *message)
{
	int result;

	if (settings->transaction) {
		result = transaction_own_process(settings->transaction, pid, message);
		if (result < 0)
			return result;
	}
	if (settings->oom_score_adj)
		set_oom_score(pid, settings->oom_score_adj);
	if (settings->cgroup) {
		result = cgroup_enter(settings->cgroup, pid);
		if (result < 0)
			return message_set_errno(message, result, "cannot move %s into %s",
						 settings->name ? settings->name : "a process",
						 settings->cgroup->path);
	}
	return 0;
}

int child_start(const struct child_settings *settings, int (*body)(void *argument), void *argument,
		struct child *ret_child, struct message *message)
{
	struct child child = {.pidfd = -1};
	pid_t parent = getpid();
	sigset_t all, before;
	int go[2], result;

	if (pipe2(go, O_CLOEXEC) < 0)
		return message_set_errno(message, -errno, "pipe");
	/* No handler of the program may run in the child before it has its own actions. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	child.pid = fork();
	result = -errno;
	if (child.pid == 0) {
		close(go[1]);
		child_main(settings, body, argument, parent, go[0]);
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (child.pid < 0) {
		message_set_errno(message, result, "fork");
		goto close_pipe;
	}
	child.pidfd = process_pidfd(child.pid);
	result = place_child(settings, child.pid, message);
	/* The reading end is still open here too, so that a child that died raises no SIGPIPE. */
	if (result == 0 && write(go[1], "g", 1) != 1)
		result = message_set_errno(message, -errno, "pipe");
	if (result < 0)
		child_kill(&child, 10 * NS_PER_S, settings->transaction);
	else
		*ret_child = child;
close_pipe:
	close(go[0]);
	close(go[1]);
	return result;
}

static void forget(struct child *child)
{
	if (child->pidfd >= 0)
		close(child->pidfd);
	*child = (struct child){.pidfd = -1};
}

int child_poll(struct child *child, int *ret_status)
{
	int status = 0;
	pid_t got;

	if (child->pid <= 0)
		return -ECHILD;
	do {
		got = waitpid(child->pid, &status, WNOHANG);
	} while (got < 0 && errno == EINTR);
	if (got < 0)
		return -errno;
	if (got == 0)
		return 1;
	forget(child);
	if (ret_status)
		*ret_status = status;
	return 0;
}

int child_wait(struct child *child, int64_t deadline_ns, int *ret_status)
{
	for (;;) {
		int running = child_poll(child, ret_status);
		int64_t left_ns = deadline_ns - clock_now_ns();
		struct pollfd wait = {.fd = child->pidfd, .events = POLLIN};

		if (running <= 0)
			return running;
		if (left_ns <= 0)
			return -ETIMEDOUT;
		if (child->pidfd < 0)
			clock_sleep_for(left_ns < POLL_STEP_NS ? left_ns : POLL_STEP_NS);
		else
			poll(&wait, 1, left_ns > NS_PER_S ? 1000 : (int)(left_ns / NS_PER_MS) + 1);
	}
}

int child_kill(struct child *child, int64_t grace_ns, struct transaction *transaction)
{
	pid_t pid = child->pid;
	int result;

	if (pid <= 0)
		return 0;
	/* Not reaped yet, so the pid is still this child's. */
	if (kill(pid, SIGKILL) < 0 && errno != ESRCH)
		return -errno;
	result = child_wait(child, clock_now_ns() + grace_ns, NULL);
	if (result == -ECHILD) /* reaped by someone else */
		result = 0;
	if (result == 0) {
		forget(child);
		if (transaction)
			transaction_disown_process(transaction, pid);
	}
	return result;
}
