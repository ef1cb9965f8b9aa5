/* SPDX-License-Identifier: MIT */
#include "record/setting.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/json.h"

static const char *const not_compared[] = {"variant", "arm",	       "seed",
					   "json",    "clock_read_ns", "limit_set_bytes"};

bool setting_is_compared(const char *key)
{
	for (size_t i = 0; i < ARRAY_SIZE(not_compared); i++)
		if (strcmp(key, not_compared[i]) == 0)
			return false;
	return true;
}

char *setting_text(const json_t *value)
{
	if (!value)
		return strdup("none");
	if (json_is_string(value))
		return strdup(json_string_value(value));
	return json_line(value);
}

/* The first key of @a whose value in @b is another. */
static const char *first_difference(const json_t *a, const json_t *b)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)a, key, value) {
		const json_t *other = json_object_get(b, key);

		if (value == other || !setting_is_compared(key))
			continue;
		if (!other ? !json_is_null(value) : !json_equal(value, other))
			return key;
	}
	return NULL;
}

bool setting_differs(const json_t *a, const json_t *b, char **ret_key, char **ret_a, char **ret_b)
{
	const char *key;

	if (!a || !b || a == b)
		return false;
	key = first_difference(a, b);
	if (!key)
		key = first_difference(b, a);
	if (!key)
		return false;
	*ret_key = strdup(key);
	*ret_a = setting_text(json_object_get(a, key));
	*ret_b = setting_text(json_object_get(b, key));
	return true;
}
