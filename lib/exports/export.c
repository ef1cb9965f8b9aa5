/* SPDX-License-Identifier: MIT */
#include "exports/export.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

bool export_takes(const struct record *record, const struct export_settings *settings)
{
	enum record_use use = record_use(record);

	return use == RECORD_COUNTS || (use == RECORD_INVALID && settings->include_invalid);
}

const char *export_kernel(const struct record *record)
{
	return json_get_string(record->environment, "kernel", "");
}

const char *export_commit(const struct record *record, const struct export_settings *settings,
			  char *buffer)
{
	if (settings->commit)
		return settings->commit;
	commit_of_release(export_kernel(record), buffer, 256);
	return buffer;
}

void export_csv_field(FILE *stream, const char *text)
{
	if (!text)
		return;
	if (!strpbrk(text, "\",\r\n")) {
		fputs(text, stream);
		return;
	}
	fputc('"', stream);
	for (; *text; text++) {
		if (*text == '"')
			fputc('"', stream);
		fputc(*text, stream);
	}
	fputc('"', stream);
}

void export_number(FILE *stream, double value)
{
	char text[32];

	if (!isfinite(value))
		return;
	for (int digits = 15; digits <= 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, value);
		if (strtod(text, NULL) == value)
			break;
	}
	fputs(text, stream);
}
