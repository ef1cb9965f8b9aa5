/* SPDX-License-Identifier: MIT */
#ifndef REPORTS_COMPARISON_PARTS_H
#define REPORTS_COMPARISON_PARTS_H

#include <jansson.h>
#include <stdio.h>

#include "compare/comparison.h"

/* Parts that the text, mail and Markdown reports share. @cell: columns of a number in a table. */
int comparison_write_plot(FILE *stream, const struct comparison_report *report,
			  const struct comparison *comparison, int cell);
int comparison_write_samples(FILE *stream, const struct comparison_report *report, int cell);
void comparison_write_normalised(FILE *stream, const struct comparison_report *report,
				 const struct comparison *comparison);
void comparison_write_losses(FILE *stream, const struct comparison_report *report);
void comparison_write_list(FILE *stream, const json_t *list, const char *heading, size_t most);

#endif
