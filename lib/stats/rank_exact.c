/* SPDX-License-Identifier: MIT */
/*
 * How an exact p of 1e-25 keeps its digits: the scores are drawn by independent coins whose
 * chances are tilted (Esscher 1932) so that the sum seen is the one expected. The distribution of
 * (how many are drawn, their sum) is then built up score by score from positive terms alone, the
 * state seen is among the likeliest, and what is left out (states below 1e-25) cannot matter. A
 * known factor turns the tilted probability back. Lower and upper half of the scores are built
 * apart and joined at the end (meet in the middle), which takes an eighth of the states.
 */
#include "stats/rank_exact.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/distribution.h"

#define NEGLIGIBLE 1e-25
/* At an extreme sum no tilt is the best one; from end to end of the scores e^400 is enough, and
 * more would cost digits. */
#define STEEPEST 400

/* log(1 + exp(x)) */
static long double softplus(long double x)
{
	return x > 0 ? x + log1pl(expl(-x)) : log1pl(expl(x));
}

/* A coin shows heads with 1 / (1 + exp(-(level + slope x score))). */
struct tilt {
	double level, slope;
	double log_weight; /* sum of softplus over the scores, less level x chosen + slope x sum */
};

/* The terms nearly cancel, hence long doubles. @scores begin at 0. */
static double tilt_dual(const int64_t *scores, size_t count, size_t chosen, int64_t sum,
			double level, double slope)
{
	long double dual =
		-(long double)level * (long double)chosen - (long double)slope * (long double)sum;

	for (size_t i = 0; i < count; i++)
		dual += softplus(level + (long double)slope * (long double)scores[i]);
	return (double)dual;
}

/* One damped Newton step down the convex dual; false when it no longer falls. */
static int tilt_step(const int64_t *scores, size_t count, size_t chosen, int64_t sum,
		     struct tilt *tilt)
{
	double g0 = -(double)chosen, g1 = -(double)sum, h00 = 0, h01 = 0, h11 = 0;
	double determinant, step0, step1;

	for (size_t i = 0; i < count; i++) {
		double score = (double)scores[i];
		double heads = 1 / (1 + exp(-(tilt->level + tilt->slope * score)));
		double spread = heads * (1 - heads);

		g0 += heads;
		g1 += heads * score;
		h00 += spread;
		h01 += spread * score;
		h11 += spread * score * score;
	}
	determinant = h00 * h11 - h01 * h01;
	if (!(determinant > 1e-12 * h00 * h11))
		return 0;
	step0 = (h11 * g0 - h01 * g1) / determinant;
	step1 = (h00 * g1 - h01 * g0) / determinant;
	for (double damping = 1; damping > 1e-4; damping /= 2) {
		double level = tilt->level - damping * step0;
		double slope = tilt->slope - damping * step1, dual;

		if (fabs(slope) * (double)scores[count - 1] > STEEPEST)
			continue;
		dual = tilt_dual(scores, count, chosen, sum, level, slope);

		if (dual < tilt->log_weight - 1e-9) {
			*tilt = (struct tilt){level, slope, dual};
			return 1;
		}
	}
	return 0;
}

/* Any tilt gives a right answer; a good one keeps the digits and the number of states small. */
static struct tilt tilt_towards(const int64_t *scores, size_t count, size_t chosen, int64_t sum)
{
	struct tilt tilt = {log((double)chosen / (double)(count - chosen)), 0, 0};

	tilt.log_weight = tilt_dual(scores, count, chosen, sum, tilt.level, tilt.slope);
	for (int i = 0; i < 60; i++)
		if (!tilt_step(scores, count, chosen, sum, &tilt))
			break;
	return tilt;
}

/* States with one number drawn: probabilities of the sums low to high, less the least sum. */
struct row {
	double *cells;
	int64_t least;	   /* sum of the smallest scores of this number */
	int64_t low, high; /* window of cells that count; empty when low > high */
	int64_t room;
};

struct half {
	struct row *rows;
	size_t most; /* rows 0 to most */
};

static void half_free(struct half *half)
{
	for (size_t j = 0; half->rows && j <= half->most; j++)
		free(half->rows[j].cells);
	free(half->rows);
}

/* @scores ascending, so that a row's least sum does not change as scores are added. */
static int half_start(struct half *half, const int64_t *scores, size_t count, size_t chosen)
{
	int64_t least = 0, greatest = 0;

	half->most = count < chosen ? count : chosen;
	half->rows = calloc(half->most + 1, sizeof(*half->rows));
	if (!half->rows)
		return -ENOMEM;
	for (size_t j = 0; j <= half->most; j++) {
		if (j) {
			least += scores[j - 1];
			greatest += scores[count - j];
		}
		half->rows[j] = (struct row){
			.least = least, .low = 0, .high = -1, .room = greatest - least + 1};
	}
	half->rows[0].cells = calloc(1, sizeof(double));
	if (!half->rows[0].cells)
		return -ENOMEM;
	half->rows[0].cells[0] = 1;
	half->rows[0].high = 0;
	return 0;
}

