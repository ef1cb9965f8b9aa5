/* SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/clock.h"
#include "base/parse.h"

#include <ctype.h>
#include <errno.h>
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

/*
 * Length of a decimal number at the start of @text (sign, digits, point, exponent); 0 when there is
 * none. Checked by hand because strtod takes hexadecimal, nan, inf and leading blanks too.
 */
static size_t number_length(const char *text)
{
	const char *at = text;
	size_t digits = 0;

	if (*at == '-' || *at == '+')
		at++;
	for (; isdigit((unsigned char)*at); at++)
		digits++;
	if (*at == '.')
		for (at++; isdigit((unsigned char)*at); at++)
			digits++;
	if (digits == 0)
		return 0;
	if (*at == 'e' || *at == 'E') {
		const char *exponent = at + 1;

		if (*exponent == '-' || *exponent == '+')
			exponent++;
		if (isdigit((unsigned char)*exponent)) {
			while (isdigit((unsigned char)*exponent))
				exponent++;
			at = exponent;
		}
	}
	return (size_t)(at - text);
}

/* strtod in the C locale, of exactly @length bytes. */
static int number_value(const char *text, size_t length, double *ret_value)
{
	char copy[512];
	locale_t c_locale;
	double value;

	if (length >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, text, length);
	copy[length] = '\0';
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	if (!c_locale)
		return -ENOMEM;
	value = strtod_l(copy, NULL, c_locale);
	freelocale(c_locale);
	if (!isfinite(value))
		return -ERANGE;
	*ret_value = value;
	return 0;
}

int parse_double(const char *text, double *ret_value)
{
	size_t length = number_length(text);

	if (length == 0 || text[length] != '\0')
		return -EINVAL;
	return number_value(text, length, ret_value);
}

/*
 * @number x @unit as an exact int64_t where the number is whole or the product is; a decimal
 * fraction rounds to the nearest nanosecond (or byte).
 */
static int scale(const char *text, size_t length, int64_t unit, int64_t *ret_value)
{
	char copy[32];
	double number;
	long double product;
	int64_t whole;
	int error;

	if (strspn(text, "+-0123456789") >= length) {
		if (length >= sizeof(copy))
			return -ERANGE;
		memcpy(copy, text, length);
		copy[length] = '\0';
		error = parse_int64(copy, INT64_MIN, INT64_MAX, &whole);
		if (error)
			return error;
		return __builtin_mul_overflow(whole, unit, ret_value) ? -ERANGE : 0;
	}
	error = number_value(text, length, &number);
	if (error)
		return error;
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
	size_t length = number_length(text);
	int64_t unit_ns = 0, ns;
	int error;

	if (length == 0)
		return -EINVAL;
	if (text[length] == '\0')
		unit_ns = bare_unit_ns;
	for (size_t i = 0; i < ARRAY_SIZE(units); i++)
		if (strcmp(text + length, units[i].name) == 0)
			unit_ns = units[i].ns;
	if (unit_ns == 0)
		return -EINVAL;
	error = scale(text, length, unit_ns, &ns);
	if (error)
		return error;
	if (ns < 0 && !allow_negative)
		return -ERANGE;
	*ret_ns = ns;
	return 0;
}

int parse_size(const char *text, struct size_value *ret_size)
{
	size_t length = number_length(text);
	struct size_value size = {0};
	const char *unit = text + length;
	int64_t bytes;
	int error, shift;

	if (length == 0 || *text == '-')
		return length == 0 ? -EINVAL : -ERANGE;
	if (strcmp(unit, "%") == 0) {
		error = number_value(text, length, &size.percent);
		if (error)
			return error;
		if (!(size.percent > 0 && size.percent <= 100))
			return -ERANGE;
		size.is_percent = true;
		*ret_size = size;
		return 0;
	}
	if (*unit == '\0')
		shift = 0;
	else if (strcmp(unit, "K") == 0 || strcmp(unit, "k") == 0)
		shift = 10;
	else if (strcmp(unit, "M") == 0 || strcmp(unit, "m") == 0)
		shift = 20;
	else if (strcmp(unit, "G") == 0 || strcmp(unit, "g") == 0)
		shift = 30;
	else if (strcmp(unit, "T") == 0 || strcmp(unit, "t") == 0)
		shift = 40;
	else
		return -EINVAL;
	error = scale(text, length, INT64_C(1) << shift, &bytes);
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
