/* SPDX-License-Identifier: MIT */
#ifndef REPORTS_HTML_INTERNAL_H
#define REPORTS_HTML_INTERNAL_H

#include <stdio.h>

#include "base/markup.h"
#include "compare/comparison.h"

/* Shared by html.c, html_picture.c and html_parts.c. */

/* A string of JSON, escaped. */
void html_escape_json(FILE *stream, const json_t *text);

/* Pictures as SVG within the page: every run a mark on a log (or linear) axis with median and
 * interval; the share of runs at or below a value. */
void html_picture_runs(FILE *stream, const struct comparison *comparison);
void html_picture_ecdf(FILE *stream, const struct comparison *comparison);

/* Environment, validity, causes, commands. */
void html_parts(FILE *stream, const struct comparison_report *report);

#endif
