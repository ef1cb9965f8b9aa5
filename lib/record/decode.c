/* SPDX-License-Identifier: MIT */
#include "record/record.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/json_shared.h"
#include "record/decode_histogram.h"
#include "record/fields.h"
#include "record/json_scan.h"

/*
 * From the text of a record straight into the struct. A JSON tree of it takes most of the time that
 * a comparison takes, and most of that tree is not looked at: trees are made only of the members
 * that are kept as JSON, and of those that come as the same text in line after line only once.
 */

struct decoding {
	struct record *record;
	struct json_shared *shared; /* NULL: the whole record is wanted */
	struct message *message;
};

static int wrong(struct decoding *decoding, const char *where, const char *key, const char *wanted)
{
	return message_set(decoding->message, -EINVAL, "record: %s%s: expected %s", where, key,
			   wanted);
}

static int read_fields(struct decoding *decoding, const struct field *fields, size_t count,
		       const char *where, struct json_span text, void *into);

static int read_text(struct json_span value, char **text)
{
	char *copy;
	int error = json_span_text(value, &copy);

	if (error)
		return error;
	free(*text);
	*text = copy;
	return 0;
}

static int read_fixed(struct json_span value, char *buffer, size_t size)
{
	char *text = NULL;
	int error = read_text(value, &text);

	if (!error && strlen(text) >= size)
		error = -EINVAL;
	if (!error)
		strcpy(buffer, text);
	free(text);
	return error;
}

static int read_count(struct json_span value, int64_t *ret_value)
{
	int64_t count;

	if (json_span_integer(value, &count) < 0 || count < 0)
		return -EINVAL;
	*ret_value = count;
	return 0;
}

static int read_int(struct json_span value, int *ret_value)
{
	int64_t number;

	if (json_span_integer(value, &number) < 0 || number < -1 || number > INT32_MAX)
		return -EINVAL;
	*ret_value = (int)number;
	return 0;
}

static int read_us(struct json_span value, int64_t *ret_ns)
{
	double us;

	if (json_span_number(value, &us) < 0 || fabs(us) > (double)INT64_MAX / 1000.0 * 0.999)
		return -EINVAL;
	*ret_ns = llround(us * 1000.0);
	return 0;
}

static int read_real_us(struct json_span value, double *ret_ns)
{
	double us;

	if (json_span_number(value, &us) < 0)
		return -EINVAL;
	*ret_ns = us * 1000.0;
	return 0;
}

static int read_bool(struct json_span value, bool *ret_value)
{
	*ret_value = json_span_is(value, "true");
	return *ret_value || json_span_is(value, "false") ? 0 : -EINVAL;
}

/* Policies are static strings in the struct; one that is not known stays null. */
static int read_policy(struct json_span value, const char **ret_policy)
{
	static const char *const known[] = {"fifo", "rr", "deadline", "other", "batch", "idle"};

	if (value.text[0] != '"')
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (json_span_is((struct json_span){value.text + 1, value.size - 2}, known[i]))
			*ret_policy = known[i];
	return 0;
}

static int read_verdict(struct json_span value, enum verdict *ret_verdict)
{
	if (value.text[0] != '"')
		return -EINVAL;
	for (int i = VERDICT_VALID; i <= VERDICT_INVALID; i++)
		if (json_span_is((struct json_span){value.text + 1, value.size - 2},
				 verdict_name((enum verdict)i))) {
			*ret_verdict = (enum verdict)i;
			return 0;
		}
	return -EINVAL;
}

/* --- what is kept as JSON --- */

/* Does @key, which is found in the text of an object, stand in the object itself? */
static bool is_member(struct json_span text, const char *key)
{
	bool string = false;
	int depth = 0;

	for (const char *at = text.text; at < key; at++) {
		if (*at == '\\')
			at++;
		else if (*at == '"')
			string = !string;
		else if (!string && (*at == '{' || *at == '['))
			depth++;
		else if (!string && (*at == '}' || *at == ']'))
			depth--;
	}
	return depth == 1;
}

