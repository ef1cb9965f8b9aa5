/* SPDX-License-Identifier: MIT */
#include "sys/steal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

#define POLLS 1024

struct steal_poll {
	int64_t when_ns;
	int64_t *steal_ns; /* by CPU number; -1: not there */
};

struct steal_log {
	struct steal_poll polls[POLLS];
	size_t count;
	size_t cpus; /* highest number + 1; grows */
	int64_t tick_ns;
};

struct steal_log *steal_log_new(void)
{
	struct steal_log *log = calloc(1, sizeof(*log));
	long ticks_per_s = sysconf(_SC_CLK_TCK);

	if (!log)
		return NULL;
	log->tick_ns = NS_PER_S / (ticks_per_s > 0 ? ticks_per_s : 100);
	log->cpus = (size_t)sysconf(_SC_NPROCESSORS_CONF);
	return log;
}

void steal_log_free(struct steal_log *log)
{
	if (!log)
		return;
	for (size_t i = 0; i < log->count; i++)
		free(log->polls[i].steal_ns);
	free(log);
}

static void thin_out(struct steal_log *log)
{
	size_t kept = 0;

	for (size_t i = 0; i < log->count; i++) {
		if (i % 2 == 0)
			log->polls[kept++] = log->polls[i];
		else
			free(log->polls[i].steal_ns);
	}
	log->count = kept;
}

/* Lines "cpu3 user nice system idle iowait irq softirq steal ...", in ticks. */
static void read_lines(const struct steal_log *log, const char *text, int64_t *steal_ns)
{
	const char *line;

	for (line = text; line; line = strchr(line, '\n')) {
		unsigned int cpu;
		long long steal;

		line += *line == '\n';
		if (strncmp(line, "cpu", 3) != 0)
			return;
		if (sscanf(line, "cpu%u %*d %*d %*d %*d %*d %*d %*d %lld", &cpu, &steal) == 2 &&
		    cpu < log->cpus)
			steal_ns[cpu] = steal * log->tick_ns;
	}
}

void steal_log_poll(struct steal_log *log, int64_t now_ns)
{
	int64_t *steal_ns;
	char *text;

	if (!log || machine_read("/proc/stat", &text, NULL) < 0)
		return;
	steal_ns = malloc(log->cpus * sizeof(*steal_ns));
	if (steal_ns) {
		for (size_t i = 0; i < log->cpus; i++)
			steal_ns[i] = -1;
		read_lines(log, text, steal_ns);
		if (log->count == POLLS)
			thin_out(log);
		log->polls[log->count].when_ns = now_ns;
		log->polls[log->count++].steal_ns = steal_ns;
	}
	free(text);
}

int64_t steal_log_between(const struct steal_log *log, int cpu, int64_t from_ns, int64_t to_ns)
{
	const struct steal_poll *before = NULL, *after = NULL;

	if (!log || cpu < 0 || (size_t)cpu >= log->cpus)
		return -1;
	for (size_t i = 0; i < log->count; i++) {
		if (log->polls[i].when_ns <= from_ns)
			before = &log->polls[i];
		if (!after && log->polls[i].when_ns >= to_ns)
			after = &log->polls[i];
	}
	if (!before || !after || before->steal_ns[cpu] < 0 || after->steal_ns[cpu] < 0)
		return -1;
	return after->steal_ns[cpu] - before->steal_ns[cpu];
}

int64_t steal_log_around(const struct steal_log *log, int cpu, int64_t when_ns, int64_t late_ns)
{
	return steal_log_between(log, cpu, when_ns, when_ns + late_ns + STEAL_COUNTED_NS);
}
