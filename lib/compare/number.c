/* SPDX-License-Identifier: MIT */
#include "compare/values.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/*
 * Text to the nearest double. Three ways, each exact where it is taken:
 *  1. digits below 2^53 and a power of ten up to 10^22: both are doubles, so one IEEE operation
 *     rounds once (Clinger, PLDI 1990);
 *  2. up to 19 digits and 10^-27 to 10^-1: the quotient of two integers, rounded by hand;
 *  3. all else: strtod in the C locale.
 */

struct decimal {
	uint64_t digits;	    /* first 19 significant digits */
	int exponent;		    /* value = digits x 10^exponent */
	bool negative, long_digits; /* more digits than fit */
	const char *end;
};

static bool is_digit(char c)
{
	return (unsigned char)(c - '0') < 10;
}

/* Digits from @at on; how many of them were significant counts up in *significant. */
static const char *take_digits(const char *at, const char *end, struct decimal *decimal,
			       int *significant, int *dropped)
{
	uint64_t digits = decimal->digits;
	int count = *significant;

	for (; at < end && is_digit(*at); at++) {
		if (count < 19) {
			digits = digits * 10 + (uint64_t)(*at - '0');
			count += digits != 0;
		} else {
			decimal->long_digits |= *at != '0';
			(*dropped)++;
		}
	}
	decimal->digits = digits;
	*significant = count;
	return at;
}

/* "e-12": NULL when "e" is not followed by digits. */
static const char *take_exponent(const char *at, const char *end, int *ret_exponent)
{
	bool negative = false;
	int exponent = 0;

	if (at < end && (*at == '-' || *at == '+'))
		negative = *at++ == '-';
	if (at >= end || !is_digit(*at))
		return NULL;
	for (; at < end && is_digit(*at); at++)
		if (exponent < 100000)
			exponent = exponent * 10 + (*at - '0');
	*ret_exponent = negative ? -exponent : exponent;
	return at;
}

static bool scan_decimal(const char *at, const char *end, struct decimal *decimal)
{
	int significant = 0, dropped = 0, exponent = 0;
	const char *start, *point = NULL;
	ptrdiff_t fraction = 0;

	*decimal = (struct decimal){0};
	if (at < end && (*at == '-' || *at == '+'))
		decimal->negative = *at++ == '-';
	start = at;
	at = take_digits(at, end, decimal, &significant, &dropped);
	if (at < end && *at == '.') {
		point = ++at;
		at = take_digits(at, end, decimal, &significant, &dropped);
		fraction = at - point;
	}
	if (at - start == (point ? 1 : 0))
		return false; /* no digit at all */
	decimal->end = at;
	if (at < end && (*at == 'e' || *at == 'E')) {
		const char *after = take_exponent(at + 1, end, &exponent);

		if (after)
			decimal->end = after;
		else
			exponent = 0;
	}
	/* A text of that many digits goes the slow way. */
	if (fraction > 100000 || dropped > 100000)
		decimal->long_digits = true;
	else
		decimal->exponent = exponent - (int)fraction + dropped;
	return true;
}

