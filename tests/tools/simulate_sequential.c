/* SPDX-License-Identifier: MIT */
/*
 * How many runs does an experiment need that stops once it is decided, and how often does it claim
 * a difference where there is none? Experiments are drawn, with replacement, from two series
 * and looked at block by block by the very code that "syslat run --until-decided" uses.
 *
 *   simulate_sequential [--alpha X] [--max-runs N] [--min-effect X] [--experiments N]
 *                       [--null-experiments N] [--seed N] SLOW.txt FAST.txt
 */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/random.h"
#include "stats/sequential.h"
#include "stats/series.h"

#define MOST_ARMS 4
#define MOST_RUNS 500

struct series {
	double *values;
	size_t count; /* 0: a log-normal tail without ties, drawn afresh */
};

struct options {
	double alpha, min_effect;
	size_t max_runs, experiments, null_experiments;
	uint64_t seed;
};

/* One row of the table: arms drawn from these series, each against the first. */
struct scene {
	const char *name;
	size_t arms;
	const struct series *from[MOST_ARMS];
	bool null; /* no arm differs: any decision is a false one */
};

struct tally {
	size_t *runs; /* an arm, of each experiment: when it stopped */
	size_t slower, faster, alarms;
	uint64_t total_runs;
};

static int read_series(const char *path, struct series *series)
{
	FILE *file = fopen(path, "r");
	size_t room = 0;
	double value;

	if (!file)
		return -errno;
	while (fscanf(file, "%lf", &value) == 1) {
		if (series->count == room) {
			room = room ? 2 * room : 256;
			series->values = realloc(series->values, room * sizeof(double));
			if (!series->values)
				abort();
		}
		series->values[series->count++] = value;
	}
	fclose(file);
	return series->count ? series_check(series->values, series->count, false) : -EINVAL;
}

static double draw(const struct series *series, struct random *random)
{
	double normal;

	if (series->count)
		return series->values[random_below(random, series->count)];
	normal = sqrt(-2 * log(1 - random_unit(random))) * cos(2 * M_PI * random_unit(random));
	return exp(normal);
}

/* Blocks until every pair is decided or the cap is reached; each arm drops out once decided. */
static void run_experiment(const struct sequential *sequential, const struct scene *scene,
			   size_t max_runs, struct random *random, struct tally *tally,
			   size_t *ret_runs)
{
	static double values[MOST_ARMS][MOST_RUNS];
	struct sequential_pair pairs[MOST_ARMS - 1];
	size_t count = scene->arms - 1, decided = 0, runs = 0, total = 0;

	for (size_t i = 0; i < count; i++)
		pairs[i] = (struct sequential_pair){.a = values[i + 1], .b = values[0]};
	while (decided < count && runs < max_runs) {
		for (size_t arm = 0; arm < scene->arms; arm++) {
			if (arm && pairs[arm - 1].decided)
				continue;
			values[arm][runs] = draw(scene->from[arm], random);
			total++;
		}
		runs++;
		for (size_t i = 0; i < count; i++)
			if (!pairs[i].decided)
				pairs[i].count_a = pairs[i].count_b = runs;
		if (sequential_look_all(sequential, pairs, count, &decided))
			abort();
	}
	for (size_t i = 0; i < count; i++) {
		tally->slower += pairs[i].look.verdict == SEQUENTIAL_SLOWER;
		tally->faster += pairs[i].look.verdict == SEQUENTIAL_FASTER;
	}
	tally->alarms += decided > 0;
	tally->total_runs += total;
	*ret_runs = runs;
}

static int compare_sizes(const void *left, const void *right)
{
	size_t a = *(const size_t *)left, b = *(const size_t *)right;

	return (a > b) - (a < b);
}

static size_t quantile(const size_t *sorted, size_t count, double fraction)
{
	size_t place = (size_t)ceil(fraction * (double)count);

	return sorted[place ? place - 1 : 0];
}

