/* SPDX-License-Identifier: MIT */
#ifndef REPORTS_METRICS_TEXT_H
#define REPORTS_METRICS_TEXT_H

#include <stdio.h>

#include "record/record.h"

/* What stands above the metrics whose names begin with @prefix and an underscore. */
struct metrics_heading {
	const char *prefix, *text;
};

/* "251,180", "19.4 ns", "3.80 us", "100%", "1.2 ms": for people. "n/a" for NaN. Returns @buffer. */
char *metric_format(double value, const char *unit, char *buffer, size_t size);

/*
 * Every metric that was measured several times in the run: median, range, number of runs that
 * count. @headings ends with a NULL prefix. -errno of the stream.
 */
int metrics_text_print(FILE *stream, const struct record *record,
		       const struct metrics_heading *headings);

/* Verdict, reasons and notes. */
int metrics_text_verdict(FILE *stream, const struct record *record);

#endif
