/* SPDX-License-Identifier: MIT */
#ifndef BASE_MARKUP_H
#define BASE_MARKUP_H

#include <stdio.h>

/* Text of users as text or attribute of HTML and XML. Control characters, which XML does not allow,
 * become blanks. */
void markup_escape(FILE *stream, const char *text);

#endif
