/* SPDX-License-Identifier: MIT */
#include "history/record_scan.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "base/parse.h"
#include "record/record.h"
#include "record/setting.h"

/* Members of a record that are looked at. */
enum member {
	M_SCHEMA,
	M_ID,
	M_BENCHMARK,
	M_ARM,
	M_VARIANT,
	M_BACKEND,
	M_MEASURE,
	M_LOADS,
	M_SCOPE,
	M_STARTED,
	M_INTERRUPTED,
	M_LATENCY,
	M_ENVIRONMENT,
	M_VALIDITY,
	M_TRACE_LEVEL,
	M_STATUS,
	M_MACHINE_KEY,
	M_METRICS,
	M_SETTINGS,
	M_COMMAND,
	MEMBERS,
};

static const char *const names[MEMBERS] = {
	"schema",      "id",	      "benchmark",   "arm",	 "variant",
	"backend",     "measure",     "loads",	     "scope",	 "started",
	"interrupted", "latency",     "environment", "validity", "trace_level",
	"status",      "machine_key", "metrics",     "settings", "command",
};

struct members {
	struct json_span at[MEMBERS];
};

static bool span_is(struct json_span span, const char *text)
{
	return span.size == strlen(text) && memcmp(span.text, text, span.size) == 0;
}

static int take_member(void *data, struct json_span key, struct json_span value)
{
	struct members *members = data;

	for (size_t i = 0; i < MEMBERS; i++)
		if (span_is(key, names[i]))
			members->at[i] = value;
	return 0;
}

static bool is_null(struct json_span span)
{
	return !span.text || span_is(span, "null");
}

/* A JSON string without escapes; escapes are read by jansson. "" for null or another type. */
static int span_string(struct json_span span, char *buffer, size_t size)
{
	json_t *value;
	int length;

	buffer[0] = '\0';
	if (is_null(span) || span.text[0] != '"')
		return 0;
	if (!memchr(span.text, '\\', span.size)) {
		length = snprintf(buffer, size, "%.*s", (int)span.size - 2, span.text + 1);
		return length < (int)size ? 0 : -EINVAL;
	}
	value = json_loadb(span.text, span.size, JSON_DECODE_ANY, NULL);
	length = snprintf(buffer, size, "%s", value ? json_string_value(value) : "");
	json_decref(value);
	return value && length < (int)size ? 0 : -EINVAL;
}

static bool is_uuid(const char *text)
{
	if (strlen(text) != 36)
		return false;
	for (int i = 0; i < 36; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash ? text[i] != '-' : !strchr("0123456789abcdef", text[i]))
			return false;
	}
	return true;
}

/* --- latency --- */

static const struct {
	const char *key, *name;
} latency_keys[] = {{"mean_us", "mean"}, {"p50_us", "p50"}, {"p99_us", "p99"}, {"max_us", "max"}};

static void add_value(struct scanned *scanned, const char *name, const char *unit,
		      const char *better, double value)
{
	size_t i = scanned->count;

	snprintf(scanned->values[i].name, sizeof(scanned->values[i].name), "%s", name);
	snprintf(scanned->values[i].unit, sizeof(scanned->values[i].unit), "%s", unit);
	snprintf(scanned->values[i].better, sizeof(scanned->values[i].better), "%s", better);
	scanned->values[i].value = value;
	scanned->count++;
}

static int take_latency(void *data, struct json_span key, struct json_span value)
{
	const char *end = value.text + value.size, *after;
	double number;

	for (size_t i = 0; i < ARRAY_SIZE(latency_keys); i++) {
		if (!span_is(key, latency_keys[i].key) || is_null(value))
			continue;
		if (parse_number(value.text, end, &after, &number) || after != end)
			return -EDOM;
		add_value(data, latency_keys[i].name, "us", "lower", number);
	}
	return 0;
}

