/* SPDX-License-Identifier: MIT */
/*
 * Known causes, planted while a run measures; the explanation of the worst delay that the plant
 * made must name it. "test_planted --trials 10 [NAME]" counts how often it does
 * (scripts/bench-causes).
 */
#include "support/testing.h"

#include <errno.h>
#include <pthread.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/json.h"
#include "causes/plants.h"
#include "run/run.h"
#include "sys/cgroup.h"

/* A machine that others use: a trial may show nothing of the plant's. */
#define ATTEMPTS 4
#define WINDOW_NS (2 * NS_PER_S)

struct planted {
	const char *name;
	plant_function *plant; /* NULL: the load of the run is the cause */
	const char *process;
	const char *cause, *words, *more_words;
	int32_t cpu;	  /* where its delays are; -1: anywhere */
	int64_t least_ns; /* shorter delays do not show it */
	bool thp, load;	  /* the measure; beside a memory group at its limit */
	bool alike;	  /* it does the same each time: what takes twice as long was held up */
};

static const struct planted planted[] = {
	{"hog", plant_hog, "plant-hog", "task", "plant-hog (pid", "held CPU 0", 0, 3 * NS_PER_MS,
	 false, false, true},
	/* Who allocates at the limit reclaims: the sampler itself. */
	{"memcg", NULL, NULL, "memcg-reclaim", "in memcg reclaim", "put to swap", -1, NS_PER_MS,
	 true, true},
	{"compaction", plant_compaction, "plant-compact", "compaction", "plant-compact",
	 "in compaction", 0, 0, false, false},
	{"shrinker", plant_shrinker, "plant-shrink", "shrinker", "plant-shrink", "in the shrinker",
	 0, 0, false, false},
	{"stop", plant_stop, "plant-stop", "stopped", "stopped by a signal", "", -1, 3 * NS_PER_MS,
	 false, false, true},
	{"flood", plant_flood, "plant-flood", "softirq", "the softirq NET_RX", "", 0, 0, false,
	 false, true},
	{"collapse", plant_collapse, "plant-collapse", "lock", "mmap_lock", "plant-collapse (pid",
	 -1, 0, true, false},
};
#define PLANTED ARRAY_SIZE(planted)

/* What became of a trial. */
struct outcome {
	int error;     /* the run failed */
	bool named;    /* the plant's worst delay is explained by the plant */
	size_t stolen; /* longer ones of the plant's that the host lengthened, by its own counter */
	size_t held_up; /* longer ones in which the plant took twice as long as it does */
	size_t foreign; /* longer ones while the plant did nothing, or on another CPU */
	char said[1024];
};

/* The counter of the CPU moved by at least half of the delay. */
static bool is_proved_steal(const json_t *entry)
{
	const json_t *steal_us = json_at(entry, "evidence.steal_us");

	return strcmp(json_get_string(entry, "cause", ""), "steal") == 0 &&
	       json_is_number(steal_us) &&
	       json_number_value(steal_us) >= json_get_number(entry, "late_us", 0) / 2;
}

/* The plant knows when it was active, the load of the run always is. */
static bool is_of_plant(const struct planted *plant, const json_t *entry, int64_t begin_ns)
{
	int64_t when_ns = begin_ns + (int64_t)(json_get_number(entry, "when_us", 0) * 1e3);
	int64_t late_ns = (int64_t)(json_get_number(entry, "late_us", 0) * 1e3);

	if (plant->cpu >= 0 && json_get_int64(entry, "cpu", -1) != plant->cpu)
		return false;
	return !plant->plant || plant_overlap_ns(when_ns, when_ns + late_ns) >= late_ns / 2;
}

/*
 * A host that tells no steal stops the plant too, in the midst of it. A delay in which it was
 * active for twice its time is not for the most part the plant's, whatever is said of it.
 */
static bool is_held_up(const struct planted *plant, const json_t *entry, int64_t begin_ns)
{
	int64_t when_ns = begin_ns + (int64_t)(json_get_number(entry, "when_us", 0) * 1e3);
	int64_t late_ns = (int64_t)(json_get_number(entry, "late_us", 0) * 1e3);

	return plant->alike && plant_overlap_ns(when_ns, when_ns + late_ns) > 2 * plant_median_ns();
}

/* Or a thread of the sampler waits for another, which the plant holds up. */
static bool names_cause(const struct planted *plant, const char *cause, const char *sentence)
{
	if (plant->load && strcmp(cause, "lock") == 0)
		return strstr(sentence, "woke it") && strstr(sentence, plant->words);
	return strcmp(cause, plant->cause) == 0 && strstr(sentence, plant->words) &&
	       strstr(sentence, plant->more_words);
}

static bool is_named(const struct planted *plant, const json_t *entry)
{
	return names_cause(plant, json_get_string(entry, "cause", ""),
			   json_get_string(entry, "sentence", "")) &&
	       json_get_number(entry, "late_us", 0) * 1e3 >= (double)plant->least_ns &&
	       json_get_number(entry, "explained_percent", 0) >= 95;
}

static void judge(const struct planted *plant, const struct record *record, int64_t begin_ns,
		  struct outcome *outcome)
{
	const json_t *entry;
	size_t i;

	snprintf(outcome->said, sizeof(outcome->said),
		 "none of the worst delays is the plant's, which was active %zu times, for %.1f ms "
		 "of the window",
		 atomic_load(&plant_log->count),
		 (double)plant_overlap_ns(begin_ns, begin_ns + WINDOW_NS) / 1e6);
	json_array_foreach (record->causes, i, entry) {
		if (!is_of_plant(plant, entry, begin_ns)) {
			outcome->foreign++;
		} else if (is_proved_steal(entry)) {
			outcome->stolen++;
		} else if (is_held_up(plant, entry, begin_ns)) {
			outcome->held_up++;
		} else {
			outcome->named = is_named(plant, entry);
			snprintf(outcome->said, sizeof(outcome->said), "%.0f us, %s: %s",
				 json_get_number(entry, "late_us", 0),
				 json_get_string(entry, "cause", ""),
				 json_get_string(entry, "sentence", ""));
			return;
		}
	}
}

