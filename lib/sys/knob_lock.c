/* SPDX-License-Identifier: MIT */
#include "sys/knob_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"

#define RETRY_NS (50 * NS_PER_MS)

int64_t lock_wait_ns(void)
{
	const char *text = getenv("SYSLATENCY_LOCK_WAIT_S");
	double seconds;

	if (text && parse_double(text, &seconds) == 0 && seconds >= 0 && seconds < 1e6)
		return (int64_t)(seconds * 1e9);
	return 10 * NS_PER_S;
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
