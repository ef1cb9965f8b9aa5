/* SPDX-License-Identifier: MIT */
#ifndef GEM_SYSLATENCY_OPTIONS_H
#define GEM_SYSLATENCY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common.h"
#include "run/run.h"

/* What the user typed; resolve() in gem_syslatency.c makes run settings of it. */
struct settings {
	/* IGT's */
	bool one_cpu, file_cache, interrupts, thp_and_leak, no_gem, batch_given, field_given;
	int64_t batch_us, time_ns, field;
	/* ours */
	struct run_settings run;
	const char *backend, *variant, *scope, *sched, *cpus, *json, *progress, *counters;
	const char *load_rates, *trace;
	int64_t explain; /* delays to explain in the report; 0: none */
	int64_t threads, seed;
	bool force, reset, leak;
	bool threads_given, interval_given, warmup_given, seed_given, priority_given;
};

/* Its options are in it after gem_syslatency_options(): ours, and those of the plugins. */
extern struct benchmark gem_syslatency;
void gem_syslatency_options(void);

/* Adds the load "@word" of @length bytes ("swap=1400M"), or gives the one that is there its size.
 */
int gem_syslatency_add_load(struct run_settings *run, const char *word, size_t length,
			    struct message *message);

#endif
