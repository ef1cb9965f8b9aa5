/* SPDX-License-Identifier: MIT */
#include "undo/guardian.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "undo/lock.h"

/* After the first attempt failed for a cause that may pass (D state, busy, no memory). */
#define RETRY_NS NS_PER_S
#define RETRY_FOR_NS (300 * NS_PER_S)

static bool may_pass(int error)
{
	return error == -ETIMEDOUT || error == -EBUSY || error == -ENOMEM || error == -EAGAIN;
}

static bool is_kept(const struct guardian *guardian, int fd)
{
	return fd == guardian->journal.fd || fd == guardian->journal.directory_fd ||
	       fd == guardian->socket || fd == guardian->program_pidfd;
}

/* Nothing of the program's stays open, so that readers of its pipes see their end. */
static void close_descriptors(const struct guardian *guardian)
{
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	int fd, null = open("/dev/null", O_RDWR);

	for (fd = 0; fd < 3; fd++)
		if (null < 0 || dup2(null, fd) < 0)
			close(fd);
	if (!directory) {
		for (fd = 3; fd < 1024; fd++)
			if (!is_kept(guardian, fd))
				close(fd);
		return;
	}
	while ((entry = readdir(directory))) {
		fd = atoi(entry->d_name);
		if (fd > 2 && fd != dirfd(directory) && !is_kept(guardian, fd))
			close(fd);
	}
	closedir(directory);
}

/* Signals are blocked since before the fork. */
static void settle(const struct guardian *guardian)
{
	int number, fd;

	setsid();
	for (number = 1; number < NSIG; number++)
		signal(number, SIG_IGN);
	close_descriptors(guardian);
	prctl(PR_SET_NAME, "syslat-guardian");
	fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (fd >= 0) {
		(void)!write(fd, "-1000", 5);
		close(fd);
	}
	/* It must still run when nothing can be read from the disk any more. Allowed or not. */
	mlockall(MCL_CURRENT | MCL_FUTURE);
	/* A relative root prefix (tests) needs the working folder. */
	if (machine_root()[0] == '\0' || machine_root()[0] == '/')
		(void)!chdir("/");
}

static void note_done(void *data, const struct undo_record *record)
{
	struct guardian *guardian = data;

	/* When the disk is full: undoing twice does no harm. */
	journal_mark_done(&guardian->journal, record->sequence);
}

static int undo(struct guardian *guardian, uint64_t mark, pid_t program, struct message *message)
{
	struct undo_context context = {
		.program = program,
		.process_ns = 10 * NS_PER_S,
		.busy_ns = 5 * NS_PER_S,
		.swap_ns = 30 * NS_PER_S,
		.done = note_done,
		.data = guardian,
	};

	return undo_list_run(&guardian->list, mark, &context, message);
}

static void finish(struct guardian *guardian)
{
	if (undo_list_left(&guardian->list) == 0)
		journal_remove(&guardian->journal);
	lock_release(guardian->lock_fd);
	guardian->lock_fd = -1;
}

/* Undoes what is left until it is done, cannot be done, or RETRY_FOR_NS is over. */
static void undo_patiently(struct guardian *guardian)
{
	int64_t deadline_ns = clock_now_ns() + RETRY_FOR_NS;

	while (may_pass(undo(guardian, 0, 0, NULL)) && clock_now_ns() < deadline_ns)
		clock_sleep_for(RETRY_NS);
	finish(guardian);
}

static int add(struct guardian *guardian, const char *text, struct guardian_reply *reply)
{
	uint64_t sequence = guardian->newest + 1;
	char line[UNDO_LINE_BYTES + 24];
	int result;

	result = undo_list_add(&guardian->list, sequence, text, &reply->message);
	if (result < 0)
		return result;
	snprintf(line, sizeof(line), "%" PRIu64 " %s", sequence, text);
	result = journal_append(&guardian->journal, line);
	if (result < 0) {
		undo_list_find(&guardian->list, sequence)->done = true;
		return message_set_errno(&reply->message, result,
					 "cannot note in the journal how to undo a change, "
					 "so it is not made");
	}
	guardian->newest = reply->value = sequence;
	return 0;
}

