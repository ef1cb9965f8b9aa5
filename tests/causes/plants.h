/* SPDX-License-Identifier: MIT */
#ifndef CAUSES_PLANTS_H
#define CAUSES_PLANTS_H

/*
 * Known causes of delays, planted in a process of their own for as long as it lives: what the
 * explanations are held against. Each disturbs CPU 0 for some milliseconds, again and again.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"

#define PLANT_PAUSE_NS (150 * NS_PER_MS)

typedef void plant_function(void);

static inline void plant_on_cpu0(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

static inline void plant_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	if (write(fd, text, strlen(text)) < 0)
		clock_sleep_for(PLANT_PAUSE_NS);
	close(fd);
}

/* As eager as the sampler itself: what is begun is ended before the sampler's turn. */
static inline void plant_eagerly(bool eager)
{
	struct sched_param parameters = {.sched_priority = eager ? 99 : 0};

	sched_setscheduler(0, eager ? SCHED_FIFO : SCHED_OTHER, &parameters);
}

static inline void plant_hog(void)
{
	plant_on_cpu0();
	plant_eagerly(true);
	for (;;) {
		int64_t until_ns;

		clock_sleep_for(PLANT_PAUSE_NS);
		until_ns = clock_now_ns() + 5 * NS_PER_MS;
		while (clock_now_ns() < until_ns)
			;
	}
}

/* Memory with holes at every other page, for compaction to work on. */
static inline void plant_compaction(void)
{
	size_t bytes = (size_t)192 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	plant_on_cpu0();
	if (memory == MAP_FAILED)
		return;
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < bytes; at += page)
		memory[at] = 1;
	for (size_t at = 0; at < bytes; at += 2 * page)
		madvise(memory + at, page, MADV_DONTNEED);
	for (;;) {
		plant_eagerly(true);
		plant_write("/proc/sys/vm/compact_memory", "1");
		plant_eagerly(false);
		clock_sleep_for(PLANT_PAUSE_NS / 2);
	}
}

/* Names that are not there are remembered too, in slab memory that a shrinker gives back. */
static inline void plant_shrinker(void)
{
	char path[64];

	plant_on_cpu0();
	for (;;) {
		for (int i = 0; i < 60000; i++) {
			snprintf(path, sizeof(path), "/tmp/syslatency-no-such-%d-%d", getpid(), i);
			access(path, F_OK);
		}
		plant_eagerly(true);
		plant_write("/proc/sys/vm/drop_caches", "2");
		plant_eagerly(false);
	}
}

static inline pid_t plant_find_sampler(pid_t parent)
{
	DIR *directory = opendir("/proc");
	struct dirent *entry;
	pid_t found = 0;

	while (directory && !found && (entry = readdir(directory))) {
		char path[300], text[256] = "";
		int pid = atoi(entry->d_name), above = 0;
		FILE *file;

		if (pid <= 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		file = fopen(path, "re");
		if (!file)
			continue;
		if (fgets(text, sizeof(text), file) && strstr(text, "(sampler)") &&
		    sscanf(strrchr(text, ')') + 1, " %*c %d", &above) == 1 && above == parent)
			found = pid;
		fclose(file);
	}
	if (directory)
		closedir(directory);
	return found;
}

static inline void plant_stop(void)
{
	for (;;) {
		pid_t sampler = plant_find_sampler(getppid());

		clock_sleep_for(PLANT_PAUSE_NS);
		if (sampler <= 0)
			continue;
		kill(sampler, SIGSTOP);
		clock_sleep_for(6 * NS_PER_MS);
		kill(sampler, SIGCONT);
	}
}

/* One packet for thousands of listeners is copied to each of them in one softirq. */
static inline void plant_flood(void)
{
	struct rlimit limit = {16384, 16384};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(47113)};
	struct ip_mreqn group = {.imr_address.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1, sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	plant_on_cpu0();
	setrlimit(RLIMIT_NOFILE, &limit);
	to.sin_addr.s_addr = inet_addr("239.77.7.7");
	group.imr_multiaddr = to.sin_addr;
	for (int i = 0; i < 6000; i++) {
		int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (fd < 0)
			break;
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
		if (bind(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
			break;
		if (i == 0)
			setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP, &group, sizeof(group));
	}
	setsockopt(sender, IPPROTO_IP, IP_MULTICAST_IF, &group, sizeof(group));
	for (;;) {
		sendto(sender, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
		clock_sleep_for(20 * NS_PER_MS);
	}
}

static inline pid_t plant_start(plant_function *plant, const char *name)
{
	pid_t parent = getpid(), child = fork();

	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	if (getppid() == parent)
		plant();
	_exit(1);
}

static inline void plant_end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

#endif
