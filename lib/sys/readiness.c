/* SPDX-License-Identifier: MIT */
#include "sys/readiness.h"

#include <errno.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"
#include "sys/environment.h"

#define FREE_HUGE_MIN 64     /* 128 MiB of them: what a paced probe and a load use at once */
#define NEIGHBOUR_SHARE 0.10 /* of one CPU, as in the verdict on a run */
#define STEAL_SHARE 0.01     /* of one CPU */
#define CLOCK_SLOW_NS                                                              \
	300.0 /* a read of the TSC takes tens; of HPET or by system call, hundreds \
	       */

static int add(json_t *warnings, const char *kind, const char *command, const char *format, ...)
	__attribute__((format(printf, 4, 5)));

static int add(json_t *warnings, const char *kind, const char *command, const char *format, ...)
{
	json_t *warning = json_object();
	char text[256];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (!warning || json_array_append_new(warnings, warning))
		return -ENOMEM;
	if (json_put(warning, "kind", json_string(kind)) ||
	    json_put(warning, "text", json_string_or_null(text)) ||
	    json_put(warning, "command", json_string_or_null(command)))
		return -ENOMEM;
	return 0;
}

static const char *text_at(const json_t *object, const char *path)
{
	const char *text = json_string_value(json_at(object, path));

	return text ? text : "";
}

static double number_at(const json_t *object, const char *path, double fallback)
{
	const json_t *value = json_at(object, path);

	return json_is_number(value) ? json_number_value(value) : fallback;
}

static int warn_of_host(json_t *warnings, const json_t *environment, const json_t *counters)
{
	double elapsed_ms = number_at(counters, "clock.elapsed_ms", 0);
	double steal_ms = number_at(counters, "steal_ms", 0);

	if (elapsed_ms > 0 && steal_ms / elapsed_ms > STEAL_SHARE)
		return add(
			warnings, "steal", NULL,
			"the host takes CPU time now (%.0f ms of the last %.0f): long delays may be "
			"its own; use a quieter host or real hardware",
			steal_ms, elapsed_ms);
	if (json_is_true(json_at(environment, "guest")))
		return add(
			warnings, "guest", NULL,
			"a virtual machine (%s): pauses of the host are in the delays; runs show "
			"their steal, and doubt what it could explain",
			environment_hypervisor_name(environment)
				? environment_hypervisor_name(environment)
				: "hypervisor unknown");
	return 0;
}

static int warn_of_neighbours(json_t *warnings, const json_t *environment, const json_t *counters)
{
	double elapsed_ms = number_at(counters, "clock.elapsed_ms", 0);
	double used_ms = number_at(counters, "cpu.neighbours_ms", 0);
	char command[96];
	long pid = (long)number_at(counters, "cpu.busiest_neighbour_pid", 0);

	if (elapsed_ms <= 0 || used_ms / elapsed_ms <= NEIGHBOUR_SHARE)
		return 0;
	snprintf(command, sizeof(command),
		 "taskset -apc 0 %ld   # and measure with --cpus without 0", pid);
	return add(warnings, "neighbours", pid > 0 ? command : NULL,
		   "other programs use %.2g of a CPU now, most of it %s (pid %ld)",
		   used_ms / elapsed_ms, text_at(counters, "cpu.busiest_neighbour"), pid);
}

static int warn_of_frequency(json_t *warnings, const json_t *environment, const json_t *counters)
{
	const char *governor = text_at(environment, "frequency.governor");

	if (!*governor || strcmp(governor, "performance") == 0)
		return 0;
	return add(
		warnings, "governor",
		"for f in /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor; do echo performance "
		"> $f; done",
		"the frequency governor is %s: delays depend on what ran before", governor);
}

static int warn_of_clock(json_t *warnings, const json_t *environment, const json_t *counters)
{
	double cost_ns = number_at(environment, "clock_read_ns", 0);

	if (cost_ns <= CLOCK_SLOW_NS)
		return 0;
	return add(warnings, "clock",
		   "cat /sys/devices/system/clocksource/clocksource0/available_clocksource",
		   "a clock read takes %.0f ns (clocksource %s): short delays drown in it", cost_ns,
		   text_at(environment, "clocksource"));
}

static int warn_of_throttling(json_t *warnings, const json_t *environment, const json_t *counters)
{
	double runtime_us = number_at(environment, "rt.runtime_us", -1);
	double period_us = number_at(environment, "rt.period_us", 0);

	if (runtime_us < 0 || runtime_us >= period_us)
		return 0;
	return add(
		warnings, "throttling", "sysctl -w kernel.sched_rt_runtime_us=-1",
		"real-time tasks are throttled (%.0f of %.0f ms): an unpaced thp probe (-m) gets "
		"pauses of %.0f ms; pace it with --pace 2ms",
		runtime_us / 1000, period_us / 1000, (period_us - runtime_us) / 1000);
}

