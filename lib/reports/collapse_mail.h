/* SPDX-License-Identifier: MIT */
#ifndef REPORTS_COLLAPSE_MAIL_H
#define REPORTS_COLLAPSE_MAIL_H

#include <stdio.h>

#include "record/record.h"

/*
 * The table of "mm/collapse: open-code collapse_single_pmd()" on linux-mm: one column a record of
 * thp_collapse, as plain text to post. @names: headings of the columns. -errno of the stream.
 */
int collapse_mail_print(FILE *stream, struct record *const *records, const char *const *names,
			size_t count);

#endif
