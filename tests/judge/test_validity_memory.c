/* SPDX-License-Identifier: MIT */
#include "clean_run.h"

#define ANON(pages) "counters.vmstat.pgscan_anon=" pages ";"
#define FILES(pages) "counters.vmstat.pgscan_file=" pages ";"
#define SWAPPED(pages) "counters.vmstat.pswpout=" pages ";"
#define VARIANT(name) "variant=\"" name "\";"
#define UNEVICTABLE(pages) "load_stats.gem.observed_unevictable_pages=" pages ";"
#define SEEN(unevictable, mlocked) \
	UNEVICTABLE(unevictable) "load_stats.gem.observed_mlock_pages=" mlocked ";"
#define MACHINE "scope=\"machine\";"
#define RISEN(unevictable, mlocked)                                                \
	"counters.risen_since_before_loads={\"nr_unevictable\": " unevictable ", " \
	"\"nr_mlock\": " mlocked "};"
/* settings keep the footprint that every arm was asked for */
#define BASELINE \
	VARIANT("baseline") "loads.0=\"null\"; pinned_bytes=0; counters.limit_set_bytes=1073741824;"
#define THP(hits, misses) /* faults are what this measure times */                    \
	"measure=\"thp\"; per_cpu.0.minflt=5000; counters.sampler.thp_hits=" hits ";" \
	"counters.sampler.thp_misses=" misses ";"
#define PINNED "262144"

