/* SPDX-License-Identifier: MIT */
#ifndef RUN_PROGRAM_H
#define RUN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/message.h"
#include "record/record.h"

/* What programs that measure do alike around their one call. */

/*
 * Can @json (NULL, "-" or a file), $SYSLATENCY_RECORD and @others (NULL: not given) be written (a
 * pipe: does anyone read it)? To be told before measuring, not after. What had to be made for that
 * is removed again. -EINVAL: two results in one file; else -EIO.
 */
int program_check_outputs(const char *json, const char *const *others, size_t count,
			  struct message *message);

/*
 * First of all in main(): refuses an environment that cannot be meant (-EINVAL), and sees to a
 * stack that the program fits on. Where the limit is too small it is raised and the program
 * executed anew (@argv); -EPERM where that is not allowed.
 */
int program_begin(char **argv, struct message *message);

/* SIGPIPE and SIGXFSZ: what ends a write is told as its error, not a death. */
void program_survive_failed_writes(void);

/* SIGINT, SIGTERM, SIGHUP (unless nohup had it ignored): @handler; and the above. */
void program_catch_signals(void (*handler)(int number));

/* @when: NULL or "auto" (standard error is a terminal), "always", "never". */
bool program_wants_progress(const char *when);

/*
 * Puts the command line into the record, prints it by @print (not when @json is "-"; @data is its
 * own), writes it to @json and to $SYSLATENCY_RECORD, and sees that standard output took it. 0, or
 * -errno with @message.
 */
int program_finish(struct record *record, const char *json, int argc, char **argv,
		   int (*print)(const struct record *record, const void *data), const void *data,
		   struct message *message);

#endif
