/* SPDX-License-Identifier: MIT */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"
#include "base/proc.h"
#include "sys/environment_internal.h"

#define THP_ROOT "/sys/kernel/mm/transparent_hugepage"

static int put_meminfo(json_t *environment)
{
	struct proc_memory memory = {-1, -1, -1};

	proc_read_memory(&memory);
	return environment_put_known(environment, "memory_bytes", memory.total_bytes) ||
			       environment_put_known(environment, "swap_bytes",
						     memory.swap_total_bytes)
		       ? -ENOMEM
		       : 0;
}

/* Names of the areas: whether swap is memory (zram) or a disk changes everything. */
static int put_swap_areas(json_t *environment)
{
	json_t *areas = json_array();
	char *text, *line, *rest;
	int error = json_put(environment, "swap_areas", areas);

	if (error || machine_read("/proc/swaps", &text, NULL))
		return error;
	strtok_r(text, "\n", &rest);
	while (!error && (line = strtok_r(NULL, "\n", &rest))) {
		line[strcspn(line, " \t")] = '\0';
		error = json_array_append_new(areas, json_string_or_null(line)) ? -ENOMEM : 0;
	}
	free(text);
	return error;
}

/* Sizes that may be used: {"2048kB": "inherit"}; "never" is left out. */
static int put_huge_sizes(json_t *thp)
{
	char path[PATH_MAX], choice[32];
	json_t *sizes = json_object();
	struct dirent **names;
	int count, error = json_put(thp, "sizes", sizes);

	if (error || machine_path(THP_ROOT, path, sizeof(path)))
		return error;
	count = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		snprintf(path, sizeof(path), THP_ROOT "/%s/enabled", names[i]->d_name);
		if (!error && strncmp(names[i]->d_name, "hugepages-", 10) == 0 &&
		    machine_read_choice(path, choice, sizeof(choice)) == 0 &&
		    strcmp(choice, "never") != 0)
			error = json_put(sizes, names[i]->d_name + 10, json_string_or_null(choice));
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	return error;
}

static int put_huge_pages(json_t *environment)
{
	static const struct {
		const char *key, *path;
	} choices[] = {{"enabled", THP_ROOT "/enabled"},
		       {"defrag", THP_ROOT "/defrag"},
		       {"shmem", THP_ROOT "/shmem_enabled"}},
	  numbers[] = {{"page_bytes", THP_ROOT "/hpage_pmd_size"},
		       {"khugepaged_defrag", THP_ROOT "/khugepaged/defrag"},
		       {"khugepaged_pages_to_scan", THP_ROOT "/khugepaged/pages_to_scan"},
		       {"khugepaged_sleep_ms", THP_ROOT "/khugepaged/scan_sleep_millisecs"},
		       {"khugepaged_max_ptes_none", THP_ROOT "/khugepaged/max_ptes_none"},
		       {"shrink_underused", THP_ROOT "/shrink_underused"}};
	json_t *thp = json_object();
	int error = json_put(environment, "thp", thp);

	for (size_t i = 0; !error && i < ARRAY_SIZE(choices); i++)
		error = environment_put_choice(thp, choices[i].key, choices[i].path);
	for (size_t i = 0; !error && i < ARRAY_SIZE(numbers); i++)
		error = environment_put_int64(thp, numbers[i].key, numbers[i].path);
	return error ? error : put_huge_sizes(thp);
}

/* Monitors that run now; their schemes may reclaim or collapse pages on their own. */
static int put_damon(json_t *environment)
{
	static const char base[] = "/sys/kernel/mm/damon/admin/kdamonds";
	int64_t count, running = 0;
	char path[96], state[16];

	snprintf(path, sizeof(path), "%s/nr_kdamonds", base);
	if (machine_read_int64(path, &count))
		return json_put(environment, "damon_running", json_null());
	for (int64_t i = 0; i < count && i < 64; i++) {
		snprintf(path, sizeof(path), "%s/%d/state", base, (int)i);
		if (machine_read_line(path, state, sizeof(state)) == 0 && strcmp(state, "on") == 0)
			running++;
	}
	return json_put(environment, "damon_running", json_integer(running));
}

/*
 * MGLRU: the switch's bits, "0x0000" off; null when the kernel has none. With it the LRU counters
 * mean something else, so like is compared only with like
 * (Documentation/admin-guide/mm/multigen_lru.rst).
 */
static int put_reclaim(json_t *environment)
{
	if (environment_put_line(environment, "mglru", "/sys/kernel/mm/lru_gen/enabled") ||
	    put_damon(environment) ||
	    environment_put_line(environment, "damon_reclaim",
				 "/sys/module/damon_reclaim/parameters/enabled") ||
	    environment_put_line(environment, "zswap", "/sys/module/zswap/parameters/enabled") ||
	    environment_put_int64(environment, "ksm", "/sys/kernel/mm/ksm/run"))
		return -ENOMEM;
	return 0;
}

int environment_put_memory(json_t *environment)
{
	if (put_meminfo(environment) || put_swap_areas(environment) ||
	    put_huge_pages(environment) || put_reclaim(environment) ||
	    environment_put_line(environment, "numa_nodes", "/sys/devices/system/node/online"))
		return -ENOMEM;
	return 0;
}