static const struct judged rows[] = {
	{"clean run", NULL, VERDICT_VALID},
	{"no swap", ANON("0") SWAPPED("0") "counters.swap.total_bytes=0;counters.swap.used_bytes=0",
	 VERDICT_INVALID, "there is no swap"},
	{"page cache shields anon", ANON("0") FILES("500000"), VERDICT_INVALID,
	 "Δpgscan_anon 0 for 262144 pinned pages; page cache shielded them"},
	/* a few pages are no proof either, whatever the variant */
	{"page cache shields most",
	 VARIANT("mapping") UNEVICTABLE(PINNED) ANON("9000") FILES("500000"), VERDICT_INVALID,
	 "hardly scanned"},
	{"less than one whole pass", ANON("262143"), VERDICT_INVALID, "once whole"},
	{"one whole pass", ANON("262144"), VERDICT_VALID},

	/* The plain call on a machine with plenty of memory. */
	{"nothing presses",
	 MACHINE "loads.1=\"file-cache\"; settings.footprint_bytes=0;" ANON("0") FILES("0")
		 SWAPPED("0"),
	 VERDICT_INVALID, "memory was not short"},
	{"GEM load alone claims nothing about reclaim",
	 "-loads.1; settings.footprint_bytes=0;" ANON("0") SWAPPED("0"), VERDICT_VALID},

	{"kernel without pgscan_anon", "-counters.vmstat.pgscan_anon; -counters.vmstat.pgscan_file",
	 VERDICT_VALID, "not provable here: that the anon lists were scanned whole"},
	{"and nothing was swapped out",
	 "-counters.vmstat.pgscan_anon; -counters.vmstat.swpout_zero;" SWAPPED("0"), VERDICT_VALID,
	 "nothing was swapped out"},
	{"and there is no swap",
	 "-counters.vmstat.pgscan_anon; counters.vmstat.swpout_zero=0;" SWAPPED(
		 "0") "counters.swap.total_bytes=0",
	 VERDICT_INVALID, "there is no swap"},
	{"multi-generational LRU", ANON("5000") "environment.mglru=\"0x0007\"", VERDICT_VALID,
	 "not provable here: that the pinned pages were scanned once"},
	/* built in, but off: the counters mean what they always meant */
	{"multi-generational LRU off", ANON("5000") "environment.mglru=\"0x0000\"", VERDICT_INVALID,
	 "once whole"},

	{"stock", VARIANT("stock") SEEN("0", "0"), VERDICT_VALID},
	{"mapping", VARIANT("mapping") SEEN(PINNED, "100"), VERDICT_VALID},
	{"mlock", VARIANT("mlock") SEEN(PINNED, PINNED), VERDICT_VALID},
	/* every wrong label, and what the pages really are */
	{"mapping called stock", VARIANT("stock") SEEN(PINNED, "0"), VERDICT_INVALID,
	 "as with mapping"},
	{"mlock called stock", VARIANT("stock") SEEN(PINNED, PINNED), VERDICT_INVALID,
	 "they are mlocked"},
	{"stock called mapping", VARIANT("mapping") SEEN("0", "0"), VERDICT_INVALID,
	 "as with stock"},
	{"mlock called mapping", VARIANT("mapping") SEEN(PINNED, PINNED), VERDICT_INVALID,
	 "they are mlocked"},
	{"stock called mlock", VARIANT("mlock") SEEN("0", "0"), VERDICT_INVALID, "as with stock"},
	{"mapping called mlock", VARIANT("mlock") SEEN(PINNED, "0"), VERDICT_INVALID,
	 "without mlock, as with mapping"},
	/* the other processes' locked pages do not matter */
	{"stock beside locked pages", VARIANT("stock") SEEN("3000", "3000"), VERDICT_VALID},
	{"mapping beside locked pages", VARIANT("mapping") SEEN("271144", "9000"), VERDICT_VALID},
	/* A driver that takes pages off the LRU when reclaim meets them: the whole run is the
	 * witness. */
	{"variant seen late", VARIANT("mapping") RISEN("261000", "2000"), VERDICT_VALID},
	/* without the load's own look: the series' peak above its start */
	{"variant seen in the series",
	 VARIANT("mapping") "-load_stats.gem.observed_pages;"
			    "counters.series={\"nr_unevictable\": [5000, 266000, null, 5000], \"nr_mlock\": [1]}",
	 VERDICT_VALID},
	{"wrong variant seen late", "-load_stats.gem.observed_pages;" RISEN("262200", "100"),
	 VERDICT_INVALID, "as with mapping"},
	{"variant too small to see",
	 "pinned_bytes=8388608; settings.footprint_bytes=8388608;"
	 "load_stats.gem.observed_pages=2048;" UNEVICTABLE("2048"),
	 VERDICT_VALID, "too little to see"},

	{"footprint half pinned", "pinned_bytes=536870912", VERDICT_INVALID,
	 "the footprint was not pinned: 512 MiB of the 1024 MiB"},
	{"footprint not pinned", "pinned_bytes=null", VERDICT_INVALID,
	 "the footprint was not pinned: 0 MiB"},

	{"baseline", BASELINE, VERDICT_VALID},
	{"baseline that held pages", BASELINE "pinned_bytes=67108864", VERDICT_INVALID,
	 "the baseline held 64 MiB pinned"},
	/* the same pressure as the others: its anon lists are scanned too */
	{"baseline without pressure", BASELINE ANON("0"), VERDICT_INVALID,
	 "the anon lists were not scanned"},
	{"baseline below its limit", BASELINE "counters.memcg.limit_hits=0", VERDICT_INVALID,
	 "limit was never reached"},
	{"group below its limit", "counters.memcg.limit_hits=0", VERDICT_INVALID,
	 "limit was never reached"},
	/* no group's counters (neither v1 nor v2 readable) */
	{"unknown group", "-counters.memcg", VERDICT_VALID,
	 "not provable here: that the group was at its limit"},
	{"no group to ask", MACHINE "-counters.memcg", VERDICT_VALID},

	{"zero pages", "counters.vmstat.swpout_zero=100000", VERDICT_INVALID, "held zeros"},
	{"full swap", "counters.swap.used_bytes=4294963200", VERDICT_SUSPECT, "the swap was full"},

	{"huge pages", THP("95", "5"), VERDICT_VALID},
	{"mostly huge pages", THP("80", "20"), VERDICT_SUSPECT, "80 of 100 samples (80.0%)"},
	{"few huge pages", THP("40", "60"), VERDICT_INVALID, "512 small ones"},
	{"no huge pages", THP("0", "100") "environment.thp.enabled=\"never\"", VERDICT_INVALID,
	 "echo madvise >"},
	/* from the machine's counters when the threads' own are not there */
	{"huge pages of the machine",
	 THP("0", "0") "-counters.sampler;"
		       "counters.vmstat.thp_fault_alloc=10; counters.vmstat.thp_fault_fallback=90",
	 VERDICT_INVALID, "10 of 100 samples"},
	{"unknown pages", THP("0", "0") "-counters.sampler", VERDICT_VALID,
	 "not provable here: that the samples were huge pages"},
};

static void test_empty_record(void **state)
{
	expect_with(record_new("x"), NULL, VERDICT_VALID, NULL);
}

int main(void)
{
	const struct CMUnitTest more[] = {cmocka_unit_test(test_empty_record)};

	return judge_all(rows, ARRAY_SIZE(rows), more, ARRAY_SIZE(more));
}
