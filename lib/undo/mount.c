/* SPDX-License-Identifier: MIT */
#include "undo/mount.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>

#include "base/file.h"
#include "undo/record.h"

enum tracefs_owner tracefs_owner(void)
{
	enum tracefs_owner owner = TRACEFS_NOT_MOUNTED;
	char *text, *at, *line;

	if (machine_read("/proc/self/mounts", &text, NULL) < 0)
		return owner;
	at = text;
	while ((line = strsep(&at, "\n"))) {
		char source[64], place[64];

		/* A longer source is not ours, a longer place is not the one. */
		if (sscanf(line, "%63s %63s", source, place) == 2 &&
		    strcmp(place, TRACEFS_PLACE) == 0)
			owner = strcmp(source, TRACEFS_SOURCE) == 0 ? TRACEFS_OURS : TRACEFS_OTHERS;
	}
	free(text);
	return owner;
}

int tracefs_mount(struct message *message)
{
	int error;

	if (tracefs_owner() == TRACEFS_OURS)
		return 0;
	if (tracefs_owner() == TRACEFS_OTHERS)
		return message_set(message, -EBUSY, "%s is mounted already", TRACEFS_PLACE);
	if (mount(TRACEFS_SOURCE, TRACEFS_PLACE, "tracefs", MS_NOSUID | MS_NODEV | MS_NOEXEC,
		  NULL) == 0)
		return 0;
	error = -errno;
	/* Another of our programs was quicker. */
	return tracefs_owner() == TRACEFS_OURS
		       ? 0
		       : message_set_errno(message, error, "cannot mount tracefs at %s",
					   TRACEFS_PLACE);
}
