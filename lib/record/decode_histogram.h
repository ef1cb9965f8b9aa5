/* SPDX-License-Identifier: MIT */
#ifndef RECORD_DECODE_HISTOGRAM_H
#define RECORD_DECODE_HISTOGRAM_H

#include <stdbool.h>

#include "base/message.h"
#include "record/json_scan.h"

struct record;

/* The histogram of a record, half of its text: @part into record->sparse, where its counts fit,
 * else into record->histogram. -EINVAL, without a message when it is no object; -ENOMEM. */
int decode_histogram(struct json_span text, bool part, struct record *record,
		     struct message *message);

#endif
