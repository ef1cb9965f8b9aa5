/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/array.h"
#include "base/exit.h"
#include "base/file.h"
#include "command.h"
#include "exports/export.h"
#include "history_options.h"

/* syslat history export: every value as CSV, a line each; syslat export has the other formats. */

static void write_time(FILE *stream, int64_t us)
{
	time_t seconds = (time_t)(us / 1000000);
	struct tm tm;
	char text[32] = "";

	if (us != INT64_MAX && gmtime_r(&seconds, &tm))
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	fputs(text, stream);
}

static void write_point(FILE *stream, const struct history_data *data, size_t series,
			const struct history_point *point)
{
	static const char *const states[] = {"valid", "suspect", "invalid", "failed"};
	const struct history_commit *commit = &data->commits[point->commit];
	const char *const texts[] = {commit->name,
				     commit->branch,
				     data->series[series].machine,
				     data->series[series].benchmark,
				     data->series[series].arm,
				     data->series[series].metric,
				     data->series[series].unit};

	write_time(stream, commit->time_us);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		fputc(',', stream);
		export_csv_field(stream, texts[i]);
	}
	fprintf(stream, ",%lld,%s,%s,", (long long)data->series[series].id,
		states[point->state & 3],
		point->purpose == PURPOSE_CONFIRM ? "confirm" : "history");
	export_number(stream, point->value);
	fputs("\r\n", stream);
}

static int write_csv(struct history *history, const struct history_settings *settings,
		     struct history_data *data, struct message *message)
{
	char *text = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);
	int error;

	(void)history;
	if (!stream)
		return message_set_errno(message, -ENOMEM, "export");
	fputs("time,commit,branch,machine_key,benchmark,arm,metric,unit,series,state,purpose,"
	      "value\r\n",
	      stream);
	for (size_t i = 0; i < data->series_count; i++)
		for (size_t k = data->starts[i]; k < data->starts[i + 1]; k++)
			write_point(stream, data, i, &data->points[k]);
	error = fclose(stream) != 0 ? message_set_errno(message, -ENOMEM, "export")
				    : command_write(settings->output, text, size, message);
	free(text);
	return error;
}

static int export(struct history_settings *settings, char *const *operands, size_t count)
{
	(void)operands;
	return history_on_data(settings, "export", count, true, write_csv);
}

static const struct option_row export_rows[] = {
	HISTORY_ROW_DB,
	HISTORY_ROWS_SERIES,
	{OPTION_STRING, 'o', "output", "FILE", "where to write (default: standard output)",
	 HISTORY_AT(output)},
};

const struct history_part history_part_export = {
	"export", "every value as CSV", "syslat history export [OPTION]...",
	export,	  export_rows,		HISTORY_ROW_COUNT(export_rows),
};
