/* SPDX-License-Identifier: MIT */
#ifndef REPORTS_COMPARISON_WORDS_H
#define REPORTS_COMPARISON_WORDS_H

#include <stdio.h>

#include "compare/comparison.h"

/* Numbers and sentences that the text, mail and Markdown reports share. */

/* @value with up to 8 significant digits, fewer when it would be longer than @width; "-": none. */
char *words_number(double value, int width, char *buffer, size_t size);

/* "2e-25" from a natural logarithm, however small; "0.0079". */
char *words_probability(double log_p, char *buffer, size_t size);

/* "mapping is slower than tip: x1.95 [1.75, 2.13], P(slower) 0.86, p 2e-25". */
void words_verdict(FILE *stream, const struct comparison *comparison,
		   const struct comparison_pair *pair);

/* "Mann-Whitney, exact; p adjusted (Holm) over 3 comparisons; ..." : how the verdicts were made. */
void words_method(FILE *stream, const struct comparison *comparison);

/* The verdict of @pair, or (NULL) the method, then @end. Caller frees; NULL without memory. */
char *words_text(const struct comparison *comparison, const struct comparison_pair *pair,
		 const char *end);

/* Where the runs of an arm went: "12 runs, 3 left out: 2 invalid, 1 failed; 1 suspect". */
void words_runs(FILE *stream, const struct comparison_arm *arm);
/* Was any run of the arm left out or doubted? */
bool words_has_losses(const struct comparison_arm *arm);

/* "x baseline-mean.txt": what ministat calls the set. Caller frees. */
char *words_series(const struct comparison_report *report, const struct comparison *comparison,
		   size_t arm);

/* ministat's table; @cell: columns of a number (13 in ministat). */
void words_table(FILE *stream, const struct comparison *comparison, int cell);

/* Writes @text in lines of at most @width columns, each but the first after @indent blanks. */
void words_wrap(FILE *stream, const char *text, size_t width, size_t indent);

#endif