static bool by_one_operation(const struct decimal *decimal, double *ret_value)
{
	static const double tens[] = {1e0,  1e1,  1e2,	1e3,  1e4,  1e5,  1e6,	1e7,
				      1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
				      1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

	if (FLT_EVAL_METHOD != 0 || decimal->digits > (UINT64_C(1) << 53) ||
	    decimal->exponent < -22 || decimal->exponent > 22)
		return false;
	*ret_value = decimal->exponent < 0 ? (double)decimal->digits / tens[-decimal->exponent]
					   : (double)decimal->digits * tens[decimal->exponent];
	return true;
}

/*
 * digits / 10^k = digits / 5^k x 2^-k. The quotient is made with 64 significant bits or more, what
 * is left over is kept as one sticky bit, and the 53 bits of a double are rounded from it.
 */
static bool by_quotient(const struct decimal *decimal, double *ret_value)
{
	unsigned __int128 numerator, quotient, lost;
	uint64_t five = 1, mantissa, rest, half;
	int power = -decimal->exponent, shift, drop;

	if (power < 1 || power > 27 || decimal->digits == 0)
		return false;
	for (int i = 0; i < power; i++)
		five *= 5;
	shift = __builtin_clzll(decimal->digits);
	numerator = (unsigned __int128)(decimal->digits << shift) << 64;
	quotient = numerator / five; /* at least 2^127 / 5^27 > 2^64: its high half is not 0 */
	if (quotient * five != numerator)
		quotient |= 1;
	drop = 64 - __builtin_clzll((uint64_t)(quotient >> 64));
	lost = quotient & (((unsigned __int128)1 << drop) - 1);
	quotient = (quotient >> drop) | (lost != 0);
	mantissa = (uint64_t)quotient >> 11;
	rest = (uint64_t)quotient & 0x7ff;
	half = 0x400;
	if (rest > half || (rest == half && (mantissa & 1)))
		mantissa++;
	*ret_value = ldexp((double)mantissa, 11 + drop - 64 - shift - power);
	return true;
}

static bool by_strtod(const char *text, const char *end, double *ret_value)
{
	char small[128];
	size_t size = (size_t)(end - text);
	char *copy = size < sizeof(small) ? small : malloc(size + 1);
	locale_t c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	bool done = false;

	if (copy && c_locale) {
		memcpy(copy, text, size);
		copy[size] = '\0';
		*ret_value = strtod_l(copy, NULL, c_locale);
		done = true;
	}
	if (c_locale)
		freelocale(c_locale);
	if (copy != small)
		free(copy);
	return done;
}

const char *number_scan(const char *text, const char *end, double *ret_value)
{
	struct decimal decimal;
	double value;

	if (!scan_decimal(text, end, &decimal))
		return NULL;
	if (decimal.long_digits ||
	    (!by_one_operation(&decimal, &value) && !by_quotient(&decimal, &value))) {
		if (!by_strtod(text, decimal.end, &value) || !isfinite(value))
			return NULL;
		*ret_value = value; /* its sign is in the text */
		return decimal.end;
	}
	*ret_value = decimal.negative ? -value : value;
	return decimal.end;
}

/* --- the common line: a few digits, a point, a few digits, a newline --- */

#define EIGHT(byte) (UINT64_C(0x0101010101010101) * (byte))

static uint64_t load_eight(const char *at)
{
	uint64_t eight;

	memcpy(&eight, at, sizeof(eight));
	return eight;
}

/* How many of eight characters, the first in the lowest byte, are digits before any other. */
static unsigned int leading_digits(uint64_t eight)
{
	/* A digit becomes 0 to 9, and 10 and above set the high bit; no sum leaves its byte. */
	uint64_t digits = eight ^ EIGHT('0');
	uint64_t others = (((digits & EIGHT(0x7f)) + EIGHT(0x76)) | digits) & EIGHT(0x80);

	return others ? (unsigned int)__builtin_ctzll(others) / 8 : 8;
}

/* The number that the first @count characters are; neighbours are joined to pairs, fours, eight. */
static uint64_t join_digits(uint64_t eight, unsigned int count)
{
	uint64_t value;

	if (count == 0)
		return 0;
	value = (eight ^ EIGHT('0')) << (8 * (8 - count));
	value = (value * 10 + (value >> 8)) & UINT64_C(0x00ff00ff00ff00ff);
	value = (value * 100 + (value >> 16)) & UINT64_C(0x0000ffff0000ffff);
	return (value * 10000 + (value >> 32)) & UINT64_C(0xffffffff);
}

const char *number_scan_line(const char *text, const char *end, double *ret_value)
{
	static const uint32_t tens[] = {1,	10,	 100,	   1000,     10000,
					100000, 1000000, 10000000, 100000000};
	unsigned int whole, fraction = 0;
	uint64_t eight, digits;

	if (__BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__ || FLT_EVAL_METHOD != 0 ||
	    end - text < NUMBER_LINE_LEAST)
		return NULL;
	eight = load_eight(text);
	whole = leading_digits(eight);
	digits = join_digits(eight, whole);
	text += whole;
	if (whole && *text == '.') {
		eight = load_eight(++text);
		fraction = leading_digits(eight);
		digits = digits * tens[fraction] + join_digits(eight, fraction);
		text += fraction;
	}
	if (!whole || *text != '\n' || digits > UINT64_C(1) << 53)
		return NULL;
	/* Both are doubles: one operation rounds once. */
	*ret_value = (double)digits / (double)tens[fraction];
	return text + 1;
}