/* The value of @text, its clock_read_ns made null; NULL without memory. */
static json_t *shared_value(struct json_shared *shared, struct json_span text)
{
	static const char key[] = "\"clock_read_ns\":";
	const char *found = memmem(text.text, text.size, key, strlen(key));
	const char *end = text.text + text.size, *number = found ? found + strlen(key) : end;
	const char *after = number + strspn(number, "-+.eE0123456789");
	size_t before = (size_t)(number - text.text), rest = (size_t)(end - after);
	json_t *value = NULL;
	char *copy;

	if (!found || after == number || !is_member(text, found))
		return json_shared_get(shared, text.text, text.size);
	copy = malloc(before + strlen("null") + rest);
	if (copy) {
		memcpy(copy, text.text, before);
		memcpy(copy + before, "null", 4);
		memcpy(copy + before + 4, after, rest);
		value = json_shared_get(shared, copy, before + 4 + rest);
	}
	free(copy);
	return value;
}

static int read_json(struct decoding *decoding, const struct field *field, struct json_span text,
		     json_t **value)
{
	bool part = decoding->shared;
	json_t *made;

	if (text.text[0] != (field->kind == FIELD_OBJECT ? '{' : '['))
		return -EINVAL;
	if (part && field->flags & FIELD_LEFT_OUT)
		return 0;
	if (part && field->flags & FIELD_SHARED)
		made = shared_value(decoding->shared, text);
	else
		made = json_loadb(text.text, text.size, 0, NULL);
	if (!made)
		return -ENOMEM;
	json_decref(*value);
	*value = made;
	return 0;
}

/* --- what a record holds several of --- */

/* The keys carry the unit: without mean_us this is no latency of ours. */
static int read_latency(struct decoding *decoding, const struct field *field, const char *where,
			struct json_span text, void *into)
{
	struct latency_summary *latency = (void *)((char *)into + field->offset);
	char below[64];
	int error;

	*latency = (struct latency_summary){
		.mean_ns = NAN,
		.stddev_ns = NAN,
		.min_ns = INT64_MIN,
		.max_ns = INT64_MIN,
		.p50_ns = -1,
		.p90_ns = -1,
		.p99_ns = -1,
		.p99_9_ns = -1,
		.p99_99_ns = -1,
	};
	snprintf(below, sizeof(below), "%s%s.", where, field->key);
	error = read_fields(decoding, latency_fields, LATENCY_FIELDS, below, text, latency);
	if (!error && field->size)
		*(bool *)((char *)into + field->size) = true;
	return error;
}

static int read_loads(struct decoding *decoding, struct json_span text, char ***loads)
{
	struct json_span none, value;
	size_t count = 0, capacity = 0;
	struct json_walk walk;
	int more = json_walk_open(&walk, text);

	if (more < 0 || walk.close != ']')
		return -EINVAL;
	do {
		more = array_reserve(loads, &capacity, count + 1);
		if (more < 0)
			return more;
		(*loads)[count] = NULL;
		more = json_walk_next(&walk, &none, &value);
		if (more == 1)
			more = read_text(value, &(*loads)[count++]) ?: 1;
	} while (more == 1);
	return more;
}

static int read_cpus(struct decoding *decoding, struct json_span text)
{
	struct record *record = decoding->record;
	struct json_span none, value;
	size_t capacity = 0;
	struct json_walk walk;
	int more;

	if (json_walk_open(&walk, text) < 0 || walk.close != ']')
		return -EINVAL;
	while ((more = json_walk_next(&walk, &none, &value)) == 1) {
		struct record_cpu *cpu;
		int error = array_reserve(&record->per_cpu, &capacity, record->per_cpu_count + 1);

		if (error)
			return error;
		cpu = &record->per_cpu[record->per_cpu_count++];
		*cpu = (struct record_cpu){.cpu = -1,
					   .mean_us = NAN,
					   .max_us = NAN,
					   .steal_ms = -1,
					   .minflt = -1,
					   .majflt = -1};
		error = read_fields(decoding, cpu_fields, CPU_FIELDS, "per_cpu[].", value, cpu);
		if (error)
			return error;
	}
	return more;
}

