/* SPDX-License-Identifier: MIT */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

#define NS_PER_US INT64_C(1000)
#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* All times are CLOCK_MONOTONIC nanoseconds in int64_t (292 years) unless a name says otherwise. */

static inline int64_t timespec_to_ns(const struct timespec *time)
{
	return (int64_t)time->tv_sec * NS_PER_S + time->tv_nsec;
}

static inline struct timespec ns_to_timespec(int64_t ns)
{
	struct timespec time = {
		.tv_sec = ns / NS_PER_S,
		.tv_nsec = ns % NS_PER_S,
	};
	return time;
}

static inline int64_t clock_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return timespec_to_ns(&now);
}

/* Mean cost of clock_now_ns(), nanoseconds; takes about a millisecond to measure. */
double clock_read_cost_ns(void);

/* Processor time of this process and of its children that have ended. */
int64_t clock_own_cpu_ns(void);

/* Sleeps until @deadline_ns; 0, or -EINTR when a signal came first. */
int clock_sleep_until(int64_t deadline_ns);
void clock_sleep_for(int64_t ns); /* goes on after signals */

/* Wall clock now as RFC 3339 in UTC with milliseconds; @size at least 32. Returns @buffer. */
char *clock_rfc3339(char *buffer, size_t size);

#endif
