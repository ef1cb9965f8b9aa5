/* SPDX-License-Identifier: MIT */
#ifndef BASE_MESSAGE_H
#define BASE_MESSAGE_H

/*
 * One line for a person: what failed, why, and what to do. Library code fills it beside the -errno
 * that it returns; only a program prints it. Every function that takes a message accepts NULL.
 */
struct message {
	char text[512];
};

/* Sets the text and returns @error (a negative errno), so that "return message_set(...)" works. */
int message_set(struct message *message, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* As message_set, with ": <strerror(-error)>" appended. */
int message_set_errno(struct message *message, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds "; " and the text, whole, to what is there, of which the end goes where both do not fit. */
void message_add(struct message *message, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

#endif
