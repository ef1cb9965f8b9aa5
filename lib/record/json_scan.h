/* SPDX-License-Identifier: MIT */
#ifndef RECORD_JSON_SCAN_H
#define RECORD_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The one way in for records: a strict JSON scanner (RFC 8259, valid UTF-8, numbers that fit
 * int64_t or a double, at most 64 levels) that builds nothing. A tree of all of a record costs ten
 * times as much as it takes to find what is wanted of it. Why no library: docs/dependencies.md.
 */
#define JSON_BLANKS " \t\n\r"

struct json_span {
	const char *text;
	size_t size;
};

/* A walk through the members of an object or the elements of an array; every value is checked in
 * full, however deep, before it is given out. */
struct json_walk {
	const char *at, *end; /* @at of a walk that failed: the byte of the fault, or the end */
	char close;	      /* bracket that ends it */
	bool started;
	bool blanks; /* there were blanks between tokens */
};

/* -EINVAL: neither an object nor an array. Blanks around it are taken. */
int json_walk_open(struct json_walk *walk, struct json_span text);

/*
 * 1: the next value (@ret_key: without quotes, escapes as they stand; empty in an array). 0: the
 * end, and nothing but blanks behind it. -EINVAL: not JSON.
 */
int json_walk_next(struct json_walk *walk, struct json_span *ret_key, struct json_span *ret_value);

bool json_span_is(struct json_span span, const char *text);

/* Of spans that a walk gave out. -EINVAL: of another type (or too great); -ENOMEM. */
int json_span_text(struct json_span span, char **ret_text); /* the caller frees it */
int json_span_number(struct json_span span, double *ret_value);
int json_span_integer(struct json_span span, int64_t *ret_value);

#endif
