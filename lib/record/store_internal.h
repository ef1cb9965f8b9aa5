/* SPDX-License-Identifier: MIT */
#ifndef RECORD_STORE_INTERNAL_H
#define RECORD_STORE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/message.h"

struct record;

/*
 * One record from the text of one line. @whole false: what was counted and traced beside the
 * latencies (counters, causes, worst, thp_phases) is checked to be JSON and left out, which halves
 * the time. -EINVAL with the reason, -ENOMEM.
 */
int store_parse_line(const char *line, size_t size, bool whole, struct record **ret_record,
		     struct message *message);

#endif