/* --- the fields --- */

static const char *wanted_of(enum field_kind kind)
{
	static const char *const wanted[] = {
		[FIELD_SCHEMA] = "\"" RECORD_SCHEMA "\"",
		[FIELD_TEXT] = "a string or null",
		[FIELD_FIXED] = "a short string or null",
		[FIELD_NUMBER] = "a number or null",
		[FIELD_COUNT] = "a whole number, 0 or more, or null",
		[FIELD_TALLY] = "a whole number, 0 or more, or null",
		[FIELD_INT] = "a whole number, -1 or more",
		[FIELD_US] = "microseconds below 2^63 ns, or null",
		[FIELD_REAL_US] = "microseconds or null",
		[FIELD_BOOL] = "true or false",
		[FIELD_POLICY] = "a string or null",
		[FIELD_OBJECT] = "an object",
		[FIELD_ARRAY] = "an array",
		[FIELD_GROUP] = "an object or null",
		[FIELD_LATENCY] = "an object or null",
		[FIELD_VERDICT] = "valid, suspect or invalid",
		[FIELD_LOADS] = "an array of strings",
		[FIELD_CPUS] = "an array of objects",
		[FIELD_HISTOGRAM] = "an object or null",
	};

	return wanted[kind];
}

/* -EINVAL without a message: not what the field's kind wants. */
static int read_value(struct decoding *decoding, const struct field *field, const char *where,
		      struct json_span value, void *into)
{
	void *at = (char *)into + field->offset;
	char below[64];

	switch (field->kind) {
	case FIELD_SCHEMA:
		return json_span_is(value, "\"" RECORD_SCHEMA "\"") ? 0 : -EINVAL;
	case FIELD_TEXT:
		return read_text(value, at);
	case FIELD_FIXED:
		return read_fixed(value, at, field->size);
	case FIELD_NUMBER:
		return json_span_number(value, at);
	case FIELD_COUNT:
	case FIELD_TALLY:
		return read_count(value, at);
	case FIELD_INT:
		return read_int(value, at);
	case FIELD_US:
		return read_us(value, at);
	case FIELD_REAL_US:
		return read_real_us(value, at);
	case FIELD_BOOL:
		return read_bool(value, at);
	case FIELD_POLICY:
		return read_policy(value, at);
	case FIELD_OBJECT:
	case FIELD_ARRAY:
		return read_json(decoding, field, value, at);
	case FIELD_GROUP:
		snprintf(below, sizeof(below), "%s%s.", where, field->key);
		return read_fields(decoding, field->fields, field->field_count, below, value, into);
	case FIELD_LATENCY:
		return read_latency(decoding, field, where, value, into);
	case FIELD_VERDICT:
		return read_verdict(value, at);
	case FIELD_LOADS:
		return read_loads(decoding, value, at);
	case FIELD_CPUS:
		return read_cpus(decoding, value);
	case FIELD_HISTOGRAM:
		return decode_histogram(value, decoding->shared, decoding->record,
					decoding->message);
	}
	return -EINVAL;
}

/* Keys come in the order of the table as a rule: looked for from behind the last one. */
static const struct field *find_field(const struct field *fields, size_t count,
				      struct json_span key, size_t *next)
{
	for (size_t i = 0; i < count; i++) {
		size_t at = (*next + i) % count;

		if (json_span_is(key, fields[at].key)) {
			*next = at + 1;
			return &fields[at];
		}
	}
	return NULL;
}

static int read_field(struct decoding *decoding, const struct field *field, const char *where,
		      struct json_span value, void *into)
{
	int error;

	if (json_span_is(value, "null"))
		return 0;
	if (decoding->message)
		decoding->message->text[0] = '\0';
	error = read_value(decoding, field, where, value, into);
	if (error == -EINVAL && decoding->message && !decoding->message->text[0])
		return wrong(decoding, where, field->key, wanted_of(field->kind));
	return error;
}

