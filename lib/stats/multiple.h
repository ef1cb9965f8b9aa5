/* SPDX-License-Identifier: MIT */
#ifndef STATS_MULTIPLE_H
#define STATS_MULTIPLE_H

#include <stddef.h>

/*
 * Holm (1979): p values adjusted for a family of @count, so that comparing each with alpha keeps
 * the chance of any false claim at alpha, whatever their dependence. In logarithms, in and out
 * (the same array is well). -EINVAL: a value is NaN or above 0.
 */
int holm_adjust_log(const double *log_p, size_t count, double *ret_log_p);

#endif
