/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/array.h"
#include "base/json.h"
#include "sys/snapshot_internal.h"

/* Kept when they did not move too: claims and explanations read them, and 0 differs from "no such
 * counter". */
static const char *const always_vmstat[] = {
	"pgscan_anon",
	"pgscan_file",
	"pgsteal_anon",
	"pgsteal_file",
	"pgscan_kswapd",
	"pgscan_direct",
	"pgsteal_kswapd",
	"pgsteal_direct",
	"pswpin",
	"pswpout",
	"swpout_zero",
	"thp_fault_alloc",
	"thp_fault_fallback",
	"thp_collapse_alloc",
	"thp_swpout",
	"compact_stall",
	"nr_unevictable",
	"nr_mlock",
	"workingset_refault_anon",
	"workingset_refault_file",
	"workingset_refault",
	"oom_kill",
	"slabs_scanned",
	"unevictable_pgs_culled",
	"unevictable_pgs_rescued",
	"pgmajfault",
};

/* Levels worth a place in every record. */
static const char *const kept_levels[] = {
	"nr_free_pages",
	"nr_inactive_anon",
	"nr_active_anon",
	"nr_inactive_file",
	"nr_active_file",
	"nr_unevictable",
	"nr_mlock",
	"nr_anon_transparent_hugepages",
	"nr_slab_reclaimable",
	"nr_slab_unreclaimable",
	"nr_shmem",
	"nr_dirty",
	"nr_writeback",
	"nr_zspages",
};

/* Counters that move in every run and explain nothing here. */
static const char *const noise_prefixes[] = {"numa_hit", "numa_local", "numa_interleave",
					     "nr_zone_", "nr_dirty_",  "nr_free_pages_blocks"};

static bool listed(const char *const *list, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(list[i], name) == 0)
			return true;
	return false;
}

#define LISTED(list, name) listed(list, ARRAY_SIZE(list), name)

static bool is_noise(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(noise_prefixes); i++)
		if (strncmp(name, noise_prefixes[i], strlen(noise_prefixes[i])) == 0)
			return true;
	return false;
}

/* Both lists are in the order of the files, so the search starts where the last one ended. */
static const struct snapshot_entry *find_entry(const struct snapshot *snapshot, const char *name,
					       size_t *hint)
{
	for (size_t i = 0; i < snapshot->count; i++) {
		size_t at = (*hint + i) % snapshot->count;

		if (strcmp(snapshot->entries[at].name, name) == 0) {
			*hint = at + 1;
			return &snapshot->entries[at];
		}
	}
	return NULL;
}

/* The object at a dotted path below @object, made when it is not there. */
static json_t *section_of(json_t *object, const char *path, size_t length)
{
	char name[72];
	json_t *child;
	const char *dot = memchr(path, '.', length);
	size_t head = dot ? (size_t)(dot - path) : length;

	snprintf(name, sizeof(name), "%.*s", (int)head, path);
	child = json_object_get(object, name);
	if (!child) {
		child = json_object();
		if (json_put(object, name, child))
			return NULL;
	}
	return dot ? section_of(child, dot + 1, length - head - 1) : child;
}

static int put_entry(json_t *counters, const struct snapshot_entry *entry,
		     const struct snapshot_entry *was)
{
	const char *name = strrchr(entry->name, '.') + 1;
	size_t section_length = (size_t)(name - 1 - entry->name);
	bool vmstat = strncmp(entry->name, "vmstat.", 7) == 0;
	int64_t delta = entry->value - (was ? was->value : 0);
	json_t *section;

	if (vmstat && entry->level && LISTED(kept_levels, name)) {
		section = section_of(counters, "level", 5);
		if (!section || json_put(section, name, json_integer(entry->value)))
			return -ENOMEM;
	}
	if (vmstat ? (delta == 0 || is_noise(name)) && !LISTED(always_vmstat, name)
		   : !entry->level && delta == 0 && strncmp(entry->name, "psi_us.", 7) != 0 &&
			     strncmp(entry->name, "memcg.", 6) != 0)
		return 0;
	section = section_of(counters, entry->name, section_length);
	if (!section)
		return -ENOMEM;
	return json_put(section, name,
			json_integer(vmstat || !entry->level ? delta : entry->value));
}

/*
 * By how much the group's swapped-out memory grew: the level alone does not tell. v1 has it in
 * memory.stat, v2 in memory.swap.current.
 */
static int put_group_swap(json_t *counters, const struct snapshot *before,
			  const struct snapshot *after)
{
	static const char *const names[] = {"memcg.swap", "memcg.swap_usage_bytes"};
	json_t *group = json_object_get(counters, "memcg");
	int64_t was, is;

	for (size_t i = 0; group && i < ARRAY_SIZE(names); i++)
		if (snapshot_get(before, names[i], &was) == 0 &&
		    snapshot_get(after, names[i], &is) == 0)
			return json_put(group, "swap_rise_bytes", json_integer(is - was));
	return 0;
}

