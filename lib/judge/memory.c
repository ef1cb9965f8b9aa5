/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "judge/validity_internal.h"
#include "record/variant.h"

/* Thresholds; docs/method.md says why each is what it is. */
#define PINNED_SHARE 0.9      /* of the footprint that was asked for */
#define ON_LIST_LEAST 0.9     /* of the held pages, for the variants that take them off the LRU */
#define ON_LIST_MOST 0.1      /* of them, for the others */
#define VISIBLE_PAGES 4096    /* 16 MiB: less drowns in what others lock, the sampler among them */
#define ANON_SHARE 0.1	      /* of all pages scanned */
#define ZERO_LEAST_PAGES 1024 /* some zeros of other programs are swapped out in every run */
#define ZERO_SHARE 0.1	      /* of the swap-outs */
#define SWAP_FULL 0.98
#define THP_GOOD 0.9
#define THP_LEAST 0.5
#define LOAD_PRESSES (LOAD_HOLDS_MEMORY | LOAD_FILLS_CACHE)

/* Pages held, and how many of them were seen to join the two lists. */
struct observed {
	double pages, unevictable, mlocked;
	bool at_pin; /* the gem load looked right when it pinned */
};

static struct observed observe(const struct judgement *judgement)
{
	const json_t *view = judgement->view;
	struct observed observed = {
		.pages = view_load_number(view, "observed_pages"),
		.unevictable = view_load_number(view, "observed_unevictable_pages"),
		.mlocked = view_load_number(view, "observed_mlock_pages"),
	};

	observed.at_pin = observed.pages > 0 && !isnan(observed.unevictable);
	if (!observed.at_pin) {
		observed.pages = view_number_or(view, "derived.pinned_pages", 0);
		observed.unevictable = view_number(view, "derived.unevictable_pages");
		observed.mlocked = view_number(view, "derived.mlocked_pages");
	}
	return observed;
}

static void judge_mislabelled(struct record *record, const struct observed *observed,
			      double unevictable, double mlocked, const char *means)
{
	record_reason(
		record, VERDICT_INVALID,
		"not the variant \"%s\": of %.0f pages held, %.0f became unevictable and %.0f "
		"mlocked: %s; name what the kernel does with --variant, or choose --backend shm, "
		"which makes the variant itself",
		record->variant, observed->pages, unevictable, mlocked, means);
}

static void judge_variant_lists(const struct judgement *judgement, enum variant variant)
{
	struct record *record = judgement->record;
	struct observed observed = observe(judgement);
	double unevictable = observed.unevictable, mlocked = observed.mlocked, least;

	if (isnan(unevictable) || isnan(mlocked) || observed.pages < VISIBLE_PAGES) {
		record_reason(
			record, VERDICT_VALID,
			"not provable here: that pages are held as \"%s\" says: %s",
			record->variant,
			observed.pages < VISIBLE_PAGES
				? "less than 16 MiB is held, too little to see; add --footprint 64M "
				  "or more"
				: "this kernel counts no unevictable pages");
		return;
	}
	least = ON_LIST_LEAST * observed.pages;
	if (variant == VARIANT_STOCK) {
		if (unevictable > ON_LIST_MOST * observed.pages)
			judge_mislabelled(record, &observed, unevictable, mlocked,
					  mlocked >= least
						  ? "they are mlocked"
						  : "they are off the LRU, as with mapping");
		return;
	}
	/* A driver may take them off only when reclaim meets them: what the whole run saw counts
	 * too. */
	if (unevictable < least)
		unevictable = fmax(unevictable,
				   view_number_or(judgement->view, "derived.unevictable_pages", 0));
	if (unevictable < least)
		judge_mislabelled(record, &observed, unevictable, mlocked,
				  "they stayed on the LRU, as with stock");
	else if (variant == VARIANT_MLOCK && mlocked < least)
		judge_mislabelled(record, &observed, unevictable, mlocked,
				  "they are off the LRU without mlock, as with mapping");
	else if (variant == VARIANT_MAPPING && observed.at_pin &&
		 mlocked > ON_LIST_MOST * observed.pages)
		judge_mislabelled(record, &observed, unevictable, mlocked, "they are mlocked");
}

static void judge_baseline(const struct judgement *judgement)
{
	struct record *record = judgement->record;

	if (record->pinned_bytes > 0)
		record_reason(
			record, VERDICT_INVALID,
			"the baseline held %.0f MiB pinned: it must hold nothing; leave the gem "
			"load out or name the variant",
			(double)record->pinned_bytes / 1048576);
}

