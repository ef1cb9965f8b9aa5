/* SPDX-License-Identifier: MIT */
#ifndef RECORD_RECORD_H
#define RECORD_RECORD_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/message.h"
#include "stats/histogram.h"
#include "stats/summary.h"

#define RECORD_SCHEMA "syslatency/run/1"

/* One run. Everything is owned by the record; a NULL pointer or NaN is null in the JSON. */

struct record_cpu {
	int cpu;
	uint64_t count;
	double mean_us, max_us;
	int64_t steal_ms; /* -1: null */
	int64_t minflt, majflt;
	const char *policy; /* static: "fifo", "other" */
	int priority;
};

enum verdict { VERDICT_VALID, VERDICT_SUSPECT, VERDICT_INVALID };

struct record {
	char id[37]; /* random UUID */
	char *benchmark, *arm, *variant, *backend, *measure, *scope;
	char **loads;	   /* NULL-terminated */
	char started[32];  /* RFC 3339 */
	double duration_s; /* measured window */
	bool interrupted;

	bool has_latency, has_corrected;
	struct latency_summary latency, corrected;
	struct histogram *histogram; /* observed; NULL: none */
	struct histogram_sparse
		*sparse; /* in its place where it was read in part (record/store.h) */
	double igt_cycles, igt_mean_us, igt_max_us; /* NaN: null */

	struct record_cpu *per_cpu;
	size_t per_cpu_count;

	int64_t pinned_bytes; /* -1: null */
	char *pin_method, *release_context;
	int64_t throttle_gaps, throttle_total_us; /* -1: null */

	/* Objects and arrays built by others; NULL: null (or {} / [] where the schema says so). */
	json_t *phases; /* "thp_phases": the parts of a sample, by the measure's names for them */
	json_t *load_stats, *counters, *environment, *causes, *worst, *metrics;
	json_t *settings; /* the options of the run as data: what must match to compare */
	json_t *command;  /* argv as an array of strings */

	enum verdict verdict;
	json_t *reasons; /* array of strings */
	json_t *notes;	 /* array of strings: things said to the user */
	char *trace_level;

	char *status; /* "ok" or "failed" */
	char *stderr_tail;
	int64_t block, order; /* -1: null */
	char machine_key[17];
};

/* id, started, NaNs and -1s are filled; NULL without memory. */
struct record *record_new(const char *benchmark);
/* The same without id and started: "". For what has its own. */
struct record *record_new_blank(const char *benchmark);
void record_free(struct record *record);

static inline bool record_has_histogram(const struct record *record)
{
	return record->histogram || record->sparse;
}

/* One latency as it is in a record: null without samples. New reference. */
json_t *record_latency_json(const struct latency_summary *latency);
/* New reference with every key of docs/record.schema.json in a fixed order. */
json_t *record_to_json(const struct record *record);

/*
 * From the text of one record. With @shared it is read in a fifth of the time: what was counted and
 * traced beside the latencies (counters, causes, worst) is checked and left out, and environment,
 * settings and command are one and the same value in all records where they are the same text but
 * for clock_read_ns, which is null then. Schema, types and units are checked alike; keys that are
 * not known are allowed and not kept, a known one comes once. -EINVAL with the reason, -ENOMEM.
 * @ret_text may be NULL and is filled in any case.
 */
struct json_shared;
struct record_text {
	bool torn;   /* no record because the text ends in the middle of it */
	bool blanks; /* there were blanks between tokens */
};
int record_from_text(const char *text, size_t size, struct json_shared *shared,
		     struct record **ret_record, struct record_text *ret_text,
		     struct message *message);

/* Why a run is left out of every summary, or that it is not: see docs/method.md. */
enum record_use { RECORD_COUNTS, RECORD_FAILED, RECORD_INTERRUPTED, RECORD_INVALID };
enum record_use record_use(const struct record *record);
static inline bool record_counts(const struct record *record)
{
	return record_use(record) == RECORD_COUNTS;
}

/* The arm that a record belongs to: arm, else variant, else benchmark. */
const char *record_arm_name(const struct record *record);

void record_reason(struct record *record, enum verdict at_least, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
void record_note(struct record *record, const char *format, ...)
	__attribute__((format(printf, 2, 3)));
const char *verdict_name(enum verdict verdict);

/* "...-g0123456789ab..." of a kernel release gives the hash; else the release itself. */
void commit_of_release(const char *release, char *buffer, size_t size);

/*
 * One metric of a record by name: mean, max, min, p50, p90, p99, p99.9, p99.99, stddev, igt-mean,
 * igt-max, "thp-mean"-like prefixes are not used; else a key of "metrics" or a dotted path to a
 * number
 * ("counters.vmstat.pgscan_anon"). Microseconds for latencies. *ret_unit is static or owned by the
 * record. -ENOENT when the record has none; *ret_value NaN when it is null.
 */
int record_metric(const struct record *record, const char *name, double *ret_value,
		  const char **ret_unit);
/* As the metric itself says ("better"); of paths, rates ("..._per_s"). Latencies: false. */
bool record_metric_higher_is_better(const struct record *record, const char *name);

#endif
