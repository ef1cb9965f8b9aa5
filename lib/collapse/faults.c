/* SPDX-License-Identifier: MIT */
/* Populating by method, page faults by size, and copying on write after fork by size. */
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "collapse/state.h"
#include "sys/child.h"

#define POPULATE_MOST (UINT64_C(256) << 20)
#define FAULTS_MOST 20000

/* --- populating --- */

enum populate_method { POPULATE_TOUCH, POPULATE_MADVISE, POPULATE_MAP };

/* Nanoseconds, or a negative -errno. */
static double time_populate(struct collapse *collapse, enum populate_method method, bool huge,
			    uint64_t bytes, uint64_t *ret_huge_bytes)
{
	struct thp_region region;
	int64_t begin_ns, took_ns;
	int error = thp_region_map(bytes, &region), flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;

	if (error)
		return error;
	madvise(region.memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
	begin_ns = clock_now_ns();
	if (method == POPULATE_TOUCH)
		collapse_touch(collapse, region.memory, bytes / collapse->page_bytes);
	else if (method == POPULATE_MADVISE && madvise(region.memory, bytes, MADV_POPULATE_WRITE))
		error = -errno;
	else if (method == POPULATE_MAP && mmap(region.memory, bytes, PROT_READ | PROT_WRITE,
						flags | MAP_POPULATE, -1, 0) == MAP_FAILED)
		error = -errno;
	took_ns = clock_now_ns() - begin_ns;
	if (thp_mapped_bytes(region.memory, bytes, ret_huge_bytes) < 0)
		*ret_huge_bytes = 0;
	thp_region_unmap(&region);
	return error ? error : (double)took_ns - collapse->clock_cost_ns;
}

int collapse_populate_row(struct collapse *collapse, const struct collapse_row *row,
			  struct message *why)
{
	static const struct {
		enum populate_method method;
		bool huge;
		const char *name, *title;
	} ways[] = {
		{POPULATE_TOUCH, false, "small_touch", "small pages, touched"},
		{POPULATE_MADVISE, false, "small_madvise", "small pages, MADV_POPULATE_WRITE"},
		/* The pages are there before madvise could ask for huge ones. */
		{POPULATE_MAP, false, "small_map", "MAP_POPULATE (before any madvise)"},
		{POPULATE_TOUCH, true, "huge_touch", "huge pages, touched"},
		{POPULATE_MADVISE, true, "huge_madvise", "huge pages, MADV_POPULATE_WRITE"},
	};
	uint64_t bytes = collapse_small_bytes(collapse, POPULATE_MOST), huge_bytes = 0;
	struct collapse_window window;

	collapse_warm_up(collapse, bytes);
	collapse_window_begin(collapse, &window);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		double ns =
			time_populate(collapse, ways[i].method, ways[i].huge, bytes, &huge_bytes);

		if (ns < 0)
			continue; /* MADV_POPULATE_WRITE is of Linux 5.14 */
		collapse_prefix(collapse, "%s_", ways[i].name);
		collapse_put(collapse, "table_ns", "ns",
			     ns * (double)collapse->table_bytes / (double)bytes, "%s, 2M",
			     ways[i].title);
		if (ways[i].huge && huge_bytes != bytes)
			collapse_break(collapse,
				       "%" PRIu64 " of %" PRIu64 " tables are huge when %s",
				       huge_bytes / collapse->table_bytes,
				       bytes / collapse->table_bytes, ways[i].title);
	}
	collapse_window_end(collapse, &window, 0);
	return 0;
}

/* --- sizes of pages --- */

struct page_size {
	uint64_t bytes;
	char label[16];
	bool needs_knob; /* between small and PMD: to be switched on */
};

