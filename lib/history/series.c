/* SPDX-License-Identifier: MIT */
#include "history/series.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"
#include "history/reader.h"
#include "record/record.h"
#include "record/setting.h"

/* Commands that give no settings of their own: argv, the program without its folder. */
static json_t *command_settings(const struct record *record)
{
	json_t *command = record->command ? json_copy(record->command) : json_array();
	const char *program = json_string_value(json_array_get(command, 0));
	const char *slash = program ? strrchr(program, '/') : NULL;

	if (slash && slash[1])
		json_array_set_new(command, 0, json_string(slash + 1));
	if (!record->command) {
		json_decref(command);
		return json_object();
	}
	return json_pack("{s:o}", "command", command);
}

static json_t *loads_array(char *const *loads)
{
	json_t *array = json_array();

	for (; *loads; loads++)
		json_array_append_new(array, json_string(*loads));
	return array;
}

static json_t *own_settings(const struct record *record)
{
	const struct {
		const char *key, *value;
	} also[] = {{"measure", record->measure},
		    {"scope", record->scope},
		    {"backend", record->backend},
		    {"trace_level", record->trace_level}};
	json_t *settings = json_object(), *value;
	const char *key;

	json_object_foreach (record->settings, key, value)
		if (setting_is_compared(key))
			json_object_set(settings, key, value);
	for (size_t i = 0; i < ARRAY_SIZE(also); i++)
		if (also[i].value)
			json_object_set_new(settings, also[i].key, json_string(also[i].value));
	if (record->loads)
		json_object_set_new(settings, "loads", loads_array(record->loads));
	return settings;
}

int series_base(const struct record *record, const char *machine, char **ret_base)
{
	/* All that must agree, as JSON with sorted keys. */
	json_t *settings = record->settings ? own_settings(record) : command_settings(record);
	char *text = settings ? json_dumps(settings, JSON_COMPACT | JSON_SORT_KEYS) : NULL, *base;
	int length = -1;

	json_decref(settings);
	if (text)
		length = asprintf(&base, "%s%c%s%c%s%c%s%c", machine, RUN_FIELD, record->benchmark,
				  RUN_FIELD, record_arm_name(record), RUN_FIELD, text, RUN_FIELD);
	free(text);
	if (length < 0)
		return -ENOMEM;
	*ret_base = base;
	return 0;
}
