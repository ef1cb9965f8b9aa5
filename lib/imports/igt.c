/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "imports/import.h"

/*
 * IGT's gem_syslatency: its usual line, "gem_syslatency: cycles=C, latency mean=Mus max=Xus", as
 * often as there were runs. (-f prints a number by itself, which is read as plain numbers.)
 */
static const char prefix[] = "gem_syslatency: cycles=";

static bool knows(const char *text)
{
	return strstr(text, prefix) != NULL;
}

static int read_runs(const char *text, const struct import_settings *settings,
		     struct import_list *list, struct message *message)
{
	for (text = strstr(text, prefix); text; text = strstr(text + 1, prefix)) {
		double cycles, mean, max;
		struct record *record;

		if (sscanf(text, "gem_syslatency: cycles=%lf, latency mean=%lfus max=%lfus",
			   &cycles, &mean, &max) != 3 ||
		    !isfinite(mean) || !isfinite(max))
			return message_set(message, -EINVAL, "\"%.60s\" is no whole line of IGT",
					   text);
		record = import_new(list, settings, "gem_syslatency");
		if (!record || import_metric(record, "igt-cycles", cycles, "count") ||
		    import_metric(record, "igt-mean", mean, "us") ||
		    import_metric(record, "igt-max", max, "us"))
			return -ENOMEM;
	}
	return 0;
}

const struct import_ops import_igt = {
	.name = "igt",
	.summary = "lines of IGT's gem_syslatency",
	.knows = knows,
	.read = read_runs,
};
