/* SPDX-License-Identifier: MIT */
#ifndef STATS_DISTRIBUTION_H
#define STATS_DISTRIBUTION_H

#include <stdint.h>

/* The few distribution functions that the tests of this room need, to about 1e-13. */

/* ln P(Z > z) of the standard normal, for any z: far tails keep their digits. */
double normal_log_upper(double z);

/* z with P(Z > z) = exp(log_p); log_p below 0. */
double normal_upper_quantile(double log_p);

/* Regularised incomplete beta I_x(a, b); a, b > 0. */
double beta_lower(double x, double a, double b);

/* Binomial tails, P(X <= successes) and P(X >= successes). */
double binomial_at_most(uint64_t successes, uint64_t trials, double p);
double binomial_at_least(uint64_t successes, uint64_t trials, double p);

/* ln C(n, k) */
double log_choose(uint64_t n, uint64_t k);

/* Student's t: P(T > t), and t with P(T > t) = p for p in (0, 1/2]. df > 0, may be a fraction. */
double student_upper(double t, double df);
double student_upper_quantile(double p, double df);

#endif
