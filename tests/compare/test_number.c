/* SPDX-License-Identifier: MIT */
#include "compare/values.h"

#include <float.h>
#include <math.h>

#include "support/testing.h"

#include "base/array.h"
#include "base/random.h"

/* strtod of glibc is correctly rounded: every bit must agree. */
static void agree(const char *text)
{
	double expected = strtod(text, NULL), value = -1;
	const char *end = text + strlen(text), *after = number_scan(text, end, &value);

	if (after != end || memcmp(&value, &expected, sizeof(value)) != 0)
		fail_msg("\"%s\": %.17g instead of %.17g", text, after ? value : NAN, expected);
}

/* By the fast way, with what follows a line in a file behind it. */
static void agree_line(const char *text)
{
	char line[128];
	double expected = strtod(text, NULL), value = -1;
	int size = snprintf(line, sizeof(line), "%s\n1234567890123456789012345", text);
	const char *after = number_scan_line(line, line + size, &value);

	if (!after)
		fail_msg("\"%s\" is not taken by the fast way", text);
	if (after != line + strlen(text) + 1 || memcmp(&value, &expected, sizeof(value)) != 0)
		fail_msg("\"%s\": %.17g instead of %.17g", text, value, expected);
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

static void lines_of_the_fast_way(void **state)
{
	static const char *const texts[] = {"0",
					    "7",
					    "12345678",
					    "0.5",
					    "1.",
					    "12345678.1234567",
					    "00000001.00000001",
					    "8101.599",
					    "99999999.9999999",
					    "0.00000001",
					    "90071992.54740992"};
	struct random random;
	char text[64];

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		agree_line(texts[i]);
	random_seed(&random, 5);
	for (int i = 0; i < 300000; i++) {
		int fraction = (int)(random_next(&random) % 8);

		snprintf(text, sizeof(text), "%.*f", fraction,
			 floor(pow(10, 7.9 * random_unit(&random))) + random_unit(&random));
		agree_line(text);
	}
}

/* What the fast way leaves to the other, whatever stands in a byte. */
static void lines_that_are_not_plain(void **state)
{
	static const char *const texts[] = {
		"",	     " 1",	    "-1",   "+1",   ".5",
		"1 ",	     "1\r",	    "1e5",  "1,5",  "nan",
		"123456789", "1.123456789", "1..2", "1.5x", "99999999.99999999",
		"#",	     "1 2"};
	char line[128];
	double value;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		int size = snprintf(line, sizeof(line), "%s\n1234567890123456789012345", texts[i]);

		if (number_scan_line(line, line + size, &value))
			fail_msg("\"%s\" was taken as %g", texts[i], value);
	}
	for (int byte = 0; byte < 256; byte++)
		for (size_t place = 0; place < 5; place++) {
			memcpy(line, "12.34\n2345678901234567890123456789", 34);
			line[place] = (char)byte;
			if (!number_scan_line(line, line + 34, &value))
				continue;
			if (!((byte >= '0' && byte <= '9') || (byte == '\n' && place > 0) ||
			      (byte == '.' && place == 2)))
				fail_msg("byte %d at %zu was taken", byte, place);
		}
	/* Too few bytes behind it to look at eight at once. */
	memcpy(line, "1\n", 2);
	assert_null(number_scan_line(line, line + 2, &value));
}

static void no_numbers(void **state)
{
	static const char *const texts[] = {"",	   "-",	   "+",	 ".",	  "-.",	    "e5",     "nan",
					    "inf", "-inf", "x1", "1e999", "-1e999", "1.8e308"};
	double value;

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (number_scan(texts[i], texts[i] + strlen(texts[i]), &value))
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
		const char *text = cases[i].text;

		assert_ptr_equal(number_scan(text, text + strlen(text), &value),
				 text + cases[i].used);
		assert_float_equal(value, cases[i].value, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(hard_cases),
		cmocka_unit_test(any_double_by_any_format),
		cmocka_unit_test(lines_of_the_fast_way),
		cmocka_unit_test(lines_that_are_not_plain),
		cmocka_unit_test(no_numbers),
		cmocka_unit_test(stops_at_the_first_stranger),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