static void drop(struct guardian *guardian, struct undo_record *record)
{
	if (!record || record->done)
		return;
	record->done = true;
	note_done(guardian, record);
}

static void disown(struct guardian *guardian, uint64_t verb, const char *field)
{
	size_t i;

	for (i = 0; i < guardian->list.count; i++)
		if (guardian->list.records[i].verb == verb &&
		    strcmp(guardian->list.records[i].fields[0], field) == 0)
			drop(guardian, &guardian->list.records[i]);
}

static int lock(struct guardian *guardian, struct guardian_reply *reply)
{
	int fd;

	if (guardian->lock_fd >= 0)
		return 0;
	fd = lock_try(guardian->journal.directory_fd, guardian->program_name, guardian->program,
		      &reply->message);
	if (fd < 0)
		return fd;
	guardian->lock_fd = fd;
	return 0;
}

/* true: the guardian's work is over. */
static bool serve(struct guardian *guardian, const struct guardian_request *request, int answer)
{
	struct guardian_reply reply = {0};
	bool close_asked = request->operation == GUARDIAN_CLOSE, go_on = false;
	int fd = -1;

	switch ((enum guardian_operation)request->operation) {
	case GUARDIAN_ADD:
		reply.error = add(guardian, request->text, &reply);
		break;
	case GUARDIAN_DROP:
		drop(guardian, undo_list_find(&guardian->list, request->value));
		break;
	case GUARDIAN_DISOWN:
		disown(guardian, request->value, request->text);
		break;
	case GUARDIAN_LOCK:
		reply.error = lock(guardian, &reply);
		fd = guardian->lock_fd;
		break;
	case GUARDIAN_MARK:
		reply.value = guardian->newest;
		break;
	case GUARDIAN_UNDO:
		reply.error = undo(guardian, request->value, guardian->program, &reply.message);
		break;
	case GUARDIAN_CLOSE:
		reply.error = undo(guardian, 0, guardian->program, &reply.message);
		go_on = may_pass(reply.error);
		reply.value = go_on;
		if (!go_on)
			finish(guardian);
		break;
	default:
		reply.error = message_set(&reply.message, -ENOSYS, "unknown request");
	}
	guardian_answer(answer, &reply, fd);
	close(answer);
	if (go_on) {
		close(guardian->socket); /* who asks from now on is told that nobody answers */
		undo_patiently(guardian);
	}
	return close_asked;
}

/* 1: a request; 0: the program is gone. */
static int wait_for_request(const struct guardian *guardian)
{
	struct pollfd wait[2] = {
		{.fd = guardian->socket, .events = POLLIN},
		{.fd = guardian->program_pidfd, .events = POLLIN},
	};

	while (poll(wait, 2, -1) < 0)
		if (errno != EINTR)
			return 0;
	if (wait[1].revents)
		return 0;
	return (wait[0].revents & POLLIN) ? 1 : 0;
}

void guardian_main(struct guardian *guardian)
{
	struct guardian_request request;

	settle(guardian);
	if (journal_publish(&guardian->journal) < 0) {
		journal_remove(&guardian->journal);
		_exit(1);
	}
	while (wait_for_request(guardian)) {
		int answer, got = guardian_receive(guardian->socket, &request, sizeof(request),
						   &answer);

		if (got <= 0)
			break;
		if (answer < 0 || got <= (int)offsetof(struct guardian_request, text))
			continue;
		request.text[got - (int)offsetof(struct guardian_request, text) - 1] = '\0';
		if (serve(guardian, &request, answer))
			_exit(0);
	}
	/* Who still waits for an answer (a child that is about to die) must not make its change. */
	close(guardian->socket);
	undo_patiently(guardian);
	_exit(0);
}
