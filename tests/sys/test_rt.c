/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include "sys/rt.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

#define EMPTY_GROUP "/sys/fs/cgroup/cpu/syslatency-test-rt"

/* Runs @body in a child, whose scheduling and limits go with it; what it found out. */
struct outcome {
	int result;
	struct rt_status status;
	struct message message;
	bool skipped;
};

static void in_child(void (*body)(struct outcome *outcome), struct outcome *ret_outcome)
{
	struct outcome *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 0;
	pid_t pid;

	assert_true(shared != MAP_FAILED);
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		body(shared);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	*ret_outcome = *shared;
	munmap(shared, sizeof(*shared));
}

static void drop_capabilities(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[2] = {{0}};

	syscall(SYS_capset, &header, data);
}

static void ask_fifo(struct outcome *outcome)
{
	outcome->result = rt_set_fifo(42, &outcome->status, &outcome->message);
}

static void fifo_is_read_back(void **state)
{
	struct outcome outcome;

	in_child(ask_fifo, &outcome);
	if (outcome.result == -EPERM) {
		print_message("# skipped: %s\n", outcome.message.text);
		skip();
	}
	assert_int_equal(outcome.result, 0);
	assert_int_equal(outcome.status.policy, SCHED_FIFO);
	assert_int_equal(outcome.status.priority, 42);
}

static void ask_fifo_without_privilege(struct outcome *outcome)
{
	struct rlimit none = {0, 0};

	setrlimit(RLIMIT_RTPRIO, &none);
	drop_capabilities();
	ask_fifo(outcome);
}

static void refusal_names_the_limit(void **state)
{
	struct outcome outcome;

	in_child(ask_fifo_without_privilege, &outcome);
	assert_int_equal(outcome.result, -EPERM);
	assert_int_equal(outcome.status.policy, SCHED_OTHER);
	assert_int_equal(outcome.status.priority, 0);
	assert_non_null(strstr(outcome.message.text, "CAP_SYS_NICE"));
	assert_non_null(strstr(outcome.message.text, "RLIMIT_RTPRIO is 0"));
}

/* A new group of the v1 cpu controller has no real-time runtime: root is refused too. */
static void ask_fifo_in_empty_group(struct outcome *outcome)
{
	int fd = open(EMPTY_GROUP "/cgroup.procs", O_WRONLY);

	outcome->skipped = fd < 0 || write(fd, "0", 1) != 1;
	if (!outcome->skipped)
		ask_fifo(outcome);
}

static void refusal_names_the_group_without_runtime(void **state)
{
	struct outcome outcome;

	if (access("/sys/fs/cgroup/cpu/cpu.rt_runtime_us", F_OK) < 0 ||
	    mkdir(EMPTY_GROUP, 0700) < 0) {
		print_message("# skipped: no v1 cpu controller with RT_GROUP_SCHED\n");
		skip();
	}
	in_child(ask_fifo_in_empty_group, &outcome);
	rmdir(EMPTY_GROUP);
	assert_false(outcome.skipped);
	assert_int_equal(outcome.result, -EPERM);
	assert_int_equal(outcome.status.policy, SCHED_OTHER);
	assert_non_null(strstr(outcome.message.text, "syslatency-test-rt/cpu.rt_runtime_us is 0"));
	assert_null(strstr(outcome.message.text, "CAP_SYS_NICE"));
}

static void explanation_reads_the_machine(void **state)
{
	struct message message;
	char root[TREE_SIZE];

	testing_open_machine(root);
	testing_write(root, "/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n");
	testing_write(root, "/proc/self/cgroup", "4:memory:/m\n3:cpu,cpuacct:/a/b\n0::/\n");
	testing_write(root, "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.rt_runtime_us", "0\n");
	assert_int_equal(rt_explain_denied(99, &message), -EPERM);
	assert_non_null(strstr(message.text, "/a/b/cpu.rt_runtime_us is 0"));
	testing_write(root, "/sys/fs/cgroup/cpu,cpuacct/a/b/cpu.rt_runtime_us", "950000\n");
	rt_explain_denied(99, &message);
	assert_null(strstr(message.text, "/a/b/"));
	assert_non_null(strstr(message.text, "container"));
	testing_close_machine(root);
}

static int64_t locked_kib(void)
{
	int64_t kib = -1;
	char *text;

	assert_int_equal(machine_read("/proc/self/status", &text, NULL), 0);
	text_find_int64(text, "VmLck", &kib);
	free(text);
	return kib;
}

static void lock_then_map(struct outcome *outcome)
{
	int64_t before_kib;
	char *later;

	outcome->result = rt_lock_memory(&outcome->message);
	before_kib = locked_kib();
	later = mmap(NULL, 2 << 20, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	outcome->status.policy = before_kib > 0;
	outcome->status.priority = later != MAP_FAILED && locked_kib() == before_kib;
}

/* MCL_FUTURE would lock what the thp probe maps, and change what it measures. */
static void locks_what_exists_and_not_what_comes(void **state)
{
	struct outcome outcome;

	in_child(lock_then_map, &outcome);
	if (outcome.result < 0) {
		print_message("# skipped: %s\n", outcome.message.text);
		skip();
	}
	if (outcome.status.policy == 0) {
		print_message("# skipped: a sanitizer ignores mlockall\n");
		skip();
	}
	assert_true(outcome.status.priority);
}

static void lock_with_a_low_limit(struct outcome *outcome)
{
	struct rlimit low = {65536, 65536};

	setrlimit(RLIMIT_MEMLOCK, &low);
	drop_capabilities();
	outcome->result = rt_lock_memory(&outcome->message);
}

static void refused_lock_names_limit_and_size(void **state)
{
	struct outcome outcome;

	in_child(lock_with_a_low_limit, &outcome);
	if (outcome.result == 0) {
		print_message("# skipped: a sanitizer ignores mlockall\n");
		skip();
	}
	assert_int_equal(outcome.result, -ENOMEM);
	assert_non_null(strstr(outcome.message.text, "RLIMIT_MEMLOCK is 64 KiB"));
	assert_non_null(strstr(outcome.message.text, "KiB are mapped"));
}

static void dma_latency_is_a_descriptor_or_says_why(void **state)
{
	char root[TREE_SIZE];
	char path[PATH_MAX];
	int32_t held = -1;
	int fd;

	testing_open_machine(root);
	assert_int_equal(rt_hold_dma_latency(), -ENOENT);
	testing_write(root, "/dev/cpu_dma_latency", "");
	fd = rt_hold_dma_latency();
	assert_true(fd >= 0);
	close(fd);
	machine_path("/dev/cpu_dma_latency", path, sizeof(path));
	fd = open(path, O_RDONLY);
	assert_int_equal(read(fd, &held, sizeof(held)), 4);
	assert_int_equal(held, 0);
	close(fd);
	testing_close_machine(root);
}

static void timer_slack_is_one(void **state)
{
	assert_int_equal(rt_set_timer_slack(), 0);
	assert_int_equal(prctl(PR_GET_TIMERSLACK, 0UL, 0UL, 0UL, 0UL), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fifo_is_read_back),
		cmocka_unit_test(refusal_names_the_limit),
		cmocka_unit_test(refusal_names_the_group_without_runtime),
		cmocka_unit_test(explanation_reads_the_machine),
		cmocka_unit_test(locks_what_exists_and_not_what_comes),
		cmocka_unit_test(refused_lock_names_limit_and_size),
		cmocka_unit_test(dma_latency_is_a_descriptor_or_says_why),
		cmocka_unit_test(timer_slack_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
