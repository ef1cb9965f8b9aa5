/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/file.h"
#include "sys/cgroup.h"
#include "sys/child.h"
#include "undo/process.h"

static int return_value(void *argument)
{
	return *(int *)argument;
}

static int sleep_on(void *argument)
{
	while (pause() < 0)
		;
	return 0;
}

static int exit_status_of(int value)
{
	struct child_settings settings = {.name = "child"};
	struct child child;
	int status;

	assert_int_equal(child_start(&settings, return_value, &value, &child, NULL), 0);
	assert_true(child.pid > 0);
	assert_int_equal(child_wait(&child, clock_now_ns() + 20 * NS_PER_S, &status), 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(child.pid, 0);
	assert_int_equal(child.pidfd, -1);
	return WEXITSTATUS(status);
}

static void results_become_exit_statuses(void **state)
{
	assert_int_equal(exit_status_of(0), 0);
	assert_int_equal(exit_status_of(-ENOMEM), ENOMEM);
	assert_int_equal(exit_status_of(7), 7);
	assert_int_equal(exit_status_of(-256), 255); /* must not read as success */
	assert_int_equal(exit_status_of(512), 255);
}

static void poll_wait_and_kill(void **state)
{
	struct child_settings settings = {.name = "sleeper"};
	struct child child, none = {0};
	int64_t before_ns;
	int status;

	assert_int_equal(child_start(&settings, sleep_on, NULL, &child, NULL), 0);
	assert_int_equal(child_poll(&child, &status), 1);
	before_ns = clock_now_ns();
	assert_int_equal(child_wait(&child, before_ns + 50 * NS_PER_MS, &status), -ETIMEDOUT);
	assert_true(clock_now_ns() - before_ns >= 50 * NS_PER_MS);
	/* These are the supervisor's to handle. */
	kill(child.pid, SIGINT);
	kill(child.pid, SIGTERM);
	kill(child.pid, SIGHUP);
	assert_int_equal(child_wait(&child, clock_now_ns() + 50 * NS_PER_MS, &status), -ETIMEDOUT);
	assert_int_equal(child_kill(&child, 20 * NS_PER_S, NULL), 0);
	assert_int_equal(child.pid, 0);
	assert_int_equal(child_poll(&child, &status), -ECHILD);
	assert_int_equal(child_kill(&child, NS_PER_S, NULL), 0);
	assert_int_equal(child_kill(&none, NS_PER_S, NULL), 0);
}

/* What the child sees of itself. */
struct view {
	char name[32];
	int signal_handled, blocked, death_signal, oom_score_adj;
};

static int look(void *argument)
{
	struct view *view = argument;
	struct sigaction action;
	sigset_t mask;
	int64_t score;

	prctl(PR_GET_NAME, view->name);
	prctl(PR_GET_PDEATHSIG, &view->death_signal);
	sigaction(SIGUSR1, NULL, &action);
	view->signal_handled = action.sa_handler != SIG_DFL;
	sigprocmask(SIG_SETMASK, NULL, &mask);
	view->blocked = sigismember(&mask, SIGUSR2);
	if (machine_read_int64("/proc/self/oom_score_adj", &score) == 0)
		view->oom_score_adj = (int)score;
	return 0;
}

static void handler(int number)
{
}

static void the_child_starts_afresh(void **state)
{
	struct view *view = mmap(NULL, sizeof(*view), PROT_READ | PROT_WRITE,
				 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct child_settings settings = {.name = "a-long-name-of-a-child", .oom_score_adj = 900};
	struct child child;
	sigset_t mask;

	assert_true(view != MAP_FAILED);
	signal(SIGUSR1, handler);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR2);
	sigprocmask(SIG_BLOCK, &mask, NULL);
	assert_int_equal(child_start(&settings, look, view, &child, NULL), 0);
	assert_int_equal(child_wait(&child, clock_now_ns() + 20 * NS_PER_S, NULL), 0);
	sigprocmask(SIG_UNBLOCK, &mask, NULL);
	signal(SIGUSR1, SIG_DFL);
	assert_string_equal(view->name, "a-long-name-of-");
	assert_int_equal(view->death_signal, SIGKILL);
	assert_int_equal(view->signal_handled, 0);
	assert_int_equal(view->blocked, 0);
	assert_int_equal(view->oom_score_adj, 900);
	munmap(view, sizeof(*view));
}

static void it_dies_with_its_parent(void **state)
{
	pid_t *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
			     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint64_t start_ticks;
	pid_t parent;

	assert_true(shared != MAP_FAILED);
	parent = fork();
	if (parent == 0) {
		struct child_settings settings = {.name = "orphan"};
		struct child child;

		if (child_start(&settings, sleep_on, NULL, &child, NULL) == 0)
			*(volatile pid_t *)shared = child.pid;
		for (;;)
			pause();
	}
	while (*(volatile pid_t *)shared == 0)
		clock_sleep_for(NS_PER_MS);
	assert_int_equal(process_start_ticks(*shared, &start_ticks), 0);
	kill(parent, SIGKILL);
	waitpid(parent, NULL, 0);
	assert_int_equal(process_wait(*shared, start_ticks, -1, clock_now_ns() + 20 * NS_PER_S), 0);
	munmap(shared, sizeof(*shared));
}

static void a_group_that_cannot_be_entered_fails_the_start(void **state)
{
	struct cgroup absent = {.version = CGROUP_V1, .path = "/sys/fs/cgroup/memory/absent"};
	struct child_settings settings = {.name = "child", .cgroup = &absent};
	struct message message = {0};
	struct child child;

	assert_true(child_start(&settings, sleep_on, NULL, &child, &message) < 0);
	assert_non_null(strstr(message.text, absent.path));
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* none is left */
	assert_int_equal(errno, ECHILD);
}

static void a_process_is_known_by_its_start(void **state)
{
	uint64_t start_ticks;
	int pidfd = -1, status;
	pid_t pid = fork();

	if (pid == 0)
		sleep_on(NULL);
	assert_int_equal(process_start_ticks(pid, &start_ticks), 0);
	assert_true(process_alive(pid, start_ticks));
	assert_false(process_alive(pid, start_ticks + 1));
	assert_int_equal(process_open(pid, start_ticks + 1, &pidfd), -ESRCH);
	/* Without a pidfd, a process of another start is not hit. */
	assert_int_equal(process_kill(pid, start_ticks + 1, -1), 0);
	assert_int_equal(process_wait(pid, start_ticks, -1, clock_now_ns() + 20 * NS_PER_MS),
			 -ETIMEDOUT);
	assert_int_equal(process_open(pid, start_ticks, &pidfd), 0);
	assert_int_equal(process_kill(pid, start_ticks, pidfd), 0);
	assert_int_equal(process_wait(pid, start_ticks, pidfd, clock_now_ns() + 20 * NS_PER_S), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(process_kill(pid, start_ticks, pidfd), 0);
	assert_int_equal(process_start_ticks(pid, &start_ticks), -ESRCH);
	if (pidfd >= 0)
		close(pidfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(results_become_exit_statuses),
		cmocka_unit_test(poll_wait_and_kill),
		cmocka_unit_test(the_child_starts_afresh),
		cmocka_unit_test(it_dies_with_its_parent),
		cmocka_unit_test(a_group_that_cannot_be_entered_fails_the_start),
		cmocka_unit_test(a_process_is_known_by_its_start),
	};

	return cmocka_run_group_tests_name("child", tests, NULL, NULL);
}
