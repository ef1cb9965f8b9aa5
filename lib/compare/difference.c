/* SPDX-License-Identifier: MIT */
#include "compare/comparable.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "record/record.h"
#include "record/setting.h"

/* What besides the arm differs between arms. */

/* Facts that change from run to run by themselves. */
static const char *const volatile_facts[] = {"clock_read_ns", "uptime_s", "available_bytes",
					     "free_bytes",    "seed",	  "boot_seed"};

enum fact_home { HOME_ENVIRONMENT, HOME_SETTINGS };

static const json_t *home_of(const struct record *record, enum fact_home home)
{
	return home == HOME_ENVIRONMENT ? record->environment : record->settings;
}

static bool is_volatile(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(volatile_facts); i++)
		if (strcmp(key, volatile_facts[i]) == 0)
			return true;
	return false;
}

/* The value of @path that holds through the arm; NULL when it has none or it changes. */
static const json_t *constant_of(const struct arm *arm, enum fact_home home, const char *path)
{
	const json_t *first_home = NULL, *first = NULL;

	for (size_t i = 0; i < arm->record_count; i++) {
		const json_t *object = home_of(arm->records[i], home), *value;

		if (!object || object == first_home)
			continue;
		value = json_at(object, path);
		if (!first_home) {
			first_home = object;
			first = value;
			continue;
		}
		if (!value || !first || !json_equal(value, first))
			return NULL;
	}
	return first;
}

/* Measured quantities (frequencies, rates) wobble: 10% is no difference between machines. */
static bool same_fact(const json_t *a, const json_t *b)
{
	if (json_is_real(a) && json_is_number(b)) {
		double of_a = json_number_value(a), of_b = json_number_value(b);

		return fabs(of_a - of_b) <= 0.1 * fmax(fabs(of_a), fabs(of_b));
	}
	return json_equal(a, b);
}

static void say(json_t *list, const char *path, const struct arm *a, const json_t *of_a,
		const struct arm *b, const json_t *of_b)
{
	char *text_a = setting_text(of_a), *text_b = setting_text(of_b), *sentence;

	if (asprintf(&sentence, "%s: %s has %.120s, %s has %.120s", path, a->name,
		     text_a ? text_a : "?", b->name, text_b ? text_b : "?") >= 0) {
		json_array_append_new(list, json_string_or_null(sentence));
		free(sentence);
	}
	free(text_a);
	free(text_b);
}

/* Against the first arm that has the fact; each other arm that differs is named. */
static void compare_fact(const struct arm_set *set, enum fact_home home, const char *path,
			 const char *shown, json_t *list)
{
	const struct arm *first = NULL;
	const json_t *of_first = NULL;

	for (size_t i = 0; i < set->count; i++) {
		const json_t *value = constant_of(&set->arms[i], home, path);

		if (!value)
			continue;
		if (!first) {
			first = &set->arms[i];
			of_first = value;
		} else if (value != of_first && !same_fact(value, of_first)) {
			say(list, shown, first, of_first, &set->arms[i], value);
		}
	}
}

static void walk(const struct arm_set *set, enum fact_home home, const json_t *object,
		 const char *prefix, json_t *list)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)object, key, value) {
		char path[256], shown[280];

		if (is_volatile(key) || strchr(key, '.') ||
		    snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix ? "." : "", key) >=
			    (int)sizeof(path))
			continue;
		if (json_is_object(value)) {
			walk(set, home, value, path, list);
			continue;
		}
		snprintf(shown, sizeof(shown), "%s.%s",
			 home == HOME_ENVIRONMENT ? "environment" : "settings", path);
		compare_fact(set, home, path, shown, list);
	}
}

static void compare_home(const struct arm_set *set, enum fact_home home, json_t *list)
{
	const json_t *only = NULL;
	bool several = false;

	/* One and the same object through all arms: nothing can differ. */
	for (size_t i = 0; i < set->count; i++)
		for (size_t j = 0; j < set->arms[i].record_count; j++) {
			const json_t *object = home_of(set->arms[i].records[j], home);

			several |= only && object && object != only;
			only = only ? only : object;
		}
	if (several)
		walk(set, home, only, "", list);
}

static void compare_machines(const struct arm_set *set, json_t *list)
{
	const char *first = NULL;

	for (size_t i = 0; i < set->count; i++)
		for (size_t j = 0; j < set->arms[i].record_count; j++) {
			const char *key = set->arms[i].records[j]->machine_key;

			if (!*key)
				continue;
			if (!first)
				first = key;
			else if (strcmp(first, key) != 0) {
				json_array_append_new(
					list,
					json_sprintf("machine: runs come from different machines "
						     "(keys %s, %s)",
						     first, key));
				return;
			}
		}
}

static int by_value(const void *a, const void *b)
{
	double of_a = *(const double *)a, of_b = *(const double *)b;

	return (of_a > of_b) - (of_a < of_b);
}

/* Median of a load's achieved rate over an arm's runs; NaN when it has none. */
static double median_rate(const struct arm *arm, const char *load)
{
	double *rates = calloc(arm->record_count ? arm->record_count : 1, sizeof(*rates)), median;
	size_t count = 0;

	for (size_t i = 0; rates && i < arm->record_count; i++) {
		const json_t *stats = json_object_get(arm->records[i]->load_stats, load);
		double rate = json_get_number(stats, "ops_per_s", NAN);

		if (!isnan(rate))
			rates[count++] = rate;
	}
	if (count)
		qsort(rates, count, sizeof(*rates), by_value);
	median = count ? (rates[(count - 1) / 2] + rates[count / 2]) / 2 : NAN;
	free(rates);
	return median;
}

/* Arms must meet the same load, or their latencies answer different questions. */
static void compare_rates(const struct arm_set *set, json_t *list)
{
	const struct record *example = NULL;
	const char *load;
	json_t *stats;

	for (size_t i = 0; i < set->count && !example; i++)
		for (size_t j = 0; j < set->arms[i].record_count && !example; j++)
			if (json_object_size(set->arms[i].records[j]->load_stats))
				example = set->arms[i].records[j];
	if (!example)
		return;
	json_object_foreach (example->load_stats, load, stats) {
		const struct arm *first = NULL;
		double of_first = NAN;

		for (size_t i = 0; i < set->count; i++) {
			double rate = median_rate(&set->arms[i], load);

			if (isnan(rate))
				continue;
			if (!first) {
				first = &set->arms[i];
				of_first = rate;
			} else if (fabs(rate - of_first) > 0.1 * fmax(rate, of_first)) {
				json_array_append_new(
					list,
					json_sprintf("load %s: %s achieved %.4g/s, %s %.4g/s: more "
						     "than 10%% apart",
						     load, first->name, of_first, set->arms[i].name,
						     rate));
			}
		}
	}
}

json_t *arms_differences(const struct arm_set *set)
{
	json_t *list = json_array();

	if (!list)
		return NULL;
	compare_machines(set, list);
	compare_home(set, HOME_ENVIRONMENT, list);
	compare_home(set, HOME_SETTINGS, list);
	compare_rates(set, list);
	return list;
}
