/* SPDX-License-Identifier: MIT */
#ifndef EXPORTS_EXPORT_H
#define EXPORTS_EXPORT_H

#include <stdbool.h>
#include <stdio.h>

#include "compare/arms.h"
#include "ops.h"
#include "record/record.h"

/* What the formats share. */

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
