/* SPDX-License-Identifier: MIT */
#include "stats/changepoint.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/changepoint_table.h"
#include "stats/series.h"

#define DISCRETE_MAX 16

struct point {
	double value;
	size_t place;
};

static int compare_points(const void *left, const void *right)
{
	const struct point *a = left, *b = right;

	return (a->value > b->value) - (a->value < b->value);
}

/* z with P(Z < z) = p: Abramowitz & Stegun 26.2.23, then two steps of Newton's. */
static double normal_score(double p)
{
	double tail = p < 0.5 ? p : 1 - p, t = sqrt(-2 * log(tail));
	double z = t - (2.515517 + t * (0.802853 + t * 0.010328)) /
			       (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));

	for (int step = 0; step < 2; step++)
		z += (0.5 * erfc(z * M_SQRT1_2) - tail) * sqrt(2 * M_PI) * exp(z * z / 2);
	return p < 0.5 ? -z : z;
}

/* Normal scores of the midranks, in order of time, centred; returns the sum of their squares. */
static double score(struct point *points, size_t count, double *ret_scores)
{
	double mean = 0, square = 0;

	qsort(points, count, sizeof(*points), compare_points);
	for (size_t i = 0, next; i < count; i = next) {
		double value;

		for (next = i + 1; next < count && points[next].value == points[i].value;)
			next++;
		value = normal_score(((double)(i + next + 1) / 2) / ((double)count + 1));
		for (size_t k = i; k < next; k++)
			ret_scores[points[k].place] = value;
		mean += value * (double)(next - i) / (double)count;
	}
	for (size_t i = 0; i < count; i++) {
		ret_scores[i] -= mean;
		square += ret_scores[i] * ret_scores[i];
	}
	return square;
}

/* Chance of a larger |z| by the table, between its sizes and its levels. */
static double chance_at(size_t row, double z)
{
	const double *critical = changepoint_critical[row];
	size_t last = CHANGEPOINT_LEVELS - 1, i = 0;
	double share;

	if (z <= critical[0]) /* not in the table: a p above its first level, no more is said */
		return 1;
	while (i < last && z > critical[i + 1])
		i++;
	if (i == last && changepoint_sizes[row] > DISCRETE_MAX)
		return changepoint_levels[last] *
		       exp((critical[last] * critical[last] - z * z) / 2);
	if (changepoint_sizes[row] <= DISCRETE_MAX) /* few values of z: no p between two levels */
		return changepoint_levels[i];
	share = (z - critical[i]) / (critical[i + 1] - critical[i]);
	return changepoint_levels[i] *
	       pow(changepoint_levels[i + 1] / changepoint_levels[i], share);
}

static double chance(size_t count, double z)
{
	size_t row = 0;
	double share;

	if (count <= changepoint_sizes[0])
		return chance_at(0, z);
	while (row + 1 < CHANGEPOINT_SIZES && changepoint_sizes[row + 1] < count)
		row++;
	if (row + 1 == CHANGEPOINT_SIZES)
		return chance_at(row, z);
	share = log((double)count / (double)changepoint_sizes[row]) /
		log((double)changepoint_sizes[row + 1] / (double)changepoint_sizes[row]);
	return exp((1 - share) * log(chance_at(row, z)) + share * log(chance_at(row + 1, z)));
}

/* Room for one scan of up to the whole series. */
struct workspace {
	struct point *points;
	double *scores;
};

static void scan(const double *values, size_t count, struct workspace *space,
		 struct changepoint *ret_change)
{
	double square, sum = 0;

	*ret_change = (struct changepoint){.index = count / 2, .p = 1};
	for (size_t i = 0; i < count; i++)
		space->points[i] = (struct point){values[i], i};
	square = score(space->points, count, space->scores);
	if (!(square > 1e-12 * (double)count)) /* all values are equal */
		return;
	for (size_t k = 1; k <= count - CHANGEPOINT_MIN; k++) {
		double rest = (double)(count - k), z;

		sum += space->scores[k - 1];
		if (k < CHANGEPOINT_MIN)
			continue;
		z = fabs(sum) /
		    sqrt(square / ((double)count - 1) * (double)k * rest / (double)count);
		if (z > ret_change->z) {
			ret_change->z = z;
			ret_change->index = k;
		}
	}
	ret_change->p = chance(count, ret_change->z);
}

