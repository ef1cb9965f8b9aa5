/* SPDX-License-Identifier: MIT */
/*
 * Known causes, planted while a run measures; the explanation of the worst delay must name them.
 * "test_planted --trials 10 [NAME]" counts how often it does.
 */
#include "support/testing.h"

#include <errno.h>
#include <pthread.h>

#include "base/json.h"
#include "causes/plants.h"
#include "engine/run.h"
#include "sys/cgroup.h"

/* A machine that others use: what they cause is no fault of the explanation. */
#define ATTEMPTS 4

struct planted {
	const char *name;
	plant_function *plant; /* NULL: the load of the run is the cause */
	const char *cause, *words, *process;
	const char *also; /* sentence that is as right: what the plant sets off */
	int64_t least_ns; /* shorter delays are of other causes */
};

static const struct planted planted[] = {
	{"hog", plant_hog, "task", "plant-hog (pid", "plant-hog", NULL, 3 * NS_PER_MS},
	{"memcg", NULL, "memcg-reclaim", "in memcg reclaim", NULL, NULL, NS_PER_MS},
	{"compaction", plant_compaction, "compaction", "plant-compact", "plant-compact", NULL, 0},
	{"shrinker", plant_shrinker, "shrinker", "plant-shrink", "plant-shrink",
	 "the softirq RCU ran", 0},
	{"stop", plant_stop, "stopped", "stopped by a signal", "plant-stop", NULL, 3 * NS_PER_MS},
	{"flood", plant_flood, "softirq", "the softirq NET_RX", "plant-flood", NULL, 0},
};

static bool is_stolen(const json_t *entry)
{
	const char *cause = json_get_string(entry, "cause", "");

	return strcmp(cause, "steal") == 0 || strcmp(cause, "possibly-stolen") == 0;
}

/* Programs of others on the same machine, named as such. */
static bool is_foreign(const json_t *entry, const struct planted *plant)
{
	return strcmp(json_get_string(entry, "cause", ""), "task") == 0 &&
	       !(plant->process && strstr(json_get_string(entry, "sentence", ""), plant->process));
}

/* The worst delay that neither the host nor another program caused. */
static const json_t *worst_of_ours(const struct record *record, const struct planted *plant)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (record->causes, i, entry) {
		if (!is_stolen(entry) && !is_foreign(entry, plant))
			return entry;
	}
	return NULL;
}

static void set_up(struct run_settings *settings, const struct planted *plant)
{
	*settings = (struct run_settings){
		.benchmark = "test_planted",
		.measure = measure_find("wakeup"),
		.fifo = true,
		.priority = 99,
		.duration_ns = 2 * NS_PER_S,
		.warmup_ns = 200 * NS_PER_MS,
		.trace_level = 2,
		.worst = 10,
		.backend_settings = {.variant = VARIANT_STOCK},
	};
	if (plant->plant)
		return;
	/* Who allocates at the limit reclaims: the sampler itself. */
	settings->measure = measure_find("thp");
	settings->measure_settings.pace_ns = 2 * NS_PER_MS;
	settings->loads[0] = load_find("swap");
	settings->load_count = 1;
	settings->scope = SCOPE_MEMCG;
	settings->limit = (struct size_value){.bytes = (uint64_t)200 << 20};
}

/* 1: named, 0: not, -errno. What was said in @said. */
static int trial(const struct planted *plant, char *said, size_t size)
{
	struct message message = {""};
	struct run_settings settings;
	const json_t *entry;
	struct record *record;
	pid_t child = 0;
	int error, named = 0;

	set_up(&settings, plant);
	cpu_list_allowed(0, &settings.cpus);
	if (plant->plant)
		child = plant_start(plant->plant, plant->process);
	error = run_execute(&settings, &record, &message);
	if (child > 0)
		plant_end(child);
	cpu_list_free(&settings.cpus);
	if (error) {
		snprintf(said, size, "%s", message.text);
		return error;
	}
	entry = worst_of_ours(record, plant);
	if (strcmp(record->trace_level, "full") != 0) {
		snprintf(said, size, "%s", json_string_value(json_array_get(record->notes, 0)));
		error = -ENOTSUP;
	} else if (entry) {
		const char *sentence = json_get_string(entry, "sentence", "");

		snprintf(said, size, "%.0f us, %s: %s", json_get_number(entry, "late_us", 0),
			 json_get_string(entry, "cause", ""), sentence);
		named = ((strcmp(json_get_string(entry, "cause", ""), plant->cause) == 0 &&
			  strstr(sentence, plant->words) != NULL) ||
			 (plant->also && strstr(sentence, plant->also))) &&
			json_get_number(entry, "late_us", 0) * 1e3 >= (double)plant->least_ns &&
			json_get_number(entry, "explained_percent", 0) >= 95;
	}
	record_free(record);
	return error ? error : named;
}

static void must_name(const struct planted *plant)
{
	char said[1024] = "";
	int result = 0;

	if (geteuid() != 0)
		SKIP_BECAUSE("kernel events need root");
	for (int attempt = 0; attempt < ATTEMPTS && result == 0; attempt++) {
		result = trial(plant, said, sizeof(said));
		if (result == 0)
			printf("# %s was not named: %s\n", plant->name, said);
	}
	if (result == -ENOTSUP || result == -EACCES || result == -EPERM || result == -ENODEV)
		SKIP_BECAUSE("%s", said);
	if (result != 1)
		fail_msg("%s: %s", plant->name, said);
}

static void test_hog(void **state)
{
	must_name(&planted[0]);
}

static void test_memcg(void **state)
{
	must_name(&planted[1]);
}

static void test_compaction(void **state)
{
	must_name(&planted[2]);
}

static void test_shrinker(void **state)
{
	must_name(&planted[3]);
}

static void test_stop(void **state)
{
	must_name(&planted[4]);
}

static void test_flood(void **state)
{
	must_name(&planted[5]);
}

static int count_trials(int trials, const char *only)
{
	for (size_t i = 0; i < sizeof(planted) / sizeof(planted[0]); i++) {
		int named = 0;

		if (only && strcmp(only, planted[i].name) != 0)
			continue;
		for (int k = 0; k < trials; k++) {
			char said[1024] = "";
			int result = trial(&planted[i], said, sizeof(said));

			named += result == 1;
			printf("# %s %d: %s\n", planted[i].name, result, said);
			fflush(stdout);
		}
		printf("%s: named in %d of %d\n", planted[i].name, named, trials);
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hog),	   cmocka_unit_test(test_memcg),
		cmocka_unit_test(test_compaction), cmocka_unit_test(test_shrinker),
		cmocka_unit_test(test_stop),	   cmocka_unit_test(test_flood),
	};

	if (argc > 2 && strcmp(argv[1], "--trials") == 0)
		return count_trials(atoi(argv[2]), argc > 3 ? argv[3] : NULL);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
