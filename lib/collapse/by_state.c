/* SPDX-License-Identifier: MIT */
/*
 * MADV_COLLAPSE by the state in which it finds a table, with what it answers, and from another
 * process. Every call is timed on a table that no call has touched.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/page_fill.h"
#include "collapse/state.h"
#include "sys/child.h"
#include "sys/swap.h"

#define TABLES_MOST 64
#define REMOTE_CALLS 2000
#define PAGEMAP_SWAPPED (UINT64_C(1) << 62)

/* Memory of one turn: anonymous between guards, or a shared mapping of a file. */
struct subject {
	struct thp_region region;
	char *memory;
	uint64_t bytes;
	int file; /* -1: none */
	void *file_mapping;
	uint64_t file_mapping_bytes;
};

/* What a call answered, for the record's counters.collapse_answers. */
static void count_answer(struct collapse *collapse, int error, bool collapsed)
{
	const char *row = collapse->row->name;
	const char *name = error       ? strerrorname_np(-error)
			   : collapsed ? "collapsed"
				       : "nothing done";
	json_t *counts = json_object_get(collapse->answers, row);

	if (!counts) {
		counts = json_object();
		json_object_set_new(collapse->answers, row, counts);
	}
	json_object_set_new(counts, name, json_integer(json_get_int64(counts, name, 0) + 1));
}

