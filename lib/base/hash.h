/* SPDX-License-Identifier: MIT */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 64 bits that tell contents apart: blanks between tokens of JSON do not count when @blanks says
 * that there are any. Not for use against an adversary. */
uint64_t hash_json(const char *text, size_t size, bool blanks);

#endif
