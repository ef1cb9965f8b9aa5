/* SPDX-License-Identifier: MIT */
#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

double clock_read_cost_ns(void)
{
	enum { READS = 10000 };
	int64_t start = clock_now_ns();

	for (int i = 0; i < READS; i++) {
		volatile int64_t now = clock_now_ns();

		(void)now;
	}
	return (double)(clock_now_ns() - start) / READS;
}

int64_t clock_own_cpu_ns(void)
{
	const int whose[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
	int64_t total_ns = 0;

	for (int i = 0; i < 2; i++) {
		struct rusage usage;

		getrusage(whose[i], &usage);
		total_ns += (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_S +
			    (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
	}
	return total_ns;
}

int clock_sleep_until(int64_t deadline_ns)
{
	struct timespec deadline = ns_to_timespec(deadline_ns < 0 ? 0 : deadline_ns);

	return -clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
}

void clock_sleep_for(int64_t ns)
{
	int64_t deadline = clock_now_ns() + ns;

	while (clock_sleep_until(deadline) == -EINTR)
		;
}

char *clock_rfc3339(char *buffer, size_t size)
{
	struct timespec now;
	struct tm utc;
	char seconds[24];

	clock_gettime(CLOCK_REALTIME, &now);
	gmtime_r(&now.tv_sec, &utc);
	strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(buffer, size, "%s.%03ldZ", seconds, now.tv_nsec / 1000000);
	return buffer;
}
