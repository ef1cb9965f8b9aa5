/* SPDX-License-Identifier: MIT */
#include "undo/guardian.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "undo/process.h"

/* After the first attempt failed for a cause that may pass (D state, busy, no memory). */
#define RETRY_NS NS_PER_S
#define RETRY_FOR_NS (300 * NS_PER_S)

static bool is_kept(const struct guardian *guardian, int fd)
{
	return fd == guardian->directory_fd || fd == guardian->lock_fd || fd == guardian->socket ||
	       fd == guardian->program_pidfd;
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

/* Its report is of use to a living program alone. */
static void report(const struct guardian *guardian, const struct guardian_report *report)
{
	(void)!send(guardian->socket, report, sizeof(*report), MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The program is gone, or has ended its transaction (it sends nothing). */
static void wait_for_end(const struct guardian *guardian)
{
	struct pollfd wait[2] = {
		{.fd = guardian->socket, .events = POLLIN},
		{.fd = guardian->program_pidfd, .events = POLLIN},
	};

	while (poll(wait, 2, -1) < 0 && errno == EINTR)
		;
}

int undo_shared_lock(struct undo_shared *shared, int64_t limit_ns)
{
	struct timespec until = ns_to_timespec(clock_now_ns() + limit_ns);
	int error = pthread_mutex_clocklock(&shared->mutex, CLOCK_MONOTONIC, &until);

	if (error == EOWNERDEAD)
		error = pthread_mutex_consistent(&shared->mutex);
	return -error;
}

/* Who comes from now on (a child of the dead program) is refused, and makes no change. */
static void end_appending(struct undo_shared *shared)
{
	int error = undo_shared_lock(shared, NS_PER_S);

	shared->ended = true;
	if (!error)
		pthread_mutex_unlock(&shared->mutex);
}

static int undo(const struct guardian *guardian, int journal_fd, struct undo_list *list,
		struct message *message)
{
	struct undo_context context = {
		.program = process_alive(guardian->program, guardian->program_start_ticks)
				   ? guardian->program
				   : 0,
		.limit_ns = INT64_MAX,
		.journal_fd = journal_fd,
	};

	return undo_list_run(list, 0, &context, message);
}

static void finish(const struct guardian *guardian, const struct guardian_report *result,
		   const struct journal_content *content)
{
	/* pid 0: it could not be loaded, which says nothing about what is left. */
	if (content->pid && undo_list_left(&content->list) == 0)
		unlinkat(guardian->directory_fd, result->journal_name, 0);
	lock_release(guardian->lock_fd);
}

/* Undoes all, reports, and tries on with what is left for RETRY_FOR_NS. */
static void put_back(const struct guardian *guardian, int journal_fd,
		     struct guardian_report *result)
{
	int64_t deadline_ns = clock_now_ns() + RETRY_FOR_NS;
	struct journal_content content = {0};

	result->error = journal_load(journal_fd, &content, &result->message);
	if (result->error == 0)
		result->error = undo(guardian, journal_fd, &content.list, &result->message);
	result->goes_on = undo_may_pass(result->error) && undo_list_left(&content.list) > 0;
	if (!result->goes_on)
		finish(guardian, result, &content);
	report(guardian, result);
	if (!result->goes_on)
		return;
	while (undo_may_pass(undo(guardian, journal_fd, &content.list, NULL)) &&
	       clock_now_ns() < deadline_ns)
		clock_sleep_for(RETRY_NS);
	finish(guardian, result, &content);
}

void guardian_main(const struct guardian *guardian)
{
	struct guardian_report result = {0};
	int journal_fd;

	settle(guardian);
	journal_fd = journal_create(guardian->directory_fd, guardian->program,
				    guardian->program_start_ticks, guardian->program_name,
				    result.journal_name, &result.message);
	result.error = journal_fd < 0 ? journal_fd : 0;
	report(guardian, &result);
	if (journal_fd < 0)
		_exit(1);
	wait_for_end(guardian);
	end_appending(guardian->shared);
	put_back(guardian, journal_fd, &result);
	_exit(0);
}
