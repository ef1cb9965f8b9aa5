/* SPDX-License-Identifier: MIT */
#ifndef COMPARE_VALUES_H
#define COMPARE_VALUES_H

#include <stddef.h>
#include <stdint.h>

#include "base/message.h"

/*
 * Plain text of numbers, one a line, as ministat reads it: columns parted by blanks or tabs, "#"
 * starts a comment, empty lines are skipped. Read in one pass through a small buffer, so a file
 * costs 8 bytes of memory a value and no more.
 */
struct values {
	double *values; /* in the order of the file; the caller frees it */
	size_t count;
	size_t longer_lines; /* lines that hold further columns, which were not read */
};

/*
 * @path "-": standard input. @column counts from 1. Every number is correctly rounded, whatever
 * the locale. -EINVAL with "FILE: line N: ..." for NaN, infinity, text, decimal commas, a missing
 * column; -ENODATA when there is no value at all; else as open(2) and read(2).
 */
int values_read(const char *path, unsigned int column, struct values *ret_values,
		struct message *message);

/* The same from an open descriptor, after the @head_size bytes at @head that were read from it
 * already; @name stands in messages. */
int values_read_fd(int fd, const char *name, unsigned int column, const char *head,
		   size_t head_size, struct values *ret_values, struct message *message);

#endif
