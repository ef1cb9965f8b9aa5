/* SPDX-License-Identifier: MIT */
#ifndef UNDO_INTERNAL_H
#define UNDO_INTERNAL_H

/* Shared by knob.c and knob_close.c. */
#include <signal.h>
#include <sys/types.h>

#include "undo/knob.h"
#include "undo/guardian.h"
#include "undo/journal.h"

struct knobs {
	struct guardian_line line;
	int directory_fd;
	int lock_fd; /* held by the guardian as well */
	pid_t guardian;
	const volatile sig_atomic_t *interrupted; /* NULL: nothing ends a wait */
	char journal_name[JOURNAL_NAME_BYTES];
};

#endif
