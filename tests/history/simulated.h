/* SPDX-License-Identifier: MIT */
#ifndef TESTS_HISTORY_SIMULATED_H
#define TESTS_HISTORY_SIMULATED_H

#include <math.h>
#include <stdlib.h>

#include "base/random.h"
#include "history/check.h"

/* Histories that never were, checked by the very code of "syslat history check": for its tests and
 * for the table of the method. */

#define SIMULATED_COMMITS 200 /* before a step, or without one */
#define SIMULATED_WITHIN 5    /* commits after it, each followed by a check */

struct simulated {
	const double *noise; /* runs are drawn from these; NULL: log-Cauchy */
	size_t noise_count;
	int runs; /* of each commit */
	const struct check_settings *settings;
	const struct sequential *sequential;
	struct random *random;
	struct history_point points[16384];
	size_t count;
};

struct simulated_outcome {
	size_t series, suspected, confirmed, located, fresh;
	int error;
};

static inline double simulated_run(struct simulated *simulated, double factor)
{
	if (simulated->noise)
		return factor *
		       simulated->noise[random_below(simulated->random, simulated->noise_count)];
	/* A tail without a mean, even after the logarithm, within what a double holds. */
	return factor *
	       exp(fmax(-300, fmin(300, tan(M_PI * (random_unit(simulated->random) - 0.5)))));
}

static inline void simulated_add(struct simulated *simulated, uint32_t commit, int runs,
				 double factor, enum run_purpose purpose)
{
	for (int i = 0; i < runs; i++)
		simulated->points[simulated->count++] =
			(struct history_point){.commit = commit,
					       .state = RUN_VALID,
					       .purpose = (uint8_t)purpose,
					       .value = simulated_run(simulated, factor)};
}

static inline int simulated_check(const struct simulated *simulated, struct check_result *result)
{
	return check_points(simulated->points, simulated->count, simulated->settings,
			    simulated->sequential, false, result);
}

/* Fresh runs of both sides of the last change, by turns, until they decide; then the result is
 * cleared. The level is @factor from commit SIMULATED_COMMITS on. */
static inline void simulated_confirm(struct simulated *simulated, double factor,
				     struct check_result *result, struct simulated_outcome *outcome)
{
	const struct check_change *last = &result->changes[result->count - 1];
	uint32_t good = last->last_good, bad = last->first_bad;
	size_t fresh = 0;

	outcome->suspected++;
	outcome->located += good < SIMULATED_COMMITS && bad >= SIMULATED_COMMITS;
	while (last->confirmation == CHECK_NEEDED && fresh < simulated->settings->confirm_most) {
		fresh += 4;
		simulated_add(simulated, good, 4, good >= SIMULATED_COMMITS ? factor : 1,
			      PURPOSE_CONFIRM);
		simulated_add(simulated, bad, 4, bad >= SIMULATED_COMMITS ? factor : 1,
			      PURPOSE_CONFIRM);
		check_result_clear(result);
		outcome->error |= simulated_check(simulated, result);
		last = &result->changes[result->count - 1];
	}
	outcome->confirmed += last->confirmation == CHECK_CONFIRMED && last->worse;
	outcome->fresh += fresh;
	check_result_clear(result);
}

/* A series without a change. */
static inline void simulate_null(struct simulated *simulated, struct simulated_outcome *outcome)
{
	struct check_result result;

	simulated->count = 0;
	for (uint32_t commit = 0; commit < SIMULATED_COMMITS; commit++)
		simulated_add(simulated, commit, simulated->runs, 1, PURPOSE_HISTORY);
	outcome->series++;
	outcome->error |= simulated_check(simulated, &result);
	if (result.count)
		simulated_confirm(simulated, 1, &result, outcome);
	else
		check_result_clear(&result);
}

/* A step, looked for after each new commit until SIMULATED_WITHIN of them lie after it. */
static inline void simulate_step(struct simulated *simulated, double factor,
				 struct simulated_outcome *outcome)
{
	struct check_result result;

	simulated->count = 0;
	for (uint32_t commit = 0; commit < SIMULATED_COMMITS; commit++)
		simulated_add(simulated, commit, simulated->runs, 1, PURPOSE_HISTORY);
	outcome->series++;
	for (uint32_t i = 0; i < SIMULATED_WITHIN; i++) {
		simulated_add(simulated, SIMULATED_COMMITS + i, simulated->runs, factor,
			      PURPOSE_HISTORY);
		outcome->error |= simulated_check(simulated, &result);
		if (result.count && result.changes[result.count - 1].at + 3 >= SIMULATED_COMMITS) {
			simulated_confirm(simulated, factor, &result, outcome);
			return;
		}
		check_result_clear(&result);
	}
}

#endif