static int map_file(struct collapse *collapse, struct subject *subject, bool memory_file)
{
	char name[] = "/var/tmp/syslatency.XXXXXX";
	uintptr_t start;
	void *mapped;

	subject->file = memory_file ? memfd_create("syslatency", MFD_CLOEXEC) : mkstemp(name);
	if (subject->file < 0)
		return -errno;
	if (!memory_file)
		unlink(name);
	if (ftruncate(subject->file, (off_t)subject->bytes) < 0)
		return -errno;
	subject->file_mapping_bytes = subject->bytes + collapse->table_bytes;
	mapped = mmap(NULL, subject->file_mapping_bytes, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (mapped == MAP_FAILED)
		return -errno;
	subject->file_mapping = mapped;
	start = (uintptr_t)mapped;
	start = (start + collapse->table_bytes - 1) / collapse->table_bytes * collapse->table_bytes;
	subject->memory = mmap((void *)start, subject->bytes, PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_FIXED, subject->file, 0);
	return subject->memory == MAP_FAILED ? -errno : 0;
}

static void unmap_subject(struct subject *subject)
{
	thp_region_unmap(&subject->region);
	if (subject->file_mapping)
		munmap(subject->file_mapping, subject->file_mapping_bytes);
	if (subject->file >= 0)
		close(subject->file);
	*subject = (struct subject){.file = -1};
}

/* How many pages of [@memory, @memory + @bytes) are in swap; -errno. */
static int64_t swapped_pages(const char *memory, uint64_t bytes, uint64_t page_bytes)
{
	uint64_t entry, at = (uintptr_t)memory / page_bytes;
	int64_t count = 0;
	int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return -errno;
	for (uint64_t i = 0; i < bytes / page_bytes; i++)
		if (pread(fd, &entry, sizeof(entry), (off_t)((at + i) * sizeof(entry))) ==
		    (ssize_t)sizeof(entry))
			count += (entry & PAGEMAP_SWAPPED) != 0;
	close(fd);
	return count;
}

static int swap_out(struct collapse *collapse, struct subject *subject, struct message *why)
{
	uint64_t total = 0, available = 0;
	struct swap_area area;
	struct page_fill *fill = malloc(sizeof(*fill));
	struct random random;
	int error = fill ? 0 : -ENOMEM;

	if (!error && (swap_total(&total, &available) < 0 || available < 2 * subject->bytes))
		error = collapse->transaction
				? swap_make_zram(collapse->transaction, 2 * subject->bytes, &area,
						 why)
				: message_set(why, -ENOTSUP,
					      "there is no swap, and only root can make some");
	if (!error) {
		page_fill_init(fill, random_fresh_seed());
		random_seed(&random, random_fresh_seed());
		page_fill_copy(fill, &random, subject->memory, subject->bytes);
		if (madvise(subject->memory, subject->bytes, MADV_PAGEOUT) < 0)
			error = message_set_errno(why, -errno, "MADV_PAGEOUT");
	}
	free(fill);
	if (!error && swapped_pages(subject->memory, subject->bytes, collapse->page_bytes) <
			      (int64_t)(subject->bytes / collapse->page_bytes / 10 * 9))
		error = message_set(why, -ENOTSUP, "less than nine tenths could be swapped out");
	return error;
}

/* The memory as the row wants MADV_COLLAPSE to find it. */
static int make_subject(struct collapse *collapse, enum table_state state, struct subject *subject,
			struct message *why)
{
	uint64_t pages = collapse->pages_per_table, tables;
	int error;

	*subject = (struct subject){.file = -1};
	subject->bytes = collapse_small_bytes(collapse, TABLES_MOST * collapse->table_bytes);
	tables = subject->bytes / collapse->table_bytes;
	if (state == TABLE_SHMEM || state == TABLE_FILE) {
		error = map_file(collapse, subject, state == TABLE_SHMEM);
		if (error)
			return message_set_errno(why, error, "cannot map a file");
	} else {
		error = thp_region_map(subject->bytes, &subject->region);
		if (error)
			return message_set_errno(why, error, "cannot map memory");
		subject->memory = subject->region.memory;
		madvise(subject->memory, subject->bytes, MADV_NOHUGEPAGE);
	}
	if (state == TABLE_HALF)
		pages /= 2;
	else if (state == TABLE_ONE)
		pages = 1;
	else if (state == TABLE_NONE)
		pages = 0;
	for (uint64_t i = 0; i < tables; i++)
		collapse_touch(collapse, subject->memory + i * collapse->table_bytes, pages);
	if (state == TABLE_SWAPPED)
		error = swap_out(collapse, subject, why);
	if (state == TABLE_FILE)
		fsync(subject->file);
	/* Forbidden for the faults alone: MADV_COLLAPSE respects it too. */
	if (!error && subject->file < 0 &&
	    madvise(subject->memory, subject->bytes, MADV_HUGEPAGE) < 0)
		error = message_set_errno(why, -errno, "MADV_HUGEPAGE");
	return error;
}

static bool is_collapsed(const struct collapse *collapse, const struct subject *subject)
{
	uint64_t huge_bytes = 0;

	return subject->file < 0 &&
	       thp_mapped_bytes(subject->memory, subject->bytes, &huge_bytes) == 0 &&
	       huge_bytes >= subject->bytes - collapse->table_bytes;
}

/* One call a table. *ret_failed: calls that did not return 0. */
static void time_tables(struct collapse *collapse, const struct subject *subject,
			enum table_state state, struct collapse_samples *samples,
			size_t *ret_failed)
{
	uint64_t offset = state == TABLE_UNALIGNED ? collapse->page_bytes : 0;
	int errors[TABLES_MOST];
	size_t count = subject->bytes / collapse->table_bytes;
	bool collapsed;

	samples->count = *ret_failed = 0;
	for (size_t i = 0; i < count; i++) {
		char *at = subject->memory + i * collapse->table_bytes + offset;
		int64_t begin_ns = clock_now_ns();
		int result = madvise(at, collapse->table_bytes - offset, MADV_COLLAPSE);

		collapse_samples_add(collapse, samples, begin_ns);
		errors[i] = result < 0 ? -errno : 0;
		*ret_failed += result < 0;
	}
	collapsed = is_collapsed(collapse, subject);
	for (size_t i = 0; i < count; i++)
		/* Whether a file's table is huge is not in AnonHugePages; 0 says it. */
		count_answer(collapse, errors[i], collapsed || (subject->file >= 0 && !errors[i]));
	if (state <= TABLE_SWAPPED && *ret_failed)
		collapse_break(collapse, "%zu of %zu calls failed (%s)", *ret_failed, count,
			       strerrordesc_np(-errors[0] ?: EAGAIN));
	else if (state <= TABLE_SWAPPED && !collapsed)
		collapse_break(collapse, "MADV_COLLAPSE returned 0 and collapsed nothing");
}

int collapse_of_state_row(struct collapse *collapse, const struct collapse_row *row,
			  struct message *why)
{
	enum table_state state = (enum table_state)row->argument;
	struct collapse_samples samples;
	struct collapse_window window;
	struct subject subject;
	size_t failed;
	int error = collapse_samples_make(&samples, TABLES_MOST);

	if (error)
		return error;
	collapse_warm_up(collapse,
			 collapse_small_bytes(collapse, TABLES_MOST * collapse->table_bytes));
	error = make_subject(collapse, state, &subject, why);
	if (!error) {
		collapse_window_begin(collapse, &window);
		time_tables(collapse, &subject, state, &samples, &failed);
		collapse_window_end(collapse, &window, state == TABLE_SWAPPED ? WINDOW_SWAPS : 0);
		collapse_put_samples(collapse, &samples, SAMPLES_MAX, "per call");
	}
	unmap_subject(&subject);
	collapse_samples_free(&samples);
	return error;
}

/* --- from another process --- */

static int hold_still(void *argument)
{
	for (;;)
		pause();
	return 0;
}

static int time_remote(struct collapse *collapse, int pidfd, struct collapse_samples *samples,
		       struct message *why)
{
	struct iovec range = {.iov_len = collapse->table_bytes};

	samples->count = 0;
	while (samples->count < samples->capacity) {
		uint64_t table = samples->count % collapse->tables;
		int64_t begin_ns;
		long result;

		range.iov_base = (char *)collapse->region.memory + table * collapse->table_bytes;
		begin_ns = clock_now_ns();
		result = pidfd < 0
				 ? madvise(range.iov_base, range.iov_len, MADV_COLLAPSE)
				 : syscall(SYS_process_madvise, pidfd, &range, 1, MADV_COLLAPSE, 0);
		collapse_samples_add(collapse, samples, begin_ns);
		if (result < 0)
			return message_set_errno(why, -errno, "%s with MADV_COLLAPSE",
						 pidfd < 0 ? "madvise" : "process_madvise");
	}
	return 0;
}

int collapse_remote_row(struct collapse *collapse, const struct collapse_row *row,
			struct message *why)
{
	struct child_settings settings = {.name = "thp_held", .transaction = collapse->transaction};
	struct collapse_samples samples;
	struct collapse_window window;
	struct child child;
	int error = collapse_samples_make(&samples, REMOTE_CALLS);

	if (error)
		return error;
	/* The child's tables are the same huge pages, seen through its own tables. */
	error = child_start(&settings, hold_still, NULL, &child, why);
	if (error)
		goto free_samples;
	if (child.pidfd < 0) {
		error = message_set(why, -ENOTSUP, "this kernel has no pidfds (Linux 5.3)");
		goto end_child;
	}
	collapse_window_begin(collapse, &window);
	error = time_remote(collapse, -1, &samples, why);
	if (!error) {
		collapse_prefix(collapse, "local_");
		collapse_put_samples(collapse, &samples, 0, "own memory, 2M per call");
		error = time_remote(collapse, child.pidfd, &samples, why);
	}
	if (!error) {
		collapse_prefix(collapse, "remote_");
		collapse_put_samples(collapse, &samples, 0,
				     "memory of another process, 2M per call");
	}
	collapse_window_end(collapse, &window, 0);
end_child:
	child_kill(&child, 2 * NS_PER_S, collapse->transaction);
free_samples:
	collapse_samples_free(&samples);
	return error;
}