static size_t list_sizes(const struct collapse *collapse, struct page_size *sizes, size_t most)
{
	struct thp_size *huge = NULL;
	size_t count = 0, huge_count = 0;

	sizes[count++] = (struct page_size){.bytes = collapse->page_bytes};
	if (thp_sizes(&huge, &huge_count) < 0)
		huge_count = 0;
	for (size_t i = 0; i < huge_count && count + 1 < most; i++)
		if (huge[i].bytes < collapse->table_bytes)
			sizes[count++] =
				(struct page_size){.bytes = huge[i].bytes, .needs_knob = true};
	free(huge);
	sizes[count++] = (struct page_size){.bytes = collapse->table_bytes};
	for (size_t i = 0; i < count; i++)
		format_size(sizes[i].bytes, sizes[i].label, sizeof(sizes[i].label));
	return count;
}

/* Switches the size on; -EPERM for those that only root can. */
static int use_size(struct collapse *collapse, const struct page_size *size, struct message *why)
{
	char path[PATH_MAX];

	if (!size->needs_knob)
		return 0;
	if (!collapse->transaction)
		return -EPERM;
	snprintf(path, sizeof(path), THP_FOLDER "/hugepages-%" PRIu64 "kB/enabled",
		 size->bytes / 1024);
	return transaction_write(collapse->transaction, path, "always", why);
}

/*
 * Memory that faults in pages of @size alone: for sizes below a table, the last page of each table
 * is made inaccessible, so that no page of a whole table fits.
 */
static int map_for_size(const struct collapse *collapse, const struct page_size *size,
			uint64_t bytes, struct thp_region *ret_region)
{
	int error = thp_region_map(bytes, ret_region);
	char *memory = error ? NULL : ret_region->memory;

	if (error)
		return error;
	madvise(memory, bytes,
		size->bytes == collapse->page_bytes ? MADV_NOHUGEPAGE : MADV_HUGEPAGE);
	if (!size->needs_knob)
		return 0;
	for (uint64_t at = collapse->table_bytes; at <= bytes; at += collapse->table_bytes)
		if (mprotect(memory + at - collapse->page_bytes, collapse->page_bytes, PROT_NONE) <
		    0)
			return -errno;
	return 0;
}

/* How many pages of a size were given at a fault; -1: not told (before 6.10, and small ones). */
static int64_t faults_of_size(const struct page_size *size)
{
	char path[PATH_MAX];
	int64_t count;

	snprintf(path, sizeof(path), THP_FOLDER "/hugepages-%" PRIu64 "kB/stats/anon_fault_alloc",
		 size->bytes / 1024);
	return machine_read_int64(path, &count) < 0 ? -1 : count;
}

/* First touches of the blocks of @size that lie wholly in what can be touched. */
static void time_first_touches(const struct collapse *collapse, const struct page_size *size,
			       char *memory, uint64_t bytes, struct collapse_samples *samples)
{
	uint64_t usable = collapse->table_bytes - (size->needs_knob ? collapse->page_bytes : 0);

	samples->count = 0;
	for (uint64_t table = 0; table < bytes; table += collapse->table_bytes)
		for (uint64_t at = 0; at + size->bytes <= usable; at += size->bytes) {
			int64_t begin_ns;

			if (samples->count == samples->capacity)
				return;
			begin_ns = clock_now_ns();
			*(volatile char *)(memory + table + at) = 1;
			collapse_samples_add(collapse, samples, begin_ns);
		}
}

/* One measurement in @region, which faults in pages of @size. */
typedef int measure_size(struct collapse *collapse, const struct page_size *size,
			 const struct thp_region *region, void *data, struct message *why);

/* Does it with memory of at most @most_bytes for each size that can be had. */
static int measure_sizes(struct collapse *collapse, uint64_t most_bytes, measure_size *measure,
			 void *data, struct message *why)
{
	uint64_t bytes = collapse_small_bytes(collapse, most_bytes);
	struct page_size sizes[24];
	size_t count = list_sizes(collapse, sizes, ARRAY_SIZE(sizes));
	struct thp_region region;
	int error = 0;

	for (size_t i = 0; i < count && !error; i++) {
		size_t mark = collapse_mark(collapse);

		error = use_size(collapse, &sizes[i], why);
		if (error == -EPERM) {
			error = 0; /* told once by the fault row */
			continue;
		}
		if (!error)
			error = map_for_size(collapse, &sizes[i], bytes, &region);
		if (!error) {
			collapse_prefix(collapse, "%s_", sizes[i].label);
			error = measure(collapse, &sizes[i], &region, data, why);
			thp_region_unmap(&region);
		}
		error = collapse_undo(collapse, mark, error, why);
	}
	return error;
}

