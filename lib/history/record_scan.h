/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_RECORD_SCAN_H
#define HISTORY_RECORD_SCAN_H

#include <stdint.h>

#include "base/message.h"
#include "history/reader.h"
#include "history/scan.h"

#define SCANNED_VALUES_MOST 256

/* What one line holds, as texts of a scratch area that the next line overwrites. */
struct scanned {
	char uuid[37], machine[64], kernel[256];
	enum run_state state;
	int64_t started_us;
	uint64_t content;
	char *base; /* "machine, benchmark, arm, settings": fields of a series; the caller frees */
	struct {
		char name[64], unit[32], better[8];
		double value;
	} values[SCANNED_VALUES_MOST];
	size_t count;
};

/*
 * -EINVAL with the reason; *ret_torn: the line ends in the middle of the record. @machine, when
 * not NULL, stands for the record's machine key. @ret must be freed with scanned_clear().
 */
int record_scan(const char *line, size_t size, const char *machine, struct scanned *ret_scanned,
		bool *ret_torn, struct message *message);
void scanned_clear(struct scanned *scanned);

#endif
