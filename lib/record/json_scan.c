/* SPDX-License-Identifier: MIT */
#include "record/json_scan.h"

#include <errno.h>
#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"

#define DEPTH_MOST 64
#define DIGITS_SAFE 18 /* of a whole number that fits int64_t in any case */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline void skip_blanks(struct json_walk *scan)
{
	while (scan->at < scan->end && *scan->at <= ' ' && *scan->at &&
	       strchr(JSON_BLANKS, *scan->at)) {
		scan->blanks = true;
		scan->at++;
	}
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* Four hex digits after "\\u"; -EINVAL. */
static int scan_hex(struct json_walk *scan, unsigned int *ret_unit)
{
	unsigned int unit = 0;

	for (int i = 0; i < 4; i++) {
		if (++scan->at == scan->end || !is_hex(*scan->at))
			return -EINVAL;
		unit = unit << 4 | (is_digit(*scan->at) ? (unsigned int)(*scan->at - '0')
							: ((unsigned int)*scan->at & 7) + 9);
	}
	*ret_unit = unit;
	return 0;
}

/* U+0000 ends a C string and half of a surrogate pair is no character: neither is taken. */
static int scan_unicode(struct json_walk *scan)
{
	unsigned int unit, low;

	if (scan_hex(scan, &unit) < 0)
		return -EINVAL;
	if (unit < 0xd800 || unit > 0xdfff)
		return unit ? 0 : -EINVAL;
	if (unit > 0xdbff || ++scan->at == scan->end || *scan->at != '\\' ||
	    ++scan->at == scan->end || *scan->at != 'u' || scan_hex(scan, &low) < 0)
		return -EINVAL;
	return low >= 0xdc00 && low <= 0xdfff ? 0 : -EINVAL;
}

static int scan_escape(struct json_walk *scan)
{
	if (++scan->at == scan->end)
		return -EINVAL;
	if (*scan->at == 'u') {
		if (scan_unicode(scan) < 0)
			return -EINVAL;
	} else if (!*scan->at || !strchr("\"\\/bfnrt", *scan->at)) {
		return -EINVAL;
	}
	scan->at++;
	return 0;
}

/* A character of more than one byte; one that the end cuts is told as the end. */
static int scan_wide(struct json_walk *scan)
{
	size_t left = (size_t)(scan->end - scan->at), length = utf8_length(scan->at, left);
	size_t high = 0;

	while (high < left && (unsigned char)scan->at[high] >= 0x80)
		high++;
	if (!length && left < 4 && high == left)
		scan->at = scan->end;
	if (!length)
		return -EINVAL;
	scan->at += length;
	return 0;
}

/* At the opening quote; leaves after the closing one. */
static int scan_string(struct json_walk *scan)
{
	for (scan->at++; scan->at < scan->end;) {
		unsigned char c = (unsigned char)*scan->at;
		int error = 0;

		if (c == '"') {
			scan->at++;
			return 0;
		}
		if (c < 0x20)
			return -EINVAL;
		if (c >= 0x80)
			error = scan_wide(scan);
		else if (c == '\\')
			error = scan_escape(scan);
		else
			scan->at++;
		if (error)
			return error;
	}
	return -EINVAL;
}

static int scan_digits(struct json_walk *scan)
{
	const char *from = scan->at;

	while (scan->at < scan->end && is_digit(*scan->at))
		scan->at++;
	return scan->at == from ? -EINVAL : 0;
}

/* Numbers that neither int64_t nor a double holds are taken by no reader. */
static int check_range(struct json_walk *scan, const char *start, bool whole)
{
	char copy[512];
	size_t size = (size_t)(scan->at - start);
	bool fits;

	if (whole && size <= DIGITS_SAFE)
		return 0;
	if (size >= sizeof(copy))
		return -EINVAL;
	memcpy(copy, start, size);
	copy[size] = '\0';
	errno = 0;
	if (whole)
		fits = (strtoll(copy, NULL, 10), errno != ERANGE);
	else
		fits = isfinite(strtod(copy, NULL));
	return fits ? 0 : -EINVAL;
}

static int scan_number(struct json_walk *scan)
{
	const char *start = scan->at;
	bool whole = true, exponent = false;
	int error = 0;

	if (*scan->at == '-')
		scan->at++;
	if (scan->at < scan->end && *scan->at == '0')
		scan->at++;
	else
		error = scan_digits(scan);
	if (!error && scan->at < scan->end && *scan->at == '.') {
		whole = false;
		scan->at++;
		error = scan_digits(scan);
	}
	if (!error && scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
		whole = false;
		exponent = true;
		scan->at++;
		if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
			scan->at++;
		error = scan_digits(scan);
	}
	if (!error && (whole || exponent || scan->at - start > 300))
		error = check_range(scan, start, whole);
	return error;
}

static int scan_word(struct json_walk *scan, const char *word)
{
	size_t length = strlen(word);

	if ((size_t)(scan->end - scan->at) < length) {
		scan->at = scan->end;
		return -EINVAL;
	}
	if (memcmp(scan->at, word, length) != 0)
		return -EINVAL;
	scan->at += length;
	return 0;
}

static int scan_scalar(struct json_walk *scan)
{
	switch (*scan->at) {
	case '"':
		return scan_string(scan);
	case 't':
		return scan_word(scan, "true");
	case 'f':
		return scan_word(scan, "false");
	case 'n':
		return scan_word(scan, "null");
	default:
		return *scan->at == '-' || is_digit(*scan->at) ? scan_number(scan) : -EINVAL;
	}
}

/* "key" : of an object; leaves at the value. */
static int scan_key(struct json_walk *scan, struct json_span *ret_key)
{
	const char *start = scan->at;

	if (scan->at == scan->end || *scan->at != '"' || scan_string(scan) < 0)
		return -EINVAL;
	*ret_key = (struct json_span){start + 1, (size_t)(scan->at - start) - 2};
	skip_blanks(scan);
	if (scan->at == scan->end || *scan->at != ':')
		return -EINVAL;
	scan->at++;
	skip_blanks(scan);
	return scan->at == scan->end ? -EINVAL : 0;
}

/* After a value inside of containers: closes what ends, goes on to the next value. */
static int after_value(struct json_walk *scan, const char *stack, int *depth)
{
	struct json_span key;

	while (*depth) {
		char close = stack[*depth - 1];

		skip_blanks(scan);
		if (scan->at == scan->end)
			return -EINVAL;
		if (*scan->at == close) {
			scan->at++;
			(*depth)--;
			continue;
		}
		if (*scan->at != ',')
			return -EINVAL;
		scan->at++;
		skip_blanks(scan);
		if (close == '}')
			return scan_key(scan, &key);
		return scan->at == scan->end ? -EINVAL : 0;
	}
	return 0;
}

/* Any value, without recursion: @stack holds the bracket that closes each open container. */
static int scan_value(struct json_walk *scan)
{
	char stack[DEPTH_MOST];
	struct json_span key;
	int depth = 0, error;

	do {
		char c = *scan->at;

		if (c != '{' && c != '[') {
			error = scan_scalar(scan);
		} else if (depth == DEPTH_MOST) {
			return -EINVAL;
		} else {
			stack[depth++] = c == '{' ? '}' : ']';
			scan->at++;
			skip_blanks(scan);
			if (scan->at == scan->end)
				return -EINVAL;
			if (*scan->at != stack[depth - 1]) {
				error = c == '{' ? scan_key(scan, &key) : 0;
				if (error)
					return error;
				continue;
			}
			error = 0; /* empty: closed below */
		}
		if (!error)
			error = after_value(scan, stack, &depth);
		if (error)
			return error;
	} while (depth);
	return 0;
}

int json_walk_open(struct json_walk *walk, struct json_span text)
{
	*walk = (struct json_walk){.at = text.text, .end = text.text + text.size};
	skip_blanks(walk);
	walk->blanks = false; /* before and after it they say nothing */
	if (walk->at == walk->end || (*walk->at != '{' && *walk->at != '['))
		return -EINVAL;
	walk->close = *walk->at++ == '{' ? '}' : ']';
	return 0;
}

/* The closing bracket; nothing but blanks may follow. */
static int walk_end(struct json_walk *walk)
{
	bool blanks = walk->blanks;

	walk->at++;
	skip_blanks(walk);
	walk->blanks = blanks;
	return walk->at == walk->end ? 0 : -EINVAL;
}

int json_walk_next(struct json_walk *walk, struct json_span *ret_key, struct json_span *ret_value)
{
	struct json_span key = {"", 0}, value;
	const char *start;
	int error = 0;

	skip_blanks(walk);
	if (walk->at == walk->end)
		return -EINVAL;
	if (*walk->at == walk->close)
		return walk_end(walk);
	if (walk->started) {
		if (*walk->at != ',')
			return -EINVAL;
		walk->at++;
		skip_blanks(walk);
	}
	walk->started = true;
	if (walk->close == '}')
		error = scan_key(walk, &key);
	else if (walk->at == walk->end)
		error = -EINVAL;
	start = walk->at;
	if (!error)
		error = scan_value(walk);
	if (error)
		return error;
	value = (struct json_span){start, (size_t)(walk->at - start)};
	/* What follows is looked at before the value is given out: strtod() ends there. */
	skip_blanks(walk);
	if (walk->at == walk->end || (*walk->at != ',' && *walk->at != walk->close))
		return -EINVAL;
	*ret_key = key;
	*ret_value = value;
	return 1;
}

/* --- values --- */

bool json_span_is(struct json_span span, const char *text)
{
	return span.size == strlen(text) && memcmp(span.text, text, span.size) == 0;
}

int json_span_text(struct json_span span, char **ret_text)
{
	json_t *value;
	char *text;

	if (span.text[0] != '"')
		return -EINVAL;
	if (!memchr(span.text, '\\', span.size)) {
		text = strndup(span.text + 1, span.size - 2);
	} else {
		value = json_loadb(span.text, span.size, JSON_DECODE_ANY, NULL);
		text = value ? strdup(json_string_value(value)) : NULL;
		json_decref(value);
	}
	if (!text)
		return -ENOMEM;
	*ret_text = text;
	return 0;
}

static bool is_number(struct json_span span)
{
	return span.text[0] == '-' || is_digit(span.text[0]);
}

int json_span_number(struct json_span span, double *ret_value)
{
	if (!is_number(span))
		return -EINVAL;
	*ret_value = strtod(span.text, NULL);
	return 0;
}

int json_span_integer(struct json_span span, int64_t *ret_value)
{
	if (!is_number(span))
		return -EINVAL;
	for (size_t i = 1; i < span.size; i++)
		if (!is_digit(span.text[i]))
			return -EINVAL;
	*ret_value = strtoll(span.text, NULL, 10);
	return 0;
}
