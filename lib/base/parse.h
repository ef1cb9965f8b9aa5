/* SPDX-License-Identifier: MIT */
#ifndef BASE_PARSE_H
#define BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Text to numbers, without the locale, without silent truncation. Every parser but parse_number()
 * reads the whole text (leading or trailing blanks and rubbish are -EINVAL) and sets its result
 * only on success; a value that does not fit is -ERANGE.
 */

/* A size as typed: bytes, or a share of something known only later (50%). */
struct size_value {
	uint64_t bytes;
	double percent;
	bool is_percent;
};

int parse_int64(const char *text, int64_t minimum, int64_t maximum, int64_t *ret_value);

/*
 * The number at the start of @text, which ends at @end, to the nearest double, ties to even;
 * *ret_after: the first character behind it, for the caller to judge. -EINVAL: none; -ERANGE: too
 * great for a double. About 10 ns for up to 15 digits without an exponent.
 */
int parse_number(const char *text, const char *end, const char **ret_after, double *ret_value);

/* Finite decimal or exponent form with a point; "nan", "inf" and hexadecimal are -EINVAL. */
int parse_double(const char *text, double *ret_value);

/*
 * "250us", "1.5s", "2m"; units ns us ms s m h d. A bare number is in @bare_unit_ns.
 * Negative durations are -ERANGE unless @allow_negative.
 */
int parse_duration_ns(const char *text, int64_t bare_unit_ns, bool allow_negative, int64_t *ret_ns);

/* "1400M", "2G", "4096", "50%"; K M G T are powers of 1024; a share lies in (0, 100]. */
int parse_size(const char *text, struct size_value *ret_size);

/* Bytes of @size where a share is of @whole_bytes. */
uint64_t size_resolve(const struct size_value *size, uint64_t whole_bytes);

/* "1.5G", "512M", "4096": short text for people. Returns @buffer. */
char *format_size(uint64_t bytes, char *buffer, size_t size);

/* "17.3 us", "8.9 ms", "675 s": three significant digits. Returns @buffer. */
char *format_duration(int64_t ns, char *buffer, size_t size);

#endif
