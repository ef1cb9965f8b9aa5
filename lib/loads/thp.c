/* SPDX-License-Identifier: MIT */
/*
 * Huge pages: 2 MiB mappings with MADV_HUGEPAGE, written whole, kept in a bounded window and
 * released oldest first. Consumes free huge blocks, so that reclaim and compaction have to make new
 * ones.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/page_fill.h"
#include "base/pace.h"
#include "base/proc.h"
#include "ops.h"

#define WINDOW_MOST_BYTES (UINT64_C(256) << 20)
#define BACK_OFF_NS (10 * NS_PER_MS)

enum { EXTRA_HITS, EXTRA_MISSES, EXTRA_FAILURES, EXTRA_WINDOW };

static const char *const thp_extras[] = {
	"thp_hits", "thp_misses", "map_failures", "=window_bytes", NULL,
};

static const struct claim thp_claims[] = {
	{
		.name = "the thp load got huge pages",
		.witness = "load_stats.thp.thp_hits",
		.reference = "load_stats.thp.ops",
		.test = CLAIM_RATIO_AT_LEAST,
		.bound = 0.5,
		.why = "most of its 2 MiB mappings fell back to small pages, so it consumed no huge blocks",
		.advice =
			"set /sys/kernel/mm/transparent_hugepage/enabled to madvise or always, or raise --limit",
		.failure = CLAIM_CASTS_DOUBT,
	},
	{.name = NULL},
};

struct region {
	void *mapping; /* twice the size, so that a whole aligned page lies inside */
};

struct thp {
	struct load *load;
	size_t huge_bytes, page_bytes;
	struct region *window; /* a ring; the slot to fill next holds the oldest */
	size_t slots, next;
	struct page_fill fill;
	struct random random;
};

/* An eighth of the limit or of what is available, 256 MiB at most. */
static uint64_t thp_default_budget(const struct load_settings *settings)
{
	uint64_t whole = settings->limit_bytes;

	if (!settings->in_memcg || whole == 0)
		whole = proc_available_bytes();
	return whole / 8 < WINDOW_MOST_BYTES ? whole / 8 : WINDOW_MOST_BYTES;
}

/* Size of a PMD huge page; -ENOTSUP where the kernel has none. */
static int huge_page_bytes(size_t *ret_bytes)
{
	int64_t bytes;

	if (machine_read_int64("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", &bytes) < 0)
		return -ENOTSUP;
	*ret_bytes = (size_t)bytes;
	return 0;
}

static int thp_check(const struct load_settings *settings, struct message *message)
{
	size_t bytes;

	if (huge_page_bytes(&bytes) < 0)
		return message_set(message, -ENOTSUP,
				   "thp load: this kernel has no transparent huge pages "
				   "(CONFIG_TRANSPARENT_HUGEPAGE)");
	return 0;
}

static long minor_faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_minflt : -1;
}

/*
 * Maps an aligned huge page and writes all of it. It was one huge page when one fault (not one a
 * small page, or one for each 64 KiB of a middling size) brought it in.
 */
static int thp_map(struct thp *thp, struct region *region)
{
	struct load_shared *shared = thp->load->shared;
	size_t span = 2 * thp->huge_bytes;
	char *mapping = mmap(NULL, span, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	char *aligned;
	long before;

	if (mapping == MAP_FAILED)
		return -errno;
	aligned = (char *)(((uintptr_t)mapping + thp->huge_bytes - 1) & ~(thp->huge_bytes - 1));
	madvise(aligned, thp->huge_bytes, MADV_HUGEPAGE);
	before = minor_faults();
	for (size_t at = 0; at < thp->huge_bytes; at += thp->page_bytes)
		*(volatile char *)(aligned + at) = 1;
	if (minor_faults() - before <= 1)
		atomic_fetch_add(&shared->extra[EXTRA_HITS], 1);
	else
		atomic_fetch_add(&shared->extra[EXTRA_MISSES], 1);
	/* It may be swapped out while in the window: zeros would be swapped for nothing. */
	page_fill_copy(&thp->fill, &thp->random, aligned, thp->huge_bytes);
	region->mapping = mapping;
	return 0;
}

static void thp_unmap(struct thp *thp, struct region *region)
{
	if (region->mapping)
		munmap(region->mapping, 2 * thp->huge_bytes);
	region->mapping = NULL;
}

static void thp_loop(struct thp *thp)
{
	struct load_shared *shared = thp->load->shared;
	struct pace pace;

	pace_start(&pace, 0);
	while (true) {
		bool filled = atomic_load(&shared->state) == LOAD_STEADY;
		struct region *region = &thp->window[thp->next];

		if (!pace_wait(&pace, &shared->stop))
			return;
		thp_unmap(thp, region);
		if (thp_map(thp, region) < 0) {
			atomic_fetch_add(&shared->extra[EXTRA_FAILURES], 1);
			pace_sleep_until(clock_now_ns() + BACK_OFF_NS, &shared->stop);
			continue;
		}
		atomic_fetch_add_explicit(&shared->ops, 1, memory_order_relaxed);
		atomic_fetch_add_explicit(&shared->bytes, thp->huge_bytes, memory_order_relaxed);
		thp->next = (thp->next + 1) % thp->slots;
		if (!filled && thp->next == 0) {
			atomic_store(&shared->state, LOAD_STEADY);
			pace_start(&pace, thp->load->settings.rate_per_s);
		}
	}
}

static int thp_run(struct load *load)
{
	struct thp *thp = calloc(1, sizeof(*thp));
	int error;

	if (!thp)
		return -ENOMEM;
	thp->load = load;
	thp->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	random_seed(&thp->random, load->settings.seed);
	page_fill_init(&thp->fill, random_next(&thp->random));
	error = huge_page_bytes(&thp->huge_bytes);
	if (error < 0)
		goto out;
	thp->slots = (size_t)(load->settings.budget_bytes / thp->huge_bytes);
	if (thp->slots == 0)
		thp->slots = 1;
	thp->window = calloc(thp->slots, sizeof(*thp->window));
	if (!thp->window) {
		error = -ENOMEM;
		goto out;
	}
	atomic_store(&load->shared->extra[EXTRA_WINDOW], thp->slots * thp->huge_bytes);
	thp_loop(thp);
	for (size_t i = 0; i < thp->slots; i++)
		thp_unmap(thp, &thp->window[i]);
out:
	free(thp->window);
	free(thp);
	return error;
}

const struct load_ops load_thp = {
	.name = "thp",
	.summary = "maps, writes and releases 2 MiB huge pages",
	.flags = LOAD_HOLDS_MEMORY,
	.extra_names = thp_extras,
	.claims = thp_claims,
	.default_budget = thp_default_budget,
	.check = thp_check,
	.run = thp_run,
};
