/* SPDX-License-Identifier: MIT */
/*
 * The neighbours' work: page faults, mmap, mprotect, wakeups, each a thousand times a second. A
 * deadline that passes while the one before is under way is missed, not made up for: a starved
 * writer shows as a rate below what was offered, beside its latencies.
 */
#include "collapse/beside.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"

#define SMALL_BYTES 65536

/* Pages that can be faulted before all must be dropped: not the first of each table. */
static uint64_t page_count(const struct collapse *collapse, const struct beside_memory *memory)
{
	return memory->faulted_bytes / collapse->table_bytes * (collapse->pages_per_table - 1);
}

static char *page_at(const struct collapse *collapse, char *from, uint64_t i)
{
	uint64_t per_table = collapse->pages_per_table - 1;

	return from + i / per_table * collapse->table_bytes +
	       (1 + i % per_table) * collapse->page_bytes;
}

/* Untimed: gives the pages back; their tables stay for the first page of each. */
static void drop_pages(const struct collapse *collapse, const struct beside_memory *memory,
		       char *from)
{
	for (uint64_t at = 0; at < memory->faulted_bytes; at += collapse->table_bytes)
		madvise(from + at + collapse->page_bytes,
			collapse->table_bytes - collapse->page_bytes, MADV_DONTNEED);
}

static int64_t time_fault(const struct collapse *collapse, struct beside_memory *memory, char *from,
			  uint64_t i)
{
	uint64_t pages = page_count(collapse, memory);
	int64_t begin_ns;

	if (i % pages == 0)
		drop_pages(collapse, memory, from);
	begin_ns = clock_now_ns();
	*(volatile char *)page_at(collapse, from, i % pages) = 1;
	return clock_now_ns() - begin_ns;
}

static int64_t time_map(void)
{
	int64_t begin_ns = clock_now_ns();
	void *mapped =
		mmap(NULL, SMALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mapped == MAP_FAILED)
		return -errno;
	munmap(mapped, SMALL_BYTES);
	return clock_now_ns() - begin_ns;
}

static int64_t time_protect(struct beside_memory *memory)
{
	int64_t begin_ns = clock_now_ns();

	if (mprotect(memory->other, SMALL_BYTES, PROT_READ) < 0 ||
	    mprotect(memory->other, SMALL_BYTES, PROT_READ | PROT_WRITE) < 0)
		return -errno;
	return clock_now_ns() - begin_ns;
}

static int64_t time_work(const struct collapse *collapse, enum beside_work work,
			 struct beside_memory *memory, uint64_t i)
{
	switch (work) {
	case BESIDE_FAULT_SAME:
		return time_fault(collapse, memory, memory->faulted, i);
	case BESIDE_FAULT_OTHER:
		return time_fault(collapse, memory, memory->other, i);
	case BESIDE_MAP:
		return time_map();
	case BESIDE_PROTECT:
		return time_protect(memory);
	default:
		return -EINVAL;
	}
}

int beside_do(const struct collapse *collapse, enum beside_work work, struct beside_memory *memory,
	      int64_t ns, struct beside_result *result)
{
	const int64_t period_ns = NS_PER_S / BESIDE_RATE_PER_S;
	int64_t begin_ns, due_ns, now_ns, took_ns;

	result->count = result->missed = 0;
	result->offered = (uint64_t)(ns / period_ns);
	/* The kernel may else put wakeups off by 50 us. */
	prctl(PR_SET_TIMERSLACK, 1);
	begin_ns = due_ns = clock_now_ns();
	while ((due_ns += period_ns) - begin_ns <= ns && result->count < BESIDE_SAMPLES_MOST) {
		clock_sleep_until(due_ns);
		now_ns = clock_now_ns();
		took_ns = work == BESIDE_WAKEUP ? now_ns - due_ns
						: time_work(collapse, work, memory, result->count);
		if (work != BESIDE_WAKEUP && took_ns < 0)
			return (int)took_ns;
		result->values[result->count++] = (double)took_ns - collapse->clock_cost_ns;
		now_ns = clock_now_ns();
		if (now_ns > due_ns + period_ns) {
			uint64_t missed = (uint64_t)((now_ns - due_ns) / period_ns);

			result->missed += missed;
			due_ns += (int64_t)missed * period_ns;
		}
		if (collapse_stopping(collapse))
			return -EINTR;
	}
	return 0;
}
