/* SPDX-License-Identifier: MIT */
#include "base/message.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int message_set(struct message *message, int error, const char *format, ...)
{
	va_list arguments;

	if (!message)
		return error;
	va_start(arguments, format);
	vsnprintf(message->text, sizeof(message->text), format, arguments);
	va_end(arguments);
	return error;
}

int message_set_errno(struct message *message, int error, const char *format, ...)
{
	va_list arguments;
	size_t length;

	if (!message)
		return error;
	va_start(arguments, format);
	vsnprintf(message->text, sizeof(message->text), format, arguments);
	va_end(arguments);
	length = strlen(message->text);
	snprintf(message->text + length, sizeof(message->text) - length, ": %s",
		 strerrordesc_np(-error) ? strerrordesc_np(-error) : "unknown error");
	return error;
}

void message_add(struct message *message, const char *format, ...)
{
	struct message added, before;
	va_list arguments;
	size_t room;

	if (!message)
		return;
	va_start(arguments, format);
	vsnprintf(added.text, sizeof(added.text), format, arguments);
	va_end(arguments);
	before = *message;
	room = sizeof(message->text) - 1 - strlen(added.text);
	if (before.text[0] && room > 2)
		snprintf(message->text, sizeof(message->text), "%.*s; %s", (int)room - 2,
			 before.text, added.text);
	else
		*message = added;
}
