/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/thread_timer.h"
#include "pin_cycle/state.h"
#include "undo/transaction.h"

#ifndef MADV_PAGEOUT
#define MADV_PAGEOUT 21
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif

#define START_NS (20 * NS_PER_S)

struct request {
	uint64_t bytes;
	int32_t reclaim;
};

struct worker_body {
	const struct backend_ops *ops;
	const struct backend_settings *settings;
	int socket;
};

/*
 * Asks reclaim for pages that are held: it looks at each and can free none, but for those of the
 * baseline. Through a mapping of its own, since a locked one is refused.
 */
static int page_out(struct backend *backend, struct buffer *buffer, struct pin_turn *turn)
{
	const struct backend_ops *ops = backend->ops;
	struct thread_timer timer;
	void *memory;
	int error;

	if (!ops->map)
		return message_set(&turn->message, -ENOTSUP,
				   "%s cannot map a held buffer for reclaim", ops->name);
	error = ops->map(backend, buffer, &memory);
	if (error)
		return message_set_errno(&turn->message, error, "cannot map a held buffer");
	if (madvise(memory, buffer->bytes, MADV_POPULATE_READ) < 0)
		for (uint64_t at = 0; at < buffer->bytes; at += 4096)
			(void)*(volatile char *)((char *)memory + at);
	turn->ns[PHASE_RECLAIM] = turn->cpu_ns[PHASE_RECLAIM] = 0;
	thread_timer_start(&timer);
	error = madvise(memory, buffer->bytes, MADV_PAGEOUT) < 0 ? -errno : 0;
	thread_timer_add(&timer, &turn->ns[PHASE_RECLAIM], &turn->cpu_ns[PHASE_RECLAIM]);
	munmap(memory, buffer->bytes);
	if (error) {
		turn->ns[PHASE_RECLAIM] = -1;
		return message_set_errno(&turn->message, error, "MADV_PAGEOUT");
	}
	return 0;
}

static void take_turn(struct backend *backend, const struct request *request, struct pin_turn *turn)
{
	struct buffer buffer = {.bytes = request->bytes};
	int error;

	*turn = (struct pin_turn){.ns[PHASE_RECLAIM] = -1, .cpu_ns[PHASE_RECLAIM] = -1};
	turn->error = backend->ops->allocate(backend, &buffer);
	if (turn->error) {
		const char *failure = atomic_load(&backend->failure);

		if (failure)
			message_set(&turn->message, 0, "%s", failure);
		return;
	}
	if (request->reclaim)
		turn->error = page_out(backend, &buffer, turn);
	error = backend->ops->release(backend, &buffer);
	if (!turn->error)
		turn->error = error;
	memcpy(turn->ns, buffer.phase_ns, sizeof(buffer.phase_ns));
	memcpy(turn->cpu_ns, buffer.phase_cpu_ns, sizeof(buffer.phase_cpu_ns));
}

static void greet(const struct backend *backend, struct pin_greeting *greeting)
{
	snprintf(greeting->pin_method, sizeof(greeting->pin_method), "%s",
		 backend->pin_method ?: "");
	snprintf(greeting->release_context, sizeof(greeting->release_context), "%s",
		 backend->release_context ?: "");
	snprintf(greeting->observed_variant, sizeof(greeting->observed_variant), "%s",
		 backend->observed_variant ?: "");
	for (int i = 0; i < 4 && backend->notes[i]; i++)
		message_set(&greeting->notes[i], 0, "%s", backend->notes[i]);
}

static int worker_main(void *argument)
{
	struct worker_body *body = argument;
	struct pin_greeting greeting = {0};
	struct backend *backend = NULL;
	struct request request;
	struct pin_turn turn;

	greeting.error = body->ops->open(body->settings, &backend, &greeting.message);
	if (greeting.error == 0)
		greet(backend, &greeting);
	if (send(body->socket, &greeting, sizeof(greeting), MSG_NOSIGNAL) < 0 || greeting.error)
		return greeting.error;
	while (recv(body->socket, &request, sizeof(request), 0) == (ssize_t)sizeof(request)) {
		take_turn(backend, &request, &turn);
		if (send(body->socket, &turn, sizeof(turn), MSG_NOSIGNAL) < 0)
			break;
	}
	body->ops->close(backend);
	return 0;
}

