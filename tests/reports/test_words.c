/* SPDX-License-Identifier: MIT */
#include "reports/comparison_words.h"

#include <math.h>

#include "support/testing.h"

static void numbers(void **state)
{
	char text[40];

	assert_string_equal(words_number(9540.144712, 13, text, sizeof(text)), "9540.1447");
	assert_string_equal(words_number(3, 13, text, sizeof(text)), "3");
	assert_string_equal(words_number(NAN, 13, text, sizeof(text)), "-");
	assert_string_equal(words_number(INFINITY, 13, text, sizeof(text)), "-");
	for (int exponent = -320; exponent <= 308; exponent++)
		assert_true(strlen(words_number(-1.23456789 * pow(10, exponent), 10, text,
						sizeof(text))) <= 10);
}

static void probabilities(void **state)
{
	char text[40];

	assert_string_equal(words_probability(0, text, sizeof(text)), "1");
	assert_string_equal(words_probability(log(0.0079), text, sizeof(text)), "0.0079");
	assert_string_equal(words_probability(log(2e-25), text, sizeof(text)), "2e-25");
	assert_string_equal(words_probability(log(9.7e-25), text, sizeof(text)), "1e-24");
	assert_string_equal(words_probability(-41152 * M_LN10, text, sizeof(text)), "1e-41152");
}

static char *verdict(const struct comparison *comparison, const struct comparison_pair *pair)
{
	static char text[1024];
	FILE *stream = fmemopen(text, sizeof(text), "w");

	words_verdict(stream, comparison, pair);
	fclose(stream);
	return text;
}

static void verdicts(void **state)
{
	struct comparison_arm arms[] = {{.name = "tip"}, {.name = "mapping"}};
	struct comparison comparison = {
		.arms = arms, .count = 2, .unit = "us", .options = {.min_effect = 0.05}};
	struct comparison_pair pair = {
		.a = 1,
		.shift = {.has_ratio = true,
			  .ratio = {1.953, 1.749, 2.131, 0.95},
			  .shift = {120.5, NAN, NAN, 0.95}},
		.superiority = {0.862, 0.8, 0.9, 0.95},
		.log_p_holm = log(2e-25),
		.verdict = COMPARISON_SLOWER,
	};

	assert_string_equal(verdict(&comparison, &pair),
			    "mapping is slower than tip: x1.95 [1.75, 2.13], P(slower) 0.86, p "
			    "2e-25");
	pair.verdict = COMPARISON_FASTER;
	comparison.higher_is_better = true; /* more is better: P(slower) is the other share */
	assert_string_equal(verdict(&comparison, &pair),
			    "mapping is faster than tip: x1.95 [1.75, 2.13], P(slower) 0.14, p "
			    "2e-25");
	comparison.higher_is_better = false;
	pair.verdict = COMPARISON_EQUIVALENT;
	assert_true(
		strstr(verdict(&comparison, &pair), "mapping is equivalent to tip within 5%: "));
	pair.verdict = COMPARISON_UNDECIDED;
	pair.shift.has_ratio = false;
	strcpy(pair.why, "too few runs");
	assert_string_equal(verdict(&comparison, &pair),
			    "mapping against tip is undecided: +120.5 us [no interval: too few "
			    "runs], P(slower) 0.86, p 2e-25; too few runs");
}

static void losses(void **state)
{
	struct comparison_arm arm = {.name = "stock", .count = 1};
	char text[200];
	FILE *stream = fmemopen(text, sizeof(text), "w");

	assert_false(words_has_losses(&arm));
	arm.invalid = 2;
	arm.interrupted = 1;
	arm.suspect = 1;
	assert_true(words_has_losses(&arm));
	words_runs(stream, &arm);
	fclose(stream);
	assert_string_equal(text, "stock: 1 run; left out: 2 invalid, 1 interrupted; suspect: 1");
}

/* Lines of at most the width, every word kept, whatever is between them. */
static void wrapping(void **state)
{
	static const char text[] = "one two  three\nfour five six seven eight nine ten";
	char wrapped[400];

	for (size_t width = 8; width < 60; width++) {
		FILE *stream = fmemopen(wrapped, sizeof(wrapped), "w");
		char *rest = wrapped, *word;
		size_t words = 0;

		words_wrap(stream, text, width, 2);
		fclose(stream);
		for (const char *line = wrapped; *line; line += strcspn(line, "\n") + 1)
			assert_true(strcspn(line, "\n") <= width);
		while ((word = strsep(&rest, " \n")))
			words += *word != '\0';
		assert_int_equal(words, 10);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers),  cmocka_unit_test(probabilities),
		cmocka_unit_test(verdicts), cmocka_unit_test(losses),
		cmocka_unit_test(wrapping),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
