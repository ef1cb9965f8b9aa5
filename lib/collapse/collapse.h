/* SPDX-License-Identifier: MIT */
#ifndef COLLAPSE_COLLAPSE_H
#define COLLAPSE_COLLAPSE_H

#include <signal.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cpuset.h"
#include "base/message.h"
#include "base/parse.h"
#include "record/record.h"

/*
 * What huge pages cost: khugepaged's scan of memory that is already huge or that it refuses,
 * MADV_COLLAPSE by length and by state of the memory, page faults by size, and what all that does
 * to neighbours. One row is one measurement; all rows are repeated in each of several runs.
 */
#define COLLAPSE_SWEEP_MOST 16

struct collapse_settings {
	const char *arm;	/* NULL: none */
	struct size_value size; /* 0: 8 GiB, or what fits */
	int64_t window_ns;
	unsigned int runs;
	const char *rows; /* names of rows and groups, comma-separated; NULL: the group "mail" */
	uint64_t pages_to_scan[COLLAPSE_SWEEP_MOST];
	size_t sweep_count;
	const struct cpu_list *khugepaged_cpus; /* NULL: where it is */
	/* What is under way, for a person; NULL: none. */
	void (*progress)(void *data, const char *text);
	void *progress_data;
	const volatile sig_atomic_t *interrupted; /* NULL: never */
};

/* One row that can be asked for; the table ends with a NULL name. */
struct collapse_row_name {
	const char *name, *group, *summary;
};

size_t collapse_row_names(struct collapse_row_name *ret_names, size_t capacity);

/* Checks the names of @rows; -EINVAL with those that are known. */
int collapse_check_rows(const char *rows, struct message *message);

/*
 * Measures; everything changed on the machine is back when it returns. Rows that cannot be measured
 * here are notes "row NAME: n/a: why" of the record. -EINVAL: size; -ENOTSUP: no huge pages here;
 * -ENOMEM; -EINTR: stopped before the first row was done.
 */
int collapse_execute(const struct collapse_settings *settings, struct record **ret_record,
		     struct message *message);

#endif
