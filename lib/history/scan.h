/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_SCAN_H
#define HISTORY_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * A strict JSON scanner (RFC 8259) that builds nothing: a history needs a tenth of a record, and
 * building trees of all of it costs ten times as much. It finds where the members of an object
 * lie; what is wanted of them is then read with jansson.
 */
struct json_span {
	const char *text;
	size_t size;
};

/* One member: the key without its quotes and with its escapes as they stand. Nonzero ends the
 * scan and is returned. */
typedef int (*scan_member)(void *data, struct json_span key, struct json_span value);

/*
 * Walks the members of the one object in @text, which must hold nothing else but blanks. All of it
 * is checked, however deep (at most 64 levels): -EINVAL, with *ret_at (may be NULL) the offset of
 * the fault; @size when the text ends too early. *ret_blanks: blanks between tokens were seen.
 */
int scan_object(const char *text, size_t size, scan_member member, void *data, size_t *ret_at,
		bool *ret_blanks);

/* 64 bits that tell contents apart: blanks between tokens do not count when @blanks says that
 * there are any. Not for use against an adversary. */
uint64_t scan_hash(const char *text, size_t size, bool blanks);

#endif
