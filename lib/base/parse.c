/* SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/clock.h"
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int parse_int64(const char *text, int64_t minimum, int64_t maximum, int64_t *ret_value)
{
	const char *digits = text;
	char *end;
	long long value;

	if (*digits == '-' || *digits == '+')
		digits++;
	if (!isdigit((unsigned char)*digits))
		return -EINVAL;
	errno = 0;
	value = strtoll(text, &end, 10);
	if (*end != '\0')
		return -EINVAL;
	if (errno == ERANGE || value < minimum || value > maximum)
		return -ERANGE;
	*ret_value = value;
	return 0;
}

static bool is_digit(const char *at, const char *end)
{
	return at < end && (unsigned char)(*at - '0') < 10;
}

/* After "e-12" at @at; @at itself when there is no such thing. */
static const char *skip_exponent(const char *at, const char *end)
{
	const char *digits = at + 1;

	if (at >= end || (*at != 'e' && *at != 'E'))
		return at;
	if (digits < end && (*digits == '-' || *digits == '+'))
		digits++;
	if (!is_digit(digits, end))
		return at;
	while (is_digit(digits, end))
		digits++;
	return digits;
}

static int by_strtod(const char *text, size_t size, double *ret_value)
{
	char small[128], *copy = size < sizeof(small) ? small : malloc(size + 1);
	locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	double value = NAN;

	if (copy && c_locale) {
		memcpy(copy, text, size);
		copy[size] = '\0';
		value = strtod_l(copy, NULL, c_locale);
	}
	if (c_locale)
		freelocale(c_locale);
	if (copy != small)
		free(copy);
	if (!isfinite(value))
		return isnan(value) ? -ENOMEM : -ERANGE;
	*ret_value = value;
	return 0;
}

/*
 * The form is checked by hand because strtod takes hexadecimal, nan, inf and leading blanks too.
 * A number without an exponent whose digits are below 2^53 is the quotient of two doubles, which
 * one IEEE operation rounds once (Clinger, PLDI 1990): about ten times as fast as strtod.
 */
int parse_number(const char *text, const char *end, const char **ret_after, double *ret_value)
{
	static const double tens[] = {1e0,  1e1,  1e2,	1e3,  1e4,  1e5,  1e6,	1e7,  1e8,  1e9,
				      1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19};
	bool negative = text < end && *text == '-';
	const char *start = text + (text < end && (*text == '-' || *text == '+')), *at = start;
	size_t count, places = 0;
	uint64_t digits = 0;

	for (; is_digit(at, end); at++)
		digits = digits * 10 + (uint64_t)(*at - '0');
	count = (size_t)(at - start);
	if (at < end && *at == '.') {
		start = ++at;
		for (; is_digit(at, end); at++)
			digits = digits * 10 + (uint64_t)(*at - '0');
		places = (size_t)(at - start);
		count += places;
	}
	if (count == 0)
		return -EINVAL;
	start = at;
	at = skip_exponent(at, end);
	if (at == start && count <= 19 && digits <= UINT64_C(1) << 53 && FLT_EVAL_METHOD == 0) {
		double value = (double)digits / tens[places];

		*ret_value = negative ? -value : value;
	} else {
		int error = by_strtod(text, (size_t)(at - text), ret_value);

		if (error)
			return error;
	}
	*ret_after = at;
	return 0;
}

int parse_double(const char *text, double *ret_value)
{
	const char *end = text + strlen(text), *after;
	double value;
	int error = parse_number(text, end, &after, &value);

	if (error || after != end)
		return error ? error : -EINVAL;
	*ret_value = value;
	return 0;
}

/*
 * The number at @text x @unit as an exact int64_t where the number is whole; a decimal fraction
 * rounds to the nearest nanosecond (or byte).
 */
