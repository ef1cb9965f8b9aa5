/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file.h"
#include "base/parse.h"
#include "collapse/state.h"

void collapse_region_free(struct collapse *collapse)
{
	thp_region_unmap(&collapse->region);
	collapse->state = REGION_NONE;
}

/* Makes the pages of [@memory, @memory + @bytes) exist, as large as the advice on it allows. */
static int populate(const struct collapse *collapse, char *memory, size_t bytes)
{
	while (madvise(memory, bytes, MADV_POPULATE_WRITE) < 0) {
		if (errno == EINTR || errno == EAGAIN)
			continue;
		if (errno != EINVAL) /* before Linux 5.14 */
			return -errno;
		collapse_touch(collapse, memory, bytes / collapse->page_bytes);
		break;
	}
	return 0;
}

static int make_huge(struct collapse *collapse)
{
	char *memory = collapse->region.memory;
	uint64_t huge_bytes;

	if (madvise(memory, collapse->bytes, MADV_HUGEPAGE) < 0)
		return -errno;
	for (uint64_t table = 0; table < collapse->tables; table++) {
		*(volatile char *)(memory + table * collapse->table_bytes) = 1;
		if (table % 256 == 0 && collapse_stopping(collapse))
			return -EINTR;
	}
	/* Where the fault found no free huge page, collapsing looks (and compacts) harder. */
	if (thp_mapped_bytes(memory, collapse->bytes, &huge_bytes) == 0 &&
	    huge_bytes < collapse->bytes) {
		populate(collapse, memory, collapse->bytes);
		madvise(memory, collapse->bytes, MADV_COLLAPSE);
	}
	return 0;
}

/* Small pages but for one of each table. The scan stops at a hole, so where it is decides how far
 * it walks. */
static int make_holes(struct collapse *collapse, uint64_t hole)
{
	char *memory = collapse->region.memory;
	size_t page_bytes = collapse->page_bytes;
	int error = 0;

	if (madvise(memory, collapse->bytes, MADV_NOHUGEPAGE) < 0)
		return -errno;
	for (uint64_t table = 0; table < collapse->tables && !error; table++) {
		char *at = memory + table * collapse->table_bytes;

		if (hole > 0)
			error = populate(collapse, at, hole * page_bytes);
		if (!error && hole + 1 < collapse->pages_per_table)
			error = populate(collapse, at + (hole + 1) * page_bytes,
					 (collapse->pages_per_table - hole - 1) * page_bytes);
		if (table % 256 == 0 && collapse_stopping(collapse))
			return -EINTR;
	}
	if (!error && madvise(memory, collapse->bytes, MADV_HUGEPAGE) < 0)
		error = -errno;
	return error;
}

static int make_unreferenced(struct collapse *collapse)
{
	char *memory = collapse->region.memory;
	int error;

	if (madvise(memory, collapse->bytes, MADV_NOHUGEPAGE) < 0)
		return -errno;
	error = populate(collapse, memory, collapse->bytes);
	/* Takes the marks of use off every page of ours. */
	if (!error)
		error = machine_write("/proc/self/clear_refs", "1");
	if (!error && madvise(memory, collapse->bytes, MADV_HUGEPAGE) < 0)
		error = -errno;
	return error;
}

static int make_state(struct collapse *collapse, enum region_state state)
{
	switch (state) {
	case REGION_NONE:
		return 0;
	case REGION_HUGE:
		return make_huge(collapse);
	case REGION_HOLE_FIRST:
		return make_holes(collapse, 0);
	case REGION_HOLE_MIDDLE:
		return make_holes(collapse, collapse->pages_per_table / 2);
	case REGION_HOLE_LAST:
		return make_holes(collapse, collapse->pages_per_table - 1);
	case REGION_UNREFERENCED:
		return make_unreferenced(collapse);
	case REGION_EMPTY:
		return madvise(collapse->region.memory, collapse->bytes, MADV_HUGEPAGE) < 0 ? -errno
											    : 0;
	}
	return -EINVAL;
}

int collapse_region(struct collapse *collapse, enum region_state state, struct message *why)
{
	char text[32];
	int error;

	if (state == collapse->state)
		return 0;
	collapse_region_free(collapse);
	if (state == REGION_NONE)
		return 0;
	collapse_progress(collapse, "run %u: laying out %s", collapse->run + 1,
			  format_size(collapse->bytes, text, sizeof(text)));
	error = thp_region_map(collapse->bytes, &collapse->region);
	if (!error)
		error = make_state(collapse, state);
	if (error) {
		collapse_region_free(collapse);
		return error == -EINTR ? error
				       : message_set_errno(
						 why, error, "cannot lay out the memory (%s)",
						 format_size(collapse->bytes, text, sizeof(text)));
	}
	collapse->state = state;
	return 0;
}

void collapse_region_check(struct collapse *collapse, const char *when)
{
	uint64_t huge_bytes, wanted = collapse->state == REGION_HUGE ? collapse->bytes : 0;

	if (collapse->state == REGION_NONE)
		return;
	if (thp_mapped_bytes(collapse->region.memory, collapse->bytes, &huge_bytes) < 0)
		collapse_break(collapse, "whether the memory is huge cannot be read %s", when);
	else if (huge_bytes != wanted)
		collapse_break(collapse,
			       "%" PRIu64 " of %" PRIu64 " tables are huge %s, %" PRIu64
			       " should be",
			       huge_bytes / collapse->table_bytes, collapse->tables, when,
			       wanted / collapse->table_bytes);
}
