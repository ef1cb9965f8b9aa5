/* SPDX-License-Identifier: MIT */
#ifndef COMPARE_ARMS_H
#define COMPARE_ARMS_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/message.h"
#include "compare/values.h"

struct record;

/* What is compared: each arm holds runs (records) or plain values. */
struct arm {
	char *name;
	size_t source;		 /* which of the set's sources it came from */
	struct record **records; /* in order of time; the records belong to the source */
	size_t record_count;
	double *values; /* plain values; NULL when the arm has records */
	size_t value_count;
	bool sorted; /* no longer in the order of the file: ascending (comparison_make) */
};

/* One operand: a folder of an experiment, records, or plain numbers. */
struct arm_source {
	char *path;   /* as given; "-": standard input */
	char *label;  /* NAME of NAME=PATH; NULL: none */
	bool folder;  /* a folder of an experiment */
	bool plain;   /* numbers, not records */
	json_t *plan; /* experiment.json; NULL: none */
	struct record **records;
	size_t record_count;
	struct values values; /* plain: until an arm takes them */
	bool torn;	      /* a last line was dropped */
};

struct arm_set {
	struct arm_source *sources;
	size_t source_count;
	struct arm *arms;
	size_t count;
	char *plain_metric; /* what the names of plain files say ("mean"); "value" when nothing */
	json_t *notes;	    /* array of strings: what the user should know about the input */
};

/*
 * Reads every operand: a folder with runs.jsonl, a record or a file of records, a file of numbers
 * (one a line), "-" for standard input, each optionally as NAME=PATH. Arms come in the order of
 * the operands, within a folder in that of experiment.json (else: baseline, stock, mapping,
 * mlock, then as they first appear). Equal names are told apart by their source; names of plain
 * files lose what they have in common ("-mean.txt"). @column: of plain files, from 1. -EINVAL: the
 * operands are wrong; -EBADMSG, -ENODATA: what a file holds.
 */
int arm_set_read(char *const *operands, size_t count, unsigned int column, struct arm_set **ret_set,
		 struct message *message);
/* The same; @whole false: records may lack what store_read_part() leaves out. */
int arm_set_read_part(char *const *operands, size_t count, unsigned int column, bool whole,
		      struct arm_set **ret_set, struct message *message);
void arm_set_free(struct arm_set *set);

/* Index of the arm called @name; -ENOENT. */
int arm_set_find(const struct arm_set *set, const char *name);

/* Does any arm hold records, plain values? */
bool arm_set_has_records(const struct arm_set *set);
bool arm_set_has_plain(const struct arm_set *set);

#endif
