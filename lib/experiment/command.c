/* SPDX-License-Identifier: MIT */
#include "experiment/command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "experiment/monitor.h"

#define TICK_NS NS_PER_S
/* Beyond the monitor's own grace and the ending of leftovers: then the monitor itself is stuck. */
#define MONITOR_LOST_NS (MONITOR_GRACE_NS + 15 * NS_PER_S)

/* The end of a stream, in constant memory: what is kept moves down when twice its room is full. */
struct tail {
	char *text;
	size_t kept, used;
	uint64_t total;
};

static int tail_init(struct tail *tail, size_t kept)
{
	*tail = (struct tail){.kept = kept, .text = malloc(2 * kept + 1)};
	return tail->text ? 0 : -ENOMEM;
}

/* Reads what is there: 1 more may come, 0 the end. */
static int tail_read(struct tail *tail, int fd)
{
	ssize_t size;

	if (tail->used == 2 * tail->kept) {
		memmove(tail->text, tail->text + tail->kept, tail->kept);
		tail->used = tail->kept;
	}
	size = read(fd, tail->text + tail->used, 2 * tail->kept - tail->used);
	if (size < 0)
		return errno == EINTR || errno == EAGAIN;
	tail->used += (size_t)size;
	tail->total += (uint64_t)size;
	return size > 0;
}

/* What is kept, as a string; the tail is spent. NUL bytes would hide the rest: shown as '?'. */
static char *tail_take(struct tail *tail)
{
	char *text = tail->text;
	size_t size = tail->used < tail->kept ? tail->used : tail->kept;

	memmove(text, text + tail->used - size, size);
	for (size_t i = 0; i < size; i++)
		if (text[i] == '\0')
			text[i] = '?';
	text[size] = '\0';
	tail->text = NULL;
	return text;
}

enum { CONTROL, REPORT, OUTPUT, ERRORS, PIPES };

struct command {
	const struct command_settings *settings;
	pid_t monitor;
	int control;	      /* write end */
	struct pollfd fds[3]; /* report, output, errors */
	struct tail output, errors;
	int64_t begin_ns, tick_ns, deadline_ns, lost_ns;
	int signals_seen;
	struct monitor_report report;
	struct command_result result;
};

static void close_pipes(int pipes[PIPES][2])
{
	for (int i = 0; i < PIPES; i++)
		for (int end = 0; end < 2; end++)
			if (pipes[i][end] >= 0)
				close(pipes[i][end]);
}

static int start_monitor(struct command *command)
{
	int pipes[PIPES][2] = {{-1, -1}, {-1, -1}, {-1, -1}, {-1, -1}};
	struct monitor_orders orders = {
		.argv = command->settings->argv,
		.working_directory = command->settings->working_directory,
		.record_path = command->settings->record_path,
		.block = command->settings->block,
	};
	int error;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pipes[CONTROL]) < 0)
		goto failed;
	for (int i = REPORT; i < PIPES; i++)
		if (pipe2(pipes[i], O_CLOEXEC) < 0)
			goto failed;
	orders.control = pipes[CONTROL][0];
	orders.report = pipes[REPORT][1];
	orders.standard_output = pipes[OUTPUT][1];
	orders.standard_error = pipes[ERRORS][1];
	for (int i = 0; i < PIPES; i++)
		orders.ours[i] = pipes[i][i == CONTROL];
	command->monitor = fork();
	if (command->monitor < 0)
		goto failed;
	if (command->monitor == 0)
		monitor_main(&orders);
	for (int i = 0; i < PIPES; i++)
		close(pipes[i][i != CONTROL]);
	command->control = pipes[CONTROL][1];
	for (int i = REPORT; i < PIPES; i++) {
		command->fds[i - REPORT] = (struct pollfd){.fd = pipes[i][0], .events = POLLIN};
		fcntl(pipes[i][0], F_SETFL, O_NONBLOCK);
	}
	return 0;
failed:
	error = -errno;
	close_pipes(pipes);
	return error;
}

static void tell_monitor(struct command *command, char order)
{
	(void)!send(command->control, &order, 1, MSG_NOSIGNAL); /* the monitor may be gone */
	command->result.told = true;
	command->lost_ns = clock_now_ns() + MONITOR_LOST_NS;
}

