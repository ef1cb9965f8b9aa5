/* SPDX-License-Identifier: MIT */
#include "stats/distribution.h"

#include <math.h>

/*
 * Mills' ratio by its continued fraction (Laplace): P(Z > z) = phi(z) / (z + 1 / (z + 2 / (z +
 * ...))), evaluated from the far end; from z = 5 on 200 terms are beyond the digits of a long
 * double.
 */
static long double log_mills(long double z)
{
	long double fraction = 0;

	for (int term = 200; term > 0; term--)
		fraction = term / (z + fraction);
	return -logl(z + fraction);
}

double normal_log_upper(double z)
{
	static const long double log_sqrt_two_pi = 0.91893853320467274178032973640561764L;
	long double x = z;

	if (isnan(z))
		return NAN;
	if (x < 0) /* 1 - small: log1p keeps what the subtraction would lose */
		return (double)log1pl(-0.5L * erfcl(-x * sqrtl(0.5L)));
	if (x < 5)
		return (double)logl(0.5L * erfcl(x * sqrtl(0.5L)));
	return (double)(-x * x / 2 - log_sqrt_two_pi + log_mills(x));
}

double normal_upper_quantile(double log_p)
{
	double low, high;

	if (!(log_p < 0))
		return log_p == 0 ? -INFINITY : NAN;
	if (isinf(log_p))
		return INFINITY;
	low = -40;
	high = sqrt(-2 * log_p) + 1; /* P(Z > z) <= exp(-z^2 / 2) / 2 for z >= 0 */
	while (high - low > 1e-15 * (fabs(low) + fabs(high)) + 1e-300) {
		double half = low + (high - low) / 2;

		if (half <= low || half >= high)
			break;
		if (normal_log_upper(half) > log_p)
			low = half;
		else
			high = half;
	}
	return low + (high - low) / 2;
}

/* Continued fraction of the incomplete beta (Abramowitz & Stegun 26.5.8), modified Lentz. */
static long double beta_fraction(long double x, long double a, long double b)
{
	const long double tiny = 1e-4000L;
	long double c = 1, d = 1 - (a + b) * x / (a + 1), result;

	d = 1 / (fabsl(d) < tiny ? tiny : d);
	result = d;
	for (long m = 1; m < 1000000; m++) {
		long double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
		long double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
		long double step;

		d = 1 + even * d;
		c = 1 + even / c;
		d = 1 / (fabsl(d) < tiny ? tiny : d);
		c = fabsl(c) < tiny ? tiny : c;
		result *= d * c;
		d = 1 + odd * d;
		c = 1 + odd / c;
		d = 1 / (fabsl(d) < tiny ? tiny : d);
		c = fabsl(c) < tiny ? tiny : c;
		step = d * c;
		result *= step;
		if (fabsl(step - 1) < 1e-18L)
			break;
	}
	return result;
}

/* lgammal() writes the global signgam; this one does not. */
static long double log_gamma(long double x)
{
	int sign;

	return lgammal_r(x, &sign);
}

/* ln of x^a (1 - x)^b / (a B(a, b)) times the fraction; good where x is below the mean. */
static long double beta_log_small(long double x, long double complement, long double a,
				  long double b)
{
	long double front =
		log_gamma(a + b) - log_gamma(a) - log_gamma(b) + a * logl(x) + b * logl(complement);

	return front + logl(beta_fraction(x, a, b) / a);
}

static long double log_lower(long double x, long double complement, long double a, long double b)
{
	if (x <= 0)
		return -INFINITY;
	if (complement <= 0)
		return 0;
	if (x < (a + 1) / (a + b + 2))
		return beta_log_small(x, complement, a, b);
	return log1pl(-expl(beta_log_small(complement, x, b, a)));
}

double beta_lower(double x, double a, double b)
{
	if (!(x >= 0 && x <= 1 && a > 0 && b > 0))
		return NAN;
	return (double)expl(log_lower(x, 1.0L - x, a, b));
}

double binomial_at_least(uint64_t successes, uint64_t trials, double p)
{
	if (!successes)
		return 1;
	if (successes > trials)
		return 0;
	return beta_lower(p, (double)successes, (double)(trials - successes) + 1);
}

double binomial_at_most(uint64_t successes, uint64_t trials, double p)
{
	if (successes >= trials)
		return 1;
	/* I_(1-p)(n - k, k + 1), with 1 - p in full precision. */
	return (double)expl(log_lower(1.0L - p, p, (long double)(trials - successes),
				      (long double)successes + 1));
}

double log_choose(uint64_t n, uint64_t k)
{
	if (k > n)
		return -INFINITY;
	return (double)(log_gamma(n + 1.0L) - log_gamma(k + 1.0L) - log_gamma(n - k + 1.0L));
}

double student_upper(double t, double df)
{
	long double square = (long double)t * t, x, tail;

	if (isnan(t) || !(df > 0))
		return NAN;
	if (isinf(t))
		return t > 0 ? 0 : 1;
	x = df / (df + square);
	tail = expl(log_lower(x, square / (df + square), df / 2, 0.5L)) / 2;
	return (double)(t >= 0 ? tail : 1 - tail);
}

double student_upper_quantile(double p, double df)
{
	double low = 0, high = 1;

	if (!(p > 0 && p <= 0.5) || !(df > 0))
		return NAN;
	while (student_upper(high, df) > p && high < 1e300)
		high *= 2;
	for (int step = 0; step < 1200 && high - low > 4e-16 * high; step++) {
		double half = low + (high - low) / 2;

		if (half <= low || half >= high)
			break;
		if (student_upper(half, df) > p)
			low = half;
		else
			high = half;
	}
	return low + (high - low) / 2;
}
