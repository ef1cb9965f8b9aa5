/* SPDX-License-Identifier: MIT */
#ifndef RECORD_STORE_INTERNAL_H
#define RECORD_STORE_INTERNAL_H

#include <stddef.h>

#include "base/message.h"

struct json_shared;
struct record;

/*
 * One record from the text of one line. With @shared it is read in a fifth of the time: what was
 * counted and traced beside the latencies (counters, causes, worst, thp_phases) is checked to be
 * JSON and left out, and environment, settings and command are one and the same value in all
 * records where they are the same text but for clock_read_ns, which is null then. -EINVAL with the
 * reason, -ENOMEM.
 */
int store_parse_line(const char *line, size_t size, struct json_shared *shared,
		     struct record **ret_record, struct message *message);

#endif
