/* SPDX-License-Identifier: MIT */
#include "stats/placement.h"

#include "stats/distribution.h"

static void add(struct placement_sums *sums, size_t count, uint64_t twice)
{
	uint64_t sum = count * twice;

	sums->twice += sum;
	sums->twice_squared += (unsigned __int128)sum * twice;
}

void merged_order_walk(const double *a, size_t count_a, const double *b, size_t count_b,
		       struct merged_order *ret_order)
{
	struct merged_order order = {{0}};
	size_t i = 0, j = 0;

	while (i < count_a || j < count_b) {
		double value = j >= count_b || (i < count_a && a[i] <= b[j]) ? a[i] : b[j];
		size_t from_a = i, from_b = j, start = i + j, group;

		while (i < count_a && a[i] == value)
			i++;
		while (j < count_b && b[j] == value)
			j++;
		group = i + j - start;
		add(&order.a, i - from_a, from_b + j);
		add(&order.b, j - from_b, from_a + i);
		order.tie_term += (double)group * ((double)group * (double)group - 1);
		if (start < count_a && count_a < start + group)
			order.log_ways_low = log_choose(group, count_a - start);
		if (start < count_b && count_b < start + group)
			order.log_ways_high = log_choose(group, count_b - start);
	}
	*ret_order = order;
}
