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

/*
 * One number at @text (which ends at @end) to the nearest double, ties to even. Returns the first
 * character after it, NULL when there is no finite decimal number: exponents are read, "nan",
 * "inf", hexadecimal and numbers too great for a double are not.
 */
const char *number_scan(const char *text, const char *end, double *ret_value);

/*
 * The same value for the most common line by far, in a few steps: up to eight digits, which a
 * point and up to eight more may follow, then '\n' and nothing else. Returns the start of the next
 * line; NULL for any other line, and where fewer than NUMBER_LINE_LEAST bytes are left.
 */
#define NUMBER_LINE_LEAST 24
const char *number_scan_line(const char *text, const char *end, double *ret_value);

#endif
