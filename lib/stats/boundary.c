/* SPDX-License-Identifier: MIT */
/*
 * Without a difference the centred rank statistic, scaled to variance n, behaves over the looks
 * like Brownian motion at times n (it is a U-statistic: Sen 1981). Let f be the density of paths
 * that have not crossed yet. One look after the other, the boundary is put where the mass that
 * leaves equals what may be spent, and f is carried on (Armitage, McPherson & Rowe 1969; Lan &
 * DeMets 1983).
 *
 * At small n an exact p takes few values. The look then spends what the largest attainable p below
 * the boundary spends, and the rest is left for later looks: at n = 5 nothing can decide at alpha
 * 1% and N = 120, at n = 6 complete separation does.
 */
#include "stats/boundary.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats/distribution.h"
#include "stats/rank_exact.h"

#define STEP 0.15	/* of the grid, in standard deviations of one look's increment */
#define REACH 8.5	/* increments beyond this are below 1e-16 */
#define DISCRETE_MAX 40 /* above, neighbouring p differ by less than 3% */

/* Density of |S| (even in S) at points 0, width, 2 width ... by Simpson's rule. */
struct paths {
	size_t points; /* odd; 0: not started, all mass at 0 */
	double width;
	double *density, *next;
};

static double simpson_weight(const struct paths *paths, size_t i)
{
	double share = i == 0 || i + 1 == paths->points ? 1 : i % 2 ? 4 : 2;

	return share * paths->width / 3;
}

static double upper(double z)
{
	return 0.5 * erfc(z * M_SQRT1_2);
}

/* Mass that lies beyond +-bound after an increment of standard deviation @deviation. */
static double leaving(const struct paths *paths, double bound, double deviation)
{
	double mass = 0;

	if (!paths->points)
		return 2 * upper(bound / deviation);
	for (size_t i = paths->points; i-- > 0;) {
		double from = (double)i * paths->width;

		if (bound - from > REACH * deviation * 4)
			break;
		mass += 2 * simpson_weight(paths, i) * paths->density[i] *
			(upper((bound - from) / deviation) + upper((bound + from) / deviation));
	}
	return mass;
}

static double increment_density(double distance, double deviation)
{
	double z = distance / deviation;

	if (fabs(z) > REACH)
		return 0;
	return exp(-z * z / 2) / (deviation * sqrt(2 * M_PI));
}

static double arriving(const struct paths *paths, double at, double deviation)
{
	double density = 0, reach = REACH * deviation;
	size_t first = at > reach ? (size_t)((at - reach) / paths->width) : 0;
	size_t last = (size_t)((at + reach) / paths->width) + 1;

	if (!paths->points)
		return increment_density(at, deviation);
	for (size_t i = first; i < paths->points && i <= last; i++) {
		double from = (double)i * paths->width;

		density += simpson_weight(paths, i) * paths->density[i] *
			   (increment_density(at - from, deviation) +
			    increment_density(at + from, deviation));
	}
	return density;
}

/* One increment on, and what lies beyond +-bound is gone. */
static void carry_on(struct paths *paths, double bound, double deviation)
{
	size_t points = (size_t)(bound / STEP) / 2 * 2 + 3;
	double width = bound / (double)(points - 1), *swap;

	for (size_t i = 0; i < points; i++)
		paths->next[i] = arriving(paths, (double)i * width, deviation);
	swap = paths->density;
	paths->density = paths->next;
	paths->next = swap;
	paths->points = points;
	paths->width = width;
}

/* The bound, as z, at which @wanted leaves. */
static double bound_for(const struct paths *paths, double wanted, double runs, double deviation)
{
	double low = 0, high = 9;

	while (high - low > 1e-12) {
		double half = (low + high) / 2;

		if (leaving(paths, half * sqrt(runs), deviation) > wanted)
			low = half;
		else
			high = half;
	}
	return high;
}

/* Largest two-sided p of n against n without ties that is at most @log_p; -INFINITY: none. */
static int largest_attainable(size_t runs, double log_p, double *ret_log_p)
{
	double *at_most, found = -INFINITY;
	int error = rank_null_distribution(runs, runs, &at_most);

	if (error)
		return error;
	for (size_t u = 0; u <= runs * runs / 2; u++) {
		double log_attained = log(2 * at_most[u]);

		if (log_attained > log_p)
			break;
		found = log_attained;
	}
	free(at_most);
	*ret_log_p = found;
	return 0;
}

static int place_bounds(struct paths *paths, double alpha, size_t first_look, size_t max_runs,
			double *ret_log_bound, double *ret_spent)
{
	size_t previous = 0;
	double spent = 0;

	for (size_t runs = first_look; runs <= max_runs; runs++) {
		double wanted = alpha * sqrt((double)runs / (double)max_runs) - spent;
		double deviation = sqrt((double)(runs - previous));
		double z = bound_for(paths, wanted, (double)runs, deviation);
		double log_bound = log(2) + normal_log_upper(z);

		if (runs <= DISCRETE_MAX) {
			int error = largest_attainable(runs, log_bound, &log_bound);

			if (error)
				return error;
			z = isinf(log_bound) ? 9 : normal_upper_quantile(log_bound - log(2));
		}
		/* A hair above, for the last digits of two ways to the same p. */
		ret_log_bound[runs] = log_bound + 1e-9;
		spent += leaving(paths, z * sqrt((double)runs), deviation);
		carry_on(paths, z * sqrt((double)runs), deviation);
		previous = runs;
	}
	*ret_spent = spent;
	return 0;
}

int boundary_compute(double alpha, size_t first_look, size_t max_runs, double *ret_log_bound,
		     double *ret_spent)
{
	size_t most = (size_t)(9 * sqrt((double)max_runs) / STEP) + 8;
	struct paths paths = {.density = malloc(most * sizeof(double)),
			      .next = malloc(most * sizeof(double))};
	double spent = 0;
	int error = -ENOMEM;

	for (size_t runs = 0; runs <= max_runs; runs++)
		ret_log_bound[runs] = -INFINITY;
	if (paths.density && paths.next)
		error = place_bounds(&paths, alpha, first_look, max_runs, ret_log_bound, &spent);
	free(paths.density);
	free(paths.next);
	if (!error && ret_spent)
		*ret_spent = spent;
	return error;
}
