/* SPDX-License-Identifier: MIT */
#include "noise.h"

#include <errno.h>
#include <math.h>

#include "history/bisect.h"

#define REFERENCE 40
#define MOST 40

static double tip[120], mapping[120];

struct tree {
	struct random random;
	struct bisect *bisect;
	size_t runs, skipped;
};

/* What syslat bisect step does with a tree; -1: cannot tell. */
static int step(struct tree *tree, bool is_bad)
{
	struct bisect_look look = {.verdict = BISECT_UNDECIDED};
	double values[MOST];

	for (size_t count = 0; look.verdict == BISECT_UNDECIDED && count < MOST; count++) {
		values[count] = (is_bad ? mapping : tip)[random_below(&tree->random, 120)];
		assert_int_equal(bisect_look(tree->bisect, values, count + 1, &look), 0);
		tree->runs++;
	}
	if (look.verdict == BISECT_GOOD || look.verdict == BISECT_BAD)
		return look.verdict == BISECT_BAD;
	tree->skipped++;
	return -1;
}

/* As git bisect on a line of commits: halves; a skipped commit gives way to a neighbour. */
static int search(struct tree *tree, int commits, int planted)
{
	int good = 0, bad = commits, away = 0;

	while (bad - good > 1 + away) {
		int at = good + (bad - good) / 2 + away;
		int side = step(tree, at >= planted);

		if (side < 0) {
			away++;
			continue;
		}
		away = 0;
		if (side)
			bad = at;
		else
			good = at;
	}
	return bad;
}

/* 100 commits, a planted one, runs drawn from the published series of the two kernels. */
static void a_simulated_bisect_finds_the_planted_commit(void **state)
{
	const struct bisect_settings settings = BISECT_SETTINGS_DEFAULT;
	struct tree tree = {.runs = 0};
	struct message message = {""};
	int found = 0;

	random_seed(&tree.random, 5);
	for (int trial = 0; trial < 100; trial++) {
		double good[REFERENCE], bad[REFERENCE];
		int planted = 1 + (int)random_below(&tree.random, 99);

		for (size_t i = 0; i < REFERENCE; i++) {
			good[i] = tip[random_below(&tree.random, 120)];
			bad[i] = mapping[random_below(&tree.random, 120)];
		}
		if (bisect_new(good, REFERENCE, bad, REFERENCE, &settings, &tree.bisect, &message))
			fail_msg("%s", message.text);
		found += search(&tree, 100, planted) == planted;
		bisect_free(tree.bisect);
	}
	print_message("planted commit found in %d of 100 bisections, %.1f runs each, %zu trees "
		      "skipped in all\n",
		      found, (double)tree.runs / 100, tree.skipped);
	assert_true(found >= 95);
}

static void far_apart_is_decided_at_once(void **state)
{
	static const double good[] = {10, 11, 12, 13, 14, 15, 16, 17};
	static const double bad[] = {100, 101, 102, 103, 104, 105, 106, 107};
	static const double like_bad[] = {99, 104, 110, 103, 98, 120, 101};
	static const double between[] = {50, 51, 52, 53, 54, 55, 56, 57, 58, 59};
	struct bisect_settings settings = BISECT_SETTINGS_DEFAULT;
	struct bisect_look look;
	struct bisect *bisect;

	assert_int_equal(bisect_new(good, 8, bad, 8, &settings, &bisect, NULL), 0);
	assert_int_equal(bisect_look(bisect, like_bad, 2, &look), 0);
	assert_int_equal(look.verdict, BISECT_UNDECIDED);
	assert_int_equal(bisect_look(bisect, like_bad, 7, &look), 0);
	assert_int_equal(look.verdict, BISECT_BAD);
	assert_true(look.ratio_good > 5 && fabs(look.ratio_bad - 1) < 0.1);
	assert_int_equal(bisect_look(bisect, good, 8, &look), 0);
	assert_int_equal(look.verdict, BISECT_GOOD);
	assert_int_equal(bisect_look(bisect, between, 10, &look), 0);
	assert_int_equal(look.verdict, BISECT_BETWEEN);
	bisect_free(bisect);
	settings.higher_is_better = true;
	assert_int_equal(bisect_new(bad, 8, good, 8, &settings, &bisect, NULL), 0);
	assert_int_equal(bisect_look(bisect, good, 8, &look), 0);
	assert_int_equal(look.verdict, BISECT_BAD);
	bisect_free(bisect);
}

static void sides_that_cannot_serve(void **state)
{
	static const double good[] = {10, 11, 12, 13, 14, 15, 16, 17};
	static const double bad[] = {100, 101, 102, 103, 104, 105, 106, 107};
	static const double nan[] = {1, NAN, 3, 4, 5, 6, 7, 8};
	const struct bisect_settings settings = BISECT_SETTINGS_DEFAULT;
	struct message message = {""};
	struct bisect *bisect;

	assert_int_equal(bisect_new(good, 8, good, 8, &settings, &bisect, &message), -ERANGE);
	assert_non_null(strstr(message.text, "do not differ"));
	assert_int_equal(bisect_new(bad, 8, good, 8, &settings, &bisect, &message), -EINVAL);
	assert_non_null(strstr(message.text, "right way round"));
	assert_int_equal(bisect_new(good, 3, bad, 3, &settings, &bisect, &message), -ERANGE);
	assert_int_equal(bisect_new(good, 8, bad, 0, &settings, &bisect, &message), -EINVAL);
	assert_int_equal(bisect_new(good, 8, nan, 8, &settings, &bisect, &message), -EINVAL);
}

static int load(void **state)
{
	return load_noise("tip-mean", tip, 120) != 120 ||
	       load_noise("mapping-mean", mapping, 120) != 120;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_simulated_bisect_finds_the_planted_commit),
		cmocka_unit_test(far_apart_is_decided_at_once),
		cmocka_unit_test(sides_that_cannot_serve),
	};

	return cmocka_run_group_tests_name("history/bisect", tests, load, NULL);
}
