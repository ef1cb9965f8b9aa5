/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>
#include <locale.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/parse.h"

static void durations(void **state)
{
	static const struct {
		const char *text;
		int64_t ns;
	} good[] = {
		{"250us", 250000},
		{"1.5s", 1500000000},
		{"2", 2000000000},
		{"0", 0},
		{"0.5", 500000000},
		{"10ms", 10000000},
		{"1m", 60000000000},
		{"2h", 7200000000000},
		{"1d", 86400000000000},
		{"7ns", 7},
		{"1e3us", 1000000},
		{".5ms", 500000},
		{"9223372036854775807ns", INT64_MAX},
	};
	static const char *const bad[] = {"",	 "abc", "1x", "5 s", " 5s", "1..5s", "0x10",
					  "nan", "inf", "s",  "1s2", "--5", "1e",    "10D"};
	int64_t ns;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		assert_int_equal(parse_duration_ns(good[i].text, NS_PER_S, false, &ns), 0);
		assert_int_equal(ns, good[i].ns);
	}
	ns = 42;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(parse_duration_ns(bad[i], NS_PER_S, false, &ns), -EINVAL);
	assert_int_equal(parse_duration_ns("-1", NS_PER_S, false, &ns), -ERANGE);
	assert_int_equal(parse_duration_ns("9223372036854775808ns", NS_PER_S, false, &ns), -ERANGE);
	assert_int_equal(parse_duration_ns("300000d", NS_PER_S, false, &ns), -ERANGE);
	assert_int_equal(ns, 42);
	assert_int_equal(parse_duration_ns("-1", NS_PER_S, true, &ns), 0);
	assert_int_equal(ns, -1000000000);
}

static void sizes(void **state)
{
	struct size_value size;

	assert_int_equal(parse_size("1400M", &size), 0);
	assert_int_equal(size.bytes, UINT64_C(1400) << 20);
	assert_int_equal(parse_size("1.5G", &size), 0);
	assert_int_equal(size.bytes, UINT64_C(1536) << 20);
	assert_int_equal(parse_size("4096", &size), 0);
	assert_int_equal(size_resolve(&size, 1), 4096);
	assert_int_equal(parse_size("50%", &size), 0);
	assert_int_equal(size_resolve(&size, 2048), 1024);
	assert_int_equal(parse_size("0%", &size), -ERANGE);
	assert_int_equal(parse_size("101%", &size), -ERANGE);
	assert_int_equal(parse_size("-1M", &size), -ERANGE);
	assert_int_equal(parse_size("9999999T", &size), -ERANGE);
	assert_int_equal(parse_size("1X", &size), -EINVAL);
	assert_int_equal(parse_size("M", &size), -EINVAL);
	assert_int_equal(parse_size("1MB", &size), -EINVAL);
}

static void numbers_ignore_the_locale(void **state)
{
	double value;

	/* Absent locales leave "C": the test then shows less, never a false pass of the comma. */
	setlocale(LC_ALL, "de_DE.UTF-8");
	assert_int_equal(parse_double("1.25", &value), 0);
	assert_true(value == 1.25);
	assert_int_equal(parse_double("1,25", &value), -EINVAL);
	assert_int_equal(parse_double("nan", &value), -EINVAL);
	assert_int_equal(parse_double("0x1p3", &value), -EINVAL);
	assert_int_equal(parse_double("1e999", &value), -ERANGE);
	setlocale(LC_ALL, "C");
}

static void integers(void **state)
{
	int64_t value;

	assert_int_equal(parse_int64("-5", -10, 10, &value), 0);
	assert_int_equal(value, -5);
	assert_int_equal(parse_int64("11", -10, 10, &value), -ERANGE);
	assert_int_equal(parse_int64("99999999999999999999", INT64_MIN, INT64_MAX, &value),
			 -ERANGE);
	assert_int_equal(parse_int64("5 ", 0, 10, &value), -EINVAL);
	assert_int_equal(parse_int64("", 0, 10, &value), -EINVAL);
	assert_int_equal(parse_int64("-", -10, 10, &value), -EINVAL);
}

static void texts(void **state)
{
	char text[32];

	assert_string_equal(format_size(1536 << 20, text, sizeof(text)), "1.5G");
	assert_string_equal(format_size(512 << 20, text, sizeof(text)), "512M");
	assert_string_equal(format_size(1023, text, sizeof(text)), "1023");
	assert_string_equal(format_duration(17320, text, sizeof(text)), "17.3 us");
	assert_string_equal(format_duration(8900000, text, sizeof(text)), "8.90 ms");
	assert_string_equal(format_duration(INT64_C(675000000000), text, sizeof(text)), "675 s");
	assert_string_equal(format_duration(999999, text, sizeof(text)), "1.00 ms");
	assert_string_equal(format_duration(-5, text, sizeof(text)), "-5 ns");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations),
		cmocka_unit_test(sizes),
		cmocka_unit_test(numbers_ignore_the_locale),
		cmocka_unit_test(integers),
		cmocka_unit_test(texts),
	};

	return cmocka_run_group_tests_name("base/parse", tests, NULL, NULL);
}
