/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>
#include <math.h>

#include "base/array.h"
#include "base/parse.h"
#include "base/random.h"

/* strtod of glibc is correctly rounded: every bit must agree. */
static void agree(const char *text)
{
	double expected = strtod(text, NULL), value = -1;
	const char *end = text + strlen(text), *after = NULL;

	if (parse_number(text, end, &after, &value) || after != end ||
	    memcmp(&value, &expected, sizeof(value)) != 0)
		fail_msg("\"%s\": %.17g instead of %.17g", text, after ? value : NAN, expected);
}

static bool is_number(const char *text, const char **ret_after, double *ret_value)
{
	return parse_number(text, text + strlen(text), ret_after, ret_value) == 0;
}

static void hard_cases(void **state)
{
	static const char *const texts[] = {
		"0",
		"-0",
		"0.0",
		"1",
		"-1",
		"+5",
		".5",
		"5.",
		"1e0",
		"1E+2",
		"1e-2",
		"007",
		/* halves between doubles, and just beside them */
		"9007199254740993",
		"9007199254740992.5",
		"9007199254740993.0000000000000000001",
		"5708990770823839207320493820740630171355185152001",
		"1.00000000000000011102230246251565",
		"1.000000000000000111022302462515654042363166809082031250000000000000000000000001",
		"0.1",
		"0.3",
		"123456789.123456789",
		"8.5e-5",
		"1e22",
		"1e23",
		"9.5367431640625e-7",
		"2.2250738585072011e-308",
		"2.2250738585072014e-308",
		"4.9406564584124654e-324",
		"2.4703282292062328e-324",
		"1e-400",
		"1.7976931348623157e308",
		"1e-27",
		"1e-28",
		"9999999999999999999",
		"99999999999999999999",
		"0.00000000000000000000000000000012345",
		"18446744073709551615",
		"18446744073709551616e-5",
		"1234567890123456789e-19",
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		agree(texts[i]);
}

static void any_double_by_any_format(void **state)
{
	struct random random;
	char text[400];

	random_seed(&random, 4);
	for (int i = 0; i < 300000; i++) {
		uint64_t bits = random_next(&random);
		double value;

		memcpy(&value, &bits, sizeof(value));
		if (i % 3)
			value = (random_unit(&random) - 0.3) * pow(10, i % 25 - 12);
		if (!isfinite(value))
			continue;
		if (i % 5 < 2)
			snprintf(text, sizeof(text), "%.*f", i % 7, value);
		else if (i % 5 == 2)
			snprintf(text, sizeof(text), "%.*e", i % 21, value);
		else
			snprintf(text, sizeof(text), "%.*g", 1 + i % 19, value);
		if (isfinite(strtod(text, NULL)))
			agree(text);
	}
}

static void no_numbers(void **state)
{
	static const char *const texts[] = {"",	   "-",	   "+",	 ".",	  "-.",	    "e5",     "nan",
					    "inf", "-inf", "x1", "1e999", "-1e999", "1.8e308"};
	const char *after = NULL;
	double value = 7;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (is_number(texts[i], &after, &value) || value != 7 || after)
			fail_msg("\"%s\" was taken as %g", texts[i], value);
}

/* Where it stops is for the caller to judge. */
static void stops_at_the_first_stranger(void **state)
{
	static const struct {
		const char *text;
		size_t used;
		double value;
	} cases[] = {{"12us", 2, 12}, {"1,5", 1, 1}, {"0x10", 1, 0},   {"1e", 1, 1},
		     {"1e+", 1, 1},   {"3 4", 1, 3}, {"1.5.5", 3, 1.5}};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		double value = -1;
		const char *text = cases[i].text, *after = NULL;

		assert_true(is_number(text, &after, &value));
		assert_ptr_equal(after, text + cases[i].used);
		assert_float_equal(value, cases[i].value, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hard_cases),
		cmocka_unit_test(any_double_by_any_format),
		cmocka_unit_test(no_numbers),
		cmocka_unit_test(stops_at_the_first_stranger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
