/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_RECORD_SCAN_H
#define HISTORY_RECORD_SCAN_H

#include <stdint.h>

#include "base/message.h"
#include "history/intern.h"
#include "history/reader.h"
#include "history/scan.h"

#define SCANNED_VALUES_MOST 256

/* Runs of one series say the same of it in the same text: what was made of that is kept. */
struct scan_memory {
	struct intern heads;		  /* texts of the members that make a series */
	char **bases;			  /* what was made of them, by number */
	size_t base_count, base_capacity; /* of bases */
};

/* What one line holds, as texts of a scratch area that the next line overwrites. */
struct scanned {
	char uuid[37], machine[64], kernel[256];
	enum run_state state;
	int64_t started_us;
	uint64_t content;
	const char *base; /* "machine, benchmark, arm, settings": fields of a series */
	struct {
		char name[64], unit[32], better[8];
		double value;
	} values[SCANNED_VALUES_MOST];
	size_t count;
	struct scan_memory memory; /* from line to line, all zero at first */
};

/*
 * -EINVAL with the reason; *ret_torn: the line ends in the middle of the record. @machine, when
 * not NULL, stands for the record's machine key. Ends with scanned_free(), in any case.
 */
int record_scan(const char *line, size_t size, const char *machine, struct scanned *ret_scanned,
		bool *ret_torn, struct message *message);
void scanned_free(struct scanned *scanned);

#endif
