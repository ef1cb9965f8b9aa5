/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

json_t *json_number_or_null(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

size_t utf8_length(const char *text, size_t left)
{
	const unsigned char *at = (const unsigned char *)text;
	size_t length = at[0] < 0x80   ? 1
			: at[0] < 0xc2 ? 0
			: at[0] < 0xe0 ? 2
			: at[0] < 0xf0 ? 3
			: at[0] < 0xf5 ? 4
				       : 0;

	for (size_t i = 1; i < length; i++)
		if (i >= left || (at[i] & 0xc0) != 0x80)
			return 0;
	if ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] > 0x9f) ||
	    (at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] > 0x8f))
		return 0;
	return length;
}

json_t *json_string_or_null(const char *text)
{
	json_t *value;
	char *clean, *to;

	if (!text)
		return json_null();
	value = json_string(text);
	if (value)
		return value;
	/* Not UTF-8 (a file name, a command's standard error): keep what can be kept. */
	clean = to = malloc(strlen(text) * 3 + 1);
	if (!clean)
		return NULL;
	for (const char *at = text; *at;) {
		size_t length = utf8_length(at, strnlen(at, 4));

		if (length == 0) {
			memcpy(to, "\xef\xbf\xbd", 3);
			to += 3;
			at++;
		} else {
			memcpy(to, at, length);
			to += length;
			at += length;
		}
	}
	*to = '\0';
	value = json_string(clean);
	free(clean);
	return value;
}

int json_put(json_t *object, const char *key, json_t *value)
{
	return json_object_set_new(object, key, value) == 0 ? 0 : -ENOMEM;
}

double json_get_number(const json_t *object, const char *key, double fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : fallback;
}

int64_t json_get_int64(const json_t *object, const char *key, int64_t fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_integer(value) ? json_integer_value(value) : fallback;
}

const char *json_get_string(const json_t *object, const char *key, const char *fallback)
{
	const json_t *value = json_object_get(object, key);

	return json_is_string(value) ? json_string_value(value) : fallback;
}

json_t *json_at(const json_t *object, const char *dotted_path)
{
	json_t *at = (json_t *)object;

	while (at && *dotted_path) {
		size_t length = strcspn(dotted_path, ".");
		char key[128];

		if (length >= sizeof(key))
			return NULL;
		memcpy(key, dotted_path, length);
		key[length] = '\0';
		at = json_object_get(at, key);
		dotted_path += length;
		if (*dotted_path == '.')
			dotted_path++;
	}
	return at;
}

char *json_line(const json_t *value)
{
	return json_dumps(value, JSON_COMPACT | JSON_REAL_PRECISION(15) | JSON_ENCODE_ANY);
}

int json_read_file(const char *path, json_t **ret_value, struct message *message)
{
	json_error_t parse_error;
	json_t *value;

	errno = 0;
	if (strcmp(path, "-") == 0)
		value = json_loadf(stdin, JSON_REJECT_DUPLICATES, &parse_error);
	else
		value = json_load_file(path, JSON_REJECT_DUPLICATES, &parse_error);
	if (value) {
		*ret_value = value;
		return 0;
	}
	if (parse_error.line < 0 && errno)
		return message_set_errno(message, -errno, "cannot read %s", path);
	return message_set(message, -EBADMSG, "%s is not JSON: line %d: %s", path, parse_error.line,
			   parse_error.text);
}
