/* SPDX-License-Identifier: MIT */
/* Begin, notes and end of a transaction; what is noted is in changes.c. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "undo/guardian.h"
#include "undo/transaction.h"
#include "undo/process.h"

#define START_LIMIT_NS (10 * NS_PER_S) /* until the guardian has made the journal */
#define UNDO_LIMIT_NS (60 * NS_PER_S)  /* undoing waits for processes, busy groups and swapoff */
#define ADD_LIMIT_NS (10 * NS_PER_S)
/* What the program takes in the dead guardian's place, however late it is. */
#define ALONE_LEAST_NS (100 * NS_PER_MS)

/* Kept clear of 0, 1 and 2, which the guardian gives to /dev/null. */
static int above_stdio(int fd)
{
	int moved;

	if (fd < 0 || fd > 2)
		return fd;
	moved = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	close(fd);
	return moved;
}

static int share_memory(struct transaction *transaction, struct message *message)
{
	pthread_mutexattr_t attributes;
	struct undo_shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return message_set_errno(message, -errno, "transaction");
	pthread_mutexattr_init(&attributes);
	pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
	pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&shared->mutex, &attributes);
	pthread_mutexattr_destroy(&attributes);
	transaction->shared = shared;
	return 0;
}

/* The lock is opened before the fork, so that program and guardian hold it together. */
static int open_files(struct transaction *transaction, struct message *message)
{
	transaction->directory_fd = above_stdio(journal_open_directory(true, message));
	if (transaction->directory_fd < 0)
		return transaction->directory_fd;
	transaction->lock_fd = above_stdio(lock_open(transaction->directory_fd, message));
	return transaction->lock_fd < 0 ? transaction->lock_fd : 0;
}

