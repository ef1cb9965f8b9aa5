/* SPDX-License-Identifier: MIT */
#include "history/check.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "stats/changepoint.h"
#include "stats/rank.h"
#include "stats/sequential.h"
#include "stats/series.h"

#define CHANGES_MOST 64
#define SIDE_MOST 2000 /* runs of one side that an interval is made of: the nearest ones */

/* What lies between the runs and the changes: one number a commit. */
struct commits {
	double *levels;	   /* logarithms when @log */
	uint32_t *commits; /* index in data->commits */
	size_t *starts;	   /* first of the commit's values */
	double *values;	   /* runs that count, by commit */
	size_t count, value_count;
	bool log;
};

static void commits_free(struct commits *commits)
{
	free(commits->levels);
	free(commits->commits);
	free(commits->starts);
	free(commits->values);
}

static bool counts(const struct history_point *point, enum run_purpose purpose)
{
	return point->purpose == purpose && point->state <= RUN_SUSPECT && isfinite(point->value);
}

static int gather(const struct history_point *points, size_t count, struct commits *commits)
{
	size_t room = count + 1;

	commits->levels = malloc(room * sizeof(double));
	commits->commits = malloc(room * sizeof(uint32_t));
	commits->starts = malloc(room * sizeof(size_t));
	commits->values = malloc(room * sizeof(double));
	if (!commits->levels || !commits->commits || !commits->starts || !commits->values)
		return -ENOMEM;
	commits->log = true;
	for (size_t i = 0; i < count; i++) {
		if (!counts(&points[i], PURPOSE_HISTORY))
			continue;
		if (!commits->count || commits->commits[commits->count - 1] != points[i].commit) {
			commits->commits[commits->count] = points[i].commit;
			commits->starts[commits->count++] = commits->value_count;
		}
		commits->values[commits->value_count++] = points[i].value;
		commits->log &= points[i].value > 0;
	}
	commits->starts[commits->count] = commits->value_count;
	return 0;
}

/* Median of a commit's runs: few of them, sorted by insertion in @scratch. */
static double median(const double *values, size_t count, bool log_scale, double *scratch)
{
	for (size_t i = 0; i < count; i++) {
		double value = log_scale ? log(values[i]) : values[i];
		size_t k = i;

		for (; k > 0 && scratch[k - 1] > value; k--)
			scratch[k] = scratch[k - 1];
		scratch[k] = value;
	}
	return series_median(scratch, count);
}

static int find_levels(struct commits *commits)
{
	size_t most = 0;
	double *scratch;

	for (size_t i = 0; i < commits->count; i++)
		most = fmax((double)most, (double)(commits->starts[i + 1] - commits->starts[i]));
	scratch = malloc((most + 1) * sizeof(double));
	if (!scratch)
		return -ENOMEM;
	for (size_t i = 0; i < commits->count; i++) {
		size_t start = commits->starts[i], runs = commits->starts[i + 1] - start;

		commits->levels[i] = median(commits->values + start, runs, commits->log, scratch);
	}
	free(scratch);
	return 0;
}

/* --- where the change lies --- */

struct ranked {
	double value;
	size_t place;
};

static int compare_ranked(const void *left, const void *right)
{
	const struct ranked *a = left, *b = right;

	return (a->value > b->value) - (a->value < b->value);
}

/* z with P(Z < z) = p to 5e-4 (Abramowitz & Stegun 26.2.23): plenty for scores, and a tenth of the
 * time of an exact one. */
static double normal_score(double p)
{
	double t = sqrt(-2 * log(p < 0.5 ? p : 1 - p));
	double z = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
			       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));

	return p < 0.5 ? -z : z;
}

/* Normal scores of the ranks of values[0..count), in order of time. */
static int normal_scores(const double *values, size_t count, double *scores)
{
	struct ranked *order = malloc(count * sizeof(*order));

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = (struct ranked){values[i], i};
	qsort(order, count, sizeof(*order), compare_ranked);
	for (size_t i = 0, next; i < count; i = next) {
		double score;

		for (next = i + 1; next < count && order[next].value == order[i].value;)
			next++;
		score = normal_score((double)(i + next + 1) / 2 / ((double)count + 1));
		for (size_t k = i; k < next; k++)
			scores[order[k].place] = score;
	}
	free(order);
	return 0;
}

