/* SPDX-License-Identifier: MIT */
#include "stats/multiple.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct member {
	double log_p;
	size_t place;
};

static int compare_members(const void *left, const void *right)
{
	const struct member *a = left, *b = right;

	return (a->log_p > b->log_p) - (a->log_p < b->log_p);
}

int holm_adjust_log(const double *log_p, size_t count, double *ret_log_p)
{
	struct member *members;
	double largest = -INFINITY;

	for (size_t i = 0; i < count; i++)
		if (!(log_p[i] <= 0))
			return -EINVAL;
	if (!count)
		return 0;
	members = malloc(count * sizeof(*members));
	if (!members)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		members[i] = (struct member){log_p[i], i};
	qsort(members, count, sizeof(*members), compare_members);
	for (size_t i = 0; i < count; i++) {
		largest = fmax(largest, fmin(0, members[i].log_p + log((double)(count - i))));
		ret_log_p[members[i].place] = largest;
	}
	free(members);
	return 0;
}