static int fault_size(struct collapse *collapse, const struct page_size *size,
		      const struct thp_region *region, void *data, struct message *why)
{
	struct collapse_samples *samples = data;
	int64_t given = faults_of_size(size);

	time_first_touches(collapse, size, region->memory, region->bytes, samples);
	if (given >= 0 && (double)(faults_of_size(size) - given) < 0.9 * (double)samples->count)
		collapse_break(collapse,
			       "less than nine tenths of the %s faults got a page of that size",
			       size->label);
	collapse_put_samples(collapse, samples, 0, "fault of %s", size->label);
	return 0;
}

int collapse_fault_row(struct collapse *collapse, const struct collapse_row *row,
		       struct message *why)
{
	struct collapse_samples samples;
	struct collapse_window window;
	struct page_size sizes[24];
	int error = collapse_samples_make(&samples, FAULTS_MOST);

	if (error)
		return error;
	if (!collapse->transaction && collapse->run == 0 &&
	    list_sizes(collapse, sizes, ARRAY_SIZE(sizes)) > 2)
		record_note(collapse->record,
			    "row %s: n/a for sizes between small and 2M: only root can switch "
			    "them on",
			    row->name);
	collapse_warm_up(collapse, collapse_small_bytes(collapse, POPULATE_MOST));
	collapse_window_begin(collapse, &window);
	error = measure_sizes(collapse, POPULATE_MOST, fault_size, &samples, why);
	collapse_window_end(collapse, &window, 0);
	collapse_samples_free(&samples);
	return error;
}

/* --- copy on write after fork --- */

/* In memory that the child shares. */
struct fork_shared {
	size_t count;
	double values[FAULTS_MOST];
};

/* Forks with @region populated; the child writes to each block once. */
static int fork_and_write(struct collapse *collapse, const struct page_size *size,
			  const struct thp_region *region, struct fork_shared *shared,
			  double *ret_fork_ns)
{
	struct collapse_samples samples = {.values = shared->values, .capacity = FAULTS_MOST};
	int64_t begin_ns = clock_now_ns();
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		time_first_touches(collapse, size, region->memory, region->bytes, &samples);
		shared->count = samples.count;
		_exit(0);
	}
	*ret_fork_ns = (double)(clock_now_ns() - begin_ns) - collapse->clock_cost_ns;
	if (pid < 0)
		return -errno;
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -ECHILD;
}

static int fork_size(struct collapse *collapse, const struct page_size *size,
		     const struct thp_region *region, void *data, struct message *why)
{
	struct fork_shared *shared = data;
	struct collapse_samples samples = {.values = shared->values, .capacity = FAULTS_MOST};
	size_t blocks;
	double fork_ns;
	int error;

	time_first_touches(collapse, size, region->memory, region->bytes, &samples);
	blocks = samples.count;
	error = fork_and_write(collapse, size, region, shared, &fork_ns);
	if (error)
		return error;
	collapse_put(collapse, "call_ns", "ns", fork_ns, "fork with %zu pages of %s", blocks,
		     size->label);
	samples.count = shared->count;
	collapse_put_samples(collapse, &samples, 0, "first write to %s after fork", size->label);
	return 0;
}

int collapse_fork_row(struct collapse *collapse, const struct collapse_row *row,
		      struct message *why)
{
	struct fork_shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct collapse_window window;
	int error;

	if (shared == MAP_FAILED)
		return -errno;
	memset(shared, 0, sizeof(*shared));
	collapse_warm_up(collapse, collapse_small_bytes(collapse, POPULATE_MOST / 2));
	collapse_window_begin(collapse, &window);
	error = measure_sizes(collapse, POPULATE_MOST / 4, fork_size, shared, why);
	/* The child's time is ours, and a write to a shared huge page splits its mapping. */
	collapse_window_end(collapse, &window, WINDOW_SPLITS);
	munmap(shared, sizeof(*shared));
	return error;
}