/*
 * Places of the split that the data do not tell from the best one: those with a likelihood ratio
 * statistic at most -2 ln(1 - sqrt(c)) at the confidence c (B. E. Hansen, Econometrica 68, 2000,
 * theorem 1), in the normal model of the scores of ranks.
 */
static int locate(const double *values, size_t count, size_t best, double confidence,
		  size_t *ret_low, size_t *ret_high)
{
	double bound = -2 * log(1 - sqrt(confidence)), sum = 0, total = 0, squares = 0, least = 0;
	double *scores = malloc(2 * count * sizeof(double)), *rest;
	int error = scores ? normal_scores(values, count, scores) : -ENOMEM;

	*ret_low = *ret_high = best;
	if (error) {
		free(scores);
		return error;
	}
	rest = scores + count;
	for (size_t i = 0; i < count; i++) {
		total += scores[i];
		squares += scores[i] * scores[i];
	}
	for (size_t k = 1; k < count; k++) {
		double n = (double)k, m = (double)(count - k);

		sum += scores[k - 1];
		rest[k] = squares - sum * sum / n - (total - sum) * (total - sum) / m;
		if (k == best)
			least = rest[k];
	}
	for (size_t k = 1; k < count; k++) {
		bool within = rest[k] <= least || (least > 1e-9 * squares &&
						   (double)count * log(rest[k] / least) <= bound);

		if (within && k < *ret_low)
			*ret_low = k;
		if (within && k > *ret_high)
			*ret_high = k;
	}
	free(scores);
	return 0;
}

/* --- how large it is --- */

static double unlog(const struct commits *commits, double level)
{
	return commits->log ? exp(level) : level;
}

/* Commits [start, end). */
struct segment {
	size_t start, end;
};

/* Runs of a segment, sorted: the last (@last) or first SIDE_MOST of them. */
static int segment_runs(const struct commits *commits, struct segment segment, bool last,
			double **ret_sorted, size_t *ret_count)
{
	size_t from = commits->starts[segment.start], to = commits->starts[segment.end];

	if (to - from > SIDE_MOST && last)
		from = to - SIDE_MOST;
	else if (to - from > SIDE_MOST)
		to = from + SIDE_MOST;
	*ret_count = to - from;
	return series_sorted_copy(commits->values + from, to - from, ret_sorted);
}

/* Runs of @after to those of @before: the nearest of each where @after follows it. */
static int find_ratio(const struct commits *commits, struct segment before, struct segment after,
		      double confidence, struct interval *ret_ratio)
{
	double *a = NULL, *b = NULL;
	size_t count_a = 0, count_b = 0;
	struct shift shift;
	int error = segment_runs(commits, after, false, &a, &count_a);

	*ret_ratio = (struct interval){NAN, NAN, NAN, confidence};
	if (!error)
		error = segment_runs(commits, before, true, &b, &count_b);
	if (!error && commits->log)
		error = shift_estimate(a, count_a, b, count_b, confidence, &shift);
	if (!error && commits->log)
		*ret_ratio = shift.ratio;
	free(a);
	free(b);
	return error;
}

/* --- fresh runs --- */

static size_t fresh(const struct history_point *points, size_t count, uint32_t from, uint32_t to,
		    double *values, size_t most)
{
	size_t found = 0;

	for (size_t i = 0; i < count && found < most; i++)
		if (counts(&points[i], PURPOSE_CONFIRM) && points[i].commit >= from &&
		    points[i].commit < to)
			values[found++] = points[i].value;
	return found;
}

static int confirm(const struct history_point *points, size_t count,
		   const struct check_settings *settings, const struct sequential *sequential,
		   uint32_t from, uint32_t to, bool up, struct check_change *change)
{
	size_t most = settings->confirm_most;
	double *values = malloc(2 * most * sizeof(double));
	struct sequential_look look;
	int error;

	if (!values)
		return -ENOMEM;
	/* Runs of commits that the change may lie on either side of prove nothing. */
	change->confirm_before =
		fresh(points, count, from, change->last_good + 1, values + most, most);
	change->confirm_after = fresh(points, count, change->first_bad, to, values, most);
	change->confirmation = CHECK_NEEDED;
	if (!change->confirm_before || !change->confirm_after) {
		free(values);
		return 0;
	}
	error = sequential_look(sequential, 1, values, change->confirm_after, values + most,
				change->confirm_before, &look);
	free(values);
	if (error)
		return error;
	if (look.verdict != SEQUENTIAL_UNDECIDED)
		change->confirmation =
			(look.verdict == SEQUENTIAL_SLOWER) == up ? CHECK_CONFIRMED : CHECK_REFUTED;
	else if (change->confirm_before >= most && change->confirm_after >= most)
		change->confirmation = CHECK_REFUTED;
	return 0;
}

