/* SPDX-License-Identifier: MIT */
#include "undo/lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"
#include "undo/knob.h"

#define RETRY_NS (50 * NS_PER_MS)

#define WAIT_VARIABLE "SYSLATENCY_LOCK_WAIT_S"
#define WAIT_MOST_S 1e6

int64_t knobs_lock_wait_ns(int64_t otherwise_ns, struct message *message)
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
	int64_t wait_ns = knobs_lock_wait_ns(10 * NS_PER_S, NULL);

	return wait_ns < 0 ? 10 * NS_PER_S : wait_ns; /* programs have refused that */
}

int lock_try(int directory_fd, const char *program, pid_t pid, struct message *message)
{
	char holder[128];
	ssize_t got;
	int fd, result;

	fd = openat(directory_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return message_set_errno(message, -errno, "cannot open the machine-wide lock");
	if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
		int length =
			snprintf(holder, sizeof(holder), "%.64s (pid %d)\n", program, (int)pid);

		/* Who holds it is a courtesy: a full disk must not take the lock away. */
		if (ftruncate(fd, 0) < 0 || pwrite(fd, holder, (size_t)length, 0) != length)
			(void)!ftruncate(fd, 0);
		return fd;
	}
	result = errno == EWOULDBLOCK ? -EBUSY : -errno;
	got = pread(fd, holder, sizeof(holder) - 1, 0);
	close(fd);
	holder[got > 0 ? got : 0] = '\0';
	holder[strcspn(holder, "\n")] = '\0';
	return message_set(message, result, "%s", *holder ? holder : "another program");
}

int lock_acquire(int directory_fd, const char *program, pid_t pid, int64_t wait_ns,
		 struct message *message)
{
	int64_t deadline_ns = clock_now_ns() + wait_ns;
	struct message holder = {0};

	for (;;) {
		int fd = lock_try(directory_fd, program, pid, &holder);

		if (fd >= 0)
			return fd;
		if (fd != -EBUSY)
			return message_set(message, fd, "%s", holder.text);
		if (clock_now_ns() >= deadline_ns)
			break;
		clock_sleep_for(RETRY_NS);
	}
	return message_set(
		message, -EBUSY,
		"the machine is in use by %.200s; waited %.3g s (SYSLATENCY_LOCK_WAIT_S)",
		holder.text, (double)wait_ns / 1e9);
}

void lock_release(int fd)
{
	if (fd < 0)
		return;
	flock(fd, LOCK_UN);
	close(fd);
}
