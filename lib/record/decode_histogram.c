/* SPDX-License-Identifier: MIT */
#include "record/decode_histogram.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record/record.h"

/* Digits and what ends them, blanks around both; NULL: anything else. */
static const char *read_digits(const char *at, char end, int64_t *ret_value)
{
	const char *start;
	int64_t value = 0;

	if (*at < '0')
		at += strspn(at, JSON_BLANKS);
	for (start = at; *at >= '0' && *at <= '9'; at++)
		if (__builtin_mul_overflow(value, 10, &value) ||
		    __builtin_add_overflow(value, *at - '0', &value))
			return NULL;
	if (at == start)
		return NULL;
	if (*at != end)
		at += strspn(at, JSON_BLANKS);
	*ret_value = value;
	return *at == end ? at + 1 : NULL;
}

/* Into the histogram of a whole record; -ERANGE: more samples than a sparse bucket counts. */
static int add_bucket(struct record *record, int64_t lowest, int64_t count, size_t *capacity)
{
	struct histogram_sparse *sparse = record->sparse;

	if (record->histogram) {
		histogram_record_many(record->histogram, lowest, (uint64_t)count);
		return 0;
	}
	if (count > UINT32_MAX)
		return -ERANGE;
	if (sparse->count == *capacity) {
		*capacity *= 2;
		sparse = realloc(sparse, sizeof(*sparse) + *capacity * sizeof(*sparse->buckets));
		if (!sparse)
			return -ENOMEM;
		record->sparse = sparse;
	}
	sparse->buckets[sparse->count++] =
		(struct histogram_bucket){(uint32_t)histogram_index(lowest), (uint32_t)count};
	return 0;
}

/* @text is JSON: it ends in the bracket that ends the walk. */
static int read_buckets(struct json_span text, bool part, struct record *record,
			struct message *message)
{
	const char *at = text.text;
	size_t capacity = 256;
	int error = 0;

	if (part)
		record->sparse = calloc(1, sizeof(*record->sparse) +
						   capacity * sizeof(*record->sparse->buckets));
	else
		record->histogram = calloc(1, sizeof(*record->histogram));
	if (!record->histogram && !record->sparse)
		return -ENOMEM;
	if (*at != '[')
		return message_set(message, -EINVAL,
				   "record: histogram.buckets: expected an array");
	at += 1 + strspn(at + 1, JSON_BLANKS);
	while (!error && *at != ']') {
		int64_t lowest = 0, count = 0;

		at = *at == '[' ? read_digits(at + 1, ',', &lowest) : NULL;
		at = at ? read_digits(at, ']', &count) : NULL;
		if (!at)
			return message_set(message, -EINVAL,
					   "record: histogram.buckets: expected [lowest_ns, count] "
					   "pairs of whole numbers");
		error = add_bucket(record, lowest, count, &capacity);
		at += strspn(at, JSON_BLANKS ",");
	}
	if (error != -ERANGE)
		return error;
	free(record->sparse);
	record->sparse = NULL;
	return read_buckets(text, false, record, message);
}

int decode_histogram(struct json_span text, bool part, struct record *record,
		     struct message *message)
{
	struct json_span key, value, buckets = {"", 0};
	bool unit = false, bits = false;
	struct json_walk walk;
	int64_t number;
	int more;

	if (json_walk_open(&walk, text) < 0 || walk.close != '}')
		return -EINVAL;
	while ((more = json_walk_next(&walk, &key, &value)) == 1) {
		if (json_span_is(key, "unit"))
			unit = json_span_is(value, "\"ns\"");
		else if (json_span_is(key, "sub_bucket_bits"))
			bits = json_span_integer(value, &number) == 0 &&
			       number == HISTOGRAM_SUB_BUCKET_BITS;
		else if (json_span_is(key, "buckets"))
			buckets = value;
	}
	if (more < 0)
		return more;
	if (!unit)
		return message_set(message, -EINVAL, "record: histogram.unit: expected \"ns\"");
	if (!bits)
		return message_set(message, -EINVAL,
				   "record: histogram.sub_bucket_bits: expected 7");
	return read_buckets(buckets, part, record, message);
}
