/* SPDX-License-Identifier: MIT */
#ifndef RECORD_STORE_H
#define RECORD_STORE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/message.h"

struct record;

/* An experiment's folder: experiment.json, runs.jsonl, <arm>-mean.txt, <arm>-max.txt. */

/* Appends one line and syncs it. A torn last line left by a kill is cut off first (and told). */
int store_append(const char *directory, const struct record *record, struct message *message);

/*
 * All records of a runs.jsonl (or of a single record file, or "-"). A torn last line is dropped and
 * told in *ret_torn; any other bad line is -EINVAL with its number.
 */
int store_read(const char *path, struct record ***ret_records, size_t *ret_count, bool *ret_torn,
	       struct message *message);
/* The same; @whole false: counters, causes, worst and phases may be left out, and environment,
 * settings and command be shared between records, without their clock_read_ns, for speed. */
int store_read_part(const char *path, bool whole, struct record ***ret_records, size_t *ret_count,
		    bool *ret_torn, struct message *message);
/* The same from an open descriptor, after the @head_size bytes at @head that were read from it
 * already; @name stands in messages. */
int store_read_fd(int fd, const char *name, const char *head, size_t head_size, bool whole,
		  struct record ***ret_records, size_t *ret_count, bool *ret_torn,
		  struct message *message);
void store_free(struct record **records, size_t count);

/* Writes <arm>-mean.txt and <arm>-max.txt anew from the records (invalid and failed runs left out).
 */
int store_write_text(const char *directory, struct record *const *records, size_t count,
		     struct message *message);

#endif
