/* SPDX-License-Identifier: MIT */
#include "run/program.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"
#include "undo/transaction.h"

#define STACK_LEAST_BYTES (UINT64_C(1) << 20)
#define STACK_BYTES (UINT64_C(8) << 20)

/*
 * Can @path be written? Said before minutes of measuring, not after. A FIFO stays open to the end:
 * its reader would take a close for the end of the data.
 */
static int check_output(const char *path, struct message *message)
{
	bool existed = access(path, F_OK) == 0;
	char target[PATH_MAX];
	struct stat status;
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);

	if (fd < 0 && errno == ENXIO)
		return message_set(message, -EPIPE, "cannot write %s: nobody reads it", path);
	if (fd < 0)
		return message_set_errno(message, -errno, "cannot write %s", path);
	if (fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode))
		return 0;
	close(fd);
	/* What was made, which is not the name that a symbolic link has. */
	if (!existed && realpath(path, target))
		unlink(target);
	return 0;
}

static bool same_file(const char *one, const char *other)
{
	struct stat a, b;

	if (!one || !other)
		return false;
	if (strcmp(one, other) == 0)
		return strcmp(one, "-") != 0;
	return stat(one, &a) == 0 && stat(other, &b) == 0 && S_ISREG(a.st_mode) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

int program_check_outputs(const char *json, const char *const *others, size_t count,
			  struct message *message)
{
	const char *const records[] = {json, getenv("SYSLATENCY_RECORD")};
	int error = 0;

	for (size_t i = 0; i < count; i++)
		for (size_t k = 0; k < i + ARRAY_SIZE(records); k++)
			if (same_file(others[i], k < i ? others[k] : records[k - i]))
				return message_set(message, -EINVAL,
						   "%s cannot hold two results: give each a file "
						   "of its own",
						   others[i]);
	for (size_t i = 0; i < ARRAY_SIZE(records) && !error; i++)
		if (records[i] && *records[i] && strcmp(records[i], "-") != 0)
			error = check_output(records[i], message);
	for (size_t i = 0; i < count && !error; i++)
		if (others[i])
			error = check_output(others[i], message);
	/* What cannot be written is no lack of this machine's. */
	return error < 0 ? -EIO : 0;
}

/* A stack of 64 KiB ("ulimit -s 64") ends in a fault somewhere; threads get theirs by it too. */
static int widen_stack(char **argv, struct message *message)
{
	struct rlimit limit, wider;

	if (getrlimit(RLIMIT_STACK, &limit) < 0 || limit.rlim_cur >= STACK_LEAST_BYTES)
		return 0;
	wider = limit;
	wider.rlim_cur = STACK_BYTES < limit.rlim_max ? STACK_BYTES : limit.rlim_max;
	if (wider.rlim_cur < STACK_LEAST_BYTES)
		wider.rlim_cur = wider.rlim_max = STACK_BYTES; /* for the superuser alone */
	if (setrlimit(RLIMIT_STACK, &wider) == 0)
		execv("/proc/self/exe", argv);
	return message_set(message, -EPERM,
			   "the stack may not grow beyond %llu KiB here, and 1024 are needed: "
			   "ulimit -s 8192",
			   (unsigned long long)limit.rlim_cur / 1024);
}

int program_begin(char **argv, struct message *message)
{
	int64_t wait_ns = transaction_lock_wait_ns(0, message);

	return wait_ns < 0 ? (int)wait_ns : widen_stack(argv, message);
}

void program_survive_failed_writes(void)
{
	signal(SIGPIPE, SIG_IGN); /* the reader of our output went */
	signal(SIGXFSZ, SIG_IGN); /* a file size limit */
}

void program_catch_signals(void (*handler)(int number))
{
	struct sigaction action = {.sa_handler = handler}, now;

	program_survive_failed_writes();
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	/* nohup's choice stands */
	if (sigaction(SIGHUP, NULL, &now) == 0 && now.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &action, NULL);
}

bool program_wants_progress(const char *when)
{
	if (!when || strcmp(when, "auto") == 0)
		return isatty(STDERR_FILENO);
	return strcmp(when, "always") == 0;
}

/* One line of JSON to @path ("-": standard output). */
static int write_record(const char *path, const struct record *record, struct message *message)
{
	json_t *json = record_to_json(record);
	char *line = json ? json_line(json) : NULL;
	size_t length = line ? strlen(line) : 0;
	int error = -ENOMEM;

	if (line) {
		line[length] = '\n';
		error = strcmp(path, "-") == 0 ? write_all(STDOUT_FILENO, line, length + 1)
					       : file_replace(path, line, length + 1);
	}
	if (error)
		message_set_errno(message, error, "cannot write the record to %s", path);
	free(line);
	json_decref(json);
	return error;
}

int program_finish(struct record *record, const char *json, int argc, char **argv,
		   int (*print)(const struct record *record, const void *data), const void *data,
		   struct message *message)
{
	const char *path = getenv("SYSLATENCY_RECORD");
	int error = 0;

	record->command = json_array();
	for (int i = 0; i < argc; i++)
		json_array_append_new(record->command, json_string_or_null(argv[i]));
	if (!json || strcmp(json, "-") != 0)
		error = print(record, data);
	if (json)
		error = error ?: write_record(json, record, message);
	if (!error && path && *path)
		error = write_record(path, record, message);
	if (error == -EIO || fflush(stdout) == EOF || ferror(stdout))
		return message_set(message, -EIO, "cannot write the result to standard output");
	return error;
}
