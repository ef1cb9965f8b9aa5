/* SPDX-License-Identifier: MIT */
/*
 * How often does "syslat history check" suspect a series without a change, and how often does it
 * find one that is there? Histories of 200 commits are drawn, with replacement, from a series of
 * runs, and checked by the very code of the command.
 *
 *	simulate_history [--series N] [--steps N] [--seed N] [--alpha X] NOISE.txt...
 *
 * One line a file of noise (and one for a log-Cauchy tail) and number of runs a commit: of --series
 * without change, how many are suspected and how many then confirmed by fresh runs; of --steps of
 * 1.5 and of 2, how many are found before five commits lie after them, and how many confirmed.
 */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/parallel.h"
#include "base/parse.h"
#include "history/simulated.h"
#include "compare/values.h"
#include "stats/sequential.h"

struct options {
	int64_t series, steps, seed;
	double alpha;
};

/* Shares of one cell of the table: each of them has a generator of its own. */
#define PARTS 16

struct cell {
	const struct values *noise; /* NULL: log-Cauchy */
	int runs;
	double factor; /* 1: without change */
	int64_t trials;
	const struct options *options;
	struct simulated_outcome parts[PARTS];
};

static void simulate_part(void *data, size_t part)
{
	struct cell *cell = data;
	struct check_settings settings = CHECK_SETTINGS_DEFAULT;
	struct sequential *sequential = NULL;
	struct simulated *simulated = calloc(1, sizeof(*simulated));
	struct random random;

	settings.alpha = cell->options->alpha;
	if (!simulated || check_sequential(&settings, &sequential) < 0)
		abort();
	random_seed(&random, (uint64_t)cell->options->seed * PARTS + part);
	*simulated = (struct simulated){.noise = cell->noise ? cell->noise->values : NULL,
					.noise_count = cell->noise ? cell->noise->count : 0,
					.runs = cell->runs,
					.settings = &settings,
					.sequential = sequential,
					.random = &random};
	for (int64_t i = (int64_t)part; i < cell->trials; i += PARTS) {
		if (cell->factor == 1)
			simulate_null(simulated, &cell->parts[part]);
		else
			simulate_step(simulated, cell->factor, &cell->parts[part]);
	}
	sequential_free(sequential);
	free(simulated);
}

static struct simulated_outcome simulate(const struct options *options, const struct values *noise,
					 int runs, double factor)
{
	struct cell cell = {.noise = noise,
			    .runs = runs,
			    .factor = factor,
			    .trials = factor == 1 ? options->series : options->steps,
			    .options = options};
	struct simulated_outcome sum = {0};

	parallel_for(PARTS, simulate_part, &cell);
	for (size_t i = 0; i < PARTS; i++) {
		sum.series += cell.parts[i].series;
		sum.suspected += cell.parts[i].suspected;
		sum.confirmed += cell.parts[i].confirmed;
		sum.located += cell.parts[i].located;
		sum.fresh += cell.parts[i].fresh;
		sum.error |= cell.parts[i].error;
	}
	if (sum.error)
		abort();
	return sum;
}

static double percent(size_t part, size_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void write_line(const struct options *options, const char *name, const struct values *noise,
		       int runs)
{
	struct simulated_outcome null = simulate(options, noise, runs, 1);

	printf("%-14.14s %4d %10.2f %6.2f", name, runs, percent(null.suspected, null.series),
	       percent(null.confirmed, null.series));
	for (int i = 0; i < 2; i++) {
		struct simulated_outcome step = simulate(options, noise, runs, i ? 2 : 1.5);

		printf(" %8.1f %6.1f %6.1f %6.1f", percent(step.suspected, step.series),
		       percent(step.confirmed, step.series), percent(step.located, step.suspected),
		       step.suspected ? (double)step.fresh / (double)step.suspected : 0);
	}
	putchar('\n');
	fflush(stdout);
}

static int take(struct options *options, int option, const char *text)
{
	switch (option) {
	case 'n':
		return parse_int64(text, 1, 10000000, &options->series);
	case 's':
		return parse_int64(text, 1, 10000000, &options->steps);
	case 'x':
		return parse_int64(text, 0, 1000000, &options->seed);
	case 'a':
		return parse_double(text, &options->alpha);
	default:
		return -1;
	}
}

static void write_table(const struct options *options, char **paths, int count)
{
	static const int runs[] = {1, 3, 5, 7, 10};
	struct message message = {""};

	printf("%-14s %4s %10s %6s %8s %6s %6s %6s %8s %6s %6s %6s\n", "noise", "runs",
	       "none: susp", "conf", "x1.5 5", "conf", "range", "fresh", "x2 5", "conf", "range",
	       "fresh");
	for (int i = 0; i <= count; i++) {
		struct values noise = {NULL, 0, 0};
		const char *slash = i < count ? strrchr(paths[i], '/') : NULL;

		if (i < count && values_read(paths[i], 1, &noise, &message) < 0) {
			fprintf(stderr, "simulate_history: %s\n", message.text);
			exit(2);
		}
		for (size_t k = 0; k < ARRAY_SIZE(runs); k++)
			write_line(options,
				   i == count ? "log-Cauchy"
				   : slash    ? slash + 1
					      : paths[i],
				   i == count ? NULL : &noise, runs[k]);
		free(noise.values);
	}
}

int main(int argc, char **argv)
{
	static const struct option long_options[] = {{"series", required_argument, NULL, 'n'},
						     {"steps", required_argument, NULL, 's'},
						     {"seed", required_argument, NULL, 'x'},
						     {"alpha", required_argument, NULL, 'a'},
						     {NULL, 0, NULL, 0}};
	struct check_settings defaults = CHECK_SETTINGS_DEFAULT;
	struct options options = {1000, 1000, 1, defaults.alpha};
	int option;

	while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
		if (take(&options, option, optarg ? optarg : "") < 0) {
			fprintf(stderr, "simulate_history: a number is wanted; see the head of "
					"tests/tools/simulate_history.c\n");
			return 2;
		}
	}
	if (optind == argc) {
		fprintf(stderr, "simulate_history: files of noise are wanted\n");
		return 2;
	}
	write_table(&options, argv + optind, argc - optind);
	return 0;
}
