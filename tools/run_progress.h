/* SPDX-License-Identifier: MIT */
#ifndef RUN_PROGRESS_H
#define RUN_PROGRESS_H

#include "experiment/run.h"

/* What "syslat run" says on standard error: one live line on a terminal, else a line a run. */
struct run_progress_printer {
	bool terminal;
	bool quiet;
	bool live; /* a live line stands there now */
};

void run_progress_init(struct run_progress_printer *printer, bool quiet);

/* Fills the callbacks; @printer must outlive them. */
void run_progress_events(struct run_progress_printer *printer, struct experiment_events *events);

/* Removes the live line, so that other text can follow. */
void run_progress_clear(struct run_progress_printer *printer);

/* "3 min 20 s", "1 h 5 min", "8.1 s"; returns @buffer. */
char *format_span(int64_t ns, char *buffer, size_t size);

#endif
