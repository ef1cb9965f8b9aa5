/* SPDX-License-Identifier: MIT */
#include "stats/interval.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "stats/distribution.h"
#include "stats/rank_exact.h"
#include "stats/series.h"

#define EXACT_BELOW 50 /* as R: exact interval when both sizes are below, and nothing is tied */

/* Two ascending series and the sizes that they stand for (more, when they are compressed). */
struct sides {
	const double *a, *b;
	size_t count_a, count_b;
	double size_a, size_b;
};

/* Doubles as integers of the same order, so that bisection ends at neighbouring doubles. */
static int64_t order_of(double value)
{
	int64_t bits;

	value += 0.0; /* -0.0 becomes 0.0 */
	memcpy(&bits, &value, sizeof(bits));
	return bits < 0 ? (int64_t)(UINT64_C(1) << 63) - bits : bits;
}

static double value_of(int64_t order)
{
	int64_t bits = order < 0 ? (int64_t)(UINT64_C(1) << 63) - order : order;
	double value;

	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* How many differences are at most @bound: one walk along the edge in the sorted matrix. */
static uint64_t differences_at_most(const struct sides *sides, double bound)
{
	uint64_t count = 0;
	size_t j = 0;

	for (size_t i = 0; i < sides->count_a; i++) {
		while (j < sides->count_b && sides->a[i] - sides->b[j] > bound)
			j++;
		if (j == sides->count_b)
			break;
		count += sides->count_b - j;
	}
	return count;
}

/* The @rank-th smallest difference, 1 to n x m: exactly, as the double that the subtraction
 * gives. */
static double difference_at(const struct sides *sides, uint64_t rank)
{
	int64_t low = order_of(sides->a[0] - sides->b[sides->count_b - 1]);
	int64_t high = order_of(sides->a[sides->count_a - 1] - sides->b[0]);

	while (low < high) {
		int64_t half = low + (int64_t)(((uint64_t)high - (uint64_t)low) / 2);

		if (differences_at_most(sides, value_of(half)) >= rank)
			high = half;
		else
			low = half + 1;
	}
	return value_of(low);
}

static double median_difference(const struct sides *sides)
{
	uint64_t pairs = (uint64_t)sides->count_a * sides->count_b;

	if (pairs % 2)
		return difference_at(sides, pairs / 2 + 1);
	return difference_at(sides, pairs / 2) / 2 + difference_at(sides, pairs / 2 + 1) / 2;
}

/* Any two values equal, across the series or within one. */
static bool any_tie(const struct sides *sides)
{
	size_t i = 0, j = 0;
	double last = -INFINITY;

	while (i < sides->count_a || j < sides->count_b) {
		bool from_a =
			j >= sides->count_b || (i < sides->count_a && sides->a[i] <= sides->b[j]);
		double value = from_a ? sides->a[i++] : sides->b[j++];

		if (value == last)
			return true;
		last = value;
	}
	return false;
}

static double tie_term(const double *sorted, size_t count)
{
	double term = 0;

	for (size_t i = 0, next; i < count; i = next) {
		double group;

		for (next = i + 1; next < count && sorted[next] == sorted[i];)
			next++;
		group = (double)(next - i);
		term += group * (group * group - 1);
	}
	return term;
}

/*
 * Which differences bound the interval, as the count below the lower one: the largest q with
 * P(U < q) < (1 - confidence) / 2, U without ties. 0: the sizes allow none.
 */
static int exact_place(const struct sides *sides, double confidence, uint64_t *ret_place)
{
	double tail = (1 - confidence) / 2, *at_most;
	uint64_t place = 0;
	int error = rank_null_distribution(sides->count_a, sides->count_b, &at_most);

	if (error)
		return error;
	while (at_most[place] < tail)
		place++;
	free(at_most);
	*ret_place = place;
	return 0;
}

/*
 * The normal test of a - d against b rejects, at continuity 1/2, where the count of differences
 * below d is under n m / 2 - 1/2 - z sigma. sigma: with the ties that lie within the
 * series; those across them come and go with d and are rare.
 */
static uint64_t normal_place(const struct sides *sides, double confidence)
{
	double n = sides->size_a, m = sides->size_b, total = n + m, place;
	double scale_a = n / (double)sides->count_a, scale_b = m / (double)sides->count_b;
	double ties = tie_term(sides->a, sides->count_a) * pow(scale_a, 3) +
		      tie_term(sides->b, sides->count_b) * pow(scale_b, 3);
	double sigma = sqrt(n * m / 12 * fmax(0, total + 1 - ties / (total * (total - 1))));
	double z = normal_upper_quantile(log((1 - confidence) / 2));

	place = ceil((n * m / 2 - 0.5 - z * sigma) / (scale_a * scale_b));
	return place < 1 ? 0 : (uint64_t)place;
}

static int estimate(const struct sides *sides, double confidence, struct interval *ret_interval,
		    enum shift_method *ret_method)
{
	uint64_t pairs = (uint64_t)sides->count_a * sides->count_b, place;
	bool compressed =
		sides->size_a != (double)sides->count_a || sides->size_b != (double)sides->count_b;

	if (sides->count_a < EXACT_BELOW && sides->count_b < EXACT_BELOW && !any_tie(sides)) {
		int error = exact_place(sides, confidence, &place);

		if (error)
			return error;
		*ret_method = SHIFT_EXACT;
	} else {
		place = normal_place(sides, confidence);
		*ret_method = compressed ? SHIFT_COMPRESSED : SHIFT_NORMAL;
	}
	*ret_interval = (struct interval){.estimate = median_difference(sides),
					  .low = NAN,
					  .high = NAN,
					  .confidence = confidence};
	if (place && place <= pairs / 2 + 1) {
		ret_interval->low = difference_at(sides, place);
		ret_interval->high = difference_at(sides, pairs + 1 - place);
	}
	return 0;
}

/* @count values or, when there are more, SHIFT_QUANTILES quantiles of them. The caller frees. */
static double *compress(const double *sorted, size_t count, bool wanted, size_t *ret_count)
{
	size_t kept = wanted && count > SHIFT_QUANTILES ? SHIFT_QUANTILES : count;
	double *values = malloc(kept * sizeof(*values));

	for (size_t i = 0; values && i < kept; i++)
		values[i] = kept == count ? sorted[i]
					  : sorted[(size_t)(((double)i + 0.5) / (double)kept *
							    (double)count)];
	*ret_count = kept;
	return values;
}

int shift_estimate(const double *sorted_a, size_t count_a, const double *sorted_b, size_t count_b,
		   double confidence, struct shift *ret_shift)
{
	struct sides sides = {.size_a = (double)count_a, .size_b = (double)count_b};
	bool large = count_a > SHIFT_FULL_MAX || count_b > SHIFT_FULL_MAX - count_a;
	struct shift shift = {.ratio = {NAN, NAN, NAN, confidence}};
	double *a = NULL, *b = NULL;
	int error = -EINVAL;

	if (!count_a || !count_b || !(confidence > 0 && confidence < 1) ||
	    series_check(sorted_a, count_a, true) || series_check(sorted_b, count_b, true))
		return -EINVAL;
	a = compress(sorted_a, count_a, large, &sides.count_a);
	b = compress(sorted_b, count_b, large, &sides.count_b);
	error = -ENOMEM;
	if (!a || !b)
		goto out;
	sides.a = a;
	sides.b = b;
	error = estimate(&sides, confidence, &shift.shift, &shift.method);
	if (error)
		goto out;
	shift.ratio_method = shift.method;
	shift.has_ratio = sorted_a[0] > 0 && sorted_b[0] > 0;
	if (shift.has_ratio) {
		series_log(a, sides.count_a);
		series_log(b, sides.count_b);
		error = estimate(&sides, confidence, &shift.ratio, &shift.ratio_method);
		if (error)
			goto out;
		shift.ratio.estimate = exp(shift.ratio.estimate);
		shift.ratio.low = exp(shift.ratio.low);
		shift.ratio.high = exp(shift.ratio.high);
	}
	*ret_shift = shift;
out:
	free(a);
	free(b);
	return error;
}

int equivalence_test(const double *sorted_a, size_t count_a, const double *sorted_b, size_t count_b,
		     double alpha, double min_effect, enum equivalence *ret_verdict,
		     double *ret_bound)
{
	struct shift shift;
	double low, high, within = 1 + min_effect;
	int error;

	if (!(alpha > 0 && alpha < 0.5) || !(min_effect > 0))
		return -EINVAL;
	error = shift_estimate(sorted_a, count_a, sorted_b, count_b, 1 - 2 * alpha, &shift);
	if (error)
		return error;
	if (!shift.has_ratio)
		return -ERANGE;
	low = shift.ratio.low;
	high = shift.ratio.high;
	*ret_verdict = EQUIVALENCE_OPEN;
	*ret_bound = INFINITY;
	if (isnan(low) || isnan(high))
		return 0;
	*ret_bound = fmax(high, 1 / low) - 1;
	if (low >= 1 / within && high <= within)
		*ret_verdict = EQUIVALENCE_WITHIN;
	else if (low > within || high < 1 / within)
		*ret_verdict = EQUIVALENCE_BEYOND;
	return 0;
}
