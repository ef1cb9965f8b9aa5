/* SPDX-License-Identifier: MIT */
#ifndef COMPARE_MINISTAT_H
#define COMPARE_MINISTAT_H

#include <stddef.h>

#include "base/message.h"
#include "compare_job.h"

/*
 * Hands the values of each metric to the installed ministat, its output to standard output: plain
 * files as they are, other arms (the runs that the table would take) and further columns as text
 * files in a folder of their own that is removed afterwards. -ENOTSUP: ministat is not installed,
 * or there are more than its 7 sets; -EIO: it failed.
 */
int ministat_run(const struct compare_job *job, size_t width, struct message *message);

#endif