/* Signals to us, and the time limit. */
static void pass_on(struct command *command, int64_t now_ns)
{
	int signals = command->settings->interrupted ? *command->settings->interrupted : 0;

	if (signals > command->signals_seen) {
		if (command->signals_seen == 0) {
			tell_monitor(command, 'i');
			command->deadline_ns = now_ns + MONITOR_GRACE_NS; /* deaf to SIGINT: 't' */
		}
		if (signals > 1)
			tell_monitor(command, 'k');
		command->signals_seen = signals;
	}
	if (command->deadline_ns && now_ns >= command->deadline_ns) {
		if (command->signals_seen == 0)
			command->result.timed_out = true;
		tell_monitor(command, 't');
		command->deadline_ns = 0;
	}
	if (now_ns >= command->tick_ns) {
		command->tick_ns = now_ns + TICK_NS;
		if (command->settings->tick)
			command->settings->tick(command->settings->tick_data,
						now_ns - command->begin_ns);
	}
}

/* Reads streams until the monitor has reported. 0, or -ETIMEDOUT when it is lost. */
static int attend(struct command *command)
{
	struct tail *tails[] = {NULL, &command->output, &command->errors};

	for (;;) {
		int64_t now_ns = clock_now_ns();

		pass_on(command, now_ns);
		if (command->lost_ns && now_ns > command->lost_ns)
			return -ETIMEDOUT;
		if (poll(command->fds, 3, 500) < 0)
			continue;
		for (int i = 1; i < 3; i++)
			if (command->fds[i].revents && !tail_read(tails[i], command->fds[i].fd)) {
				close(command->fds[i].fd);
				command->fds[i].fd = -1;
			}
		if (command->fds[0].revents) {
			if (read(command->fds[0].fd, &command->report, sizeof(command->report)) !=
			    (ssize_t)sizeof(command->report))
				return -ECHILD; /* somebody killed the monitor */
			break;
		}
	}
	/* What is still in the pipes; a daemon of the command may hold them open, so no waiting. */
	for (int i = 1; i < 3; i++)
		for (int reads = 0; reads < 64 && command->fds[i].fd >= 0; reads++) {
			uint64_t before = tails[i]->total;

			if (!tail_read(tails[i], command->fds[i].fd) || tails[i]->total == before)
				break;
		}
	return 0;
}

static void command_end(struct command *command, int error)
{
	close(command->control);
	for (int i = 0; i < 3; i++)
		if (command->fds[i].fd >= 0)
			close(command->fds[i].fd);
	if (error == -ETIMEDOUT) /* cannot be waited for without hanging with it */
		return;
	while (waitpid(command->monitor, NULL, 0) < 0 && errno == EINTR)
		;
}

int command_execute(const struct command_settings *settings, struct command_result *ret_result,
		    struct message *message)
{
	struct command command = {.settings = settings, .begin_ns = clock_now_ns()};
	int error = tail_init(&command.output, COMMAND_STDOUT_KEPT);

	if (!error)
		error = tail_init(&command.errors, COMMAND_STDERR_KEPT);
	if (!error)
		error = start_monitor(&command);
	if (error) {
		message_set_errno(message, error, "cannot start %s", settings->argv[0]);
		goto failed;
	}
	command.tick_ns = command.begin_ns + TICK_NS;
	if (settings->timeout_ns)
		command.deadline_ns = command.begin_ns + settings->timeout_ns;
	error = attend(&command);
	command_end(&command, error);
	if (error) {
		message_set(message, error,
			    error == -ETIMEDOUT
				    ? "%s does not end, not even by SIGKILL (a process in D state?)"
				    : "the process that watches %s was killed: run it again",
			    settings->argv[0]);
		goto failed;
	}
	command.result.wait_status = command.report.wait_status;
	command.result.exec_error = command.report.exec_error;
	command.result.elapsed_ns = command.report.elapsed_ns;
	command.result.left_behind = command.report.left_behind;
	command.result.stdout_bytes = command.output.total;
	command.result.stderr_bytes = command.errors.total;
	command.result.stdout_tail = tail_take(&command.output);
	command.result.stderr_tail = tail_take(&command.errors);
	*ret_result = command.result;
failed:
	free(command.output.text);
	free(command.errors.text);
	return error;
}

void command_result_free(struct command_result *result)
{
	free(result->stdout_tail);
	free(result->stderr_tail);
	result->stdout_tail = result->stderr_tail = NULL;
}

char *command_describe(const struct command_result *result, char *buffer, size_t size)
{
	const char *name;

	if (result->exec_error)
		snprintf(buffer, size, "cannot be executed: %s", strerror(result->exec_error));
	else if (result->timed_out)
		snprintf(buffer, size, "took longer than --timeout and was ended");
	else if (WIFEXITED(result->wait_status))
		snprintf(buffer, size, "exit %d", WEXITSTATUS(result->wait_status));
	else {
		name = sigabbrev_np(WTERMSIG(result->wait_status));
		snprintf(buffer, size, "killed by SIG%s", name ? name : "?");
	}
	return buffer;
}