/* The window's begin, which the record does not hold: what is left of it tells. */
static void note_begin(void *data, const struct run_progress *progress)
{
	int64_t *begin_ns = data, now_ns = clock_now_ns();

	if (progress->stage != RUN_MEASURING)
		return;
	now_ns += progress->left_ns - WINDOW_NS;
	if (*begin_ns == 0 || now_ns < *begin_ns)
		*begin_ns = now_ns;
}

static void set_up(struct run_settings *settings, const struct planted *plant)
{
	*settings = (struct run_settings){
		.benchmark = "test_planted",
		.measure = measure_find("wakeup"),
		.fifo = true,
		.priority = 99,
		.duration_ns = WINDOW_NS,
		.warmup_ns = 200 * NS_PER_MS,
		.trace_level = 2,
		.worst = 2 * SAMPLING_WORST, /* of each CPU of this machine its own */
		.backend_settings = {.variant = VARIANT_STOCK},
	};
	if (plant->thp) {
		settings->measure = measure_find("thp");
		settings->measure_settings.pace_ns = 2 * NS_PER_MS;
	}
	if (plant->load) {
		settings->loads[0] = load_find("swap");
		settings->load_count = 1;
		settings->scope = SCOPE_MEMCG;
		settings->limit = (struct size_value){.bytes = (uint64_t)200 << 20};
	}
}

static void run_beside(const struct planted *plant, struct outcome *outcome)
{
	struct message message = {""};
	struct run_settings settings;
	struct record *record;
	int64_t begin_ns = 0;
	pid_t child = 0;

	set_up(&settings, plant);
	settings.progress = note_begin;
	settings.progress_data = &begin_ns;
	cpu_list_allowed(0, &settings.cpus);
	if (plant->plant == plant_collapse)
		plant_log->memory = plant_map_collapsible();
	if (plant->plant)
		child = plant_start(plant->plant, plant->process);
	outcome->error = run_execute(&settings, &record, &message);
	if (child > 0)
		plant_end(child);
	cpu_list_free(&settings.cpus);
	if (outcome->error) {
		snprintf(outcome->said, sizeof(outcome->said), "%s", message.text);
		return;
	}
	if (strcmp(record->trace_level, "full") == 0) {
		judge(plant, record, begin_ns, outcome);
	} else {
		snprintf(outcome->said, sizeof(outcome->said), "%s",
			 json_string_value(json_array_get(record->notes, 0)));
		outcome->error = -ENOTSUP;
	}
	record_free(record);
}

static void trial(const struct planted *plant, struct outcome *outcome)
{
	*outcome = (struct outcome){0};
	assert_true(plant_open_log());
	run_beside(plant, outcome);
	plant_close_log();
}

static void must_name(void **state)
{
	const struct planted *plant = *state;
	struct outcome outcome = {0};

	if (geteuid() != 0)
		SKIP_BECAUSE("kernel events need root");
	for (int attempt = 0; attempt < ATTEMPTS && !outcome.named && !outcome.error; attempt++) {
		trial(plant, &outcome);
		if (!outcome.named)
			printf("# %s was not named: %s\n", plant->name, outcome.said);
	}
	if (outcome.error == -ENOTSUP || outcome.error == -EACCES || outcome.error == -EPERM ||
	    outcome.error == -ENODEV)
		SKIP_BECAUSE("%s", outcome.said);
	if (!outcome.named)
		fail_msg("%s: %s", plant->name, outcome.said);
}

static int count_trials_of(const struct planted *plant, int trials)
{
	size_t stolen = 0, held_up = 0, foreign = 0;
	int named = 0;

	for (int k = 0; k < trials; k++) {
		struct outcome outcome;

		trial(plant, &outcome);
		named += outcome.named;
		stolen += outcome.stolen;
		held_up += outcome.held_up;
		foreign += outcome.foreign;
		printf("# %s %s: %s\n", plant->name,
		       outcome.error   ? "FAILED"
		       : outcome.named ? "right"
				       : "WRONG",
		       outcome.said);
		fflush(stdout);
		if (outcome.error)
			return outcome.error;
	}
	printf("%s: %d/%d (of longer delays, %zu were stolen by the host's own count, in %zu the "
	       "plant took twice its time, %zu were not the plant's)\n",
	       plant->name, named, trials, stolen, held_up, foreign);
	fflush(stdout);
	return 0;
}

static int count_trials(int trials, const char *only)
{
	bool found = false;
	int error = 0;

	for (size_t i = 0; i < PLANTED && !error; i++) {
		if (only && strcmp(only, planted[i].name) != 0)
			continue;
		found = true;
		error = count_trials_of(&planted[i], trials);
	}
	if (!found)
		fprintf(stderr, "test_planted: no cause '%s' is planted\n", only);
	return error ? 77 : found ? 0 : 2;
}

int main(int argc, char **argv)
{
	struct CMUnitTest tests[PLANTED];

	if (argc > 2 && strcmp(argv[1], "--trials") == 0)
		return count_trials(atoi(argv[2]), argc > 3 ? argv[3] : NULL);
	for (size_t i = 0; i < PLANTED; i++)
		tests[i] = (struct CMUnitTest){.name = planted[i].name,
					       .test_func = must_name,
					       .initial_state = (void *)(uintptr_t)&planted[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
