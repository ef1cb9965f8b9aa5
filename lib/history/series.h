/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_SERIES_H
#define HISTORY_SERIES_H

struct record;

/* The fields "machine, benchmark, arm, settings" of a series (history/reader.h), each followed by
 * RUN_FIELD; the caller frees it. -ENOMEM. */
int series_base(const struct record *record, const char *machine, char **ret_base);

#endif
