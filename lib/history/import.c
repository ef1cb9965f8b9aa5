/* SPDX-License-Identifier: MIT */
#include "history/import.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "base/parse.h"
#include "base/random.h"
#include "history/import_internal.h"

struct record *import_new(struct import_list *list, const struct import_settings *settings,
			  const char *benchmark)
{
	struct record *record;

	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? 2 * list->capacity : 64;
		struct record **longer =
			reallocarray(list->records, capacity, sizeof(*list->records));

		if (!longer)
			return NULL;
		list->records = longer;
		list->capacity = capacity;
	}
	record = record_new(settings->benchmark ? settings->benchmark : benchmark);
	if (!record)
		return NULL;
	list->records[list->count++] = record;
	record->arm = strdup(settings->arm ? settings->arm : "imported");
	record->metrics = json_object();
	record->environment = json_object();
	json_put(record->environment, "kernel", json_string_or_null(settings->kernel));
	snprintf(record->started, sizeof(record->started), "%s",
		 settings->started ? settings->started : "");
	snprintf(record->machine_key, sizeof(record->machine_key), "%s",
		 settings->machine ? settings->machine : "");
	record_note(record, "imported");
	return record->arm ? record : NULL;
}

int import_metric(struct record *record, const char *name, double value, const char *unit)
{
	json_t *metric = json_object();
	int error = json_put(metric, "value", json_number_or_null(value));

	if (!error)
		error = json_put(metric, "unit", json_string_or_null(unit));
	if (!error)
		error = json_put(metric, "better", json_string("lower"));
	if (error) {
		json_decref(metric);
		return error;
	}
	return json_put(record->metrics, name, metric);
}

void import_list_free(struct import_list *list)
{
	for (size_t i = 0; i < list->count; i++)
		record_free(list->records[i]);
	free(list->records);
	*list = (struct import_list){.records = NULL};
}

/* --- plain numbers, one a line, as ministat takes them --- */

static bool knows_values(const char *text)
{
	const char *after;
	double value;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		text += strspn(text, " \t\r");
		if (*text != '#' && *text != '\n' && *text)
			return parse_number(text, text + strlen(text), &after, &value) == 0;
	}
	return false;
}

static int read_values(const char *text, const struct import_settings *settings,
		       struct import_list *list, struct message *message)
{
	size_t line = 0;

	while (*text) {
		const char *end = text + strcspn(text, "\n"), *after;
		double value;

		line++;
		text += strspn(text, " \t\r");
		if (text < end && *text != '#') {
			struct record *record;

			if (parse_number(text, end, &after, &value) ||
			    (after < end && !strchr(" \t\r#", *after)))
				return message_set(message, -EINVAL,
						   "line %zu: \"%.*s\" is not a finite number",
						   line, (int)strcspn(text, " \t\r\n"), text);
			record = import_new(list, settings, "values");
			if (!record ||
			    import_metric(record, settings->metric ? settings->metric : "value",
					  value, settings->unit ? settings->unit : ""))
				return -ENOMEM;
		}
		text = *end ? end + 1 : end;
	}
	return 0;
}

static const struct import_ops import_values = {"ministat", "numbers, one a line", knows_values,
						read_values};

const struct import_ops *const imports[] = {
	&import_rtla, &import_cyclictest, &import_igt, &import_values, NULL,
};

/* The same file gives the same ids (version 8 of RFC 9562: free form). */
static void make_id(struct record *record, const char *text, size_t size, size_t number)
{
	struct random random;
	uint64_t high, low;

	random_seed(&random, hash_json(text, size, false) + number);
	high = random_next(&random);
	low = random_next(&random);
	snprintf(record->id, sizeof(record->id),
		 "%08" PRIx64 "-%04" PRIx64 "-8%03" PRIx64 "-%04" PRIx64 "-%012" PRIx64, high >> 32,
		 (high >> 16) & 0xffff, high & 0xfff, 0x8000 | (low >> 50), low & 0xffffffffffff);
}

int import_text(const char *name, const char *text, size_t size, const char *format,
		const struct import_settings *settings, struct import_list *list,
		struct message *message)
{
	size_t before = list->count;
	struct message why = {""};
	int error = -EINVAL;
	size_t i = 0;

	if (strlen(text) != size)
		return message_set(message, -EINVAL, "%s: holds zero bytes: no text", name);
	while (imports[i] &&
	       (format ? strcmp(imports[i]->name, format) != 0 : !imports[i]->knows(text)))
		i++;
	if (!imports[i])
		return message_set(message, -EINVAL,
				   "%s: neither numbers nor output of IGT's gem_syslatency -f, "
				   "cyclictest or rtla that is known",
				   name);
	error = imports[i]->read(text, settings, list, &why);
	if (!error && list->count == before)
		error = message_set(&why, -ENODATA, "no results (%s)", imports[i]->name);
	for (size_t k = before; k < list->count && !error; k++)
		make_id(list->records[k], text, size, k - before);
	if (error)
		message_set(message, error, "%s: %s", name,
			    why.text[0] ? why.text : "out of memory");
	return error;
}
