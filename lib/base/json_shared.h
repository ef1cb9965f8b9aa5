/* SPDX-License-Identifier: MIT */
#ifndef BASE_JSON_SHARED_H
#define BASE_JSON_SHARED_H

#include <jansson.h>
#include <stddef.h>

/*
 * Values that come as the same text again and again (the environment of every run of one machine)
 * are built once. Any thread may ask; who gets a value must not change it.
 */
struct json_shared;

struct json_shared *json_shared_new(void); /* NULL without memory */
void json_shared_free(struct json_shared *shared);

/* The value of @text, a reference of the caller's own; NULL when it is no JSON, or without memory.
 * Beyond some tens of different texts the others are built anew each time. */
json_t *json_shared_get(struct json_shared *shared, const char *text, size_t size);

#endif
