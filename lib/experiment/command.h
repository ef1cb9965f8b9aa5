/* SPDX-License-Identifier: MIT */
#ifndef EXPERIMENT_COMMAND_H
#define EXPERIMENT_COMMAND_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/message.h"

#define COMMAND_STDOUT_KEPT 65536 /* the end of its standard output, where the last number is */
#define COMMAND_STDERR_KEPT 2048

/*
 * One fresh process of a command. It gets a session of its own (so that a terminal's Ctrl-C reaches
 * only us), /dev/null as standard input, and a monitor as parent: a small process that ends the
 * whole session when the command is over or when we are killed. A process that made itself a
 * further session (a daemon; the guardian of a benchmark that puts the machine back) is left to do
 * its work.
 */
struct command_settings {
	char *const *argv;
	const char *working_directory; /* NULL: ours */
	const char *record_path;       /* SYSLATENCY_RECORD of the command */
	int64_t block;		       /* SYSLATENCY_BLOCK of the command; 0: none */
	int64_t timeout_ns;	       /* 0: none */
	/* Signals so far: at 1 the command is told (SIGINT), at 2 it is killed. NULL: none. */
	const volatile sig_atomic_t *interrupted;
	void (*tick)(void *data, int64_t elapsed_ns); /* once a second; NULL: none */
	void *tick_data;
};

struct command_result {
	int wait_status; /* as of waitpid(2) */
	int exec_error;	 /* errno when the command could not be executed, else 0 */
	int64_t elapsed_ns;
	bool told; /* it was asked to end before its time */
	bool timed_out;
	int left_behind; /* processes of its session that outlived it and were ended */
	uint64_t stdout_bytes, stderr_bytes; /* all that it wrote */
	char *stdout_tail, *stderr_tail;     /* NUL-terminated ends */
};

/* -errno when not even the monitor could be started; the command's own failure is a result. */
int command_execute(const struct command_settings *settings, struct command_result *ret_result,
		    struct message *message);
void command_result_free(struct command_result *result);

/*
 * The last number in @text: decimal or exponent form, not glued to a word before it ("p99" holds
 * none), terminal colours ignored. "latency max=56us" gives 56. -ENOENT.
 */
int text_last_number(const char *text, double *ret_value);

/* "exit 3", "killed by SIGKILL", "not executable: ..."; returns @buffer. */
char *command_describe(const struct command_result *result, char *buffer, size_t size);

#endif
