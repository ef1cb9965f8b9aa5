/* SPDX-License-Identifier: MIT */
/* /proc/vmstat counts the reclaim of all groups: what a neighbour's shows is not the run's. */
#include "clean_run.h"

#include "ops.h"

/* Load that has pages to hold, and none that judge_pressure() would look at. */
#define STOCK "loads.1=\"thp\";"
#define MAPPING STOCK "variant=\"mapping\"; load_stats.gem.observed_unevictable_pages=262144;"
/* A v1 group that was left alone: its counters are there, and none moved. */
#define LEFT_ALONE                                                               \
	"counters.memcg.limit_hits=0; counters.memcg.workingset_refault_anon=0;" \
	"counters.memcg.workingset_refault_file=0; counters.memcg.swap_rise_bytes=0;"
#define NEIGHBOUR                                                                             \
	"Δpgscan_anon 980000 is the machine's, a neighbour's reclaim; the group itself was " \
	"not reclaimed (limit hit 0 times"

static const struct judged rows[] = {
	{"stock", STOCK, VERDICT_VALID},
	{"mapping", MAPPING, VERDICT_VALID},
	{"a neighbour's reclaim", STOCK LEFT_ALONE, VERDICT_INVALID, NEIGHBOUR},
	{"a neighbour's reclaim, mapping", MAPPING LEFT_ALONE, VERDICT_INVALID, NEIGHBOUR},
	/* and the advice is the one for a group that was not short */
	{"advice", STOCK LEFT_ALONE, VERDICT_INVALID, "memory was not short; lower --limit"},

	/* Each sign by itself is one: the limit, swap, pages that came back. */
	{"limit hit", STOCK LEFT_ALONE "counters.memcg.limit_hits=40960", VERDICT_VALID},
	{"anonymous pages came back",
	 STOCK LEFT_ALONE "counters.memcg.workingset_refault_anon=40960", VERDICT_VALID},
	{"file pages came back", STOCK LEFT_ALONE "counters.memcg.workingset_refault_file=40960",
	 VERDICT_VALID},
	{"swap grew", STOCK LEFT_ALONE "counters.memcg.swap_rise_bytes=40960", VERDICT_VALID},
	{"swap that shrank is no sign", STOCK LEFT_ALONE "counters.memcg.swap_rise_bytes=-40960",
	 VERDICT_INVALID, "a neighbour's reclaim"},
	/* nothing known of the group: nothing is held against it */
	{"unknown group", STOCK "-counters.memcg", VERDICT_VALID},
	/* in machine scope the machine's counters are the run's */
	{"machine scope", STOCK LEFT_ALONE "scope=\"machine\"", VERDICT_VALID},

	/* v2 counts the pages that were scanned in the group. */
	{"v2, one whole pass", STOCK LEFT_ALONE "counters.memcg.pgscan=262144", VERDICT_VALID},
	{"v2, less than one", STOCK "counters.memcg.pgscan=262143", VERDICT_INVALID,
	 "once whole: Δpgscan_anon 262143 for 262144 pinned pages"},
	{"v2, a neighbour's", STOCK "counters.memcg.pgscan=0", VERDICT_INVALID,
	 "a neighbour's reclaim"},
};

static const struct claim *claim_of(const char *load, const char *name)
{
	const struct claim *claim = load_find(load)->claims;

	while (claim->name && strcmp(claim->name, name) != 0)
		claim++;
	assert_non_null(claim->name);
	return claim;
}

/* Of the machine's swap-outs some must be the group's. */
static void test_swap_of_a_neighbour(void **state)
{
	const struct claim *claim = claim_of("swap", "swap is written");

	expect_with(changed_run("counters.memcg.workingset_refault_anon=0;"
				"counters.memcg.swap_rise_bytes=1044480"),
		    claim, VERDICT_INVALID, "pswpout is 150000, but the run's own group shows 255");
	/* a steady swap: what goes out has come in */
	expect_with(changed_run("counters.memcg.workingset_refault_anon=256;"
				"counters.memcg.swap_rise_bytes=-4096000"),
		    claim, VERDICT_VALID, NULL);
	/* a kernel that does not count refaults by kind cannot tell */
	expect_with(changed_run("counters.memcg.swap_rise_bytes=0"), claim, VERDICT_VALID, NULL);
	/* where v2 counts it, it is what counts */
	expect_with(changed_run("counters.memcg.workingset_refault_anon=5000;"
				"counters.memcg.swap_rise_bytes=4096000;counters.memcg.pswpout=3"),
		    claim, VERDICT_INVALID, "own group shows 3");
}

/* Every claim of a load that rests on the machine's reclaim or swap asks the group as well. */
static void test_claims_name_their_own_witness(void **state)
{
	size_t found = 0;

	for (size_t i = 0; loads[i]; i++)
		for (const struct claim *claim = loads[i]->claims; claim && claim->name; claim++) {
			if (strstr(claim->witness, "vmstat.") == NULL ||
			    claim->test == CLAIM_RATIO_AT_LEAST)
				continue;
			found++;
			if (!claim->own)
				fail_msg("%s: %s rests on the machine's %s alone", loads[i]->name,
					 claim->name, claim->witness);
		}
	assert_true(found >= 3);
}

static void test_page_cache_of_a_neighbour(void **state)
{
	const struct claim *claim = claim_of("file-cache", "the page cache is under pressure");

	expect_with(changed_run("counters.vmstat.pgscan_file=100000"), claim, VERDICT_VALID, NULL);
	expect_with(changed_run(LEFT_ALONE "counters.vmstat.pgscan_file=100000;"
					   "counters.vmstat.pgscan_anon=1000000"),
		    claim, VERDICT_INVALID, /* of the held pages; the claim itself: */
		    "pgscan_file is 100000, but the run's own group shows 0");
}

int main(void)
{
	const struct CMUnitTest more[] = {
		cmocka_unit_test(test_swap_of_a_neighbour),
		cmocka_unit_test(test_claims_name_their_own_witness),
		cmocka_unit_test(test_page_cache_of_a_neighbour),
	};

	return judge_all(rows, ARRAY_SIZE(rows), more, ARRAY_SIZE(more));
}