int check_sequential(const struct check_settings *settings, struct sequential **ret_sequential)
{
	struct sequential_plan plan = {.alpha = settings->confirm_alpha,
				       .pairs = 1,
				       .max_runs = settings->confirm_most,
				       .min_effect = settings->min_effect};

	return sequential_new(&plan, ret_sequential);
}

/* --- one series --- */

static bool is_small(const struct commits *commits, const struct check_change *change,
		     double min_effect)
{
	if (!commits->log)
		return change->before == change->after;
	return fabs(log(change->after / change->before)) < log1p(min_effect);
}

static int describe(const struct commits *commits, const struct history_point *points, size_t count,
		    const struct check_settings *settings, const struct sequential *sequential,
		    size_t start, const struct changepoint *found, size_t end,
		    bool higher_is_better, struct check_change *change)
{
	size_t low = 0, high = 0;
	uint32_t to = end < commits->count ? commits->commits[end] : UINT32_MAX;
	bool up = found->after > found->before;
	int error = locate(commits->levels + start, end - start, found->index - start,
			   settings->confidence, &low, &high);

	if (error)
		return error;
	change->last_good = commits->commits[start + low - 1];
	change->at = commits->commits[found->index];
	change->first_bad = commits->commits[start + high];
	change->before = unlog(commits, found->before);
	change->after = unlog(commits, found->after);
	change->p = found->p;
	change->worse = up != higher_is_better;
	error = find_ratio(commits, (struct segment){start, found->index},
			   (struct segment){found->index, end}, settings->confidence,
			   &change->ratio);
	if (error)
		return error;
	return confirm(points, count, settings, sequential, commits->commits[start], to, up,
		       change);
}

/*
 * Is the level where it was before the change, or better, at the end? Yes, unless the interval of
 * the last segment's runs to those before the change lies beyond the least effect.
 */
static int find_mended(const struct commits *commits, const struct check_settings *settings,
		       struct segment before, struct segment last, struct check_change *change)
{
	bool up = change->after > change->before;
	struct interval ratio;
	int error = find_ratio(commits, before, last, settings->confidence, &ratio);

	if (error)
		return error;
	change->mended = up ? ratio.low <= 1 + settings->min_effect
			    : ratio.high >= 1 / (1 + settings->min_effect);
	return 0;
}

static int find_changes(const struct commits *commits, const struct history_point *points,
			size_t count, const struct check_settings *settings,
			const struct sequential *sequential, bool higher_is_better,
			struct check_result *result)
{
	struct changepoint found[CHANGES_MOST];
	size_t total = 0, kept = 0;
	int error = changepoint_find(commits->levels, commits->count, settings->alpha, found,
				     CHANGES_MOST, &total);

	if (error)
		return error;
	total = total < CHANGES_MOST ? total : CHANGES_MOST;
	result->changes = calloc(total + 1, sizeof(*result->changes));
	if (!result->changes)
		return -ENOMEM;
	for (size_t i = 0; i < total && !error; i++) {
		struct check_change *change = &result->changes[kept];

		*change = (struct check_change){.at = 0};
		error = describe(commits, points, count, settings, sequential,
				 i ? found[i - 1].index : 0, &found[i],
				 i + 1 < total ? found[i + 1].index : commits->count,
				 higher_is_better, change);
		if (!error && change->worse && i + 1 < total)
			error = find_mended(
				commits, settings,
				(struct segment){i ? found[i - 1].index : 0, found[i].index},
				(struct segment){found[total - 1].index, commits->count}, change);
		if (!error && !is_small(commits, change, settings->min_effect))
			kept++;
	}
	result->count = kept;
	if (total)
		result->level = unlog(commits, found[total - 1].after);
	return error;
}

static void count_runs(const struct history_point *points, size_t count,
		       struct check_result *result)
{
	bool any = false, newest_counts = false;
	uint32_t newest = 0;

