/* SPDX-License-Identifier: MIT */
#include "base/markup.h"

void markup_escape(FILE *stream, const char *text)
{
	for (; *text; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", stream);
			break;
		case '<':
			fputs("&lt;", stream);
			break;
		case '>':
			fputs("&gt;", stream);
			break;
		case '"':
			fputs("&quot;", stream);
			break;
		case '\n':
		case '\t':
			fputc(*text, stream);
			break;
		default:
			fputc((unsigned char)*text < 0x20 ? ' ' : *text, stream);
		}
	}
}
