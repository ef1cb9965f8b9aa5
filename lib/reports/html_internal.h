/* SPDX-License-Identifier: MIT */
#ifndef REPORTS_HTML_INTERNAL_H
#define REPORTS_HTML_INTERNAL_H

#include <stdio.h>

#include "base/markup.h"
#include "compare/comparison.h"

/* Shared by html.c, html_picture.c and html_parts.c. */

/* @tag, which may have attributes, around @text, escaped; NULL: nothing. */
void html_element(FILE *stream, const char *tag, const char *text);
/* One for each string of @list. */
void html_elements(FILE *stream, const char *tag, const json_t *list);

/* "max, us", escaped. */
void html_metric(FILE *stream, const struct comparison *comparison);

/* Pictures as SVG within the page: every run a mark on a log (or linear) axis with median and
 * interval; the share of runs at or below a value. */
void html_picture_runs(FILE *stream, const struct comparison *comparison);
void html_picture_ecdf(FILE *stream, const struct comparison *comparison);

/* Environment, validity, causes, commands. */
void html_parts(FILE *stream, const struct comparison_report *report);

#endif
