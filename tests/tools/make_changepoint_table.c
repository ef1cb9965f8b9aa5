/* SPDX-License-Identifier: MIT */
/*
 * Writes lib/stats/changepoint_table.h: quantiles of changepoint_scan()'s largest |z| over series
 * of independent points, simulated. Ranks of independent points without ties are a random order, so
 * that one table serves every distribution. make_changepoint_table [SIMULATIONS] > HEADER
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/random.h"
#include "stats/changepoint.h"
#include "stats/series.h"

int main(int argc, char **argv)
{
	static const size_t sizes[] = {6,  7,  8,  9,  10, 11, 12,  13,	 14,   15,
				       16, 20, 24, 32, 48, 80, 200, 500, 1500, 5000};
	static const double levels[] = {0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001};
	size_t simulations = argc > 1 ? strtoull(argv[1], NULL, 10) : 20000;
	size_t rows = ARRAY_SIZE(sizes), columns = ARRAY_SIZE(levels);
	double *largest = calloc(simulations, sizeof(double)), values[5000];

	if (!largest || simulations < 1000)
		return 2;
	printf("/* SPDX-License-Identifier: MIT */\n"
	       "/* Made by tests/tools/make_changepoint_table.c from %zu series a size. */\n"
	       "#ifndef STATS_CHANGEPOINT_TABLE_H\n#define STATS_CHANGEPOINT_TABLE_H\n\n"
	       "#include <stddef.h>\n\n#define CHANGEPOINT_SIZES %zu\n"
	       "#define CHANGEPOINT_LEVELS %zu\n\n",
	       simulations, rows, columns);
	printf("static const size_t changepoint_sizes[CHANGEPOINT_SIZES] = {");
	for (size_t i = 0; i < rows; i++)
		printf("%s%zu", i ? ", " : " ", sizes[i]);
	printf(" };\nstatic const double changepoint_levels[CHANGEPOINT_LEVELS] = {");
	for (size_t i = 0; i < columns; i++)
		printf("%s%g", i ? ", " : " ", levels[i]);
	printf(" };\nstatic const double changepoint_critical[CHANGEPOINT_SIZES]"
	       "[CHANGEPOINT_LEVELS] = {\n");
	for (size_t i = 0; i < rows; i++) {
		size_t draws = sizes[i] > 1000 ? simulations / 2 : simulations;
		struct random random;

		random_seed(&random, sizes[i]);
		for (size_t draw = 0; draw < draws; draw++) {
			struct changepoint change;

			for (size_t k = 0; k < sizes[i]; k++)
				values[k] = random_unit(&random);
			if (changepoint_scan(values, sizes[i], &change))
				return 1;
			largest[draw] = change.z;
		}
		series_sort(largest, draws);
		printf("\t{");
		for (size_t k = 0; k < columns; k++)
			printf("%s%.4f", k ? ", " : " ", /* rounded up: to be exceeded */
			       ceil(largest[draws - 1 - (size_t)(levels[k] * (double)draws)] * 1e4 +
				    1e-6) /
				       1e4);
		printf(" },\n");
		fflush(stdout);
	}
	printf("};\n\n#endif\n");
	free(largest);
	return 0;
}
