/* SPDX-License-Identifier: MIT */
#ifndef COLLAPSE_BY_STATE_H
#define COLLAPSE_BY_STATE_H

#include "collapse/state.h"

/* How MADV_COLLAPSE finds a table. The first four must become huge pages. */
enum collapsed_state {
	COLLAPSED_SMALL,   /* all pages small */
	COLLAPSED_HALF,	   /* half of them */
	COLLAPSED_ONE,	   /* one */
	COLLAPSED_SWAPPED, /* all in swap */
	COLLAPSED_SHMEM,   /* of a memfd */
	COLLAPSED_FILE,	   /* of a file that is open for writing */
	COLLAPSED_NO_TABLE,
	COLLAPSED_UNALIGNED, /* a range that holds no whole table */
};

#endif