	for (size_t i = 0; i < count; i++) {
		bool good = counts(&points[i], PURPOSE_HISTORY);

		if (points[i].purpose != PURPOSE_HISTORY)
			continue;
		result->runs += good;
		result->invalid += points[i].state == RUN_INVALID;
		result->failed += points[i].state == RUN_FAILED;
		if (!any || points[i].commit != newest)
			newest_counts = false;
		any = true;
		newest = points[i].commit;
		newest_counts |= good;
	}
	result->newest_invalid = any && !newest_counts;
}

int check_points(const struct history_point *points, size_t count,
		 const struct check_settings *settings, const struct sequential *sequential,
		 bool higher_is_better, struct check_result *result)
{
	struct commits commits = {.levels = NULL};
	double *sorted = NULL;
	int error;

	*result = (struct check_result){.level = NAN};
	count_runs(points, count, result);
	error = gather(points, count, &commits);
	if (!error)
		error = find_levels(&commits);
	if (!error && commits.count) {
		error = series_sorted_copy(commits.levels, commits.count, &sorted);
		if (!error)
			result->level = unlog(&commits, series_median(sorted, commits.count));
		free(sorted);
	}
	result->points = commits.count;
	if (!error)
		error = find_changes(&commits, points, count, settings, sequential,
				     higher_is_better, result);
	commits_free(&commits);
	return error;
}

void check_result_clear(struct check_result *result)
{
	free(result->changes);
	result->changes = NULL;
	result->count = 0;
}

/* --- all --- */

struct checking {
	struct check_report *report;
	const struct sequential *sequential;
};

static const char *find_note(const struct history_data *data, int64_t series,
			     const struct check_change *change)
{
	for (size_t i = 0; i < data->note_count; i++) {
		const struct history_note *note = &data->notes[i];

		if (note->series && note->series != series)
			continue;
		for (uint32_t at = change->last_good + 1; at <= change->first_bad; at++)
			if (data->commits[at].id == note->commit)
				return note->text;
	}
	return NULL;
}

static void check_one(void *context, size_t index)
{
	struct checking *checking = context;
	const struct history_data *data = checking->report->data;
	struct check_result *result = &checking->report->results[index];
	size_t start = data->starts[index], end = data->starts[index + 1];
	bool higher = strcmp(data->series[index].better, "higher") == 0;
	int error = check_points(data->points + start, end - start, &checking->report->settings,
				 checking->sequential, higher, result);

	result->series = &data->series[index];
	result->error = error;
	for (size_t i = 0; i < result->count; i++)
		result->changes[i].note =
			find_note(data, data->series[index].id, &result->changes[i]);
}

bool check_alarms(const struct check_change *change, const struct check_settings *settings)
{
	return change->worse && !change->mended && !change->note &&
	       (change->confirmation == CHECK_CONFIRMED ||
		(settings->without_confirm && change->confirmation == CHECK_NEEDED));
}

static void count_changes(struct check_report *report, const struct check_result *result)
{
	for (size_t i = 0; i < result->count; i++) {
		const struct check_change *change = &result->changes[i];

		if (change->note)
			report->acknowledged++;
		else if (check_alarms(change, &report->settings))
			report->alarms++;
		else if (!change->worse && change->confirmation != CHECK_REFUTED)
			report->improvements++;
		else if (!change->mended && change->confirmation == CHECK_NEEDED)
			report->suspicions++;
	}
	report->invalid += result->newest_invalid;
}

int check_all(const struct history_data *data, const struct check_settings *settings,
	      struct check_report *ret_report, struct message *message)
{
	struct check_report report = {.data = data, .settings = *settings};
	struct sequential *sequential = NULL;
	struct checking checking = {.report = &report};
	int error = check_sequential(settings, &sequential);

	report.results = calloc(data->series_count + 1, sizeof(*report.results));
	if (!error && !report.results)
		error = -ENOMEM;
	checking.sequential = sequential;
	if (!error)
		parallel_for(data->series_count, check_one, &checking);
	for (size_t i = 0; i < data->series_count && !error; i++) {
		error = report.results[i].error;
		count_changes(&report, &report.results[i]);
	}
	sequential_free(sequential);
	if (error) {
		check_report_free(&report);
		return message_set_errno(message, error, "history check");
	}
	*ret_report = report;
	return 0;
}

void check_report_free(struct check_report *report)
{
	for (size_t i = 0; report->results && i < report->data->series_count; i++)
		check_result_clear(&report->results[i]);
	free(report->results);
	report->results = NULL;
}

int check_exit_code(const struct check_report *report)
{
	return report->alarms ? 3 : report->invalid ? 4 : 0;
}
