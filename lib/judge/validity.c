/* SPDX-License-Identifier: MIT */
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/json.h"
#include "judge/claim.h"
#include "judge/validity_internal.h"

static int put_number(json_t *object, const char *key, double value)
{
	return json_put(object, key, json_number_or_null(value));
}

/*
 * How far a level rose: the engine's own difference since before the loads, the most that the
 * series saw above its start, or the difference over the window; the largest of what there is.
 */
static double risen(const json_t *view, const char *level)
{
	static const char *const places[] = {"counters.risen_since_before_loads.%s",
					     "counters.vmstat.%s"};
	char path[96];
	double most = NAN;
	const json_t *points, *point;
	size_t i;

	for (i = 0; i < 2; i++) {
		const char *hole = strstr(places[i], "%s");

		snprintf(path, sizeof(path), "%.*s%s", (int)(hole - places[i]), places[i], level);
		most = fmax(most, view_number(view, path)); /* fmax passes over NaN */
	}
	snprintf(path, sizeof(path), "counters.series.%s", level);
	points = json_at(view, path);
	json_array_foreach (points, i, point) {
		double start = json_number_value(json_array_get(points, 0));

		if (json_is_number(point))
			most = fmax(most, json_number_value(point) - start);
	}
	return most;
}

/* Sum of those of @paths that exist; NaN when none does. */
static double sum_of_known(const json_t *view, const char *const *paths, size_t count)
{
	double sum = NAN;

	for (size_t i = 0; i < count; i++) {
		double value = view_number(view, paths[i]);

		if (!isnan(value))
			sum = (isnan(sum) ? 0 : sum) + fmax(value, 0);
	}
	return sum;
}

/*
 * What the run's own group shows of reclaim and of swap. v2 counts the pages scanned and, of late,
 * swapped out in each group. v1 counts neither: there a limit that was hit, a swap that grew and
 * pages that came back tell that something was reclaimed, not how much was looked at.
 */
static int derive_group(json_t *derived, const struct record *record, const json_t *view,
			double page_bytes)
{
	static const char *const signs[] = {
		"counters.memcg.limit_hits", "counters.memcg.workingset_refault_anon",
		"counters.memcg.workingset_refault_file", "counters.memcg.workingset_refault"};
	double reclaim = view_number(view, "counters.memcg.pgscan");
	double swapped = view_number(view, "counters.memcg.pswpout");
	double rise = view_number(view, "counters.memcg.swap_rise_bytes") / page_bytes;

	if (!record->scope || strcmp(record->scope, "memcg") != 0)
		return 0;
	if (isnan(reclaim)) {
		reclaim = sum_of_known(view, signs, ARRAY_SIZE(signs));
		if (!isnan(reclaim) && rise > 0)
			reclaim += rise;
	}
	/* Without refaults counted by kind a steady swap does not show: then it proves nothing. */
	if (isnan(swapped))
		swapped =
			fmax(rise, 0) + view_number(view, "counters.memcg.workingset_refault_anon");
	return put_number(derived, "group_reclaim", reclaim) |
	       put_number(derived, "group_swapped_pages", swapped);
}

static json_t *derive(const struct record *record, const json_t *view)
{
	double page_bytes = (double)sysconf(_SC_PAGESIZE), attempts, hits;
	double swapped = view_number(view, "counters.vmstat.pswpout");
	json_t *derived = json_object();
	int error;

	swapped += view_number_or(view, "counters.vmstat.swpout_zero", 0);
	hits = view_number(view, "counters.sampler.thp_hits");
	attempts = view_number(view, "counters.sampler.thp_hits+counters.sampler.thp_misses");
	if (isnan(attempts)) {
		hits = view_number(view, "counters.vmstat.thp_fault_alloc");
		attempts = hits + view_number(view, "counters.vmstat.thp_fault_fallback");
	}
	error = put_number(derived, "pinned_pages",
			   record->pinned_bytes < 0 ? NAN
						    : (double)record->pinned_bytes / page_bytes);
	error |= put_number(derived, "unevictable_pages", risen(view, "nr_unevictable"));
	error |= put_number(derived, "mlocked_pages", risen(view, "nr_mlock"));
	error |= put_number(
		derived, "scanned_pages",
		view_number(view, "counters.vmstat.pgscan_anon+counters.vmstat.pgscan_file"));
	error |= put_number(derived, "swapped_out_pages", swapped);
	error |= put_number(derived, "thp_attempts", attempts);
	error |= put_number(derived, "thp_hits", hits);
	error |= put_number(derived, "limit_hits", view_number(view, "counters.memcg.limit_hits"));
	error |= derive_group(derived, record, view, page_bytes);
	if (error) {
		json_decref(derived);
		return NULL;
	}
	return derived;
}

/* Last word of a path, as people know the counter; a sum keeps all. */
static const char *short_name(const char *path)
{
	const char *dot = strchr(path, '+') ? NULL : strrchr(path, '.');

	return dot ? dot + 1 : path;
}