static int scale(const char *text, const char *after, double number, int64_t unit,
		 int64_t *ret_value)
{
	char copy[32];
	size_t length = (size_t)(after - text);
	long double product;
	int64_t whole;
	int error;

	if (strspn(text, "+-0123456789") >= length) {
		if (length >= sizeof(copy))
			return -ERANGE;
		memcpy(copy, text, length);
		copy[length] = '\0';
		error = parse_int64(copy, INT64_MIN, INT64_MAX, &whole);
		if (error || __builtin_mul_overflow(whole, unit, &whole))
			return error ? error : -ERANGE;
		*ret_value = whole;
		return 0;
	}
	product = roundl((long double)number * (long double)unit);
	if (product >= 0x1p63L || product < -0x1p63L)
		return -ERANGE;
	*ret_value = (int64_t)product;
	return 0;
}

int parse_duration_ns(const char *text, int64_t bare_unit_ns, bool allow_negative, int64_t *ret_ns)
{
	static const struct {
		const char *name;
		int64_t ns;
	} units[] = {
		{"ns", 1},
		{"us", NS_PER_US},
		{"ms", NS_PER_MS},
		{"s", NS_PER_S},
		{"m", 60 * NS_PER_S},
		{"h", 3600 * NS_PER_S},
		{"d", 86400 * NS_PER_S},
	};
	int64_t unit_ns = 0, ns;
	const char *unit;
	double number;
	int error = parse_number(text, text + strlen(text), &unit, &number);

	if (error)
		return error;
	if (*unit == '\0')
		unit_ns = bare_unit_ns;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strcmp(unit, units[i].name) == 0)
			unit_ns = units[i].ns;
	if (unit_ns == 0)
		return -EINVAL;
	error = scale(text, unit, number, unit_ns, &ns);
	if (error)
		return error;
	if (ns < 0 && !allow_negative)
		return -ERANGE;
	*ret_ns = ns;
	return 0;
}

int parse_size(const char *text, struct size_value *ret_size)
{
	static const char units[] = "KMGT";
	struct size_value size = {0};
	const char *unit, *letter;
	double number;
	int64_t bytes;
	int error = parse_number(text, text + strlen(text), &unit, &number), shift = 0;

	if (error || *text == '-')
		return error ? error : -ERANGE;
	if (strcmp(unit, "%") == 0) {
		if (!(number > 0 && number <= 100))
			return -ERANGE;
		*ret_size = (struct size_value){.is_percent = true, .percent = number};
		return 0;
	}
	if (*unit) {
		letter = strchr(units, toupper((unsigned char)*unit));
		if (!letter || unit[1])
			return -EINVAL;
		shift = 10 * (int)(letter - units + 1);
	}
	error = scale(text, unit, number, INT64_C(1) << shift, &bytes);
	if (error)
		return error;
	size.bytes = (uint64_t)bytes;
	*ret_size = size;
	return 0;
}

uint64_t size_resolve(const struct size_value *size, uint64_t whole_bytes)
{
	if (!size->is_percent)
		return size->bytes;
	return (uint64_t)((long double)whole_bytes * size->percent / 100);
}

char *format_size(uint64_t bytes, char *buffer, size_t size)
{
	static const char units[] = "KMGTPE";
	double value = (double)bytes;
	int unit = -1;

	while (value >= 1024 && unit < (int)sizeof(units) - 2) {
		value /= 1024;
		unit++;
	}
	if (unit < 0)
		snprintf(buffer, size, "%llu", (unsigned long long)bytes);
	else
		snprintf(buffer, size, "%.*f%c", value < 9.95 && value != floor(value) ? 1 : 0,
			 value, units[unit]);
	return buffer;
}

char *format_duration(int64_t ns, char *buffer, size_t size)
{
	double magnitude = fabs((double)ns), value;
	const char *unit;
	int decimals;

	if (magnitude < 999.5) {
		snprintf(buffer, size, "%lld ns", (long long)ns);
		return buffer;
	}
	if (magnitude < 999.5e3) {
		value = (double)ns / 1e3;
		unit = "us";
	} else if (magnitude < 999.5e6) {
		value = (double)ns / 1e6;
		unit = "ms";
	} else {
		value = (double)ns / 1e9;
		unit = "s";
	}
	magnitude = fabs(value);
	decimals = magnitude < 9.995 ? 2 : magnitude < 99.95 ? 1 : 0;
	snprintf(buffer, size, "%.*f %s", decimals, value, unit);
	return buffer;
}