static void judge_footprint(const struct judgement *judgement)
{
	struct record *record = judgement->record;
	double footprint = view_number_or(judgement->view, "settings.footprint_bytes", 0);
	double pinned = record->pinned_bytes > 0 ? (double)record->pinned_bytes : 0;

	if (footprint > 0 && pinned < PINNED_SHARE * footprint)
		record_reason(
			record, VERDICT_INVALID,
			"the footprint was not pinned: %.0f MiB of the %.0f MiB asked for; raise "
			"--limit, lower --footprint, or see the notes for what the backend lacked",
			pinned / 1048576, footprint / 1048576);
}

/* The group was never at its limit: nothing in it had to be reclaimed, in no arm alike. */
static void judge_pressure(const struct judgement *judgement)
{
	struct record *record = judgement->record;
	double hits = view_number(judgement->view, "derived.limit_hits");

	if (!record->scope || strcmp(record->scope, "memcg") != 0 ||
	    !(judgement->subject->load_flags & LOAD_REACHES_LIMIT))
		return;
	if (isnan(hits))
		record_reason(record, VERDICT_VALID,
			      "not provable here: that the group was at its limit: its counters "
			      "cannot be read");
	else if (hits < 1)
		record_reason(
			record, VERDICT_INVALID,
			"the group's limit was never reached in the window: nothing was reclaimed; "
			"lower --limit or give the loads more memory");
}

static bool has_no_swap(const struct judgement *judgement)
{
	double swap = view_number(judgement->view, "counters.swap.total_bytes");

	if (isnan(swap))
		swap = view_number_or(judgement->view, "environment.swap_bytes", 0) +
		       view_number_or(judgement->view, "settings.swap_made_bytes", 0);
	return swap <= 0;
}

static const char *scan_advice(const struct judgement *judgement, double file)
{
	if (has_no_swap(judgement))
		return "there is no swap, so the kernel does not look at them; add --swap zram:4G";
	if (file > 0)
		return "page cache shielded them; lower --limit or add --load swap";
	return "memory was not short; lower --limit, add --load swap, or measure longer (-t)";
}

/*
 * /proc/vmstat counts the reclaim of every group. true: none of it was in the run's own, and that
 * is said.
 */
static bool reclaim_was_others(const struct judgement *judgement, double anon)
{
	double own = view_number(judgement->view, "derived.group_reclaim");

	if (isnan(own) || own >= 1 || anon <= 0)
		return false;
	record_reason(
		judgement->record, VERDICT_INVALID,
		"the anon lists of the run's group were not scanned: Δpgscan_anon %.0f is the "
		"machine's, a neighbour's reclaim; the group itself was not reclaimed (limit "
		"hit %.0f times, nothing scanned, swapped out or read back); %s",
		anon, view_number_or(judgement->view, "derived.limit_hits", 0),
		scan_advice(judgement, 0));
	return true;
}

static bool multi_generational(const struct judgement *judgement)
{
	const char *state = view_text(judgement->view, "environment.mglru");

	return state && (strtol(state, NULL, 0) & 1);
}

/* Before 5.8 scanned anonymous pages are not counted apart; swap-outs prove at least that some
 * were. */
static void judge_scan_unseen(const struct judgement *judgement)
{
	double swapped = view_number_or(judgement->view, "derived.swapped_out_pages", 0);

	if (swapped > 0)
		record_reason(
			judgement->record, VERDICT_VALID,
			"not provable here: that the anon lists were scanned whole: this kernel "
			"has no pgscan_anon (5.8 and later do); %.0f pages swapped out show that "
			"they were scanned in part",
			swapped);
	else if (has_no_swap(judgement))
		record_reason(
			judgement->record, VERDICT_INVALID,
			"the anon lists were not scanned: there is no swap, so the kernel does "
			"not look at them; add --swap zram:4G");
	else
		record_reason(
			judgement->record, VERDICT_VALID,
			"not provable here: that the anon lists were scanned: this kernel has no "
			"pgscan_anon (5.8 and later do) and nothing was swapped out");
}

/*
 * The question of the whole comparison is what reclaim does with the held pages: a run in which it
 * did not come by them shows nothing.
 */
