/* SPDX-License-Identifier: MIT */
#include "history/scan.h"

#include <errno.h>
#include <string.h>

#define DEPTH_MOST 64

struct scan {
	const char *at, *end;
	bool blanks;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void skip_blanks(struct scan *scan)
{
	const char *from = scan->at;

	while (scan->at < scan->end &&
	       (*scan->at == ' ' || *scan->at == '\t' || *scan->at == '\n' || *scan->at == '\r'))
		scan->at++;
	scan->blanks |= scan->at != from;
}

static bool is_hex(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static int scan_escape(struct scan *scan)
{
	if (++scan->at == scan->end)
		return -EINVAL;
	if (*scan->at == 'u') {
		for (int i = 0; i < 4; i++)
			if (++scan->at == scan->end || !is_hex(*scan->at))
				return -EINVAL;
	} else if (!*scan->at || !strchr("\"\\/bfnrt", *scan->at)) {
		return -EINVAL;
	}
	scan->at++;
	return 0;
}

/* At the opening quote; leaves after the closing one. */
static int scan_string(struct scan *scan)
{
	for (scan->at++; scan->at < scan->end;) {
		unsigned char c = (unsigned char)*scan->at;

		if (c == '"') {
			scan->at++;
			return 0;
		}
		if (c < 0x20)
			return -EINVAL;
		if (c != '\\')
			scan->at++;
		else if (scan_escape(scan) < 0)
			return -EINVAL;
	}
	return -EINVAL;
}

static int scan_digits(struct scan *scan)
{
	const char *from = scan->at;

	while (scan->at < scan->end && is_digit(*scan->at))
		scan->at++;
	return scan->at == from ? -EINVAL : 0;
}

static int scan_number(struct scan *scan)
{
	int error = 0;

	if (*scan->at == '-')
		scan->at++;
	if (scan->at < scan->end && *scan->at == '0')
		scan->at++;
	else
		error = scan_digits(scan);
	if (!error && scan->at < scan->end && *scan->at == '.') {
		scan->at++;
		error = scan_digits(scan);
	}
	if (!error && scan->at < scan->end && (*scan->at == 'e' || *scan->at == 'E')) {
		scan->at++;
		if (scan->at < scan->end && (*scan->at == '+' || *scan->at == '-'))
			scan->at++;
		error = scan_digits(scan);
	}
	return error;
}

static int scan_word(struct scan *scan, const char *word)
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

static int scan_scalar(struct scan *scan)
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
static int scan_key(struct scan *scan, struct json_span *ret_key)
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
static int after_value(struct scan *scan, const char *stack, int *depth)
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
static int scan_value(struct scan *scan)
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

static int scan_members(struct scan *scan, scan_member member, void *data)
{
	for (;;) {
		struct json_span key, value;
		int error = scan_key(scan, &key);

		if (error)
			return error;
		value.text = scan->at;
		error = scan_value(scan);
		if (error)
			return error;
		value.size = (size_t)(scan->at - value.text);
		error = member(data, key, value);
		if (error)
			return error;
		skip_blanks(scan);
		if (scan->at == scan->end)
			return -EINVAL;
		if (*scan->at == '}')
			break;
		if (*scan->at != ',')
			return -EINVAL;
		scan->at++;
		skip_blanks(scan);
	}
	scan->at++;
	return 0;
}

int scan_object(const char *text, size_t size, scan_member member, void *data, size_t *ret_at,
		bool *ret_blanks)
{
	struct scan scan = {text, text + size, false};
	int error = -EINVAL;

	skip_blanks(&scan);
	scan.blanks = false; /* before and after it they say nothing */
	if (scan.at < scan.end && *scan.at == '{') {
		scan.at++;
		skip_blanks(&scan);
		if (scan.at < scan.end && *scan.at == '}') {
			scan.at++;
			error = 0;
		} else {
			error = scan_members(&scan, member, data);
		}
	}
	*ret_blanks = scan.blanks;
	if (!error) {
		skip_blanks(&scan);
		if (scan.at != scan.end)
			error = -EINVAL;
	}
	if (ret_at)
		*ret_at = (size_t)(scan.at - text);
	return error;
}

/* --- hash --- */

static uint64_t mix(uint64_t hash, uint64_t word)
{
	unsigned __int128 product = (unsigned __int128)(hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint64_t)product ^ (uint64_t)(product >> 64) ^ (hash << 29 | hash >> 35);
}

struct hashing {
	uint64_t hash;
	unsigned char word[8];
	size_t used, size;
};

static void hash_byte(struct hashing *hashing, char c)
{
	uint64_t word;

	hashing->word[hashing->used++] = (unsigned char)c;
	hashing->size++;
	if (hashing->used < sizeof(hashing->word))
		return;
	memcpy(&word, hashing->word, sizeof(word));
	hashing->hash = mix(hashing->hash, word);
	hashing->used = 0;
}

uint64_t scan_hash(const char *text, size_t size, bool blanks)
{
	struct hashing hashing = {.hash = UINT64_C(0x243f6a8885a308d3)};
	bool string = false;
	uint64_t word;
	size_t i = 0;

	while (size && strchr(" \t\r\n", text[size - 1]) && text[size - 1])
		size--;
	for (; !blanks && i + 8 <= size; i += 8) {
		memcpy(&word, text + i, sizeof(word));
		hashing.hash = mix(hashing.hash, word);
		hashing.size += 8;
	}
	for (; i < size; i++) {
		if (blanks && !string && strchr(" \t\r\n", text[i]))
			continue;
		if (text[i] == '"')
			string = !string;
		hash_byte(&hashing, text[i]);
		if (string && text[i] == '\\' && i + 1 < size)
			hash_byte(&hashing, text[++i]);
	}
	while (hashing.used)
		hash_byte(&hashing, 0);
	return mix(hashing.hash, size == 0 ? 0 : hashing.size);
}
