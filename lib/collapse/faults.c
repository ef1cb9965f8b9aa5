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
#define THP_FOLDER "/sys/kernel/mm/transparent_hugepage"

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
		for (uint64_t at = 0; at < bytes; at += collapse->page_bytes)
			*((volatile char *)region.memory + at) = 1;
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
	char name[64];

	collapse_warm_up(collapse, bytes);
	collapse_window_begin(collapse, &window);
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		double ns =
			time_populate(collapse, ways[i].method, ways[i].huge, bytes, &huge_bytes);

		if (ns < 0)
			continue; /* MADV_POPULATE_WRITE is of Linux 5.14 */
		snprintf(name, sizeof(name), "%s_table_ns", ways[i].name);
		collapse_put(collapse, name, "ns", false,
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

/* Switches the size on; *ret_mark for knobs_undo_to(). */
static int use_size(struct collapse *collapse, const struct page_size *size, size_t *ret_mark,
		    struct message *why)
{
	char path[PATH_MAX];

	*ret_mark = collapse->knobs ? knobs_mark(collapse->knobs) : 0;
	if (!size->needs_knob)
		return 0;
	if (!collapse->knobs)
		return -EPERM;
	snprintf(path, sizeof(path), THP_FOLDER "/hugepages-%" PRIu64 "kB/enabled",
		 size->bytes / 1024);
	return knobs_write(collapse->knobs, path, "always", why);
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
			samples->values[samples->count++] =
				(double)(clock_now_ns() - begin_ns) - collapse->clock_cost_ns;
		}
}

static int fault_size(struct collapse *collapse, const struct page_size *size,
		      struct collapse_samples *samples, struct message *why)
{
	uint64_t bytes = collapse_small_bytes(collapse, POPULATE_MOST);
	struct thp_region region;
	char title[64];
	int64_t given;
	size_t mark;
	int error = use_size(collapse, size, &mark, why);

	if (error == -EPERM)
		return 0; /* told once by the row */
	if (error)
		return error;
	error = map_for_size(collapse, size, bytes, &region);
	if (!error) {
		given = faults_of_size(size);
		time_first_touches(collapse, size, region.memory, bytes, samples);
		if (given >= 0 &&
		    (double)(faults_of_size(size) - given) < 0.9 * (double)samples->count)
			collapse_break(collapse,
				       "less than nine tenths of the %s faults got a page "
				       "of that size",
				       size->label);
		snprintf(title, sizeof(title), "fault of %s", size->label);
		collapse_put_samples(collapse, samples, size->label, title);
		thp_region_unmap(&region);
	}
	if (collapse->knobs && knobs_undo_to(collapse->knobs, mark, why) < 0)
		error = -EIO;
	return error;
}

int collapse_fault_row(struct collapse *collapse, const struct collapse_row *row,
		       struct message *why)
{
	struct collapse_samples samples;
	struct collapse_window window;
	struct page_size sizes[24];
	size_t count = list_sizes(collapse, sizes, 24);
	int error = collapse_samples_make(&samples, FAULTS_MOST);

	if (error)
		return error;
	if (!collapse->knobs && collapse->run == 0 && count > 2)
		record_note(collapse->record,
			    "row %s: n/a for sizes between small and 2M: only "
			    "root can switch them on",
			    row->name);
	collapse_warm_up(collapse, collapse_small_bytes(collapse, POPULATE_MOST));
	collapse_window_begin(collapse, &window);
	for (size_t i = 0; i < count && !error; i++)
		error = fault_size(collapse, &sizes[i], &samples, why);
	collapse_window_end(collapse, &window, 0);
	collapse_samples_free(&samples);
	return error;
}

/* --- copy on write after fork --- */

struct fork_shared {
	size_t count;
	double values[FAULTS_MOST];
};

struct fork_body {
	const struct collapse *collapse;
	const struct page_size *size;
	char *memory;
	uint64_t bytes;
	struct fork_shared *shared;
};

static void write_after_fork(struct fork_body *body)
{
	struct collapse_samples samples = {.values = body->shared->values, .capacity = FAULTS_MOST};

	time_first_touches(body->collapse, body->size, body->memory, body->bytes, &samples);
	body->shared->count = samples.count;
}

/* Forks with @region populated; the child writes to each block once. */
static int fork_and_write(struct collapse *collapse, const struct page_size *size,
			  struct thp_region *region, struct fork_shared *shared,
			  double *ret_fork_ns)
{
	struct fork_body body = {collapse, size, region->memory, region->bytes, shared};
	int64_t begin_ns = clock_now_ns();
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		write_after_fork(&body);
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
		     struct fork_shared *shared, struct message *why)
{
	uint64_t bytes = collapse_small_bytes(collapse, POPULATE_MOST / 4);
	struct collapse_samples samples = {.values = shared->values};
	double fork_ns, blocks;
	struct thp_region region;
	char name[64], title[64];
	size_t mark;
	int error = use_size(collapse, size, &mark, why);

	if (error == -EPERM)
		return 0;
	if (error)
		return error;
	error = map_for_size(collapse, size, bytes, &region);
	if (!error) {
		samples.capacity = FAULTS_MOST;
		time_first_touches(collapse, size, region.memory, bytes, &samples);
		blocks = (double)samples.count;
		error = fork_and_write(collapse, size, &region, shared, &fork_ns);
		thp_region_unmap(&region);
	}
	if (!error) {
		snprintf(name, sizeof(name), "%s_call_ns", size->label);
		collapse_put(collapse, name, "ns", false, fork_ns, "fork with %.0f pages of %s",
			     blocks, size->label);
		samples.count = shared->count;
		snprintf(title, sizeof(title), "first write to %s after fork", size->label);
		collapse_put_samples(collapse, &samples, size->label, title);
	}
	if (collapse->knobs && knobs_undo_to(collapse->knobs, mark, why) < 0)
		error = -EIO;
	return error;
}

int collapse_fork_row(struct collapse *collapse, const struct collapse_row *row,
		      struct message *why)
{
	struct fork_shared *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
					  MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct collapse_window window;
	struct page_size sizes[24];
	size_t count = list_sizes(collapse, sizes, 24);
	int error = 0;

	if (shared == MAP_FAILED)
		return -errno;
	memset(shared, 0, sizeof(*shared));
	collapse_warm_up(collapse, collapse_small_bytes(collapse, POPULATE_MOST / 2));
	collapse_window_begin(collapse, &window);
	for (size_t i = 0; i < count && !error; i++)
		error = fork_size(collapse, &sizes[i], shared, why);
	/* The child's time is ours, and a write to a shared huge page splits its mapping. */
	collapse_window_end(collapse, &window, WINDOW_SPLITS);
	munmap(shared, sizeof(*shared));
	return error;
}
