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

/* Where a record stood; the text lives until the call returns. */
struct store_line {
	const char *text;
	size_t size, number;
	bool open;   /* the last, without its newline */
	bool blanks; /* between tokens */
};

/* Gets one record and owns it. Nonzero ends the reading and is returned. */
typedef int (*store_take)(void *data, struct record *record, const struct store_line *line);

/*
 * Every record of a runs.jsonl (or of its folder, of a file of one record, or "-") in order, a few
 * megabytes of text at a time. A last line without its newline that is no record was torn by a
 * kill: its number in *ret_torn, else 0. Any other bad line is -EINVAL with its number. @whole
 * false: record_from_text() in part.
 */
int store_each(const char *path, bool whole, store_take take, void *data, size_t *ret_torn,
	       struct message *message);
/* The same from an open descriptor, after the @head_size bytes at @head that were read from it
 * already; @name stands in messages. */
int store_each_fd(int fd, const char *name, const char *head, size_t head_size, bool whole,
		  store_take take, void *data, size_t *ret_torn, struct message *message);

/* The same as an array, which store_free() frees; @ret_torn may be NULL. */
int store_read(const char *path, struct record ***ret_records, size_t *ret_count, bool *ret_torn,
	       struct message *message);
int store_read_part(const char *path, bool whole, struct record ***ret_records, size_t *ret_count,
		    bool *ret_torn, struct message *message);
int store_read_fd(int fd, const char *name, const char *head, size_t head_size, bool whole,
		  struct record ***ret_records, size_t *ret_count, bool *ret_torn,
		  struct message *message);
void store_free(struct record **records, size_t count);

/* Writes <arm>-mean.txt and <arm>-max.txt anew from the records (of runs that count).
 */
int store_write_text(const char *directory, struct record *const *records, size_t count,
		     struct message *message);

#endif