/* Drop what is negligible at the ends, leaving zeros there. */
static void row_trim(struct row *row)
{
	while (row->low <= row->high && row->cells[row->low] < NEGLIGIBLE)
		row->cells[row->low++] = 0;
	while (row->low <= row->high && row->cells[row->high] < NEGLIGIBLE)
		row->cells[row->high--] = 0;
	if (row->low > row->high) {
		row->low = 0;
		row->high = -1;
	}
}

static void scale_cells(double *cells, int64_t from, int64_t to, double factor)
{
	for (int64_t s = from; s <= to; s++)
		cells[s] *= factor;
}

/* Two doubles at once, wherever they lie: nearly all the time goes here. */
typedef double pair_of_doubles __attribute__((vector_size(16), aligned(8), may_alias));

static void mix_cells(double *into, const double *from, size_t count, double heads, double tails)
{
	size_t i = 0;

	for (; i + 4 <= count; i += 4) {
		pair_of_doubles *x = (pair_of_doubles *)(into + i);
		const pair_of_doubles *y = (const pair_of_doubles *)(from + i);

		x[0] = tails * x[0] + heads * y[0];
		x[1] = tails * x[1] + heads * y[1];
	}
	for (; i < count; i++)
		into[i] = tails * into[i] + heads * from[i];
}

/* into = tails x into + heads x from, moved by @shift. */
static int row_add(struct row *into, const struct row *from, int64_t shift, double heads,
		   double tails)
{
	int64_t low = from->low + shift, high = from->high + shift;
	const double *source = from->cells;
	double *cells;

	if (from->low > from->high) {
		scale_cells(into->cells, into->low, into->high, tails);
		return 0;
	}
	if (!into->cells) {
		into->cells = calloc((size_t)into->room, sizeof(double));
		if (!into->cells)
			return -ENOMEM;
	}
	if (into->low > into->high) {
		into->low = low;
		into->high = high;
	}
	scale_cells(into->cells, into->low, into->high < low ? into->high : low - 1, tails);
	scale_cells(into->cells, into->low > high ? into->low : high + 1, into->high, tails);
	cells = into->cells + shift;
	mix_cells(cells + from->low, source + from->low, (size_t)(from->high - from->low + 1),
		  heads, tails);
	into->low = low < into->low ? low : into->low;
	into->high = high > into->high ? high : into->high;
	return 0;
}

static int half_build(struct half *half, const int64_t *scores, size_t count, size_t chosen,
		      double level, double slope)
{
	int error = half_start(half, scores, count, chosen);

	for (size_t i = 0; !error && i < count; i++) {
		double x = level + slope * (double)scores[i];
		double heads = 1 / (1 + exp(-x)), tails = 1 / (1 + exp(x));

		for (size_t j = i + 1 < half->most ? i + 1 : half->most; !error && j > 0; j--) {
			struct row *into = &half->rows[j], *from = &half->rows[j - 1];

			error = row_add(into, from, scores[i] + from->least - into->least, heads,
					tails);
			if (into->cells)
				row_trim(into);
		}
		if (half->rows[0].high == 0)
			half->rows[0].cells[0] *= tails;
	}
	return error;
}

/* For each place of a row's window: the sum of the cells at and below it, less likely by
 * exp(-slope) a step away. */
static void weighted_prefix(const struct row *row, double slope, double *ret_prefix)
{
	double decay = exp(-slope), sum = 0;

	for (int64_t s = row->low; s <= row->high; s++) {
		sum = row->cells[s] + decay * sum;
		ret_prefix[s - row->low] = sum;
	}
}

/* Tilted chances, freed of the tilt relative to the sum that was seen. */
struct joint {
	double at_least, exactly;
};

/*
 * One number drawn from the lower half, the rest from the upper one, which is mirrored (score r
 * is top - r there): a cell of the upper row reaches the sum seen when it is at most
 * @reach + the cell of the lower row, and meets it when it is equal.
 */
static void join_rows(const struct row *lower, const struct row *upper, int64_t reach, double slope,
		      const double *prefix, struct joint *joint)
{
	for (int64_t s = lower->low; s <= lower->high; s++) {
		int64_t most = reach + s;
		double mass = lower->cells[s];

		if (most < upper->low)
			continue;
		if (most <= upper->high) {
			joint->exactly += mass * upper->cells[most];
			joint->at_least += mass * prefix[most - upper->low];
		} else {
			joint->at_least += mass * prefix[upper->high - upper->low] *
					   exp(-slope * (double)(most - upper->high));
		}
	}
}

