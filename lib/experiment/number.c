/* SPDX-License-Identifier: MIT */
#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/parse.h"
#include "experiment/command.h"

/* The last number of a text, as people and scripts print them. */

static bool digit(char c)
{
	return isdigit((unsigned char)c);
}

/* Length of a terminal's escape sequence at @text ("\033[32m"), 0 when there is none. */
static size_t escape_length(const char *text)
{
	size_t length = 2;

	if (text[0] != '\033' || text[1] != '[')
		return 0;
	while (text[length] && !isalpha((unsigned char)text[length]))
		length++;
	return text[length] ? length + 1 : length;
}

/* Length of the number at @text: [+-]digits[.digits][e[+-]digits]; 0: none. */
static size_t number_length(const char *text)
{
	size_t i = text[0] == '+' || text[0] == '-', digits = 0, exponent;

	for (; digit(text[i]); i++)
		digits++;
	if (text[i] == '.' && digit(text[i + 1])) /* not the full stop of a sentence */
		for (i++; digit(text[i]); i++)
			digits++;
	if (!digits)
		return 0;
	if (text[i] == 'e' || text[i] == 'E') {
		exponent = i + 1 + (text[i + 1] == '+' || text[i + 1] == '-');
		if (digit(text[exponent]))
			for (i = exponent; digit(text[i]); i++)
				;
	}
	return i;
}

/* A version (1.2.3) or hexadecimal number (0x1f) is no value: length of the whole of it, else 0. */
static size_t not_a_value(const char *text, size_t length)
{
	size_t i = length;

	if (length == 1 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		for (i = 2; isxdigit((unsigned char)text[i]); i++)
			;
	else if (text[i] == '.' && digit(text[i + 1]))
		while (digit(text[i]) || text[i] == '.')
			i++;
	return i > length ? i : 0;
}

int text_last_number(const char *text, double *ret_value)
{
	char before = ' ', copy[512];
	bool found = false;
	double value;

	while (*text) {
		size_t length = escape_length(text), skip;

		if (length) {
			text += length;
			continue;
		}
		length = isalnum((unsigned char)before) || before == '_' || before == '.'
				 ? 0
				 : number_length(text);
		skip = length ? not_a_value(text, length) : 0;
		if (length && !skip && length < sizeof(copy)) {
			memcpy(copy, text, length);
			copy[length] = '\0';
			if (parse_double(copy, &value) == 0) {
				*ret_value = value;
				found = true;
			}
		}
		length = skip ? skip : length ? length : 1;
		before = text[length - 1];
		text += length;
	}
	return found ? 0 : -ENOENT;
}
