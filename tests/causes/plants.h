/* SPDX-License-Identifier: MIT */
#ifndef CAUSES_PLANTS_H
#define CAUSES_PLANTS_H

/*
 * Known causes of delays, planted in a process of their own for as long as it lives: what the
 * explanations are held against. Each disturbs CPU 0 for some milliseconds, again and again, and
 * notes when it did: so the test knows which delays are the plant's.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/parse.h"

#define PLANT_PAUSE_NS (150 * NS_PER_MS)

#define PLANT_PERIODS 4096
#define PLANT_HUGE_BYTES ((size_t)2 << 20)
#define PLANT_HUGE_PAGES 64
#define PLANT_HUGE_PAGES_AT_ONCE 4 /* most of the time inside the lock */

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Shared between the test and the plant. */
struct plant_log {
	_Atomic bool ready; /* what the plant needs is there: the run may begin */
	_Atomic size_t count;
	struct {
		int64_t begin_ns, end_ns; /* end 0: still active */
	} periods[PLANT_PERIODS];
	char *memory; /* plant_collapse: PLANT_HUGE_PAGES, in the sampler at the same address */
};

static struct plant_log *plant_log;

typedef void plant_function(void);

static inline void plant_begin(void)
{
	size_t at = atomic_load(&plant_log->count);

	if (at >= PLANT_PERIODS)
		_exit(0);
	plant_log->periods[at].end_ns = 0;
	plant_log->periods[at].begin_ns = clock_now_ns();
	atomic_store(&plant_log->count, at + 1);
}

static inline void plant_done(void)
{
	plant_log->periods[atomic_load(&plant_log->count) - 1].end_ns = clock_now_ns();
}

static inline void plant_on_cpu0(void)
{
	cpu_set_t cpus;

	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	sched_setaffinity(0, sizeof(cpus), &cpus);
}

/* From here on only its own CPU. */
static inline void plant_is_ready(void)
{
	plant_on_cpu0();
	atomic_store(&plant_log->ready, true);
}

/* How much of the time from @from_ns to @to_ns the plant was active. */
static inline int64_t plant_overlap_ns(int64_t from_ns, int64_t to_ns)
{
	size_t count = atomic_load(&plant_log->count);
	int64_t sum_ns = 0;

	for (size_t i = 0; i < count; i++) {
		int64_t begin_ns = plant_log->periods[i].begin_ns;
		int64_t end_ns = plant_log->periods[i].end_ns;

		begin_ns = begin_ns > from_ns ? begin_ns : from_ns;
		end_ns = end_ns && end_ns < to_ns ? end_ns : to_ns;
		sum_ns += end_ns > begin_ns ? end_ns - begin_ns : 0;
	}
	return sum_ns;
}

static inline int plant_shorter(const void *a, const void *b)
{
	int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

	return left < right ? -1 : left > right ? 1 : 0;
}

