/* SPDX-License-Identifier: MIT */
#ifndef SYS_THP_H
#define SYS_THP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Size of a PMD-mapped huge page, bytes (2 MiB on x86-64); -ENOTSUP: a kernel without THP. */
int thp_page_bytes(uint64_t *ret_bytes);

enum thp_mode { THP_UNSUPPORTED, THP_NEVER, THP_MADVISE, THP_ALWAYS };

/*
 * What anonymous memory of the size of a PMD gets: /sys/kernel/mm/transparent_hugepage/enabled, and
 * since 6.8 hugepages-<size>kB/enabled, which may override it ("inherit" follows). A process may
 * forbid THP for itself all the same: thp_forbidden_here().
 */
enum thp_mode thp_mode(void);
bool thp_forbidden_here(void); /* prctl(PR_SET_THP_DISABLE), inherited by children */
/* What PR_GET_THP_DISABLE answers: forbidden whole? "Except advised" (3, Linux 6.18) is not. */
bool thp_answer_forbids(int answer);

/* One size that the kernel can give anonymous memory. */
struct thp_size {
	uint64_t bytes;
	char enabled[16]; /* "always", "inherit", "madvise", "never" */
};

/* Sizes of hugepages-*kB, smallest first, for the caller to free; *ret_count 0 before 6.8. */
int thp_sizes(struct thp_size **ret_sizes, size_t *ret_count);

/*
 * Private anonymous memory of whole huge pages, aligned to them, between PROT_NONE guards that keep
 * it a mapping of its own (no merging with neighbours, so that smaps tells about it alone).
 * Not populated; no madvise.
 */
struct thp_region {
	void *memory;
	size_t bytes;
	void *mapping; /* with the guards */
	size_t mapping_bytes;
};

/* @bytes is rounded up to huge pages; -ENOTSUP, -ENOMEM. */
int thp_region_map(size_t bytes, struct thp_region *ret_region);
void thp_region_unmap(struct thp_region *region); /* accepts a zeroed one */

/*
 * How much of [@memory, @memory + @bytes) of the caller is mapped by whole huge pages:
 * AnonHugePages of /proc/self/smaps. -ERANGE when a mapping crosses an end of the range, which
 * smaps cannot split.
 */
int thp_mapped_bytes(const void *memory, size_t bytes, uint64_t *ret_bytes);

#endif
