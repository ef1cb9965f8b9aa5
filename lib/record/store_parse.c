/* SPDX-License-Identifier: MIT */
#include "record/store_internal.h"

#include <errno.h>
#include <jansson.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json_shared.h"
#include "record/record.h"

/*
 * A JSON tree of a record takes most of the time that a comparison takes, and most of that tree is
 * not looked at. So members are found in the text first: the buckets of the histogram, half of a
 * line and nothing but pairs of whole numbers, are read here, and members that are not wanted
 * become null. Members that are the same text in line after line are built once and shared. Only
 * what is beyond doubt JSON is cut out, so that every fault of a line is still found; a line that
 * fails is read again in full, for its message.
 */

#define DEPTH_MOST 32
#define CUTS_MOST 16
#define HISTOGRAM "{\"unit\":\"ns\",\"sub_bucket_bits\":7,\"buckets\":["

enum same { SAME_ENVIRONMENT, SAME_SETTINGS, SAME_COMMAND, SAMES };

static const struct {
	const char *key;
	char open;
} sames[SAMES] = {{"environment", '{'}, {"settings", '{'}, {"command", '['}};

struct cutting {
	struct cut {
		const char *start, *end;
		const char *instead;
	} cuts[CUTS_MOST];
	size_t count;
	struct histogram *histogram;	 /* of a whole record, */
	struct histogram_sparse *sparse; /* of another */
	struct json_shared *shared;	 /* NULL: the whole record is wanted */
	json_t *same[SAMES];
	bool twice; /* a key came twice: the full reader knows that the last one counts */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* From behind the opening quote to behind the closing one; NULL: none. @strict: no escapes and
 * ASCII only. */
static const char *skip_string(const char *at, const char *end, bool strict)
{
	for (; at < end && *at != '"'; at++) {
		if (strict && (*at == '\\' || *at < ' ' || *at > '~'))
			return NULL;
		if (*at == '\\' && ++at == end)
			return NULL;
	}
	return at < end ? at + 1 : NULL;
}

static const char *skip_digits(const char *at, const char *end, int most)
{
	const char *start = at;

	while (at < end && is_digit(*at))
		at++;
	return at == start || at - start > most ? NULL : at;
}

/* A number that every reader of JSON takes without overflow: limits of memory come near 2^63. */
static const char *skip_number(const char *at, const char *end)
{
	static const char greatest[] = "9223372036854775807";
	const int most = (int)strlen(greatest);
	const char *start;

	if (at < end && *at == '-')
		at++;
	start = at;
	if (at < end && *at == '0')
		at++;
	else
		at = skip_digits(at, end, most);
	if (at && at - start == most && memcmp(start, greatest, (size_t)most) > 0)
		return NULL;
	if (at && at < end && *at == '.')
		at = skip_digits(at + 1, end, 20);
	if (at && at < end && (*at == 'e' || *at == 'E')) {
		at++;
		if (at < end && (*at == '-' || *at == '+'))
			at++;
		at = skip_digits(at, end, 2);
	}
	return at;
}

static const char *skip_scalar(const char *at, const char *end, bool strict)
{
	static const char *const words[] = {"null", "true", "false"};

	if (!strict) {
		while (at < end && *at != ',' && *at != ']' && *at != '}')
			at++;
		return at;
	}
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		size_t length = strlen(words[i]);

		if ((size_t)(end - at) >= length && memcmp(at, words[i], length) == 0)
			return at + length;
	}
	return skip_number(at, end);
}

static const char *skip_value(const char *at, const char *end, bool strict, int depth);

/* "key": of an object, from its quote to behind the colon. */
static const char *skip_key(const char *at, const char *end, bool strict)
{
	if (at == end || *at != '"')
		return NULL;
	at = skip_string(at + 1, end, strict);
	return at && at < end && *at == ':' ? at + 1 : NULL;
}

/* From behind the opening bracket to behind the closing one. */
static const char *skip_members(const char *at, const char *end, char close, bool strict, int depth)
{
	if (at < end && *at == close)
		return at + 1;
	while (at && at < end) {
		if (close == '}')
			at = skip_key(at, end, strict);
		if (at)
			at = skip_value(at, end, strict, depth + 1);
		if (at && at < end && *at == close)
			return at + 1;
		at = at && at < end && *at == ',' ? at + 1 : NULL;
	}
	return NULL;
}

