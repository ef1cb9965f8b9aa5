/* SPDX-License-Identifier: MIT */
#include "compare/comparable.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "record/record.h"
#include "record/setting.h"

const char *const mix_names[] = {
	"units", "benchmarks", "trace-levels", "settings", "interrupted", "durations", NULL};

int mix_parse(const char *text, unsigned int *ret_mix, struct message *message)
{
	unsigned int mix = 0;

	for (const char *at = text; *at;) {
		size_t length = strcspn(at, ","), i;

		for (i = 0; mix_names[i]; i++)
			if (strlen(mix_names[i]) == length &&
			    strncmp(at, mix_names[i], length) == 0)
				break;
		if (mix_names[i])
			mix |= 1u << i;
		else if (length == 3 && strncmp(at, "all", 3) == 0)
			mix = MIX_ALL;
		else
			return message_set(message, -EINVAL,
					   "--mix: unknown word \"%.*s\"; known: units, "
					   "benchmarks, trace-levels, settings, interrupted, "
					   "durations, all",
					   (int)length, at);
		at += length + (at[length] == ',');
	}
	*ret_mix = mix;
	return 0;
}

/* A run together with the arm that it stands in: messages name it. */
struct place {
	const struct arm *arm;
	const struct record *record;
};

/* Walks the records that may be compared. */
static bool next_place(const struct arm_set *set, unsigned int mix, size_t *arm, size_t *run,
		       struct place *place)
{
	for (; *arm < set->count; (*arm)++, *run = 0) {
		while (*run < set->arms[*arm].record_count) {
			place->arm = &set->arms[*arm];
			place->record = place->arm->records[(*run)++];
			if (strcmp(place->record->status, "ok") == 0 &&
			    (!place->record->interrupted || mix & MIX_INTERRUPTED))
				return true;
		}
	}
	return false;
}

static int refuse(struct message *message, const struct place *a, const struct place *b,
		  const char *what, const char *of_a, const char *of_b, const char *word)
{
	if (a->arm == b->arm)
		return message_set(
			message, -EBADMSG,
			"%s: runs differ in %s (%s, %s): --mix %s compares them all the same",
			a->arm->name, what, of_a, of_b, word);
	return message_set(message, -EBADMSG,
			   "%s and %s differ in %s (%s, %s): --mix %s compares them all the same",
			   a->arm->name, b->arm->name, what, of_a, of_b, word);
}

static const char *text_or_none(const char *text)
{
	return text ? text : "none";
}

static int check_word(const struct place *a, const struct place *b, const char *what,
		      const char *of_a, const char *of_b, const char *word, struct message *message)
{
	of_a = text_or_none(of_a);
	of_b = text_or_none(of_b);
	if (strcmp(of_a, of_b) == 0)
		return 0;
	return refuse(message, a, b, what, of_a, of_b, word);
}

static bool wants_extreme(const char *const *metrics)
{
	for (size_t i = 0; metrics[i]; i++)
		if (strcmp(metrics[i], "max") == 0 || strcmp(metrics[i], "min") == 0)
			return true;
	return false;
}

static int check_durations(const struct place *a, const struct place *b, struct message *message)
{
	double of_a = a->record->duration_s, of_b = b->record->duration_s;
	char text_a[32], text_b[32];

	if (isnan(of_a) || isnan(of_b) || a->record->interrupted || b->record->interrupted ||
	    fabs(of_a - of_b) <= 0.1 * fmax(of_a, of_b))
		return 0;
	snprintf(text_a, sizeof(text_a), "%.3g s", of_a);
	snprintf(text_b, sizeof(text_b), "%.3g s", of_b);
	return refuse(message, a, b, "length, and the greatest of more samples is greater", text_a,
		      text_b, "durations");
}

static int check_settings(const struct arm_set *set, const struct place *a, const struct place *b,
			  struct message *message)
{
	bool same_source = a->arm->source == b->arm->source;
	char *key = NULL, *of_a = NULL, *of_b = NULL;
	char what[160];
	int error;

	/* Arms of one experiment were planned to differ. */
	if (a->arm != b->arm && same_source)
		return 0;
	if (!setting_differs(a->record->settings, b->record->settings, &key, &of_a, &of_b))
		return 0;
	snprintf(what, sizeof(what), "settings.%s", key ? key : "?");
	error = refuse(message, a, b, what, text_or_none(of_a), text_or_none(of_b), "settings");
	free(key);
	free(of_a);
	free(of_b);
	return error;
}

/* Instructions counted and nanoseconds measured are no one quantity, whatever --mix allows. */
static int check_clock(const struct place *a, const struct place *b, struct message *message)
{
	const char *of_a = json_get_string(a->record->environment, "clock", "real");
	const char *of_b = json_get_string(b->record->environment, "clock", "real");

	if (strcmp(of_a, of_b) == 0)
		return 0;
	return message_set(message, -EBADMSG,
			   "%s has times of the %s clock, %s of the %s clock: they cannot be "
			   "compared; compare runs of one clock",
			   a->arm->name, of_a, b->arm->name, of_b);
}

static int check_unit(const struct place *a, const struct place *b, const char *metric,
		      struct message *message)
{
	const char *unit_a, *unit_b;
	double value;

	if (record_metric(a->record, metric, &value, &unit_a) < 0 ||
	    record_metric(b->record, metric, &value, &unit_b) < 0)
		return 0;
	return check_word(a, b, "the unit", unit_a, unit_b, "units", message);
}

static int check_pair(const struct arm_set *set, const struct place *a, const struct place *b,
		      unsigned int mix, const char *const *metrics, struct message *message)
{
	int error = check_clock(a, b, message);

	if (!error && !(mix & MIX_BENCHMARKS)) {
		error = check_word(a, b, "the benchmark", a->record->benchmark,
				   b->record->benchmark, "benchmarks", message);
		if (!error)
			error = check_word(a, b, "what is measured", a->record->measure,
					   b->record->measure, "benchmarks", message);
	}
	if (!error && !(mix & MIX_TRACE_LEVELS))
		error = check_word(a, b, "trace level", a->record->trace_level,
				   b->record->trace_level, "trace-levels", message);
	if (!error && !(mix & MIX_SETTINGS))
		error = check_settings(set, a, b, message);
	for (size_t i = 0; metrics[i] && !error && !(mix & MIX_UNITS); i++)
		error = check_unit(a, b, metrics[i], message);
	if (!error && !(mix & MIX_DURATIONS) && wants_extreme(metrics))
		error = check_durations(a, b, message);
	return error;
}

int arms_check_comparable(const struct arm_set *set, unsigned int mix, const char *const *metrics,
			  struct message *message)
{
	struct place first = {NULL, NULL}, first_of_arm = {NULL, NULL}, place;
	size_t arm = 0, run = 0;
	int error;

	while (next_place(set, mix, &arm, &run, &place)) {
		if (!first.record)
			first = place;
		if (first_of_arm.arm != place.arm) {
			first_of_arm = place;
			error = check_pair(set, &first, &place, mix, metrics, message);
		} else {
			error = check_pair(set, &first_of_arm, &place, mix, metrics, message);
		}
		if (error)
			return error;
	}
	return 0;
}
