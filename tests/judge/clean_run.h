/* SPDX-License-Identifier: MIT */
#ifndef TESTS_RECORD_CLEAN_RUN_H
#define TESTS_RECORD_CLEAN_RUN_H

#include "support/testing.h"

#include "base/array.h"
#include "base/json.h"
#include "ops.h"
#include "record/record.h"

static inline json_t *parse(const char *text)
{
	json_error_t error;
	json_t *value = json_loads(text, JSON_DECODE_ANY, &error);

	if (!value)
		fail_msg("%s at column %d", error.text, error.column);
	return value;
}

/* A clean run of the quick matrix: 1 GiB held as "stock" under 2 GiB, and the swap load. */
static inline struct record *clean_run(void)
{
	struct record *record = record_new("gem_syslatency");

	record->measure = strdup("wakeup");
	record->variant = strdup("stock");
	record->backend = strdup("shm");
	record->scope = strdup("memcg");
	record->loads = calloc(3, sizeof(char *));
	record->loads[0] = strdup("gem");
	record->loads[1] = strdup("swap");
	record->duration_s = 4;
	record->has_latency = true;
	record->latency.count = 13000;
	record->pinned_bytes = INT64_C(1) << 30;
	record->throttle_gaps = record->throttle_total_us = 0;
	record->per_cpu_count = 2;
	record->per_cpu = calloc(2, sizeof(*record->per_cpu));
	for (int cpu = 0; cpu < 2; cpu++)
		record->per_cpu[cpu] = (struct record_cpu){.cpu = cpu,
							   .count = 6500,
							   .mean_us = 50,
							   .max_us = 900,
							   .policy = "fifo",
							   .priority = 99};
	record->settings =
		parse("{\"sched\": \"fifo\", \"priority\": 99, \"limit_bytes\": 2147483648,"
		      " \"footprint_bytes\": 1073741824,"
		      " \"swap_made_bytes\": 4294967296}");
	record->environment = parse("{\"mglru\": null, \"swap_bytes\": 0, \"thp\": {\"enabled\": "
				    "\"madvise\"}}");
	record->counters = parse(
		"{\"vmstat\": {\"pgscan_anon\": 980000, \"pgscan_file\": 2000, \"pswpout\": 150000,"
		" \"swpout_zero\": 10, \"nr_unevictable\": 0, \"nr_mlock\": 0, \"oom_kill\": 0},"
		" \"memcg\": {\"limit_hits\": 5000, \"oom_kills\": 0},"
		" \"swap\": {\"total_bytes\": 4294967296, \"used_bytes\": 900000000},"
		" \"sampler\": {\"memory_locked\": true, \"migrations\": 0, \"thp_hits\": 0, "
		"\"thp_misses\": 0},"
		" \"clock\": {\"elapsed_ms\": 4001, \"suspended_ms\": 0, \"wall_jump_ms\": 0},"
		" \"cpu\": {\"busy_ms\": 7000, \"neighbours_ms\": 40},"
		" \"kmsg\": [], \"steal_ms\": 0, \"steal_ms_per_cpu\": []}");
	record->load_stats =
		parse("{\"gem\": {\"died\": false, \"observed_pages\": 262144, "
		      "\"observed_unevictable_pages\": 30, \"observed_mlock_pages\": 2},"
		      " \"swap\": {\"died\": false}}");
	record->worst = json_array();
	return record;
}

static inline bool has_reason(const struct record *record, const char *part)
{
	for (size_t i = 0; i < json_array_size(record->reasons); i++)
		if (strstr(json_string_value(json_array_get(record->reasons, i)), part))
			return true;
	return false;
}

/* As run/run.c does: what the record names is asked what it is like. */
static inline void judge(struct record *record, const struct claim *claim)
{
	struct judge_subject subject = {
		.measure_flags = record->measure ? measure_find(record->measure)->flags : 0,
		.claims = &claim,
		.claim_count = claim ? 1 : 0,
	};

	for (size_t i = 0; record->loads && record->loads[i]; i++) {
		const struct load_ops *ops = load_find(record->loads[i]);

		subject.load_flags |= ops->flags;
		subject.loaded |= !(ops->flags & LOAD_IDLES);
	}
	record_judge(record, &subject);
}

/* Judges and frees @record; the verdict and (unless NULL) a part of one reason must be as told. */
static inline void expect_with(struct record *record, const struct claim *claim,
			       enum verdict verdict, const char *reason)
{
	judge(record, claim);
	if (record->verdict != verdict || (reason && !has_reason(record, reason)) ||
	    (!reason && json_array_size(record->reasons) > 0)) {
		char *seen = json_dumps(record->reasons, 0);

		print_error("wanted %s with \"%s\", got %s with %s\n", verdict_name(verdict),
			    reason ? reason : "no reason", verdict_name(record->verdict), seen);
		free(seen);
		fail();
	}
	record_free(record);
}

/* ---- tables: a clean run, changed in its JSON, and what must be said of it ---- */

struct judged {
	const char *name;
	/* "counters.vmstat.pswpout=0; per_cpu.1.policy=\"other\"; -counters.memcg" */
	const char *changes;
	enum verdict verdict;
	const char *reason; /* a part of one; NULL: there must be none */
	const struct claim *claim;
};

static inline json_t *member(json_t *json, const char *key)
{
	return json_is_array(json) ? json_array_get(json, (size_t)atoi(key))
				   : json_object_get(json, key);
}

/* Sets what stands behind the path, or removes it where there is no value. */
static inline void change(json_t *json, char *path, const char *value)
{
	char *key = strsep(&path, ".");

	for (; path; key = strsep(&path, "."))
		json = member(json, key);
	if (!json)
		fail_msg("nothing holds %s", key);
	else if (json_is_array(json) && !value)
		json_array_remove(json, (size_t)atoi(key));
	else if (json_is_array(json))
		json_array_set_new(json, (size_t)atoi(key), parse(value));
	else if (!value)
		json_object_del(json, key);
	else
		json_object_set_new(json, key, parse(value));
}

static inline struct record *changed_run(const char *changes)
{
	struct record *record = clean_run();
	json_t *json = record_to_json(record);
	char *text = strdup(changes ? changes : ""), *rest = text, *one, *line;
	struct message message = {""};

	record_free(record);
	while ((one = strsep(&rest, ";"))) {
		char *value = strchr(one, '=');

		one += strspn(one, " -");
		if (value)
			*value++ = '\0';
		if (*one)
			change(json, one, value);
	}
	line = json_line(json);
	if (record_from_text(line, strlen(line), NULL, &record, NULL, &message) < 0)
		fail_msg("%s", message.text);
	free(line);
	json_decref(json);
	free(text);
	return record;
}

static inline void judge_changed_run(void **state)
{
	const struct judged *judged = *state;

	expect_with(changed_run(judged->changes), judged->claim, judged->verdict, judged->reason);
}

static inline int judge_all(const struct judged *rows, size_t count, const struct CMUnitTest *more,
			    size_t more_count)
{
	struct CMUnitTest tests[80];

	assert_true(count + more_count <= ARRAY_SIZE(tests));
	for (size_t i = 0; i < count; i++)
		tests[i] = (struct CMUnitTest){.name = rows[i].name,
					       .test_func = judge_changed_run,
					       .initial_state = (void *)(uintptr_t)&rows[i]};
	for (size_t i = 0; i < more_count; i++)
		tests[count + i] = more[i];
	return _cmocka_run_group_tests("judged runs", tests, count + more_count, NULL, NULL);
}

#endif
