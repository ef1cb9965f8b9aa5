/* SPDX-License-Identifier: MIT */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/message.h"
#include "base/parse.h"
#include "ops.h"
#include "record/record.h"

enum run_scope { SCOPE_AUTO, SCOPE_MACHINE, SCOPE_MEMCG };

enum run_stage { RUN_STARTING, RUN_WARMING_UP, RUN_MEASURING, RUN_STOPPING };

struct run_progress {
	enum run_stage stage;
	int64_t left_ns;
	uint64_t samples;
	int64_t p50_ns, p99_ns, max_ns; /* -1: none yet */
	int64_t stalled_ns;		/* longest wait under way when it is late, else 0 */
	int stalled_cpu;
};

/* One measured window, as a program asked for it. */
struct run_settings {
	const char *benchmark; /* "gem_syslatency" */
	const char *arm;       /* NULL: none */
	bool pure_drop_in;     /* only IGT's flags were given */

	const struct measure_ops *measure;
	const struct load_ops *loads[8];
	struct size_value load_sizes[8]; /* bytes 0 and no percent: default */
	size_t load_count;
	const struct backend_ops *backend; /* NULL: auto */
	struct backend_settings backend_settings;
	struct size_value footprint; /* 0: none */
	enum run_scope scope;
	struct size_value limit; /* 0: none */
	enum { SWAP_AUTO, SWAP_NONE, SWAP_ZRAM } swap;
	struct size_value swap_size;
	bool force;

	struct cpu_list cpus; /* empty: all allowed */
	unsigned int threads;
	bool fifo;
	int priority;
	struct measure_settings measure_settings;
	int64_t duration_ns, warmup_ns;
	bool reset;
	double load_rates_per_s[8]; /* offered to each load of loads[]; 0: as fast as it can */
	bool counters_off; /* no snapshots: to measure what they cost; nothing is proved then */
	const char *samples_path;
	int trace_level;		/* 0 off, 1 light, 2 full */
	unsigned int worst;		/* delays to explain; 0: 10 */
	const char *perfetto_path;	/* --perfetto; NULL: none */
	struct size_value trace_buffer; /* --trace-buffer, a CPU; 0: default */
	int64_t break_above_ns;		/* 0: no */

	/* Called about ten times a second from the supervisor; NULL: none. */
	void (*progress)(void *data, const struct run_progress *progress);
	void *progress_data;
	const volatile sig_atomic_t *interrupted; /* set by the program's signal handler */
};

/*
 * Describes the environment, snapshots, enters the scope, starts the loads, warms up, measures,
 * stops, snapshots, judges. The record is returned whenever a window was measured, even cut short.
 * Everything changed on the machine is back when it returns, unless that would take it beyond 2 s
 * after the end of the window: then the guardian goes on. See run/put_back.h for what @message says
 * beside the record. -errno: see exit_code_of().
 */
int run_execute(const struct run_settings *settings, struct record **ret_record,
		struct message *message);

#endif
