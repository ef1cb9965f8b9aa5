/* SPDX-License-Identifier: MIT */
#ifndef RECORD_SETTING_H
#define RECORD_SETTING_H

#include <jansson.h>
#include <stdbool.h>

/*
 * First setting in which two runs differ, what belongs to the arm (variant, the limit that follows
 * from it) or to chance (seed, cost of a clock read) left aside. The strings, which may be NULL
 * without memory, are the caller's to free. false: none, or one of them has no settings.
 */
bool setting_differs(const json_t *a, const json_t *b, char **ret_key, char **ret_a, char **ret_b);

/* Must this setting agree, or does it belong to the arm or to chance? */
bool setting_is_compared(const char *key);

/* A JSON value as a word for people; the caller frees it. */
char *setting_text(const json_t *value);

#endif
