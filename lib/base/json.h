/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSON_H
#define BASE_JSON_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"

/* Thin helpers over jansson. A number that does not exist is null, never NaN. */

json_t *json_number_or_null(double value);     /* NaN and infinities: null */
json_t *json_string_or_null(const char *text); /* NULL: null; bytes that are not UTF-8: U+FFFD */

/* Bytes of the UTF-8 character at @text (1 to 4), of which @left (1 or more) may be read; 0: none.
 */
size_t utf8_length(const char *text, size_t left);

/* Setters that take ownership of @value and survive NULL (out of memory) as -ENOMEM. */
int json_put(json_t *object, const char *key, json_t *value);

/* Lenient getters: the default when absent, null, or of another type. */
double json_get_number(const json_t *object, const char *key, double fallback);
int64_t json_get_int64(const json_t *object, const char *key, int64_t fallback);
const char *json_get_string(const json_t *object, const char *key, const char *fallback);

/* Walks "counters.vmstat.pgscan_anon"; NULL when a step is absent. Borrowed reference. */
json_t *json_at(const json_t *object, const char *dotted_path);

/* One line without a newline, keys in the order of insertion, reals with 17 digits trimmed; caller
 * frees. */
char *json_line(const json_t *value);

/* Reads a file ("-": standard input); -EINVAL with line and cause in @message. */
int json_read_file(const char *path, json_t **ret_value, struct message *message);

#endif
