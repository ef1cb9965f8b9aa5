/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "undo/journal.h"
#include "undo/transaction.h"

#define RETRY_NS (50 * NS_PER_MS)

#define WAIT_VARIABLE "SYSLATENCY_LOCK_WAIT_S"
#define WAIT_MOST_S 1e6

int64_t transaction_lock_wait_ns(int64_t otherwise_ns, struct message *message)
{
	const char *text = getenv(WAIT_VARIABLE);
	double seconds;

	if (!text || !*text)
		return otherwise_ns;
	if (parse_double(text, &seconds) == 0 && seconds >= 0 && seconds < WAIT_MOST_S)
		return (int64_t)(seconds * 1e9);
	return message_set(message, -EINVAL,
			   WAIT_VARIABLE ": '%.100s' is no time: write seconds from 0 to 1000000",
			   text);
}

int64_t lock_wait_ns(void)
{
	int64_t wait_ns = transaction_lock_wait_ns(10 * NS_PER_S, NULL);

	return wait_ns < 0 ? 10 * NS_PER_S : wait_ns; /* programs have refused that */
}

int lock_open(int directory_fd, struct message *message)
{
	int fd = openat(directory_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);

	return fd < 0 ? message_set_errno(message, -errno, "cannot open the machine-wide lock")
		      : fd;
}

static void name_holder(int fd, const char *program, pid_t pid)
{
	char holder[128];
	int length = snprintf(holder, sizeof(holder), "%.64s (pid %d)\n", program, (int)pid);

	/* Who holds it is a courtesy: a full disk must not take the lock away. */
	if (ftruncate(fd, 0) < 0 || pwrite(fd, holder, (size_t)length, 0) != length)
		(void)!ftruncate(fd, 0);
}

int lock_take(int fd, const char *program, pid_t pid, int64_t wait_ns,
	      const volatile sig_atomic_t *interrupted, struct message *message)
{
	int64_t deadline_ns = clock_now_ns() + wait_ns;
	char holder[128];
	ssize_t got;

	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return message_set_errno(message, -errno, "the machine-wide lock");
		got = pread(fd, holder, sizeof(holder) - 1, 0);
		holder[got > 0 ? got : 0] = '\0';
		holder[strcspn(holder, "\n")] = '\0';
		if (!*holder)
			strcpy(holder, "another program");
		if (interrupted && *interrupted)
			return message_set(message, -EINTR,
					   "interrupted while the machine was in use by %s",
					   holder);
		if (clock_now_ns() >= deadline_ns)
			return message_set(message, -EBUSY,
					   "the machine is in use by %s; waited %.3g "
					   "s (" WAIT_VARIABLE ")",
					   holder, (double)wait_ns / 1e9);
		clock_sleep_for(RETRY_NS);
	}
	name_holder(fd, program, pid);
	return 0;
}

void lock_release(int fd)
{
	flock(fd, LOCK_UN);
}
