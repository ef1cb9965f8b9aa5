/* SPDX-License-Identifier: MIT */
/*
 * Anonymous memory beyond what the group (or the machine) can hold, written page after page, round
 * and round: with least-recently-used reclaim every page has been swapped out when its turn comes
 * again, so each turn reads all of it in, and dirties and swaps out as much. That scans the
 * anonymous LRU, the list where pinned shmem pages of the "stock" variant sit.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/page_fill.h"
#include "base/pace.h"
#include "base/parse.h"
#include "base/proc.h"
#include "ops.h"
#include "sys/swap.h"

enum { EXTRA_PAGES, EXTRA_TURNS, EXTRA_FAULTS_MINOR, EXTRA_FAULTS_MAJOR, EXTRA_WORKING_SET };

static const char *const swap_extras[] = {
	"pages_touched", "turns", "minor_faults", "major_faults", "=working_set_pages", NULL,
};

static const struct claim swap_claims[] = {
	{
		.name = "swap is written",
		.witness = "counters.vmstat.pswpout",
		.test = CLAIM_AT_LEAST,
		.bound = 1024,
		.why = "nearly nothing was swapped out: memory was not short",
		.advice = "lower --limit, or give the load more: --load swap=SIZE",
		.own = "derived.group_swapped_pages",
		.own_least = 256,
	},
	{
		.name = "the anonymous LRU is scanned",
		.witness = "counters.vmstat.pgscan_anon",
		.test = CLAIM_AT_LEAST,
		.bound = 1024,
		.why = "reclaim did not look at anonymous pages, where the buffers' pages are",
		.advice = "make swap (--swap zram:SIZE) and lower --limit",
		.own = "derived.group_reclaim",
		.own_least = 1,
	},
	{
		/* pages of the footprint are scanned too, so this asks less than a full turn of
		   "stock" */
		.name = "reclaim went round the pages of the swap load",
		.witness = "counters.vmstat.pgscan_anon",
		.reference = "load_stats.swap.working_set_pages",
		.test = CLAIM_RATIO_AT_LEAST,
		.bound = 1,
		.why = "the window shows the start of reclaim, no steady state",
		.advice = "measure longer (-t), or make the limit and the load smaller",
		.failure = CLAIM_CASTS_DOUBT,
	},
	{.name = NULL},
};

/*
 * 1.4 times what the limit leaves beside the held buffers. Without a limit 0.6 of what is
 * available, which swaps only on a machine that is full already: give a size there.
 */
static uint64_t swap_default_budget(const struct load_settings *settings)
{
	uint64_t left = settings->limit_bytes;

	if (settings->in_memcg && left > 0) {
		if (settings->footprint_bytes < left)
			left -= settings->footprint_bytes;
		return (uint64_t)(1.4 * (double)left);
	}
	return proc_available_bytes() / 10 * 6;
}

/* Would it only be killed? Free swap must take what the limit cannot. */
static int swap_check_room(const struct load *load, uint64_t bytes)
{
	const struct load_settings *settings = &load->settings;
	uint64_t total, swap_free, excess;
	char have[24], want[24];
	int error = swap_total(&total, &swap_free);

	if (error < 0)
		return message_set_errno(&load->shared->message, error,
					 "swap load: cannot read /proc/swaps");
	if (settings->limit_bytes == 0 ||
	    bytes + settings->footprint_bytes <= settings->limit_bytes)
		return 0;
	excess = bytes + settings->footprint_bytes - settings->limit_bytes;
	if (swap_free >= excess)
		return 0;
	return message_set(&load->shared->message, -ENOTSUP,
			   "swap load: %s of swap is free and at least %s is needed: "
			   "use --swap zram:SIZE, or a smaller --load swap=SIZE",
			   format_size(swap_free, have, sizeof(have)),
			   format_size(excess, want, sizeof(want)));
}

static void swap_publish_faults(struct load_shared *shared)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) < 0)
		return;
	atomic_store_explicit(&shared->extra[EXTRA_FAULTS_MINOR], (uint64_t)usage.ru_minflt,
			      memory_order_relaxed);
	atomic_store_explicit(&shared->extra[EXTRA_FAULTS_MAJOR], (uint64_t)usage.ru_majflt,
			      memory_order_relaxed);
}

static void swap_count_page(struct load_shared *shared, size_t page_bytes)
{
	atomic_fetch_add_explicit(&shared->ops, 1, memory_order_relaxed);
	atomic_fetch_add_explicit(&shared->bytes, page_bytes, memory_order_relaxed);
	atomic_fetch_add_explicit(&shared->extra[EXTRA_PAGES], 1, memory_order_relaxed);
}

/* One turn over the memory; the first fills it, the later ones change one word a page. */
static void swap_turn(struct load *load, unsigned char *memory, size_t pages, size_t page_bytes,
		      const struct page_fill *fill, struct random *random, struct pace *pace)
{
	for (size_t i = 0; i < pages; i++) {
		unsigned char *page = memory + i * page_bytes;
		uint64_t word;

		if (fill) {
			if (load_stopping(load))
				return;
			page_fill_copy(fill, random, page, page_bytes);
		} else {
			if (!pace_wait(pace, &load->shared->stop))
				return;
			word = random_next(random);
			memcpy(page + page_bytes / 2, &word, sizeof(word));
		}
		swap_count_page(load->shared, page_bytes);
		if (i % 1024 == 0)
			swap_publish_faults(load->shared);
	}
}

static int swap_run(struct load *load)
{
	struct load_shared *shared = load->shared;
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	size_t pages = load->settings.budget_bytes / page_bytes;
	size_t bytes = pages * page_bytes;
	struct random random;
	struct page_fill fill;
	struct pace pace;
	unsigned char *memory;
	int error;

	if (pages == 0)
		return message_set(&shared->message, -EINVAL,
				   "swap load: a size below one page is no load");
	error = swap_check_room(load, bytes);
	if (error < 0)
		return error;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (memory == MAP_FAILED)
		return message_set_errno(&shared->message, -errno,
					 "swap load: cannot map its memory");
	/* The driver's pages are small; huge ones are split or swapped whole and would blur the
	 * scan counts. */
	madvise(memory, bytes, MADV_NOHUGEPAGE);
	random_seed(&random, load->settings.seed);
	page_fill_init(&fill, random_next(&random));
	atomic_store(&shared->extra[EXTRA_WORKING_SET], pages);

	pace_start(&pace, 0);
	swap_turn(load, memory, pages, page_bytes, &fill, &random, &pace);
	if (!load_stopping(load))
		atomic_store(&shared->state, LOAD_STEADY);
	pace_start(&pace, load->settings.rate_per_s);
	while (!load_stopping(load)) {
		swap_turn(load, memory, pages, page_bytes, NULL, &random, &pace);
		if (!load_stopping(load))
			atomic_fetch_add(&shared->extra[EXTRA_TURNS], 1);
	}
	swap_publish_faults(shared);
	munmap(memory, bytes);
	return 0;
}

const struct load_ops load_swap = {
	.name = "swap",
	.summary = "writes incompressible anonymous memory beyond the limit, so that it swaps",
	.flags = LOAD_HOLDS_MEMORY | LOAD_REACHES_LIMIT | LOAD_NEEDS_SWAP,
	.extra_names = swap_extras,
	.claims = swap_claims,
	.default_budget = swap_default_budget,
	.run = swap_run,
};
