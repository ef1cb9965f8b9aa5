/* SPDX-License-Identifier: MIT */
#include "imports/import.h"

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
	char known[256];
	int error;
	const struct import_ops *ops = format ? import_find(format) : NULL;

	if (strlen(text) != size)
		return message_set(message, -EINVAL, "%s: holds zero bytes: no text", name);
	for (size_t i = 0; !format && !ops && imports[i]; i++)
		if (imports[i]->knows(text))
			ops = imports[i];
	if (!ops)
		return message_set(message, -EINVAL,
				   "%s: neither numbers nor output of a tool that is known (%s)",
				   name, plugin_names(PLUGINS(imports), known, sizeof(known)));
	error = ops->read(text, settings, list, &why);
	if (!error && list->count == before)
		error = message_set(&why, -ENODATA, "no results (%s)", ops->name);
	for (size_t k = before; k < list->count && !error; k++)
		make_id(list->records[k], text, size, k - before);
	if (error)
		message_set(message, error, "%s: %s", name,
			    why.text[0] ? why.text : "out of memory");
	return error;
}