/* One message of @size from the worker. */
static int receive(struct pin_worker *worker, void *data, size_t size, int64_t limit_ns,
		   const volatile sig_atomic_t *interrupted)
{
	int64_t deadline_ns = clock_now_ns() + limit_ns;
	struct pollfd ready = {.fd = worker->socket, .events = POLLIN};
	ssize_t got;

	for (;;) {
		int count = poll(&ready, 1, 100);

		if (interrupted && *interrupted)
			return -EINTR;
		if (count > 0)
			break;
		if (clock_now_ns() > deadline_ns)
			return -ETIMEDOUT;
	}
	got = recv(worker->socket, data, size, 0);
	if (got < 0 && errno != ECONNRESET)
		return -errno;
	return got == (ssize_t)size ? 0 : -ECHILD;
}

int pin_worker_start(struct pin_worker *worker, const struct backend_settings *settings,
		     const struct cgroup *group, struct message *message)
{
	struct child_settings child = {
		.name = "pin_cycle",
		.oom_score_adj = 1000,
		.cgroup = group,
		.transaction = settings->transaction,
	};
	struct worker_body body = {.ops = worker->ops, .settings = settings};
	int pair[2], error;

	worker->child = (struct child){.pidfd = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return message_set_errno(message, -errno, "socketpair");
	body.socket = pair[1];
	worker->socket = pair[0];
	error = child_start(&child, worker_main, &body, &worker->child, message);
	close(pair[1]);
	if (!error) {
		error = receive(worker, &worker->greeting, sizeof(worker->greeting), START_NS,
				NULL);
		if (error)
			message_set_errno(message, error, "%s: its process does not answer",
					  worker->ops->name);
		else if (worker->greeting.error)
			error = message_set(message, worker->greeting.error, "%s",
					    worker->greeting.message.text);
	}
	if (error)
		pin_worker_stop(worker, settings->transaction);
	return error;
}

int pin_worker_turn(struct pin_worker *worker, uint64_t bytes, bool reclaim, int64_t limit_ns,
		    const volatile sig_atomic_t *interrupted, struct pin_turn *ret_turn,
		    struct message *message)
{
	struct request request = {.bytes = bytes, .reclaim = reclaim};
	struct pin_turn turn;
	int error = 0;

	if (send(worker->socket, &request, sizeof(request), MSG_NOSIGNAL) < 0)
		error = -ECHILD;
	if (!error)
		error = receive(worker, &turn, sizeof(turn), limit_ns, interrupted);
	if (error == -ECHILD)
		return message_set(message, error,
				   "its process was ended: memory was not enough, or someone did");
	if (error)
		return message_set_errno(message, error, "no answer from its process");
	if (turn.error && turn.message.text[0])
		return message_set(message, turn.error, "%s", turn.message.text);
	if (turn.error)
		return message_set_errno(message, turn.error, "cannot make a buffer");
	*ret_turn = turn;
	return 0;
}

void pin_worker_stop(struct pin_worker *worker, struct transaction *transaction)
{
	int status;

	/* Closing alone ends nothing: workers forked later hold a copy of this end. */
	if (worker->socket >= 0) {
		shutdown(worker->socket, SHUT_RDWR);
		close(worker->socket);
	}
	worker->socket = -1;
	if (worker->child.pid > 0) {
		pid_t pid = worker->child.pid;

		if (child_wait(&worker->child, clock_now_ns() + 2 * NS_PER_S, &status) < 0)
			child_kill(&worker->child, 2 * NS_PER_S, transaction);
		else if (transaction)
			transaction_disown_process(transaction, pid);
	}
}
