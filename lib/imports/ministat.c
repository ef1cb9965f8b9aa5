/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "imports/import.h"

/* Plain numbers, one a line, as ministat takes them. */

static bool knows_values(const char *text)
{
	const char *after;
	double value;

	for (; *text; text += strcspn(text, "\n"), text += *text == '\n') {
		text += strspn(text, " \t\r");
		if (*text != '#' && *text != '\n' && *text)
			return parse_number(text, text + strlen(text), &after, &value) == 0;
	}
	return false;
}

static int read_values(const char *text, const struct import_settings *settings,
		       struct import_list *list, struct message *message)
{
	size_t line = 0;

	while (*text) {
		const char *end = text + strcspn(text, "\n"), *after;
		double value;

		line++;
		text += strspn(text, " \t\r");
		if (text < end && *text != '#') {
			struct record *record;

			if (parse_number(text, end, &after, &value) ||
			    (after < end && !strchr(" \t\r#", *after)))
				return message_set(message, -EINVAL,
						   "line %zu: \"%.*s\" is not a finite number",
						   line, (int)strcspn(text, " \t\r\n"), text);
			record = import_new(list, settings, "values");
			if (!record ||
			    import_metric(record, settings->metric ? settings->metric : "value",
					  value, settings->unit ? settings->unit : ""))
				return -ENOMEM;
		}
		text = *end ? end + 1 : end;
	}
	return 0;
}

const struct import_ops import_ministat = {
	.name = "ministat",
	.summary = "numbers, one a line",
	.knows = knows_values,
	.read = read_values,
};