static void judge_scan(const struct judgement *judgement, enum variant variant)
{
	struct record *record = judgement->record;
	double anon = view_number(judgement->view, "counters.vmstat.pgscan_anon");
	double file = view_number_or(judgement->view, "counters.vmstat.pgscan_file", 0);
	double pinned = view_number_or(judgement->view, "derived.pinned_pages", 0);
	double own = view_number(judgement->view, "counters.memcg.pgscan");

	if (isnan(anon)) {
		judge_scan_unseen(judgement);
		return;
	}
	if (reclaim_was_others(judgement, anon))
		return;
	/* v2 counts what was scanned in the group, anon and file together: no more was anon. */
	if (!isnan(own) && anon > own)
		anon = own;
	if (anon <= 0 ||
	    (variant == VARIANT_STOCK && !multi_generational(judgement) && anon < pinned))
		record_reason(
			record, VERDICT_INVALID,
			"the anon lists were not scanned%s: Δpgscan_anon %.0f for %.0f pinned "
			"pages; %s",
			anon > 0 ? " once whole" : "", anon, pinned,
			anon > 0 && !has_no_swap(judgement) && anon >= ANON_SHARE * (anon + file)
				? "measure longer (-t), or lower --footprint and --limit together"
				: scan_advice(judgement, file));
	else if (anon < ANON_SHARE * (anon + file))
		record_reason(
			record, VERDICT_INVALID,
			"the anon lists were hardly scanned: %.0f of %.0f pages scanned (%.1f%%, at "
			"least 10%% is wanted); %s",
			anon, anon + file, 100 * anon / (anon + file),
			scan_advice(judgement, file));
	if (variant == VARIANT_STOCK && multi_generational(judgement) && anon > 0)
		record_reason(
			record, VERDICT_VALID,
			"not provable here: that the pinned pages were scanned once whole: with "
			"MGLRU (lru_gen) pgscan counts isolated pages only; compare with MGLRU "
			"runs only");
}

/* A run that holds pages, or a baseline that stands for one. */
static bool is_about_held_pages(const struct judgement *judgement, enum variant variant)
{
	double footprint = view_number_or(judgement->view, "settings.footprint_bytes", 0);
	double nominal = view_number_or(judgement->view, "settings.limit_bytes", 0);
	double lowered = view_number_or(judgement->view, "counters.limit_set_bytes", nominal);

	if (variant == VARIANT_BASELINE)
		return lowered > 0 && lowered < nominal;
	return judgement->subject->load_flags & LOAD_HOLDS_BUFFERS &&
	       (footprint > 0 || judgement->subject->load_flags & LOAD_PRESSES);
}

static void judge_swap(const struct judgement *judgement)
{
	const json_t *view = judgement->view;
	double zero = view_number_or(view, "counters.vmstat.swpout_zero", 0);
	double all = view_number(view, "derived.swapped_out_pages");
	double total = view_number_or(view, "counters.swap.total_bytes", 0);
	double used = view_number_or(view, "counters.swap.used_bytes", 0);

	if (zero >= ZERO_LEAST_PAGES && zero >= ZERO_SHARE * all)
		record_reason(
			judgement->record, VERDICT_INVALID,
			"%.0f of %.0f swapped-out pages held zeros and cost no write: the swap was "
			"not exercised; fill the loads' memory (a foreign load?)",
			zero, all);
	if (total > 0 && used >= SWAP_FULL * total)
		record_reason(
			judgement->record, VERDICT_SUSPECT,
			"the swap was full at the end (%.0f of %.0f MiB): reclaim had nowhere to "
			"put pages; give more (--swap zram:SIZE) or load less",
			used / 1048576, total / 1048576);
}

/* Misses are partly the pressure's own doing: above half they change what is measured. */
static void judge_huge_pages(const struct judgement *judgement)
{
	struct record *record = judgement->record;
	double attempts = view_number(judgement->view, "derived.thp_attempts");
	double hits = view_number(judgement->view, "derived.thp_hits");
	const char *enabled = view_text(judgement->view, "environment.thp.enabled");
	bool never = enabled && strcmp(enabled, "never") == 0;

	if (!(judgement->subject->measure_flags & MEASURE_HUGE_PAGES) || attempts <= 0)
		return;
	if (isnan(attempts)) {
		record_reason(
			record, VERDICT_VALID,
			"not provable here: that the samples were huge pages: this kernel has no "
			"thp_fault_alloc");
		return;
	}
	if (hits >= THP_GOOD * attempts)
		return;
	record_reason(
		record, hits < THP_LEAST * attempts ? VERDICT_INVALID : VERDICT_SUSPECT,
		"%.0f of %.0f samples (%.1f%%) got a huge page, the others 512 small ones: %s",
		hits, attempts, 100 * hits / attempts,
		never ? "huge pages are off; echo madvise > "
			"/sys/kernel/mm/transparent_hugepage/enabled"
		      : "memory is fragmented or the group has no room for one; --reset compacts, a "
			"higher --limit gives room");
}

void judge_memory(const struct judgement *judgement)
{
	struct record *record = judgement->record;
	enum variant variant;

	judge_huge_pages(judgement);
	judge_swap(judgement);
	judge_pressure(judgement);
	if (!record->variant || variant_parse(record->variant, &variant) < 0)
		return;
	/* The footprint is asked of every arm alike; the baseline's limit is lowered instead. */
	if (variant == VARIANT_BASELINE)
		judge_baseline(judgement);
	else
		judge_footprint(judgement);
	if (variant != VARIANT_BASELINE && judgement->subject->load_flags & LOAD_HOLDS_BUFFERS &&
	    record->pinned_bytes > 0)
		judge_variant_lists(judgement, variant);
	if (is_about_held_pages(judgement, variant))
		judge_scan(judgement, variant);
}
