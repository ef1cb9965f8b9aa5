/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "imports/bins.h"

/*
 * cyclictest: its histogram (-h, --histofall) "000012 000345 000001" with a column a thread and
 * "# Max Latencies: ..." below it, or its lines "T: 0 ( 123) P:80 ... Min: 4 Act: 5 Avg: 6 Max: 9".
 */

static bool knows(const char *text)
{
	return strstr(text, "# Max Latencies:") || (strstr(text, "T: 0 (") && strstr(text, "Avg:"));
}

/* Sum of the numbers of a line after @at; the greatest in *ret_max. */
static int64_t sum_line(const char *at, const char *end, int64_t *ret_max)
{
	int64_t sum = 0;

	*ret_max = -1;
	while (at < end) {
		char *after;
		long long number = strtoll(at, &after, 10);

		if (after == at || after > end)
			break;
		sum += number;
		*ret_max = number > *ret_max ? number : *ret_max;
		at = after;
	}
	return sum;
}

static int read_line(const char *text, const char *end, struct import_bins *bins)
{
	static const char overflows[] = "# Histogram Overflows:", maxima[] = "# Max Latencies:";
	int64_t greatest, sum;
	char *after;
	long long us;

	if (strncmp(text, overflows, strlen(overflows)) == 0) {
		bins->overflows += sum_line(text + strlen(overflows), end, &greatest);
		return 0;
	}
	if (strncmp(text, maxima, strlen(maxima)) == 0) {
		sum_line(text + strlen(maxima), end, &greatest);
		if (greatest >= 0)
			bins->max_us = (double)greatest;
		return 0;
	}
	if (*text < '0' || *text > '9')
		return 0;
	us = strtoll(text, &after, 10);
	sum = sum_line(after, end, &greatest);
	return greatest < 0 ? -EINVAL : import_bins_add(bins, us, sum);
}

static int read_histogram(const char *text, const struct import_settings *settings,
			  struct import_list *list, struct message *message)
{
	struct import_bins bins = {.max_us = NAN};
	struct record *record;
	size_t line = 0;

	while (*text) {
		const char *end = text + strcspn(text, "\n");
		int error = read_line(text, end, &bins);

		line++;
		if (error) {
			free(bins.counts);
			return message_set(message, -EINVAL, "line %zu: no line of a histogram",
					   line);
		}
		text = *end ? end + 1 : end;
	}
	record = import_new(list, settings, "cyclictest");
	if (!record) {
		free(bins.counts);
		return -ENOMEM;
	}
	return import_bins_finish(&bins, record);
}

/* Threads are one run: the mean over all wakes, the greatest maximum. */
static int read_threads(const char *text, const struct import_settings *settings,
			struct import_list *list, struct message *message)
{
	double wakes = 0, sum = 0, max = -1;
	struct record *record;

	for (text = strstr(text, "T:"); text; text = strstr(text + 1, "T:")) {
		const char *count = strstr(text, "C:"), *average = strstr(text, "Avg:");
		const char *maximum = strstr(text, "Max:");

		if (!count || !average || !maximum)
			return message_set(message, -EINVAL,
					   "\"%.40s\" is no whole line of "
					   "cyclictest",
					   text);
		wakes += strtod(count + 2, NULL);
		sum += strtod(count + 2, NULL) * strtod(average + 4, NULL);
		max = fmax(max, strtod(maximum + 4, NULL));
	}
	record = import_new(list, settings, "cyclictest");
	if (!record || (wakes > 0 && import_metric(record, "mean", sum / wakes, "us")) ||
	    import_metric(record, "max", max, "us"))
		return -ENOMEM;
	return 0;
}

static int read_runs(const char *text, const struct import_settings *settings,
		     struct import_list *list, struct message *message)
{
	return strstr(text, "# Max Latencies:") ? read_histogram(text, settings, list, message)
						: read_threads(text, settings, list, message);
}

const struct import_ops import_cyclictest = {
	.name = "cyclictest",
	.summary = "histograms or lines of cyclictest",
	.knows = knows,
	.read = read_runs,
};
