/* SPDX-License-Identifier: MIT */
#include "history/bisect.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "stats/interval.h"
#include "stats/rank.h"
#include "stats/sequential.h"
#include "stats/series.h"

struct side {
	double *sorted;
	size_t count;
	struct sequential *sequential; /* looks at effective sizes 2nm/(n+m) */
};

struct bisect {
	struct bisect_settings settings;
	struct side good, bad;
	bool bad_is_greater;
};

/* Runs an arm that would tell as much as @count and @other: 2nm/(n+m). */
static size_t effective(size_t count, size_t other)
{
	return 2 * count * other / (count + other);
}

static int side_new(const double *values, size_t count, const struct bisect_settings *settings,
		    struct side *side)
{
	struct sequential_plan plan = {.alpha = settings->alpha, .pairs = 2};
	int error = series_sorted_copy(values, count, &side->sorted);

	if (error)
		return error;
	side->count = count;
	plan.max_runs = effective(settings->most, count);
	plan.first_look = effective(settings->first_look, count);
	plan.max_runs = plan.max_runs < 2 ? 2 : plan.max_runs;
	plan.first_look = plan.first_look < 2 ? 2 : plan.first_look;
	return sequential_new(&plan, &side->sequential);
}

void bisect_free(struct bisect *bisect)
{
	if (!bisect)
		return;
	free(bisect->good.sorted);
	free(bisect->bad.sorted);
	sequential_free(bisect->good.sequential);
	sequential_free(bisect->bad.sequential);
	free(bisect);
}

static int check_sides(struct bisect *bisect, struct message *message)
{
	struct rank_test test;
	int error = rank_test(bisect->bad.sorted, bisect->bad.count, bisect->good.sorted,
			      bisect->good.count, &test);

	if (error)
		return message_set_errno(message, error, "good and bad runs");
	bisect->bad_is_greater = test.log_p_greater < test.log_p_less;
	if (test.log_p > log(bisect->settings.alpha))
		return message_set(message, -ERANGE,
				   "the good runs (%zu) and the bad runs (%zu) do not differ "
				   "(p %.2g, alpha %g): measure more of both, or another metric",
				   bisect->good.count, bisect->bad.count, exp(test.log_p),
				   bisect->settings.alpha);
	if (bisect->bad_is_greater == bisect->settings.higher_is_better)
		return message_set(message, -EINVAL,
				   "the bad runs are better than the good ones: are --good and "
				   "--bad the right way round?");
	return 0;
}

int bisect_new(const double *good, size_t good_count, const double *bad, size_t bad_count,
	       const struct bisect_settings *settings, struct bisect **ret_bisect,
	       struct message *message)
{
	struct bisect *bisect;
	int error;

	if (good_count < 2 || bad_count < 2 || good_count > RANK_EXACT_MAX ||
	    bad_count > RANK_EXACT_MAX)
		return message_set(message, -EINVAL,
				   "%zu good and %zu bad runs: 2 to %d of each are wanted",
				   good_count, bad_count, RANK_EXACT_MAX);
	bisect = calloc(1, sizeof(*bisect));
	if (!bisect)
		return message_set_errno(message, -ENOMEM, "bisect");
	bisect->settings = *settings;
	error = side_new(good, good_count, settings, &bisect->good);
	if (!error)
		error = side_new(bad, bad_count, settings, &bisect->bad);
	if (error)
		message_set_errno(message, error, "bisect");
	else
		error = check_sides(bisect, message);
	if (error) {
		bisect_free(bisect);
		return error;
	}
	*ret_bisect = bisect;
	return 0;
}

/* How far the normal p may lie above the exact one near a boundary, with much to spare. */
#define DOUBTFUL_FACTOR 50

/* Do the values differ from @side, upwards if @greater? */
static int differs(const struct side *side, const double *sorted, size_t count, bool greater,
		   double *ret_log_p, bool *ret_differs)
{
	double boundary =
		sequential_log_boundary(side->sequential, 2, effective(count, side->count));
	struct rank_test test;
	int error = rank_test_by(RANK_NORMAL, sorted, count, side->sorted, side->count, &test);

	/* The exact test takes a hundred times as long: only where it could decide. */
	if (!error && test.log_p <= boundary + log(DOUBTFUL_FACTOR))
		error = rank_test(sorted, count, side->sorted, side->count, &test);
	if (error)
		return error;
	*ret_log_p = test.log_p;
	*ret_differs = test.log_p <= boundary && (test.log_p_greater < test.log_p_less) == greater;
	return 0;
}

static int ratio_to(const struct side *side, const double *sorted, size_t count, double *ret_ratio)
{
	struct shift shift;
	int error = shift_estimate(sorted, count, side->sorted, side->count, 0.95, &shift);

	*ret_ratio = !error && shift.has_ratio ? shift.ratio.estimate : NAN;
	return error;
}

int bisect_look(const struct bisect *bisect, const double *values, size_t count,
		struct bisect_look *ret_look)
{
	struct bisect_look look = {.verdict = BISECT_UNDECIDED,
				   .log_p_good = NAN,
				   .log_p_bad = NAN,
				   .ratio_good = NAN,
				   .ratio_bad = NAN};
	bool up = bisect->bad_is_greater, not_good = false, not_bad = false;
	double *sorted = NULL;
	int error = count > bisect->settings.most ? -EINVAL : 0;

	if (!error && count >= bisect->settings.first_look)
		error = series_sorted_copy(values, count, &sorted);
	if (!error && sorted)
		error = differs(&bisect->good, sorted, count, up, &look.log_p_good, &not_good);
	if (!error && sorted)
		error = differs(&bisect->bad, sorted, count, !up, &look.log_p_bad, &not_bad);
	if (not_good || not_bad)
		look.verdict = not_good && not_bad ? BISECT_BETWEEN
			       : not_good	   ? BISECT_BAD
						   : BISECT_GOOD;
	if (!error && (look.verdict != BISECT_UNDECIDED || count == bisect->settings.most)) {
		error = ratio_to(&bisect->good, sorted, count, &look.ratio_good);
		if (!error)
			error = ratio_to(&bisect->bad, sorted, count, &look.ratio_bad);
	}
	free(sorted);
	if (!error)
		*ret_look = look;
	return error;
}

const char *bisect_verdict_name(enum bisect_verdict verdict)
{
	switch (verdict) {
	case BISECT_UNDECIDED:
		return "undecided";
	case BISECT_GOOD:
		return "good";
	case BISECT_BAD:
		return "bad";
	case BISECT_BETWEEN:
		return "between";
	}
	return "unknown";
}
