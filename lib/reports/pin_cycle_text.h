/* SPDX-License-Identifier: MIT */
#ifndef REPORTS_PIN_CYCLE_TEXT_H
#define REPORTS_PIN_CYCLE_TEXT_H

#include <stdbool.h>
#include <stdio.h>

#include "record/record.h"

/*
 * A record of pin_cycle as tables: a row for each size and phase, a column for each way of holding
 * the pages; then what releasing costs one way more than another, with its interval. @details:
 * mean, p99 and processor time too. -errno of the stream.
 */
int pin_cycle_text_print(FILE *stream, const struct record *record, bool details);

#endif
