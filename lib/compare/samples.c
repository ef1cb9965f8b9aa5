/* SPDX-License-Identifier: MIT */
#include "compare/samples.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "record/record.h"

int arm_samples_merge(const struct arm_set *set, const struct comparison *comparison, size_t arm,
		      struct arm_samples *ret_samples)
{
	struct arm_samples samples = {.max_ns = INT64_MIN};

	for (size_t i = 0; i < set->arms[arm].record_count; i++) {
		const struct record *record = set->arms[arm].records[i];

		if (!record_has_histogram(record) ||
		    !comparison_takes(record, &comparison->options))
			continue;
		if (!samples.merged)
			samples.merged = calloc(1, sizeof(*samples.merged));
		if (!samples.merged)
			return -ENOMEM;
		if (record->sparse)
			histogram_merge_sparse(samples.merged, record->sparse);
		else
			histogram_merge(samples.merged, record->histogram);
		if (record->has_latency && record->latency.max_ns > samples.max_ns)
			samples.max_ns = record->latency.max_ns;
		samples.runs++;
	}
	*ret_samples = samples;
	return 0;
}

double arm_samples_percentile_us(const struct arm_samples *samples, double fraction)
{
	int64_t ns;

	if (!samples->merged || (double)samples->merged->total * (1 - fraction) < 1 - 1e-9)
		return NAN;
	ns = histogram_percentile(samples->merged, fraction,
				  samples->max_ns == INT64_MIN ? INT64_MAX : samples->max_ns);
	return ns < 0 ? NAN : (double)ns / 1000.0;
}
