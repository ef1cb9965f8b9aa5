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