/* Compact JSON, as records are written; NULL: anything else. */
static const char *skip_value(const char *at, const char *end, bool strict, int depth)
{
	if (at == end || depth > DEPTH_MOST)
		return NULL;
	switch (*at) {
	case '{':
		return skip_members(at + 1, end, '}', strict, depth);
	case '[':
		return skip_members(at + 1, end, ']', strict, depth);
	case '"':
		return skip_string(at + 1, end, strict);
	default:
		return skip_scalar(at, end, strict);
	}
}

static const char *take_number(const char *at, const char *end, char stop, int64_t *ret_value)
{
	const char *start = at;
	int64_t value = 0;

	while (at < end && is_digit(*at) && at - start < 18)
		value = value * 10 + (*at++ - '0');
	if (at == start || at == end || *at != stop || (*start == '0' && at - start > 1))
		return NULL;
	*ret_value = value;
	return at + 1;
}

/* From behind the array's bracket to its closing one; NULL: not of the plain form. */
static const char *take_buckets(const char *at, const char *end, struct cutting *cutting)
{
	struct histogram_sparse *sparse = cutting->sparse;
	int64_t lowest, count;

	while (at < end && *at == '[') {
		at = take_number(at + 1, end, ',', &lowest);
		if (at)
			at = take_number(at, end, ']', &count);
		if (!at)
			return NULL;
		if (cutting->histogram)
			histogram_record_many(cutting->histogram, lowest, (uint64_t)count);
		else if (count > UINT32_MAX)
			return NULL;
		else
			sparse->buckets[sparse->count++] = (struct histogram_bucket){
				(uint32_t)histogram_index(lowest), (uint32_t)count};
		if (at < end && *at == ',' && at + 1 < end && at[1] == '[')
			at++;
	}
	return at < end && *at == ']' ? at : NULL;
}

static void add_cut(struct cutting *cutting, const char *start, const char *end,
		    const char *instead)
{
	if (cutting->count < CUTS_MOST)
		cutting->cuts[cutting->count++] = (struct cut){start, end, instead};
}

static void drop_histogram(struct cutting *cutting)
{
	free(cutting->histogram);
	free(cutting->sparse);
	cutting->histogram = NULL;
	cutting->sparse = NULL;
}

/* Room for the buckets of the text [at, end). */
static bool make_histogram(struct cutting *cutting, const char *at, const char *end)
{
	size_t most = 0;

	if (!cutting->shared) {
		cutting->histogram = calloc(1, sizeof(*cutting->histogram));
		return cutting->histogram;
	}
	for (; at < end; at++)
		most += *at == '[';
	cutting->sparse =
		malloc(sizeof(*cutting->sparse) + most * sizeof(*cutting->sparse->buckets));
	if (cutting->sparse)
		cutting->sparse->count = 0;
	return cutting->sparse;
}

static void cut_histogram(struct cutting *cutting, const char *value, const char *end)
{
	const char *open = value + strlen(HISTOGRAM), *close;

	cutting->twice |= cutting->histogram || cutting->sparse;
	if (cutting->twice || end - value < (ptrdiff_t)strlen(HISTOGRAM) ||
	    memcmp(value, HISTOGRAM, strlen(HISTOGRAM)) != 0 || !make_histogram(cutting, open, end))
		return;
	close = take_buckets(open, end, cutting);
	if (!close || end - close != 2) { /* "]}" */
		drop_histogram(cutting);
		return;
	}
	add_cut(cutting, value, end, "null");
}

static bool is_key(const char *text, size_t length, const char *key)
{
	return strlen(key) == length && memcmp(key, text, length) == 0;
}

static bool is_left_out(const char *key, size_t length, char open)
{
	static const struct {
		const char *key;
		char open;
	} members[] = {{"counters", '{'}, {"thp_phases", '{'}, {"causes", '['}, {"worst", '['}};

	for (size_t i = 0; i < ARRAY_SIZE(members); i++)
		if (is_key(key, length, members[i].key))
			return open == members[i].open;
	return false;
}

/* The value of the text [@at, @end), its clock_read_ns made null; NULL: no JSON, or no memory. */
static json_t *same_value(struct json_shared *shared, const char *at, const char *end)
{
	static const char key[] = "\"clock_read_ns\":";
	const char *found = memmem(at, (size_t)(end - at), key, strlen(key));
	const char *number = found ? found + strlen(key) : NULL;
	const char *after = number ? skip_number(number, end) : NULL;
	json_t *value = NULL;
	size_t before;
	char *text;

	if (!after || after == number)
		return json_shared_get(shared, at, (size_t)(end - at));
	before = (size_t)(number - at);
	text = malloc((size_t)(end - at) + strlen("null"));
	if (text) {
		memcpy(text, at, before);
		memcpy(text + before, "null", 4);
		memcpy(text + before + 4, after, (size_t)(end - after));
		value = json_shared_get(shared, text, before + 4 + (size_t)(end - after));
	}
	free(text);
	return value;
}

