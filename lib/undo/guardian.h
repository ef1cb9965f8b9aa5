/* SPDX-License-Identifier: MIT */
#ifndef UNDO_GUARDIAN_H
#define UNDO_GUARDIAN_H

#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"
#include "undo/journal.h"
#include "undo/record.h"

/*
 * The guardian: a process in a session of its own that keeps the journal and undoes it when the
 * program is gone. Requests come over one SEQPACKET socket, from the program and from its children
 * and threads alike: each request carries a socket of its own for the reply, so that nobody needs a
 * lock, and nobody waits for ever when the guardian is gone.
 */
enum guardian_operation {
	GUARDIAN_ADD, /* record in text: in the journal when the reply comes; value: its sequence */
	GUARDIAN_DROP,	 /* value: sequence of a record whose change was not made */
	GUARDIAN_DISOWN, /* value: verb, text: first field of records that no longer need undoing */
	GUARDIAN_LOCK,	/* one try at the machine-wide lock; the reply carries a descriptor of it */
	GUARDIAN_MARK,	/* value: sequence of the newest record */
	GUARDIAN_UNDO,	/* value: mark */
	GUARDIAN_CLOSE, /* undo all; it ends, unless value says that it goes on trying */
};

struct guardian_request {
	uint32_t operation;
	uint32_t reserved;
	uint64_t value;
	char text[UNDO_LINE_BYTES];
};

struct guardian_reply {
	int32_t error;
	uint32_t reserved;
	uint64_t value;
	struct message message;
};

struct guardian {
	struct journal journal;
	int socket;
	int program_pidfd; /* -1 where there are none: the end of the socket tells then */
	int lock_fd;
	pid_t program;
	char program_name[64];
	struct undo_list list;
	uint64_t newest;
};

/* One packet and the descriptor in it (-1: none); bytes, 0 at the end, -errno. */
int guardian_receive(int socket, void *data, size_t size, int *ret_fd);
int guardian_answer(int socket, const struct guardian_reply *reply, int fd);

/* The forked process; descriptors in @guardian are kept, all others are closed. */
void guardian_main(struct guardian *guardian) __attribute__((noreturn));

/* The program's end of the line to its guardian. */
struct guardian_line {
	int socket;
	int64_t end_by_ns; /* no answer is waited for beyond it; INT64_MAX: no such time */
};

/*
 * Sends a request of @operation (@text may be NULL) and waits for the reply; its error and message
 * are passed on. @ret_fd (may be NULL): descriptor that came with it, or -1.
 * -EPIPE: the guardian is gone, or has not answered in 10 s (60 s where it undoes), or by the time
 * that the line has.
 */
int guardian_ask(const struct guardian_line *line, enum guardian_operation operation,
		 uint64_t value, const char *text, uint64_t *ret_value, int *ret_fd,
		 struct message *message);

/* Most that a request may wait for room in the socket, which a stopped guardian does not empty. */
void guardian_limit_sends(int socket, int limit_ms);

/* The same without an answer to wait for, for what may also stay undone: nothing blocks. */
void guardian_tell(const struct guardian_line *line, enum guardian_operation operation,
		   uint64_t value, const char *text);

#endif
