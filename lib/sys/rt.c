/* SPDX-License-Identifier: MIT */
#include "sys/rt.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "sys/cgroup.h"

static bool has_capability(int capability)
{
	unsigned long long effective = 0;
	char *text, *line;

	if (machine_read("/proc/self/status", &text, NULL) < 0)
		return false;
	line = strstr(text, "\nCapEff:");
	if (line)
		effective = strtoull(line + strlen("\nCapEff:"), NULL, 16);
	free(text);
	return effective >> capability & 1;
}

/* RT_GROUP_SCHED: is the caller's group without real-time runtime? @attribute: which file says so.
 */
static bool group_without_runtime(char *attribute, size_t size)
{
	static const char *const mounts[] = {"/sys/fs/cgroup/cpu", "/sys/fs/cgroup/cpu,cpuacct"};
	char group[PATH_MAX / 2];
	int64_t runtime_us;

	cgroup_own_path("cpu", group, sizeof(group));
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		snprintf(attribute, size, "%s%s/cpu.rt_runtime_us", mounts[i],
			 strcmp(group, "/") == 0 ? "" : group);
		if (machine_read_int64(attribute, &runtime_us) == 0)
			return runtime_us == 0;
	}
	return false;
}

int rt_explain_denied(int priority, struct message *message)
{
	char attribute[PATH_MAX];
	struct rlimit limit = {0};

	getrlimit(RLIMIT_RTPRIO, &limit);
	if (!has_capability(CAP_SYS_NICE) && limit.rlim_cur < (rlim_t)priority)
		return message_set(
			message, -EPERM,
			"SCHED_FIFO %d refused: no CAP_SYS_NICE and RLIMIT_RTPRIO is %ju "
			"(run as root, or set rtprio %d in /etc/security/limits.conf)",
			priority, (uintmax_t)limit.rlim_cur, priority);
	if (group_without_runtime(attribute, sizeof(attribute)))
		return message_set(
			message, -EPERM,
			"SCHED_FIFO %d refused: this task's group has no real-time runtime "
			"(RT_GROUP_SCHED): %.200s is 0 (write a runtime there, or move to "
			"the root group of the cpu controller)",
			priority, attribute);
	return message_set(
		message, -EPERM,
		"SCHED_FIFO %d refused although privilege is there: a container's system "
		"call filter, or a group without real-time runtime (RT_GROUP_SCHED)",
		priority);
}

int rt_set_fifo(int priority, struct rt_status *ret_status, struct message *message)
{
	struct sched_param parameter = {.sched_priority = priority};
	int error = 0;

	if (sched_setscheduler(0, SCHED_FIFO, &parameter) < 0)
		error = -errno;
	ret_status->policy = sched_getscheduler(0);
	sched_getparam(0, &parameter);
	ret_status->priority = parameter.sched_priority;
	if (error == -EPERM)
		return rt_explain_denied(priority, message);
	if (error < 0)
		return message_set_errno(message, error, "SCHED_FIFO %d", priority);
	return 0;
}

int rt_set_timer_slack(void)
{
	return prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL) < 0 ? -errno : 0;
}

int rt_lock_memory(struct message *message)
{
	struct rlimit limit = {0};
	int64_t size_kib = 0;
	char *text;
	int error;

	if (mlockall(MCL_CURRENT) == 0)
		return 0;
	error = -errno;
	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (machine_read("/proc/self/status", &text, NULL) == 0) {
		text_find_int64(text, "VmSize", &size_kib);
		free(text);
	}
	return message_set(
		message, error,
		"memory not locked as a whole: %" PRId64 " KiB are mapped, RLIMIT_MEMLOCK "
		"is %ju KiB (run as root, or raise memlock in /etc/security/limits.conf)",
		size_kib, (uintmax_t)limit.rlim_cur / 1024);
}

int rt_hold_dma_latency(void)
{
	static const int32_t target_us = 0;
	int fd = machine_open("/dev/cpu_dma_latency", O_WRONLY);
	int error;

	if (fd < 0)
		return fd;
	error = write_all(fd, &target_us, sizeof(target_us));
	if (error < 0) {
		close(fd);
		return error;
	}
	return fd;
}