static int workspace_new(struct workspace *space, size_t count)
{
	space->points = malloc(count * sizeof(*space->points));
	space->scores = malloc(count * sizeof(*space->scores));
	return space->points && space->scores ? 0 : -ENOMEM;
}

static void workspace_free(struct workspace *space)
{
	free(space->points);
	free(space->scores);
}

static int median_of(const double *values, size_t count, double *ret_median)
{
	double *sorted;
	int error = series_sorted_copy(values, count, &sorted);

	if (error)
		return error;
	*ret_median = series_median(sorted, count);
	free(sorted);
	return 0;
}

int changepoint_scan(const double *values, size_t count, struct changepoint *ret_change)
{
	struct workspace space = {0};
	struct changepoint change;
	int error;

	if (series_check(values, count, false))
		return -EINVAL;
	if (count < 2 * CHANGEPOINT_MIN)
		return -ERANGE;
	error = workspace_new(&space, count);
	if (!error) {
		scan(values, count, &space, &change);
		error = median_of(values, change.index, &change.before);
	}
	if (!error)
		error = median_of(values + change.index, count - change.index, &change.after);
	workspace_free(&space);
	if (!error)
		*ret_change = change;
	return error;
}

/* Segments still to be tested, as [start, end). */
struct segments {
	size_t (*bounds)[2];
	size_t count;
};

static int compare_changes(const void *left, const void *right)
{
	const struct changepoint *a = left, *b = right;

	return (a->index > b->index) - (a->index < b->index);
}

/* Every change of the series, ascending; the caller frees *ret_changes. */
static int segment(const double *values, size_t count, double alpha, struct workspace *space,
		   struct changepoint **ret_changes, size_t *ret_count)
{
	size_t most = count / CHANGEPOINT_MIN + 1, found = 0;
	struct segments open = {.bounds = malloc(most * sizeof(*open.bounds))};
	struct changepoint *changes = malloc(most * sizeof(*changes));

	if (!open.bounds || !changes) {
		free(open.bounds);
		free(changes);
		return -ENOMEM;
	}
	open.bounds[0][0] = 0;
	open.bounds[0][1] = count;
	open.count = 1;
	while (open.count) {
		size_t start = open.bounds[open.count - 1][0], end = open.bounds[open.count - 1][1];
		struct changepoint change;

		open.count--;
		if (end - start < 2 * CHANGEPOINT_MIN)
			continue;
		scan(values + start, end - start, space, &change);
		if (change.p > alpha)
			continue;
		change.index += start;
		changes[found++] = change;
		open.bounds[open.count][0] = start;
		open.bounds[open.count++][1] = change.index;
		open.bounds[open.count][0] = change.index;
		open.bounds[open.count++][1] = end;
	}
	free(open.bounds);
	qsort(changes, found, sizeof(*changes), compare_changes);
	*ret_changes = changes;
	*ret_count = found;
	return 0;
}

/* Medians of the segments on both sides of each change. */
static int fill_levels(const double *values, size_t count, struct changepoint *changes,
		       size_t found)
{
	for (size_t i = 0; i <= found && found; i++) {
		size_t start = i ? changes[i - 1].index : 0;
		size_t end = i < found ? changes[i].index : count;
		double median;
		int error = median_of(values + start, end - start, &median);

		if (error)
			return error;
		if (i)
			changes[i - 1].after = median;
		if (i < found)
			changes[i].before = median;
	}
	return 0;
}

int changepoint_find(const double *values, size_t count, double alpha, struct changepoint *changes,
		     size_t capacity, size_t *ret_count)
{
	struct workspace space = {0};
	struct changepoint *all = NULL;
	size_t found = 0;
	int error;

	if (!(alpha > 0 && alpha < 1) || series_check(values, count, false))
		return -EINVAL;
	if (count < 2 * CHANGEPOINT_MIN) {
		*ret_count = 0;
		return 0;
	}
	error = workspace_new(&space, count);
	if (!error)
		error = segment(values, count, alpha, &space, &all, &found);
	if (!error)
		error = fill_levels(values, count, all, found);
	if (!error) {
		if (capacity && found)
			memcpy(changes, all, (found < capacity ? found : capacity) * sizeof(*all));
		*ret_count = found;
	}
	free(all);
	workspace_free(&space);
	return error;
}
