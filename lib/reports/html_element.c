/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/markup.h"
#include "reports/html_internal.h"

void html_element(FILE *stream, const char *tag, const char *text)
{
	if (!text)
		return;
	fprintf(stream, "<%s>", tag);
	markup_escape(stream, text);
	fprintf(stream, "</%.*s>\n", (int)strcspn(tag, " "), tag);
}

void html_elements(FILE *stream, const char *tag, const json_t *list)
{
	const json_t *text;
	size_t i;

	json_array_foreach (list, i, text)
		html_element(stream, tag,
			     json_is_string(text) ? json_string_value(text) : "no reason given");
}