static void play(const struct scene *scene, const struct options *options)
{
	size_t experiments = scene->null ? options->null_experiments : options->experiments;
	struct sequential_plan plan = {.alpha = options->alpha,
				       .pairs = scene->arms - 1,
				       .max_runs = options->max_runs,
				       .min_effect = options->min_effect};
	struct tally tally = {.runs = calloc(experiments, sizeof(size_t))};
	struct sequential *sequential;
	struct random random;

	if (!tally.runs || sequential_new(&plan, &sequential))
		abort();
	random_seed(&random, options->seed);
	for (size_t i = 0; i < experiments; i++)
		run_experiment(sequential, scene, options->max_runs, &random, &tally,
			       &tally.runs[i]);
	qsort(tally.runs, experiments, sizeof(size_t), compare_sizes);
	printf("%-26s %6zu %7zu %5zu %5zu %8.1f %8.2f %8.2f %8.2f\n", scene->name, experiments,
	       quantile(tally.runs, experiments, 0.5), quantile(tally.runs, experiments, 0.9),
	       quantile(tally.runs, experiments, 0.99),
	       (double)tally.total_runs / (double)experiments,
	       100.0 * (double)tally.slower / (double)(experiments * plan.pairs),
	       100.0 * (double)tally.faster / (double)(experiments * plan.pairs),
	       100.0 * (double)tally.alarms / (double)experiments);
	fflush(stdout);
	sequential_free(sequential);
	free(tally.runs);
}

static double number(const char *text, const char *option)
{
	char *end;
	double value = strtod(text, &end);

	if (end == text || *end || !(value >= 0)) {
		fprintf(stderr, "simulate_sequential: --%s wants a number, not \"%s\"\n", option,
			text);
		exit(2);
	}
	return value;
}

static void read_options(int argc, char **argv, struct options *options)
{
	static const struct option names[] = {
		{"alpha", required_argument, NULL, 'a'},
		{"max-runs", required_argument, NULL, 'n'},
		{"min-effect", required_argument, NULL, 'e'},
		{"experiments", required_argument, NULL, 'x'},
		{"null-experiments", required_argument, NULL, 'z'},
		{"seed", required_argument, NULL, 's'},
		{0},
	};
	int which, index = 0;

	while ((which = getopt_long(argc, argv, "", names, &index)) != -1) {
		double value = which == '?' ? 0 : number(optarg, names[index].name);

		if (which == 'a')
			options->alpha = value;
		else if (which == 'n')
			options->max_runs = (size_t)value;
		else if (which == 'e')
			options->min_effect = value;
		else if (which == 'x')
			options->experiments = (size_t)value;
		else if (which == 'z')
			options->null_experiments = (size_t)value;
		else if (which == 's')
			options->seed = (uint64_t)value;
		else
			exit(2);
	}
	if (argc - optind != 2 || options->max_runs < 2 || options->max_runs > MOST_RUNS ||
	    !options->experiments || !options->null_experiments || !(options->alpha > 0) ||
	    options->alpha >= 1) {
		fprintf(stderr,
			"simulate_sequential: wants two files, --max-runs 2 to %d, --alpha "
			"between 0 and 1 and at least one experiment\n",
			MOST_RUNS);
		exit(2);
	}
}

int main(int argc, char **argv)
{
	struct options options = {.alpha = 0.01,
				  .max_runs = 120,
				  .experiments = 2000,
				  .null_experiments = 10000,
				  .seed = 1};
	struct series slow = {0}, fast = {0}, smooth = {0};

	read_options(argc, argv, &options);
	if (read_series(argv[optind], &slow) || read_series(argv[optind + 1], &fast)) {
		fprintf(stderr, "simulate_sequential: cannot read numbers from %s and %s\n",
			argv[optind], argv[optind + 1]);
		return 1;
	}
	const struct scene scenes[] = {
		{"slow against fast", 2, {&fast, &slow}, false},
		{"4 arms, one slow", 4, {&fast, &fast, &slow, &fast}, false},
		{"A/A from fast", 2, {&fast, &fast}, true},
		{"A/A from slow", 2, {&slow, &slow}, true},
		{"A/A log-normal, no ties", 2, {&smooth, &smooth}, true},
		{"A/A/A/A from fast", 4, {&fast, &fast, &fast, &fast}, true},
	};

	printf("alpha %g, at most %zu runs an arm, least effect %g, seed %llu\n", options.alpha,
	       options.max_runs, options.min_effect, (unsigned long long)options.seed);
	printf("%-26s %6s %7s %5s %5s %8s %8s %8s %8s\n", "", "exps", "median", "p90", "p99",
	       "all runs", "slower%", "faster%", "any%");
	for (size_t i = 0; i < ARRAY_SIZE(scenes); i++)
		play(&scenes[i], &options);
	free(slow.values);
	free(fast.values);
	return 0;
}
