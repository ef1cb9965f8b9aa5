/* SPDX-License-Identifier: MIT */
#ifndef REPORTS_COMPARISON_FACTS_H
#define REPORTS_COMPARISON_FACTS_H

#include <stdio.h>

#include "compare/comparison.h"

/*
 * What a reader on a mailing list must know to judge the numbers, as sentences: the caller frees
 * them (NULL: nothing to say, or no memory).
 */
char *facts_command(const struct comparison_report *report);  /* "gem_syslatency -t 8 --load gem" */
char *facts_machine(const struct comparison_report *report);  /* CPU, memory, kernel */
char *facts_runs(const struct comparison_report *report);     /* how many, how long, which order */
char *facts_validity(const struct comparison_report *report); /* "48 runs: 46 valid, 2 suspect" */

/* Calls @write for each sentence on what the numbers cannot show. */
void facts_caveats(FILE *stream, const struct comparison_report *report,
		   void (*write)(FILE *stream, const char *text));

/* A record that stands for all in what arms share; NULL: plain files only. */
const struct record *facts_example(const struct comparison_report *report);

#endif