static int take_kernel(void *data, struct json_span key, struct json_span value)
{
	struct scanned *scanned = data;

	if (span_is(key, "kernel"))
		return span_string(value, scanned->kernel, sizeof(scanned->kernel));
	return 0;
}

static int take_verdict(void *data, struct json_span key, struct json_span value)
{
	struct scanned *scanned = data;

	if (!span_is(key, "verdict"))
		return 0;
	if (span_is(value, "\"invalid\""))
		scanned->state = RUN_INVALID;
	else if (span_is(value, "\"suspect\""))
		scanned->state = RUN_SUSPECT;
	else if (!span_is(value, "\"valid\""))
		return -EDOM;
	return 0;
}

/* Fields and lines of a series are parted by control characters: none may come from outside. */
static bool has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20)
			return true;
	return false;
}

static int take_metrics(struct scanned *scanned, struct json_span span, struct message *message)
{
	json_t *metrics = json_loadb(span.text, span.size, 0, NULL), *metric;
	const char *name;
	int error = 0;

	if (!json_is_object(metrics))
		error = message_set(message, -EINVAL, "metrics: an object is wanted");
	json_object_foreach (metrics, name, metric) {
		double value = json_get_number(metric, "value", NAN);
		const char *unit = json_get_string(metric, "unit", "");

		if (isnan(value))
			continue;
		if (scanned->count == SCANNED_VALUES_MOST || strlen(name) >= 64 || !*name ||
		    strlen(unit) >= 32 || has_control(name) || has_control(unit)) {
			error = message_set(message, -EINVAL,
					    "metrics.%.60s: name or unit too long, or more than %d",
					    name, SCANNED_VALUES_MOST);
			break;
		}
		add_value(scanned, name, unit,
			  strcmp(json_get_string(metric, "better", "lower"), "higher") == 0
				  ? "higher"
				  : "lower",
			  value);
	}
	json_decref(metrics);
	return error;
}

/* --- what makes a series --- */

/* Commands that give no settings of their own: argv, the program without its folder. */
static json_t *command_settings(struct json_span span)
{
	json_t *command = span.text ? json_loadb(span.text, span.size, 0, NULL) : NULL;
	const char *program = json_string_value(json_array_get(command, 0));
	const char *slash = program ? strrchr(program, '/') : NULL;

	if (slash && slash[1])
		json_array_set_new(command, 0, json_string(slash + 1));
	return json_is_array(command) ? json_pack("{s:o}", "command", command) : json_object();
}

static json_t *own_settings(struct json_span span)
{
	json_t *settings = json_loadb(span.text, span.size, 0, NULL), *value;
	const char *key;
	void *next;

	json_object_foreach_safe(settings, next, key, value) if (!setting_is_compared(key))
		json_object_del(settings, key);
	return settings;
}

