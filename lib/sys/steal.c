/* SPDX-License-Identifier: MIT */
#include "sys/steal.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/file.h"
#include "base/proc.h"

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

	if (!log)
		return NULL;
	log->tick_ns = proc_tick_ns();
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

void steal_log_poll(struct steal_log *log, int64_t now_ns)
{
	struct proc_cpu cpu;
	int64_t *steal_ns;
	const char *line;
	char *text;

	if (!log || machine_read("/proc/stat", &text, NULL) < 0)
		return;
	steal_ns = malloc(log->cpus * sizeof(*steal_ns));
	if (steal_ns) {
		for (size_t i = 0; i < log->cpus; i++)
			steal_ns[i] = -1;
		for (line = text; proc_next_cpu(&line, &cpu);)
			if (cpu.cpu >= 0 && (size_t)cpu.cpu < log->cpus)
				steal_ns[cpu.cpu] = cpu.steal_ticks * log->tick_ns;
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
