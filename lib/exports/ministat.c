/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>

#include "exports/export.h"

/* One value a line of one arm and one metric, as ministat reads it. */
static int write_ministat(FILE *stream, const struct arm_set *set,
			  const struct export_settings *settings, struct message *message)
{
	const struct arm *arm = &set->arms[0];
	size_t written = 0;
	const char *unit;

	if (set->count != 1)
		return message_set(message, -EINVAL,
				   "ministat: a file holds one arm, here are %zu: choose with "
				   "--arm",
				   set->count);
	if (settings->metrics[1])
		return message_set(message, -EINVAL,
				   "ministat: a file holds one metric: choose with --metric");
	for (size_t i = 0; i < arm->record_count; i++) {
		double value = NAN;

		if (!export_takes(arm->records[i], settings) ||
		    record_metric(arm->records[i], settings->metrics[0], &value, &unit) ||
		    !isfinite(value))
			continue;
		export_number(stream, value);
		fputc('\n', stream);
		written++;
	}
	for (size_t i = 0; i < arm->value_count; i++, written++) {
		export_number(stream, arm->values[i]);
		fputc('\n', stream);
	}
	if (!written)
		return message_set(message, -EINVAL, "%s: no run that counts has a metric %s",
				   arm->name, settings->metrics[0]);
	return 0;
}

const struct export_ops export_ministat = {
	.name = "ministat",
	.summary = "a value a line, of one arm and metric",
	.flags = EXPORT_ONE_METRIC,
	.write = write_ministat,
};
