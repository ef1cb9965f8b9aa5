/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_EXPORT_H
#define HISTORY_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "base/message.h"
#include "compare/arms.h"
#include "record/record.h"

/* Records in the formats of others: each is one file, export_<name>.c, and a line of the table. */
struct export_settings {
	const char *const *metrics; /* NULL-terminated: of formats that take some; never empty */
	const char *commit;	    /* NULL: as the kernel's release tells */
	const char *branch, *origin;
	bool include_invalid;
};

struct export_ops {
	const char *name, *summary;
	/* -EINVAL: cannot be said in this format, with the reason. */
	int (*write)(FILE *stream, const struct arm_set *set,
		     const struct export_settings *settings, struct message *message);
};

extern const struct export_ops export_csv, export_ministat, export_gobench, export_kcidb,
	export_otava;
extern const struct export_ops *const exports[]; /* NULL-terminated */
const struct export_ops *export_find(const char *name);

/* --- for the formats --- */

/* Does the run go out? Failed and interrupted ones do not, invalid ones when asked for. */
bool export_takes(const struct record *record, const struct export_settings *settings);
const char *export_kernel(const struct record *record); /* "" when not known */
/* Given, or from the kernel's release; @buffer of 256 bytes. */
const char *export_commit(const struct record *record, const struct export_settings *settings,
			  char *buffer);
/* RFC 4180: quoted where it must be. */
void export_csv_field(FILE *stream, const char *text);
/* Shortest form that reads back as the same number; nothing for NaN. */
void export_number(FILE *stream, double value);

#endif