static bool holds(const struct claim *claim, double witness, double reference)
{
	switch (claim->test) {
	case CLAIM_AT_LEAST:
		return witness >= claim->bound;
	case CLAIM_AT_MOST:
		return witness <= claim->bound;
	case CLAIM_RATIO_AT_LEAST:
		return witness >= claim->bound * reference;
	case CLAIM_RATIO_AT_MOST:
		return witness <= claim->bound * reference;
	}
	return true;
}

static void tell_failure(struct record *record, const struct claim *claim, const char *path,
			 double witness, double reference)
{
	bool ratio = claim->test == CLAIM_RATIO_AT_LEAST || claim->test == CLAIM_RATIO_AT_MOST;
	bool least = claim->test == CLAIM_AT_LEAST || claim->test == CLAIM_RATIO_AT_LEAST;
	char wanted[160];

	if (ratio)
		snprintf(wanted, sizeof(wanted), "%.6g x %s (%.10g)", claim->bound,
			 short_name(claim->reference), reference);
	else
		snprintf(wanted, sizeof(wanted), "%.10g", claim->bound);
	record_reason(record,
		      claim->failure == CLAIM_CASTS_DOUBT ? VERDICT_SUSPECT : VERDICT_INVALID,
		      "not so: %s: %s is %.10g, %s %s is wanted: %s; %s", claim->name,
		      short_name(path), witness, least ? "at least" : "at most", wanted,
		      claim->why ? claim->why : "", claim->advice ? claim->advice : "");
}

/* The witness is the machine's: was any of it in the run's own group? */
static void judge_own(const struct judgement *judgement, const struct claim *claim,
		      const char *path, double witness)
{
	double own = view_number(judgement->view, claim->own);

	if (isnan(own) || own >= claim->own_least)
		return;
	record_reason(judgement->record,
		      claim->failure == CLAIM_CASTS_DOUBT ? VERDICT_SUSPECT : VERDICT_INVALID,
		      "not so: %s: the machine's %s is %.10g, but the run's own group shows %.10g "
		      "(%s, at least %.10g is wanted): a neighbour was reclaimed; %s",
		      claim->name, short_name(path), witness, own, short_name(claim->own),
		      claim->own_least, claim->advice ? claim->advice : "");
}

static void judge_claim(const struct judgement *judgement, const struct claim *claim)
{
	bool ratio = claim->test == CLAIM_RATIO_AT_LEAST || claim->test == CLAIM_RATIO_AT_MOST;
	const char *path = claim->witness;
	double witness = view_number(judgement->view, path);
	double reference = ratio ? view_number(judgement->view, claim->reference) : 0;

	if (isnan(witness) && claim->fallback) {
		path = claim->fallback;
		witness = view_number(judgement->view, path);
	}
	if (isnan(witness) || isnan(reference)) {
		record_reason(judgement->record, VERDICT_VALID,
			      "not provable here: %s: this machine or record has no %s",
			      claim->name,
			      short_name(isnan(witness) ? claim->witness : claim->reference));
		return;
	}
	if (!holds(claim, witness, reference))
		tell_failure(judgement->record, claim, path, witness, reference);
	else if (claim->own)
		judge_own(judgement, claim, path, witness);
}

static bool counters_were_off(const struct judgement *judgement)
{
	const char *counters = view_text(judgement->view, "settings.counters");

	return counters && strcmp(counters, "off") == 0;
}

/* A run without a load claims nothing but its own sampling; one with a load proves nothing of it.
 */
static void judge_without_counters(const struct judgement *judgement)
{
	bool loaded = judgement->subject->loaded;

	record_reason(judgement->record, loaded ? VERDICT_INVALID : VERDICT_SUSPECT,
		      "the counters were off (--counters off): %s; that is for measuring what they "
		      "cost, and for nothing else: leave it out",
		      loaded ? "nothing proves what the loads did, or what else the machine did"
			     : "nothing proves that the machine was left alone");
}

void record_judge(struct record *record, const struct judge_subject *subject)
{
	json_t *view = record_to_json(record);
	struct judgement judgement = {.record = record, .view = view, .subject = subject};

	if (!view || json_put(view, "derived", derive(record, view))) {
		json_decref(view);
		record_reason(record, VERDICT_SUSPECT, "not judged: out of memory");
		return;
	}
	if (counters_were_off(&judgement)) {
		judge_sampler(&judgement);
		judge_without_counters(&judgement);
		json_decref(view);
		return;
	}
	/* In the order in which a reader wants them: what voids the run before what casts doubt. */
	judge_sampler(&judgement);
	judge_memory(&judgement);
	for (size_t i = 0; i < subject->claim_count; i++)
		judge_claim(&judgement, subject->claims[i]);
	judge_machine(&judgement);
	judge_results(&judgement);
	json_decref(view);
}
