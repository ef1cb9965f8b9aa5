/* SPDX-License-Identifier: MIT */
#ifndef RECORD_FIELDS_H
#define RECORD_FIELDS_H

#include <stddef.h>

/* The form of a record, written down once: decode.c, encode.c and metric.c follow these tables. */

enum field_kind {
	FIELD_SCHEMA,  /* RECORD_SCHEMA */
	FIELD_TEXT,    /* char * */
	FIELD_FIXED,   /* char[@size]; "" is null */
	FIELD_NUMBER,  /* double; NaN is null */
	FIELD_COUNT,   /* int64_t; below 0 is null */
	FIELD_TALLY,   /* uint64_t; null reads as 0 */
	FIELD_INT,     /* int, -1 or more */
	FIELD_US,      /* int64_t nanoseconds, microseconds in the JSON; @none is null */
	FIELD_REAL_US, /* the same as double; NaN is null */
	FIELD_BOOL,    /* bool */
	FIELD_POLICY,  /* const char * to a static name of a scheduling policy */
	FIELD_OBJECT,  /* json_t *, kept as it is */
	FIELD_ARRAY,   /* the same */
	FIELD_GROUP,   /* an object of @fields; null when all of them are null */
	FIELD_LATENCY, /* struct latency_summary; @size: offset of the bool that says it is there */
	FIELD_VERDICT, /* enum verdict */
	FIELD_LOADS,   /* char **, NULL-terminated */
	FIELD_CPUS,    /* per_cpu */
	FIELD_HISTOGRAM, /* histogram or sparse */
};

enum field_flags {
	FIELD_WANTED = 1 << 0,	 /* neither absent nor null */
	FIELD_EMPTY = 1 << 1,	 /* NULL is written as {} or [], not as null */
	FIELD_LEFT_OUT = 1 << 2, /* of records that are read in part: checked, not kept */
	FIELD_SHARED = 1 << 3,	 /* of records that are read in part: one value for all that say the
				    same, but for clock_read_ns */
};

struct field {
	const char *key;
	enum field_kind kind;
	size_t offset;
	unsigned int flags;
	size_t size;
	long long none;
	const struct field *fields;
	size_t field_count;
};

#define RECORD_FIELDS 38
extern const struct field record_fields[RECORD_FIELDS]; /* of struct record, in the file's order */
#define LATENCY_FIELDS 13
extern const struct field latency_fields[LATENCY_FIELDS]; /* of struct latency_summary */
#define CPU_FIELDS 9
extern const struct field cpu_fields[CPU_FIELDS]; /* of struct record_cpu */

#endif
