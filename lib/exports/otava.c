/* SPDX-License-Identifier: MIT */
#include <math.h>

#include "base/array.h"
#include "exports/export.h"

/* CSV as Apache Otava's importer takes it: a time, attributes, a column a metric; a line a run. */
static int write_otava(FILE *stream, const struct arm_set *set,
		       const struct export_settings *settings, struct message *message)
{
	char buffer[256];
	const char *unit;

	(void)message;
	fputs("time,commit,branch,machine_key,benchmark,arm", stream);
	for (size_t i = 0; settings->metrics[i]; i++) {
		fputc(',', stream);
		export_csv_field(stream, settings->metrics[i]);
	}
	fputc('\n', stream);
	for (size_t i = 0; i < set->count; i++) {
		for (size_t k = 0; k < set->arms[i].record_count; k++) {
			const struct record *record = set->arms[i].records[k];
			const char *const texts[] = {record->started,
						     export_commit(record, settings, buffer),
						     settings->branch ? settings->branch : "",
						     record->machine_key,
						     record->benchmark,
						     set->arms[i].name};

			if (!export_takes(record, settings))
				continue;
			for (size_t t = 0; t < ARRAY_SIZE(texts); t++) {
				export_csv_field(stream, texts[t]);
				fputc(',', stream);
			}
			for (size_t m = 0; settings->metrics[m]; m++) {
				double value = NAN;

				if (m)
					fputc(',', stream);
				if (record_metric(record, settings->metrics[m], &value, &unit) == 0)
					export_number(stream, value);
			}
			fputc('\n', stream);
		}
	}
	return 0;
}

const struct export_ops export_otava = {
	.name = "otava",
	.summary = "CSV for Apache Otava",
	.write = write_otava,
};
