/* SPDX-License-Identifier: MIT */
#include "reports/comparison_facts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/parse.h"
#include "record/record.h"
#include "sys/environment.h"

const struct record *facts_example(const struct comparison_report *report)
{
	for (size_t i = 0; i < report->set->count; i++)
		for (size_t j = 0; j < report->set->arms[i].record_count; j++)
			if (strcmp(report->set->arms[i].records[j]->status, "ok") == 0)
				return report->set->arms[i].records[j];
	return NULL;
}

/* Options that differ from run to run or from arm to arm say nothing about the experiment. */
static size_t words_to_skip(const char *word, bool one_command)
{
	static const char *const with_value[] = {"--json", "--samples", "--arm"};

	for (size_t i = 0; i < ARRAY_SIZE(with_value); i++) {
		size_t length = strlen(with_value[i]);

		if (strncmp(word, with_value[i], length) == 0 &&
		    (word[length] == '\0' || word[length] == '='))
			return word[length] ? 1 : 2;
	}
	if (one_command && strcmp(word, "--variant") == 0)
		return 2;
	return 0;
}

char *facts_command(const struct comparison_report *report)
{
	const struct record *record = facts_example(report);
	char *text = NULL;
	size_t size, skip;
	FILE *stream;

	if (!record || !json_array_size(record->command))
		return NULL;
	stream = open_memstream(&text, &size);
	if (!stream)
		return NULL;
	for (size_t i = 0; i < json_array_size(record->command); i += skip ? skip : 1) {
		const char *word = json_string_value(json_array_get(record->command, i));
		const char *slash = word ? strrchr(word, '/') : NULL;

		skip = word && i ? words_to_skip(word, record->variant != NULL) : 0;
		if (word && !skip)
			fprintf(stream, "%s%s", i ? " " : "", i == 0 && slash ? slash + 1 : word);
	}
	fclose(stream);
	return text;
}

char *facts_machine(const struct comparison_report *report)
{
	const struct record *record = facts_example(report);
	const json_t *environment = record ? record->environment : NULL;
	const char *hypervisor = environment_hypervisor_name(environment);
	char memory[32], swap[32], *text;
	int length;

	if (!environment)
		return NULL;
	format_size((uint64_t)json_get_int64(environment, "memory_bytes", 0), memory,
		    sizeof(memory));
	format_size((uint64_t)json_get_int64(environment, "swap_bytes", 0), swap, sizeof(swap));
	length = asprintf(
		&text, "%s%s%s, %lld CPUs, %s memory, %s swap, Linux %s (preemption %s)%s%s",
		json_get_string(json_object_get(environment, "machine"), "product", ""),
		json_get_string(json_object_get(environment, "machine"), "product", NULL) ? ", "
											  : "",
		json_get_string(environment, "cpu_model", "unknown CPU"),
		(long long)json_get_int64(environment, "cpus_online", 0), memory, swap,
		json_get_string(environment, "kernel", "unknown"),
		json_get_string(environment, "preemption", "unknown"),
		json_is_true(json_object_get(environment, "guest")) ? ", a guest of " : "",
		json_is_true(json_object_get(environment, "guest"))
			? (hypervisor ? hypervisor : "a hypervisor")
			: "");
	return length < 0 ? NULL : text;
}

char *facts_runs(const struct comparison_report *report)
{
	const struct record *record = facts_example(report);
	const json_t *plan = report->set->sources[0].plan;
	const struct comparison *comparison = report->comparisons[0];
	size_t least = SIZE_MAX, most = 0;
	char seed[48] = "", length[48] = "", *text;

	for (size_t i = 0; i < comparison->count; i++) {
		least = comparison->arms[i].count < least ? comparison->arms[i].count : least;
		most = comparison->arms[i].count > most ? comparison->arms[i].count : most;
	}
	if (record && isfinite(record->duration_s))
		snprintf(length, sizeof(length), " of %.3g s", record->duration_s);
	if (json_object_get(plan, "seed"))
		snprintf(seed, sizeof(seed), " (seed %lld)",
			 (long long)json_get_int64(plan, "seed", 0));
	if (asprintf(&text, "%zu arms, %zu%s%.0zu runs%s an arm that count%s%s.", comparison->count,
		     least, least == most ? "" : " to ", least == most ? (size_t)0 : most, length,
		     plan ? ", in blocks of random order" : "", seed) < 0)
		return NULL;
	return text;
}

char *facts_validity(const struct comparison_report *report)
{
	size_t counts[3] = {0}, failed = 0, runs = 0;
	char *text;

	for (size_t i = 0; i < report->set->count; i++)
		for (size_t j = 0; j < report->set->arms[i].record_count; j++) {
			const struct record *record = report->set->arms[i].records[j];

			runs++;
			if (strcmp(record->status, "ok") != 0)
				failed++;
			else
				counts[record->verdict]++;
		}
	if (!runs)
		return NULL;
	if (asprintf(&text, "Of %zu runs %zu are valid, %zu suspect, %zu invalid, %zu failed.",
		     runs, counts[VERDICT_VALID], counts[VERDICT_SUSPECT], counts[VERDICT_INVALID],
		     failed) < 0)
		return NULL;
	return text;
}

static bool is_throttled(const struct record *record)
{
	return record->throttle_gaps > 0;
}

static bool is_in_memcg(const struct record *record)
{
	return record->scope && strcmp(record->scope, "memcg") == 0;
}

static bool is_released_by_load(const struct record *record)
{
	return record->release_context && strcmp(record->release_context, "load") == 0;
}

static bool any_record(const struct comparison_report *report, bool (*is)(const struct record *))
{
	for (size_t i = 0; i < report->set->count; i++)
		for (size_t j = 0; j < report->set->arms[i].record_count; j++)
			if (is(report->set->arms[i].records[j]))
				return true;
	return false;
}

void facts_caveats(FILE *stream, const struct comparison_report *report,
		   void (*write)(FILE *stream, const char *text))
{
	static const struct {
		bool (*is)(const struct record *record);
		const char *text;
	} caveats[] = {
		{is_in_memcg,
		 "Pressure came from a memory cgroup's limit, which reclaims differently "
		 "from a whole machine that runs short: the LRU lock is the group's own "
		 "(since 5.11), kswapd takes no part, global direct reclaim and compaction "
		 "do not run, pgscan_direct and allocstall stay 0, only memcg-aware shrinkers "
		 "are called; and swap on zram costs processor time in place of disk time."},
		{is_released_by_load,
		 "The buffers stood in for a GPU driver's and were released by the load's own "
		 "process (release_context \"load\"). A driver's shrinker releases them "
		 "inside the reclaim of whoever allocates: these numbers show what scanning "
		 "pinned pages costs, and cannot show that delay."},
		{is_throttled,
		 "Some runs were throttled by the kernel (RT throttling or the fair server); "
		 "their maxima show that too."},
	};

	for (size_t i = 0; i < ARRAY_SIZE(caveats); i++)
		if (any_record(report, caveats[i].is))
			write(stream, caveats[i].text);
}
