/* SPDX-License-Identifier: MIT */
/*
 * plugin_options PAGE: the man page PAGE on standard output, where each line
 *
 *	.\\" options of loads
 *
 * has given way to the options that the plugins of that kind bring.
 */
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "ops.h"

static const struct {
	const char *name;
	const struct plugin *const *table;
} kinds[] = {
	{"measures", PLUGINS(measures)},
	{"loads", PLUGINS(loads)},
	{"backends", PLUGINS(backends)},
	{"causes", PLUGINS(causes)},
};

/* false: the line is no such mark. */
static bool print_options(const char *line)
{
	static const char mark[] = ".\\\" options of ";
	struct option_row rows[64];

	if (strncmp(line, mark, strlen(mark)) != 0)
		return false;
	line += strlen(mark);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		if (strncmp(line, kinds[i].name, strcspn(line, "\n")) != 0)
			continue;
		options_man(stdout, rows,
			    plugin_options(kinds[i].table, rows, 0, ARRAY_SIZE(rows)));
		return true;
	}
	return false;
}

int main(int argc, char **argv)
{
	FILE *page = argc == 2 ? fopen(argv[1], "re") : NULL;
	char line[1024];

	if (!page) {
		fprintf(stderr, "plugin_options: a man page is wanted\n");
		return 2;
	}
	while (fgets(line, sizeof(line), page))
		if (!print_options(line))
			fputs(line, stdout);
	fclose(page);
	return fflush(stdout) == EOF;
}