/* Each key at most once; keys that are not in the table are passed over. */
static int walk_fields(struct decoding *decoding, const struct field *fields, size_t count,
		       const char *where, struct json_walk *walk, void *into)
{
	struct json_span key, value;
	uint64_t seen = 0;
	size_t next = 0;
	int more;

	while ((more = json_walk_next(walk, &key, &value)) == 1) {
		const struct field *field = find_field(fields, count, key, &next);
		int error;

		if (!field)
			continue;
		if (seen >> (field - fields) & 1)
			return wrong(decoding, where, field->key, "the key once, found it twice");
		error = read_field(decoding, field, where, value, into);
		if (error)
			return error;
		if (!json_span_is(value, "null") || !(field->flags & FIELD_WANTED))
			seen |= UINT64_C(1) << (field - fields);
	}
	if (more < 0)
		return more;
	for (size_t i = 0; i < count; i++)
		if (fields[i].flags & FIELD_WANTED && !(seen >> i & 1))
			return wrong(decoding, where, fields[i].key, wanted_of(fields[i].kind));
	if (fields == latency_fields && !(seen >> 1 & 1))
		return wrong(decoding, where, "mean_us", "microseconds; the key is missing");
	return 0;
}

static int read_fields(struct decoding *decoding, const struct field *fields, size_t count,
		       const char *where, struct json_span text, void *into)
{
	struct json_walk walk;

	if (json_walk_open(&walk, text) < 0 || walk.close != '}')
		return -EINVAL;
	return walk_fields(decoding, fields, count, where, &walk, into);
}

/* --- the whole --- */

static int check_metrics(struct decoding *decoding)
{
	const char *name;
	json_t *metric;

	json_object_foreach (decoding->record->metrics, name, metric) {
		const json_t *value = json_object_get(metric, "value");
		const char *better = json_get_string(metric, "better", "lower");
		char where[128];

		snprintf(where, sizeof(where), "metrics.%.100s", name);
		if (!json_is_object(metric) ||
		    (value && !json_is_number(value) && !json_is_null(value)))
			return wrong(decoding, where, "", "{value, unit, better}");
		if (strcmp(better, "lower") != 0 && strcmp(better, "higher") != 0)
			return wrong(decoding, where, ".better", "lower or higher");
	}
	return 0;
}

static int check_whole(struct decoding *decoding)
{
	const char *status = decoding->record->status;

	if (strcmp(status, "ok") != 0 && strcmp(status, "failed") != 0)
		return wrong(decoding, "", "status", "ok or failed");
	return check_metrics(decoding);
}

int record_from_text(const char *text, size_t size, struct json_shared *shared,
		     struct record **ret_record, struct record_text *ret_text,
		     struct message *message)
{
	struct message own;
	struct decoding decoding = {.shared = shared, .message = message ? message : &own};
	struct json_walk walk;
	int error = json_walk_open(&walk, (struct json_span){text, size});

	decoding.message->text[0] = '\0';
	decoding.record = record_new_blank(NULL);
	if (!decoding.record)
		return -ENOMEM;
	if (!error && walk.close != '}')
		error = -EINVAL;
	if (!error)
		error = walk_fields(&decoding, record_fields, RECORD_FIELDS, "", &walk,
				    decoding.record);
	if (!error)
		error = check_whole(&decoding);
	if (ret_text)
		*ret_text = (struct record_text){.torn = error == -EINVAL &&
							 !decoding.message->text[0] &&
							 walk.at == walk.end,
						 .blanks = walk.blanks};
	if (error) {
		if (error == -EINVAL && !decoding.message->text[0])
			message_set(decoding.message, error, "not JSON at byte %zu",
				    (size_t)(walk.at - text) + 1);
		record_free(decoding.record);
		return error;
	}
	*ret_record = decoding.record;
	return 0;
}