/* The median length of what it did; 0: nothing. */
static inline int64_t plant_median_ns(void)
{
	size_t count = atomic_load(&plant_log->count), ended = 0;
	int64_t lengths_ns[PLANT_PERIODS];

	for (size_t i = 0; i < count; i++)
		if (plant_log->periods[i].end_ns)
			lengths_ns[ended++] =
				plant_log->periods[i].end_ns - plant_log->periods[i].begin_ns;
	qsort(lengths_ns, ended, sizeof(lengths_ns[0]), plant_shorter);
	return ended ? lengths_ns[ended / 2] : 0;
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

/* With the sampler's own priority: what is begun is ended before the sampler runs. */
static inline void plant_set_fifo(bool on)
{
	struct sched_param parameters = {.sched_priority = on ? 99 : 0};

	sched_setscheduler(0, on ? SCHED_FIFO : SCHED_OTHER, &parameters);
}

static inline void plant_hog(void)
{
	plant_is_ready();
	plant_set_fifo(true);
	for (;;) {
		int64_t until_ns;

		clock_sleep_for(PLANT_PAUSE_NS);
		plant_begin();
		until_ns = clock_now_ns() + 5 * NS_PER_MS;
		while (clock_now_ns() < until_ns)
			;
		plant_done();
	}
}

/* Memory with holes at every other page, for compaction to work on. */
static inline void plant_compaction(void)
{
	size_t bytes = (size_t)192 << 20, page = (size_t)sysconf(_SC_PAGESIZE);
	char *memory =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (memory == MAP_FAILED)
		return;
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	for (size_t at = 0; at < bytes; at += page)
		memory[at] = 1;
	for (size_t at = 0; at < bytes; at += 2 * page)
		madvise(memory + at, page, MADV_DONTNEED);
	plant_is_ready();
	for (;;) {
		plant_set_fifo(true);
		plant_begin();
		plant_write("/proc/sys/vm/compact_memory", "1");
		plant_done();
		plant_set_fifo(false);
		clock_sleep_for(PLANT_PAUSE_NS / 2);
	}
}

/* Names that are not there are remembered too, in slab memory that a shrinker gives back. */
static inline void plant_shrinker(void)
{
	char path[64];

	plant_is_ready();
	for (;;) {
		for (int i = 0; i < 60000; i++) {
			snprintf(path, sizeof(path), "/tmp/syslatency-no-such-%d-%d", getpid(), i);
			access(path, F_OK);
		}
		plant_set_fifo(true);
		plant_begin();
		plant_write("/proc/sys/vm/drop_caches", "2");
		plant_done();
		plant_set_fifo(false);
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
	plant_is_ready();
	for (;;) {
		pid_t sampler = plant_find_sampler(getppid());

		clock_sleep_for(PLANT_PAUSE_NS);
		if (sampler <= 0)
			continue;
		plant_begin();
		kill(sampler, SIGSTOP);
		clock_sleep_for(6 * NS_PER_MS);
		kill(sampler, SIGCONT);
		plant_done();
	}
}

/* As many open files as it may have. */
static inline void plant_raise_files(void)
{
	struct rlimit limit = {16384, 16384};

	if (setrlimit(RLIMIT_NOFILE, &limit) < 0 && getrlimit(RLIMIT_NOFILE, &limit) == 0) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* One packet for thousands of listeners is copied to each of them in one softirq. */
static inline void plant_flood(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(47113)};
	struct ip_mreqn group = {.imr_address.s_addr = htonl(INADDR_LOOPBACK)};
	int one = 1, sender = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	plant_raise_files();
	to.sin_addr.s_addr = inet_addr("239.77.7.7");
	group.imr_multiaddr = to.sin_addr;
	for (int i = 0; i < 12000; i++) {
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
	plant_is_ready();
	for (;;) {
		/* Nothing else comes between: what is late then is late for the softirq. */
		plant_set_fifo(true);
		plant_begin();
		sendto(sender, "x", 1, MSG_DONTWAIT, (struct sockaddr *)&to, sizeof(to));
		plant_done();
		plant_set_fifo(false);
		clock_sleep_for(20 * NS_PER_MS);
	}
}

/* Small pages that the sampler inherits and, locking what it has, makes its own. NULL: none. */
static inline char *plant_map_collapsible(void)
{
	size_t bytes = PLANT_HUGE_PAGES * PLANT_HUGE_BYTES;
	char *memory = mmap(NULL, bytes + PLANT_HUGE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *aligned;

	if (memory == MAP_FAILED)
		return NULL;
	aligned = (char *)(((uintptr_t)memory + PLANT_HUGE_BYTES - 1) &
			   ~(uintptr_t)(PLANT_HUGE_BYTES - 1));
	if (aligned > memory)
		munmap(memory, (size_t)(aligned - memory));
	munmap(aligned + bytes, (size_t)(memory + PLANT_HUGE_BYTES - aligned));
	madvise(aligned, bytes, MADV_NOHUGEPAGE);
	memset(aligned, 1, bytes);
	madvise(aligned, bytes, MADV_HUGEPAGE);
	return aligned;
}

/* Has the plant been active for less than @most_ns, and is it still? */
static inline bool plant_is_active(int64_t most_ns)
{
	size_t count = atomic_load(&plant_log->count);
	volatile int64_t *end_ns = count ? &plant_log->periods[count - 1].end_ns : NULL;

	return count && *end_ns == 0 &&
	       clock_now_ns() - plant_log->periods[count - 1].begin_ns < most_ns;
}

/*
 * Work on the same CPU, which whoever is nice waits for; only so long that a host that counts what
 * we use has no reason to stop us.
 */
static inline void plant_busy_neighbour(void)
{
	pid_t parent = getpid();

	if (fork() != 0)
		return;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, "plant-busy");
	while (getppid() == parent) {
		clock_sleep_for(500 * NS_PER_US);
		while (plant_is_active(60 * NS_PER_MS))
			;
	}
	_exit(0);
}

/* Collapses the sampler's own memory, as nice as khugepaged, which holds its mmap_lock. */
static inline void plant_collapse(void)
{
	pid_t sampler = 0;
	long done = 0;
	int pidfd;

	plant_is_ready();
	while (!(sampler = plant_find_sampler(getppid())))
		clock_sleep_for(PLANT_PAUSE_NS / 10);
	pidfd = (int)syscall(SYS_pidfd_open, sampler, 0);
	clock_sleep_for(3 * PLANT_PAUSE_NS);
	plant_busy_neighbour();
	setpriority(PRIO_PROCESS, 0, 19);
	for (size_t i = 0; i < PLANT_HUGE_PAGES && done >= 0; i += PLANT_HUGE_PAGES_AT_ONCE) {
		struct iovec range = {plant_log->memory + i * PLANT_HUGE_BYTES,
				      PLANT_HUGE_PAGES_AT_ONCE * PLANT_HUGE_BYTES};

		plant_begin();
		done = syscall(SYS_process_madvise, pidfd, &range, 1, MADV_COLLAPSE, 0);
		plant_done();
		clock_sleep_for(PLANT_PAUSE_NS / 2);
	}
	pause();
}

static inline pid_t plant_start(plant_function *plant, const char *name)
{
	pid_t parent = getpid(), child;

	child = fork();
	for (int i = 0; child > 0 && i < 1000 && !atomic_load(&plant_log->ready); i++)
		clock_sleep_for(10 * NS_PER_MS);
	if (child != 0)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	prctl(PR_SET_NAME, name);
	/* On a busy machine it still has its turns. */
	setpriority(PRIO_PROCESS, 0, -20);
	if (getppid() == parent)
		plant();
	_exit(1);
}

static inline void plant_end(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* Before the plant and the run begin. */
static inline bool plant_open_log(void)
{
	plant_log = mmap(NULL, sizeof(*plant_log), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return plant_log != MAP_FAILED;
}

static inline void plant_close_log(void)
{
	if (plant_log->memory)
		munmap(plant_log->memory, PLANT_HUGE_PAGES * PLANT_HUGE_BYTES);
	munmap(plant_log, sizeof(*plant_log));
}

#endif
