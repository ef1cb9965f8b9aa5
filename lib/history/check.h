/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_CHECK_H
#define HISTORY_CHECK_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/message.h"
#include "history/history.h"
#include "stats/interval.h"

struct sequential;

/*
 * Has the level of a series changed? One number a commit, the median of the logarithms of its runs
 * (of the runs themselves where one is zero or negative); changes of level by ranks
 * (stats/changepoint.h). What that finds is a suspicion: it becomes an alarm when fresh runs of
 * both sides, added for that purpose, decide it at a sequential boundary (stats/sequential.h).
 */
struct check_settings {
	double alpha;	      /* chance that a series without change raises a suspicion: 0.0075 */
	double confirm_alpha; /* of a false confirmation: 0.01 */
	double min_effect;    /* 0.05: levels within 5% are no change */
	double confidence;    /* of intervals: 0.95 */
	size_t confirm_most;  /* runs a side at most: 40 */
	bool without_confirm; /* a suspicion is enough for an alarm */
};

#define CHECK_SETTINGS_DEFAULT                                                                  \
	{                                                                                       \
		.alpha = 0.0075, .confirm_alpha = 0.01, .min_effect = 0.05, .confidence = 0.95, \
		.confirm_most = 40                                                              \
	}

enum check_confirmation {
	CHECK_NEEDED,	 /* fresh runs of both sides are wanted */
	CHECK_CONFIRMED, /* fresh runs say the same */
	CHECK_REFUTED,	 /* fresh runs do not show it, up to the most */
};

struct check_change {
	/* Indices into data->commits; the change lies after last_good and at or before first_bad
	 * with the probability @confidence; @at is the likeliest first commit of the new level. */
	uint32_t last_good, at, first_bad;
	double before, after;  /* levels, in the series' unit */
	double p;	       /* of so large a change somewhere in a segment without one */
	struct interval ratio; /* runs after to runs before; NaN where no ratio exists */
	bool worse;	       /* a regression; else an improvement */
	bool mended;	       /* worse once, but the series ends at its old level or better */
	enum check_confirmation confirmation;
	size_t confirm_before, confirm_after; /* fresh runs of each side */
	const char *note;		      /* acknowledged; NULL: not */
};

struct check_result {
	const struct history_series *series;
	size_t runs, invalid, failed, points; /* runs: those that count */
	bool newest_invalid; /* the newest commit has runs and none of them counts */
	double level;	     /* of the last segment; NaN: no point */
	struct check_change *changes;
	size_t count;
	int error; /* -errno: could not be checked */
};

struct check_report {
	const struct history_data *data;
	struct check_settings settings;
	struct check_result *results; /* by series of data */
	size_t alarms, suspicions, improvements, acknowledged, invalid;
};

/* Checks every series of @data on all CPUs. -ENOMEM, -EINVAL (settings). */
int check_all(const struct history_data *data, const struct check_settings *settings,
	      struct check_report *ret_report, struct message *message);
void check_report_free(struct check_report *report);

/* One series: @points of it in the order of commits. @sequential: of check_sequential(). */
int check_points(const struct history_point *points, size_t count,
		 const struct check_settings *settings, const struct sequential *sequential,
		 bool higher_is_better, struct check_result *ret_result);
int check_sequential(const struct check_settings *settings, struct sequential **ret_sequential);
void check_result_clear(struct check_result *result);

/* Is this change an alarm under @settings? */
bool check_alarms(const struct check_change *change, const struct check_settings *settings);
const char *check_confirmation_name(enum check_confirmation confirmation);

/* 3: an alarm; 4: none, but the newest runs of a series are all invalid; 0. */
int check_exit_code(const struct check_report *report);

void check_write_text(FILE *stream, const struct check_report *report, const char *where);
json_t *check_to_json(const struct check_report *report); /* "syslatency/check/1" */
void check_write_junit(FILE *stream, const struct check_report *report);

#endif