static void cut_same(struct cutting *cutting, const char *key, size_t length, const char *value,
		     const char *after)
{
	for (size_t i = 0; i < SAMES; i++) {
		if (!is_key(key, length, sames[i].key))
			continue;
		cutting->twice |= cutting->same[i] != NULL;
		if (cutting->same[i] || *value != sames[i].open)
			continue;
		cutting->same[i] = same_value(cutting->shared, value, after);
		if (cutting->same[i])
			add_cut(cutting, value, after, "null");
	}
}

/* Finds what to cut in the members of the record; stops where it understands nothing more. */
static void find_cuts(const char *line, const char *end, struct cutting *cutting)
{
	const char *at = line;

	while (at < end && (at == line ? *at == '{' : *at == ',')) {
		const char *key = at + 2, *value = skip_key(at + 1, end, false), *after;
		size_t length = value ? (size_t)(value - 2 - key) : 0;

		if (!value || value == end)
			return;
		after = skip_value(value, end, false, 1);
		if (!after)
			return;
		if (is_key(key, length, "histogram"))
			cut_histogram(cutting, value, after);
		else if (cutting->shared && is_left_out(key, length, *value)) {
			if (skip_value(value, after, true, 1) == after)
				add_cut(cutting, value, after, "null");
		} else if (cutting->shared) {
			cut_same(cutting, key, length, value, after);
		}
		at = after;
	}
}

static int parse_text(const char *line, size_t size, struct record **ret_record,
		      struct message *message)
{
	json_error_t where;
	json_t *json = json_loadb(line, size, 0, &where);
	int error;

	if (!json)
		return message_set(message, -EINVAL, "not JSON: %s", where.text);
	error = record_from_json(json, ret_record, message);
	json_decref(json);
	return error;
}

/* The line with its cuts made; NULL without memory. */
static char *rest_of(const char *line, size_t size, const struct cutting *cutting, size_t *ret_size)
{
	size_t room = size, length = 0;
	const char *from = line;
	char *rest;

	for (size_t i = 0; i < cutting->count; i++)
		room += strlen(cutting->cuts[i].instead) -
			(size_t)(cutting->cuts[i].end - cutting->cuts[i].start);
	rest = malloc(room);

	for (size_t i = 0; rest && i < cutting->count; i++) {
		const struct cut *cut = &cutting->cuts[i];

		memcpy(rest + length, from, (size_t)(cut->start - from));
		length += (size_t)(cut->start - from);
		memcpy(rest + length, cut->instead, strlen(cut->instead));
		length += strlen(cut->instead);
		from = cut->end;
	}
	if (rest)
		memcpy(rest + length, from, (size_t)(line + size - from));
	*ret_size = length + (size_t)(line + size - from);
	return rest;
}

/* What was cut out belongs to @record now. */
static void put_back(struct cutting *cutting, struct record *record)
{
	json_t **members[SAMES] = {&record->environment, &record->settings, &record->command};

	for (size_t i = 0; i < SAMES; i++) {
		if (cutting->same[i])
			*members[i] = json_incref(cutting->same[i]);
	}
	if (!cutting->histogram && !cutting->sparse)
		return;
	record->histogram = cutting->histogram;
	record->sparse = cutting->sparse;
	cutting->histogram = NULL;
	cutting->sparse = NULL;
}

int store_parse_line(const char *line, size_t size, struct json_shared *shared,
		     struct record **ret_record, struct message *message)
{
	struct cutting cutting = {.shared = shared};
	char *rest = NULL;
	size_t rest_size;
	int error = -EINVAL;

	find_cuts(line, line + size, &cutting);
	if (cutting.count && !cutting.twice)
		rest = rest_of(line, size, &cutting, &rest_size);
	if (rest)
		error = parse_text(rest, rest_size, ret_record, NULL);
	free(rest);
	if (!error)
		put_back(&cutting, *ret_record);
	for (size_t i = 0; i < SAMES; i++)
		json_decref(cutting.same[i]);
	drop_histogram(&cutting);
	return error ? parse_text(line, size, ret_record, message) : 0;
}