/* All that must agree, as JSON with sorted keys; the caller frees it. */
static char *settings_text(const struct members *members)
{
	static const enum member also[] = {M_MEASURE, M_SCOPE, M_BACKEND, M_LOADS, M_TRACE_LEVEL};
	bool own = !is_null(members->at[M_SETTINGS]);
	json_t *settings = own ? own_settings(members->at[M_SETTINGS])
			       : command_settings(members->at[M_COMMAND]);
	char *text;

	for (size_t i = 0; own && i < ARRAY_SIZE(also); i++) {
		struct json_span span = members->at[also[i]];

		if (!is_null(span))
			json_object_set_new(
				settings, names[also[i]],
				json_loadb(span.text, span.size, JSON_DECODE_ANY, NULL));
	}
	text = settings ? json_dumps(settings, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
	json_decref(settings);
	return text;
}

static int make_base(const struct members *members, const struct scanned *scanned, char **ret_base,
		     struct message *message)
{
	char benchmark[256], arm[256];
	char *settings;
	int error = span_string(members->at[M_BENCHMARK], benchmark, sizeof(benchmark));

	if (!error)
		error = span_string(members->at[M_ARM], arm, sizeof(arm));
	if (!error && !*arm)
		error = span_string(members->at[M_VARIANT], arm, sizeof(arm));
	if (error || !*benchmark || has_control(benchmark) || has_control(arm))
		return message_set(message, -EINVAL, "benchmark, arm: a name is wanted");
	settings = settings_text(members);
	if (!settings)
		return message_set(message, -EINVAL, "settings: an object is wanted");
	if (asprintf(ret_base, "%s%c%s%c%s%c%s%c", scanned->machine, RUN_FIELD, benchmark,
		     RUN_FIELD, *arm ? arm : benchmark, RUN_FIELD, settings, RUN_FIELD) < 0)
		error = -ENOMEM;
	free(settings);
	return error;
}

/* The texts of the members that make_base() reads, one after the other. */
struct head {
	char text[16384];
	size_t length;
};

/* -E2BIG: no room. What parts two texts occurs in no JSON: no two lists of members are one text. */
static int head_append(struct head *head, const char *text, size_t size)
{
	if (sizeof(head->text) - head->length < size + 1)
		return -E2BIG;
	if (size)
		memcpy(head->text + head->length, text, size);
	head->text[head->length + size] = RUN_FIELD;
	head->length += size + 1;
	return 0;
}

static int head_setting(void *data, struct json_span key, struct json_span value)
{
	char name[64];

	snprintf(name, sizeof(name), "%.*s", (int)key.size, key.text);
	if (!setting_is_compared(name)) /* a clock's cost, a seed: another in each run */
		return 0;
	return head_append(data, key.text, (size_t)(value.text + value.size - key.text));
}

static int head_of(const struct members *members, const struct scanned *scanned, struct head *head)
{
	static const enum member heads[] = {M_BENCHMARK, M_ARM,		M_VARIANT,
					    M_BACKEND,	 M_MEASURE,	M_LOADS,
					    M_SCOPE,	 M_TRACE_LEVEL, M_COMMAND};
	struct json_span settings = members->at[M_SETTINGS];
	bool blanks;
	int error;

	head->length = 0;
	error = head_append(head, scanned->machine, strlen(scanned->machine));
	for (size_t i = 0; !error && i < ARRAY_SIZE(heads); i++)
		error = head_append(head, members->at[heads[i]].text, members->at[heads[i]].size);
	if (error || !settings.text || *settings.text != '{')
		return error ? error : head_append(head, settings.text, settings.size);
	return scan_object(settings.text, settings.size, head_setting, head, NULL, &blanks);
}

static int keep_base(struct scan_memory *memory, char *base)
{
	if (memory->base_count == memory->base_capacity) {
		size_t capacity = memory->base_capacity ? 2 * memory->base_capacity : 64;
		char **longer = reallocarray(memory->bases, capacity, sizeof(*longer));

		if (!longer) {
			free(base);
			return -ENOMEM;
		}
		memory->bases = longer;
		memory->base_capacity = capacity;
	}
	memory->bases[memory->base_count++] = base;
	return 0;
}

/* A head that is too long to be kept is made anew each time, under a number of its own. */
static int find_base(const struct members *members, struct scanned *scanned,
		     struct message *message)
{
	struct scan_memory *memory = &scanned->memory;
	struct head head;
	char *base = NULL;
	uint32_t number;
	int error;

	if (head_of(members, scanned, &head) < 0)
		head.length =
			(size_t)snprintf(head.text, sizeof(head.text), "%zu", memory->base_count);
	error = intern_add(&memory->heads, head.text, head.length, &number);
	if (!error && number == memory->base_count) {
		error = make_base(members, scanned, &base, message);
		if (!error)
			error = keep_base(memory, base);
	}
	if (!error)
		scanned->base = memory->bases[number];
	return error;
}

/* --- the whole --- */

static int read_identity(const struct members *members, struct scanned *scanned,
			 struct message *message)
{
	char text[128];

	if (span_string(members->at[M_SCHEMA], text, sizeof(text)) < 0 ||
	    strcmp(text, RECORD_SCHEMA) != 0)
		return message_set(message, -EINVAL, "schema: \"%s\" is wanted, not \"%.60s\"",
				   RECORD_SCHEMA, text);
	if (span_string(members->at[M_ID], scanned->uuid, sizeof(scanned->uuid)) < 0 ||
	    !is_uuid(scanned->uuid))
		return message_set(message, -EINVAL, "id: a UUID is wanted");
	if (span_string(members->at[M_STARTED], text, sizeof(text)) < 0)
		return message_set(message, -EINVAL, "started: RFC 3339 is wanted");
	scanned->started_us = INT64_MIN;
	if (*text && time_parse_rfc3339(text, &scanned->started_us) < 0)
		return message_set(message, -EINVAL, "started: \"%.40s\" is not RFC 3339", text);
	return 0;
}

static int read_state(const struct members *members, struct scanned *scanned,
		      struct message *message)
{
	struct json_span validity = members->at[M_VALIDITY], status = members->at[M_STATUS];
	bool blanks;

	scanned->state = RUN_VALID;
	if (!is_null(validity) &&
	    scan_object(validity.text, validity.size, take_verdict, scanned, NULL, &blanks))
		return message_set(message, -EINVAL,
				   "validity: a verdict valid, suspect or invalid is wanted");
	if ((!is_null(status) && !span_is(status, "\"ok\"")) ||
	    span_is(members->at[M_INTERRUPTED], "true"))
		scanned->state = RUN_FAILED;
	return 0;
}

static int read_values(const struct members *members, struct scanned *scanned,
		       struct message *message)
{
	struct json_span latency = members->at[M_LATENCY], metrics = members->at[M_METRICS];
	struct json_span environment = members->at[M_ENVIRONMENT];
	bool blanks;

	if (!is_null(latency) &&
	    scan_object(latency.text, latency.size, take_latency, scanned, NULL, &blanks))
		return message_set(message, -EINVAL, "latency: an object of numbers is wanted");
	if (!is_null(environment) &&
	    scan_object(environment.text, environment.size, take_kernel, scanned, NULL, &blanks))
		return message_set(message, -EINVAL, "environment.kernel: a text is wanted");
	return is_null(metrics) ? 0 : take_metrics(scanned, metrics, message);
}

void scanned_free(struct scanned *scanned)
{
	for (size_t i = 0; i < scanned->memory.base_count; i++)
		free(scanned->memory.bases[i]);
	free(scanned->memory.bases);
	intern_free(&scanned->memory.heads);
	scanned->memory = (struct scan_memory){.bases = NULL};
}

int record_scan(const char *line, size_t size, const char *machine, struct scanned *scanned,
		bool *ret_torn, struct message *message)
{
	struct members members = {0};
	bool blanks = false;
	size_t at = 0;
	int error = scan_object(line, size, take_member, &members, &at, &blanks);

	*ret_torn = error && at >= size;
	if (error)
		return message_set(message, -EINVAL, "not JSON at byte %zu", at + 1);
	scanned->count = 0;
	scanned->kernel[0] = '\0';
	scanned->content = scan_hash(line, size, blanks);
	error = read_identity(&members, scanned, message);
	if (!error && machine)
		snprintf(scanned->machine, sizeof(scanned->machine), "%s", machine);
	else if (!error && (span_string(members.at[M_MACHINE_KEY], scanned->machine,
					sizeof(scanned->machine)) < 0 ||
			    has_control(scanned->machine)))
		error = message_set(message, -EINVAL, "machine_key: 16 hex digits are wanted");
	if (!error && !*scanned->machine)
		snprintf(scanned->machine, sizeof(scanned->machine), "unknown");
	if (!error)
		error = read_state(&members, scanned, message);
	if (!error)
		error = read_values(&members, scanned, message);
	if (!error)
		error = find_base(&members, scanned, message);
	return error;
}