static int join_halves(const struct half *lower, const struct half *upper, size_t chosen,
		       int64_t top, int64_t sum, double slope, struct joint *ret_joint)
{
	*ret_joint = (struct joint){0};
	for (size_t j = 0; j <= lower->most && j <= chosen; j++) {
		const struct row *low = &lower->rows[j], *high;
		int64_t reach;
		double *prefix;

		if (chosen - j > upper->most)
			continue;
		high = &upper->rows[chosen - j];
		if (low->low > low->high || high->low > high->high)
			continue;
		prefix = malloc((size_t)(high->high - high->low + 1) * sizeof(*prefix));
		if (!prefix)
			return -ENOMEM;
		weighted_prefix(high, slope, prefix);
		reach = low->least + top * (int64_t)(chosen - j) - sum - high->least;
		join_rows(low, high, reach, slope, prefix, ret_joint);
		free(prefix);
	}
	return 0;
}

/* @scores from 0, ascending; @sum at or above its expectation, so that the tail is a small one. */
static int upper_tail(const int64_t *scores, size_t count, size_t chosen, int64_t sum,
		      double *ret_log_at_least, double *ret_log_at_most)
{
	size_t split = count / 2, rest = count - split;
	struct tilt tilt = tilt_towards(scores, count, chosen, sum);
	int64_t top = scores[count - 1], *mirrored;
	struct half lower = {0}, upper = {0};
	struct joint joint;
	double log_factor;
	int error = -ENOMEM;

	mirrored = malloc(rest * sizeof(*mirrored));
	if (!mirrored)
		goto out;
	for (size_t i = 0; i < rest; i++)
		mirrored[i] = top - scores[count - 1 - i];
	error = half_build(&lower, scores, split, chosen, tilt.level, tilt.slope);
	if (error)
		goto out;
	error = half_build(&upper, mirrored, rest, chosen, tilt.level + tilt.slope * (double)top,
			   -tilt.slope);
	if (error)
		goto out;
	error = join_halves(&lower, &upper, chosen, top, sum, tilt.slope, &joint);
	if (error)
		goto out;
	log_factor = tilt.log_weight - log_choose(count, chosen);
	*ret_log_at_least = fmin(log(joint.at_least) + log_factor, 0);
	*ret_log_at_most =
		fmin(log1p(exp(log(joint.exactly) + log_factor) - exp(*ret_log_at_least)), 0);
out:
	half_free(&lower);
	half_free(&upper);
	free(mirrored);
	return error;
}

static int64_t common_divisor(int64_t a, int64_t b)
{
	while (b) {
		int64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

int rank_exact_tails(const int64_t *scores, size_t count, size_t chosen, int64_t sum,
		     double *ret_log_at_least, double *ret_log_at_most)
{
	int64_t *plain, divisor = 0, base = scores[0], total = 0, top;
	int error;

	plain = malloc(count * sizeof(*plain));
	if (!plain)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		divisor = common_divisor(scores[i] - base, divisor);
	if (!divisor) { /* all scores are equal */
		free(plain);
		*ret_log_at_least = *ret_log_at_most = 0;
		return 0;
	}
	sum = (sum - (int64_t)chosen * base) / divisor;
	for (size_t i = 0; i < count; i++) {
		plain[i] = (scores[i] - base) / divisor;
		total += plain[i];
	}
	top = plain[count - 1];
	if ((double)sum * (double)count >= (double)chosen * (double)total) {
		error = upper_tail(plain, count, chosen, sum, ret_log_at_least, ret_log_at_most);
	} else {
		for (size_t i = 0; i < (count + 1) / 2; i++) {
			int64_t swap = top - plain[i];

			plain[i] = top - plain[count - 1 - i];
			plain[count - 1 - i] = swap;
		}
		error = upper_tail(plain, count, chosen, (int64_t)chosen * top - sum,
				   ret_log_at_most, ret_log_at_least);
	}
	free(plain);
	return error;
}

int rank_null_distribution(size_t count_a, size_t count_b, double **ret_at_most)
{
	size_t most = count_a * count_b;
	double *counts = calloc((count_a + 1) * (most + 1), sizeof(*counts)), *result, total = 0;

	result = malloc((most + 1) * sizeof(*result));
	if (!counts || !result) {
		free(counts);
		free(result);
		return -ENOMEM;
	}
	/* Row n holds the arrangements of n against m by U, for one m after the other: the
	 * largest value is b's (U of n, m - 1) or a's (U - m of n - 1, m). */
	for (size_t n = 0; n <= count_a; n++)
		counts[n * (most + 1)] = 1;
	for (size_t m = 1; m <= count_b; m++)
		for (size_t n = 1; n <= count_a; n++)
			for (size_t u = m; u <= n * m; u++)
				counts[n * (most + 1) + u] += counts[(n - 1) * (most + 1) + u - m];
	for (size_t u = 0; u <= most; u++)
		total += counts[count_a * (most + 1) + u];
	for (size_t u = 0; u <= most; u++)
		result[u] = (u ? result[u - 1] : 0) + counts[count_a * (most + 1) + u] / total;
	free(counts);
	*ret_at_most = result;
	return 0;
}