/* Steal by CPU number; nothing when nothing was stolen. */
static int put_steal(json_t *counters, const struct snapshot *before, const struct snapshot *after)
{
	long ticks_per_s = sysconf(_SC_CLK_TCK);
	json_t *per_cpu = json_array();
	int64_t total = -1;
	bool any = false;

	if (before->total_steal_ticks >= 0 && after->total_steal_ticks >= 0)
		total = (after->total_steal_ticks - before->total_steal_ticks) * 1000 / ticks_per_s;
	for (size_t i = 0; i < after->cpu_count; i++)
		any |= i < before->cpu_count && before->steal_ticks[i] >= 0 &&
		       after->steal_ticks[i] > before->steal_ticks[i];
	for (size_t i = 0; any && i < after->cpu_count; i++) {
		bool known = i < before->cpu_count && before->steal_ticks[i] >= 0 &&
			     after->steal_ticks[i] >= 0;
		int64_t ticks = known ? after->steal_ticks[i] - before->steal_ticks[i] : 0;

		if (json_array_append_new(per_cpu, known ? json_integer(ticks * 1000 / ticks_per_s)
							 : json_null())) {
			json_decref(per_cpu);
			return -ENOMEM;
		}
	}
	if (json_put(counters, "steal_ms", total >= 0 ? json_integer(total) : json_null())) {
		json_decref(per_cpu);
		return -ENOMEM;
	}
	return json_put(counters, "steal_ms_per_cpu", per_cpu);
}

static int put_clocks(json_t *counters, const struct snapshot *before, const struct snapshot *after)
{
	int64_t elapsed = after->monotonic_ns - before->monotonic_ns;
	int64_t booted = after->boottime_ns - before->boottime_ns;
	int64_t wall = after->realtime_ns - before->realtime_ns;
	json_t *clock = json_object();

	/* CLOCK_BOOTTIME alone goes on while the machine is suspended (or a virtual one is
	 * stopped). */
	if (json_put(counters, "clock", clock) ||
	    json_put(clock, "elapsed_ms", json_integer(elapsed / 1000000)) ||
	    json_put(clock, "suspended_ms", json_integer((booted - elapsed) / 1000000)) ||
	    json_put(clock, "wall_jump_ms", json_integer((wall - booted) / 1000000)))
		return -ENOMEM;
	return 0;
}

static int put_processors(json_t *counters, const struct snapshot *before,
			  const struct snapshot *after)
{
	const struct snapshot_process *busiest;
	int64_t busiest_ticks, ticks, tick_ms = 1000 / sysconf(_SC_CLK_TCK);
	json_t *cpu = json_object();

	if (json_put(counters, "cpu", cpu))
		return -ENOMEM;
	if (before->busy_ticks >= 0 && after->busy_ticks >= 0 &&
	    json_put(cpu, "busy_ms",
		     json_integer((after->busy_ticks - before->busy_ticks) * tick_ms)))
		return -ENOMEM;
	if (after->process_count == 0)
		return json_put(cpu, "neighbours_ms", json_null());
	ticks = snapshot_neighbour_ticks(before, after, &busiest, &busiest_ticks);
	if (json_put(cpu, "neighbours_ms", json_integer(ticks * tick_ms)))
		return -ENOMEM;
	if (!busiest)
		return 0;
	if (json_put(cpu, "busiest_neighbour", json_string_or_null(busiest->command)) ||
	    json_put(cpu, "busiest_neighbour_pid", json_integer(busiest->pid)) ||
	    json_put(cpu, "busiest_neighbour_ms", json_integer(busiest_ticks * tick_ms)))
		return -ENOMEM;
	return 0;
}

json_t *snapshot_delta(const struct snapshot *before, const struct snapshot *after)
{
	json_t *counters = json_object();
	size_t hint = 0;
	int error = 0;

	/* Present even when the machine has none, so that readers need not ask. */
	if (json_put(counters, "vmstat", json_object()) ||
	    json_put(counters, "level", json_object()) ||
	    json_put(counters, "psi_us", json_object()))
		error = -ENOMEM;
	for (size_t i = 0; !error && i < after->count; i++)
		error = put_entry(counters, &after->entries[i],
				  find_entry(before, after->entries[i].name, &hint));
	if (error || put_group_swap(counters, before, after) ||
	    put_steal(counters, before, after) || put_clocks(counters, before, after) ||
	    put_processors(counters, before, after)) {
		json_decref(counters);
		return NULL;
	}
	return counters;
}