static int warn_of_swap(json_t *warnings, const json_t *environment, const json_t *counters)
{
	if (number_at(environment, "swap_bytes", 1) > 0)
		return 0;
	return add(warnings, "swap", "gem_syslatency --swap zram:4G ...   # made for the run only",
		   "there is no swap: the kernel then never scans anonymous memory, where pinned "
		   "buffers lie");
}

static int warn_of_huge_pages(json_t *warnings, const json_t *environment, const json_t *counters)
{
	const char *enabled = text_at(environment, "thp.enabled");

	if (json_is_null(json_at(environment, "thp.enabled")))
		return add(
			warnings, "thp", NULL,
			"this kernel has no transparent huge pages: --measure thp cannot be had");
	if (strcmp(enabled, "never") != 0)
		return 0;
	return add(warnings, "thp", "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled",
		   "transparent huge pages are off: --measure thp would time small pages");
}

/*
 * Free blocks of at least 2 MiB, from /proc/buddyinfo ("Node 0, zone Normal <order 0> <1> ...").
 * Kernels are built with 11 orders mostly; a block of order k > 9 holds 2^(k-9) huge pages.
 */
static int64_t free_huge_pages(void)
{
	char *text, *line, *rest;
	int64_t pages = 0;

	if (machine_read("/proc/buddyinfo", &text, NULL))
		return -1;
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		char *cursor = strstr(line, "zone");
		long long blocks;
		int order = 0, used;

		if (!cursor || sscanf(cursor, "zone %*s%n", &used) != 0)
			continue;
		cursor += used;
		while (sscanf(cursor, "%lld%n", &blocks, &used) == 1) {
			if (order >= 9)
				pages += blocks << (order - 9);
			order++;
			cursor += used;
		}
	}
	free(text);
	return pages;
}

static int warn_of_fragmentation(json_t *warnings, const json_t *environment,
				 const json_t *counters)
{
	int64_t pages = free_huge_pages();

	if (pages < 0 || pages >= FREE_HUGE_MIN)
		return 0;
	return add(warnings, "fragmentation", "echo 1 > /proc/sys/vm/compact_memory",
		   "only %lld free blocks of 2 MiB: huge pages will wait for compaction",
		   (long long)pages);
}

static int warn_of_debugging(json_t *warnings, const json_t *environment, const json_t *counters)
{
	static const char *const slow[] = {
		"KASAN",	   "KCSAN",	    "PROVE_LOCKING",	 "DEBUG_VM",
		"DEBUG_PAGEALLOC", "SLUB_DEBUG_ON", "DEBUG_ATOMIC_SLEEP"};
	char found[128] = "";

	for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
		char path[64];
		size_t length = strlen(found);

		snprintf(path, sizeof(path), "config.%s", slow[i]);
		if (json_at(environment, path))
			snprintf(found + length, sizeof(found) - length, " %s", slow[i]);
	}
	if (!*found)
		return 0;
	return add(warnings, "debugging", NULL,
		   "this kernel checks itself (%s): its delays are not those of a product",
		   found + 1);
}

static int warn_of_reclaimers(json_t *warnings, const json_t *environment, const json_t *counters)
{
	if (number_at(environment, "damon_running", 0) > 0 &&
	    add(warnings, "damon", "echo off > /sys/kernel/mm/damon/admin/kdamonds/0/state",
		"DAMON runs and may reclaim or move pages on its own"))
		return -ENOMEM;
	if (strtol(text_at(environment, "mglru"), NULL, 0) & 1)
		return add(
			warnings, "mglru", "echo n > /sys/kernel/mm/lru_gen/enabled",
			"MGLRU is on: scan counts mean something else; compare only with runs that "
			"had it too");
	return 0;
}

static int warn_of_reports(json_t *warnings, const json_t *environment, const json_t *counters)
{
	int64_t left;

	if (machine_read_int64("/proc/sys/kernel/hung_task_warnings", &left) == 0 && left == 0 &&
	    add(warnings, "hung-tasks", "sysctl -w kernel.hung_task_warnings=10",
		"the kernel has used up its hung-task reports: a hung task would go unseen"))
		return -ENOMEM;
	if (!machine_exists("/proc/pressure/memory"))
		return add(
			warnings, "psi", NULL,
			"no pressure stall information (/proc/pressure): boot with psi=1 to have it");
	return 0;
}

json_t *readiness_warnings(const json_t *environment, const json_t *counters)
{
	static int (*const checks[])(json_t * warnings, const json_t *environment,
				     const json_t *counters) = {
		warn_of_host,	    warn_of_neighbours, warn_of_frequency,  warn_of_clock,
		warn_of_throttling, warn_of_swap,	warn_of_huge_pages, warn_of_fragmentation,
		warn_of_debugging,  warn_of_reclaimers, warn_of_reports,
	};
	json_t *warnings = json_array();
	int error = warnings ? 0 : -ENOMEM;

	for (size_t i = 0; !error && i < ARRAY_SIZE(checks); i++)
		error = checks[i](warnings, environment, counters);
	if (error) {
		json_decref(warnings);
		return NULL;
	}
	return warnings;
}