static int fork_guardian(struct transaction *transaction, struct message *message)
{
	struct guardian guardian = {
		.shared = transaction->shared,
		.directory_fd = transaction->directory_fd,
		.lock_fd = transaction->lock_fd,
		.program = transaction->program,
		.program_name = transaction->program_name,
	};
	int pair[2],
		result = process_start_ticks(transaction->program, &guardian.program_start_ticks);
	sigset_t all, before;

	if (result < 0)
		return message_set_errno(message, result, "start time of this process");
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return message_set_errno(message, -errno, "socketpair");
	transaction->socket = above_stdio(pair[0]);
	guardian.socket = above_stdio(pair[1]);
	guardian.program_pidfd = above_stdio(process_pidfd(transaction->program));
	/* No signal may end the guardian before it ignores them, and no handler run in it. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	transaction->guardian = fork();
	result = -errno;
	if (transaction->guardian == 0)
		guardian_main(&guardian);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	close(guardian.socket);
	if (guardian.program_pidfd >= 0)
		close(guardian.program_pidfd);
	if (transaction->guardian < 0)
		return message_set_errno(message, result, "cannot start the guardian process");
	return 0;
}

/*
 * 0; -EPIPE: it ended without; -ETIMEDOUT. The socket's own limit, because poll(2) fails where the
 * program may have no descriptors any more.
 */
static int await_report(const struct transaction *transaction, int64_t limit_ns,
			struct guardian_report *report)
{
	int64_t deadline_ns = clock_now_ns() + limit_ns;
	ssize_t got;

	if (transaction->end_by_ns < deadline_ns)
		deadline_ns = transaction->end_by_ns;
	do {
		int64_t left_us = (deadline_ns - clock_now_ns()) / NS_PER_US;
		struct timeval left = {.tv_sec = left_us / 1000000, .tv_usec = left_us % 1000000};

		/* No time at all would mean: without a limit. */
		setsockopt(transaction->socket, SOL_SOCKET, SO_RCVTIMEO, &left, sizeof(left));
		got = recv(transaction->socket, report, sizeof(*report),
			   left_us > 0 ? 0 : MSG_DONTWAIT);
	} while (got < 0 && errno == EINTR);
	if (got == (ssize_t)sizeof(*report))
		return 0;
	return got < 0 && errno == EAGAIN ? -ETIMEDOUT : -EPIPE;
}

/* Its end, or false when it does not come: a guardian may be stopped, or stuck in the kernel. */
static bool guardian_ended(const struct transaction *transaction)
{
	int64_t deadline_ns = clock_now_ns() + NS_PER_S;

	if (transaction->end_by_ns < deadline_ns)
		deadline_ns = transaction->end_by_ns;
	for (;;) {
		pid_t got = waitpid(transaction->guardian, NULL, WNOHANG);

		if (got > 0 || (got < 0 && errno != EINTR))
			return true;
		if (clock_now_ns() >= deadline_ns)
			return false;
		clock_sleep_for(NS_PER_MS);
	}
}

static int open_journal(struct transaction *transaction, struct message *message)
{
	struct guardian_report report;
	int result = await_report(transaction, START_LIMIT_NS, &report);

	if (result == -EPIPE)
		return message_set(message, result, "the guardian process was killed as it began");
	if (result < 0)
		return message_set_errno(message, result, "the guardian process");
	if (report.error)
		return message_set(message, report.error, "%s", report.message.text);
	memcpy(transaction->journal_name, report.journal_name, sizeof(transaction->journal_name));
	transaction->journal_fd = openat(transaction->directory_fd, transaction->journal_name,
					 O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW);
	return transaction->journal_fd < 0
		       ? message_set_errno(message, -errno, "journal %s", transaction->journal_name)
		       : 0;
}

int transaction_open(struct transaction **ret_transaction, const char *program,
		     struct message *message)
{
	struct transaction *transaction = calloc(1, sizeof(*transaction));
	int result;

	if (!transaction)
		return message_set_errno(message, -ENOMEM, "transaction");
	transaction->directory_fd = transaction->lock_fd = transaction->journal_fd =
		transaction->socket = -1;
	transaction->end_by_ns = INT64_MAX;
	transaction->program = getpid();
	snprintf(transaction->program_name, sizeof(transaction->program_name), "%s", program);
	result = share_memory(transaction, message);
	if (result == 0)
		result = open_files(transaction, message);
	if (result == 0)
		result = fork_guardian(transaction, message);
	if (result == 0) {
		result = open_journal(transaction, message);
		if (result < 0) {
			shutdown(transaction->socket, SHUT_WR);
			guardian_ended(transaction);
		}
	}
	if (result == 0)
		*ret_transaction = transaction;
	else
		transaction_forget(transaction);
	return result;
}

void transaction_forget(struct transaction *transaction)
{
	if (!transaction)
		return;
	if (transaction->shared)
		munmap(transaction->shared, sizeof(*transaction->shared));
	if (transaction->directory_fd >= 0)
		close(transaction->directory_fd);
	if (transaction->lock_fd >= 0)
		close(transaction->lock_fd);
	if (transaction->journal_fd >= 0)
		close(transaction->journal_fd);
	if (transaction->socket >= 0)
		close(transaction->socket);
	free(transaction);
}

void transaction_watch_interrupt(struct transaction *transaction,
				 const volatile sig_atomic_t *interrupted)
{
	transaction->interrupted = interrupted;
}

void transaction_end_by(struct transaction *transaction, int64_t deadline_ns)
{
	if (transaction)
		transaction->end_by_ns = deadline_ns;
}

int transaction_lock(struct transaction *transaction, struct message *message)
{
	int result;

	if (transaction->locked)
		return 0;
	result = lock_take(transaction->lock_fd, transaction->program_name, transaction->program,
			   lock_wait_ns(), transaction->interrupted, message);
	transaction->locked = result == 0;
	return result;
}

/* A killed one has closed its end; one that undoes says so. */
static bool guardian_waits(const struct transaction *transaction)
{
	char byte;

	return !transaction->shared->ended &&
	       recv(transaction->socket, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static int append(struct transaction *transaction, const char *text, uint64_t *ret_sequence,
		  struct message *message)
{
	uint64_t sequence = transaction->shared->newest + 1;
	char line[UNDO_LINE_BYTES + 24];
	int result;

	if (!guardian_waits(transaction))
		return message_set(message, -EPIPE,
				   "the guardian process was killed; nothing is changed any more");
	snprintf(line, sizeof(line), "%" PRIu64 " %s", sequence, text);
	result = journal_append(transaction->journal_fd, line);
	if (result < 0)
		return message_set_errno(message, result,
					 "cannot note in the journal how to undo a change, "
					 "so it is not made");
	transaction->shared->newest = *ret_sequence = sequence;
	return 0;
}

int transaction_add(struct transaction *transaction, enum undo_verb verb, const char *const *fields,
		    uint64_t *ret_sequence, struct message *message)
{
	struct undo_list checked = {0};
	char text[UNDO_LINE_BYTES];
	int result = undo_line_format(verb, fields, text, sizeof(text));

	if (result < 0)
		return message_set_errno(message, result, "cannot note how to put %.100s back",
					 fields[0]);
	result = undo_list_add(&checked, 1, text, message);
	undo_list_clear(&checked);
	if (result < 0)
		return result;
	result = undo_shared_lock(transaction->shared, ADD_LIMIT_NS);
	if (result < 0)
		return message_set_errno(message, result, "the journal");
	result = append(transaction, text, ret_sequence, message);
	pthread_mutex_unlock(&transaction->shared->mutex);
	return result;
}

void transaction_drop(struct transaction *transaction, uint64_t sequence)
{
	/* Where it cannot be noted: undoing what was not changed does no harm. */
	if (undo_shared_lock(transaction->shared, ADD_LIMIT_NS) < 0)
		return;
	journal_mark_done(transaction->journal_fd, sequence);
	pthread_mutex_unlock(&transaction->shared->mutex);
}

void transaction_disown(struct transaction *transaction, enum undo_verb verb, const char *field)
{
	struct journal_content content;
	size_t i;

	if (journal_load(transaction->journal_fd, &content, NULL) < 0)
		return;
	for (i = 0; i < content.list.count; i++) {
		const struct undo_record *record = &content.list.records[i];

		if (!record->done && record->verb == verb && strcmp(record->fields[0], field) == 0)
			transaction_drop(transaction, record->sequence);
	}
	undo_list_clear(&content.list);
}

size_t transaction_mark(const struct transaction *transaction)
{
	return (size_t)transaction->shared->newest;
}

int transaction_undo_to(struct transaction *transaction, size_t mark, struct message *message)
{
	struct undo_context context = {
		.program = transaction->program,
		.limit_ns = INT64_MAX,
		.journal_fd = transaction->journal_fd,
	};
	struct journal_content content = {0};
	int result = undo_shared_lock(transaction->shared, ADD_LIMIT_NS);

	if (result < 0)
		return message_set_errno(message, result, "the journal");
	result = journal_load(transaction->journal_fd, &content, message);
	if (result == 0)
		result = undo_list_run(&content.list, mark, &context, message);
	pthread_mutex_unlock(&transaction->shared->mutex);
	undo_list_clear(&content.list);
	return result;
}

/* It lives and has not done its work: which of the two ways there are, as the user needs to know.
 */
static int tell_unfinished(const struct transaction *transaction, struct message *message)
{
	int pid = (int)transaction->guardian;

	if (process_stopped(transaction->guardian))
		return message_set(
			message, -EBUSY,
			"the guardian process %d is stopped: it puts everything back once "
			"it is continued (kill -CONT %d); or kill it and run: syslat "
			"check --restore",
			pid, pid);
	return message_set(message, -EBUSY,
			   "the guardian process %d is still at it and goes on by itself for 5 "
			   "minutes; what is left then: syslat check --restore",
			   pid);
}

/* The guardian was killed: the program undoes its journal itself. */
static int undo_alone(const struct transaction *transaction, struct message *message)
{
	int64_t left_ns = transaction->end_by_ns - clock_now_ns();
	struct message why = {""};
	int result = journal_undo_alone(transaction->directory_fd, transaction->journal_name,
					transaction->program, transaction->lock_fd,
					left_ns > ALONE_LEAST_NS ? left_ns : ALONE_LEAST_NS, &why);

	lock_release(transaction->lock_fd);
	if (result >= 0)
		return 0;
	return message_set(message, result, "%.400s; put it back with: syslat check --restore",
			   why.text);
}

/* What the guardian said at the end of its work, or of its first attempt. */
static int tell_report(const struct transaction *transaction, const struct guardian_report *report,
		       struct message *message)
{
	if (!report->goes_on)
		guardian_ended(transaction);
	if (!report->error)
		return 0;
	return message_set(message, report->error, "%.400s; %s", report->message.text,
			   report->goes_on ? "its guardian process goes on trying for 5 minutes"
					   : "put it back with: syslat check --restore");
}

int transaction_close(struct transaction *transaction, struct message *message)
{
	struct guardian_report report;
	int result;

	if (!transaction)
		return 0;
	shutdown(transaction->socket, SHUT_WR);
	result = await_report(transaction, UNDO_LIMIT_NS, &report);
	if (result == 0)
		result = tell_report(transaction, &report, message);
	else if (result == -EPIPE && guardian_ended(transaction))
		result = undo_alone(transaction, message);
	else
		result = tell_unfinished(transaction, message);
	transaction_forget(transaction);
	return result;
}
