/* SPDX-License-Identifier: MIT */
/*
 * What scanning and collapsing do to their neighbours: page faults, mmap, mprotect, wakeups, each a
 * thousand times a second. A deadline that passes while the one before is under way is missed, not
 * made up for: a starved writer shows as a rate below what was offered, beside its latencies.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "collapse/state.h"
#include "sys/child.h"

#define WORKED_MOST (UINT64_C(1) << 30)
#define FAULTED_TABLES_MOST 4
#define WINDOW_MOST_NS (2 * NS_PER_S) /* of one kind of work in one run */
#define WINDOW_LEAST_NS (100 * NS_PER_MS)
#define RATE_PER_S 1000
#define SAMPLES_MOST 20000
#define SMALL_BYTES 65536

/* What is done, at a fixed rate, while the load runs. */
enum work {
	WORK_FAULT_SAME,  /* 4K page fault in the mapping that the load works on */
	WORK_FAULT_OTHER, /* in another mapping of the process */
	WORK_MAP,	  /* mmap and munmap of 64K */
	WORK_PROTECT,	  /* mprotect of 64K, to and fro */
	WORK_WAKEUP,	  /* timer wakeup of another process */
	WORKS,
};

/*
 * The mapping: tables that the load works on, then tables of small pages of which each keeps its
 * first one, so that a fault there is one of 4K, whatever the advice on the mapping.
 */
struct memory {
	struct thp_region region;
	char *worked, *faulted;
	uint64_t worked_bytes, faulted_bytes;
	char *other; /* as much as is faulted, in a mapping of its own */
	struct thp_region other_region;
};

/* How much of what was offered was done, and what each took. */
struct result {
	size_t count;
	uint64_t offered;
	double values[SAMPLES_MOST];
};

static const struct {
	const char *name, *title;
} works[WORKS] = {
	{"fault_same", "4K fault, same mapping"}, {"fault_other", "4K fault, other mapping"},
	{"map", "mmap + munmap of 64K"},	  {"protect", "mprotect of 64K, twice"},
	{"wakeup", "wakeup of another process"},
};

/* --- memory --- */

static void free_memory(struct memory *memory)
{
	thp_region_unmap(&memory->region);
	thp_region_unmap(&memory->other_region);
}

/* Small pages made huge by MADV_COLLAPSE, so that the mapping needs no advice of its own. */
static int make_memory(struct collapse *collapse, enum neighbour_load load, struct memory *memory,
		       struct message *why)
{
	uint64_t table_bytes = collapse->table_bytes, bytes, faulted = collapse->tables / 8;
	int error;

	if (faulted > FAULTED_TABLES_MOST)
		faulted = FAULTED_TABLES_MOST;
	*memory = (struct memory){.faulted_bytes = (faulted ? faulted : 1) * table_bytes};
	bytes = collapse->bytes / 2 < WORKED_MOST ? collapse->bytes / 2 : WORKED_MOST;
	memory->worked_bytes = bytes / table_bytes * table_bytes;
	error = thp_region_map(memory->worked_bytes + memory->faulted_bytes, &memory->region);
	if (!error)
		error = thp_region_map(memory->faulted_bytes, &memory->other_region);
	if (error) {
		free_memory(memory);
		return message_set_errno(why, error, "cannot map memory");
	}
	memory->worked = memory->region.memory;
	memory->faulted = memory->worked + memory->worked_bytes;
	memory->other = memory->other_region.memory;
	for (uint64_t at = 0; at < memory->faulted_bytes; at += table_bytes)
		memory->faulted[at] = memory->other[at] = 1;
	if (load != NEIGHBOURS_SCAN && load != NEIGHBOURS_LOOP)
		return 0;
	collapse_touch(collapse, memory->worked, memory->worked_bytes / collapse->page_bytes);
	if (madvise(memory->worked, memory->worked_bytes, MADV_COLLAPSE) < 0)
		error = message_set_errno(why, -errno, "cannot collapse the memory to work on");
	/* The tables that are faulted are refused for their holes. */
	if (!error && load == NEIGHBOURS_SCAN &&
	    madvise(memory->worked, memory->region.bytes, MADV_HUGEPAGE) < 0)
		error = message_set_errno(why, -errno, "MADV_HUGEPAGE");
	if (error)
		free_memory(memory);
	return error;
}

/* --- loads --- */

struct load_thread {
	const struct collapse *collapse;
	const struct memory *memory;
	enum neighbour_load load;
	pthread_t thread;
	bool started;
	_Atomic int stop, error;
	_Atomic uint64_t calls;
};

/* Small pages made huge, dropped, made again: a real collapse each time. */
static void collapse_again_and_again(struct load_thread *load)
{
	const struct collapse *collapse = load->collapse;
	uint64_t tables = load->memory->worked_bytes / collapse->table_bytes;

	for (uint64_t i = 0; !atomic_load(&load->stop); i++) {
		char *table = load->memory->worked + i % tables * collapse->table_bytes;

		collapse_touch(collapse, table, collapse->pages_per_table);
		if (madvise(table, collapse->table_bytes, MADV_COLLAPSE) < 0 && errno != EAGAIN)
			atomic_store(&load->error, -errno);
		else
			atomic_fetch_add(&load->calls, 1);
		madvise(table, collapse->table_bytes, MADV_DONTNEED);
	}
}

static void *load_main(void *data)
{
	struct load_thread *load = data;

	if (load->load == NEIGHBOURS_COLLAPSE) {
		collapse_again_and_again(load);
		return NULL;
	}
	while (!atomic_load(&load->stop)) {
		if (madvise(load->memory->worked, load->memory->worked_bytes, MADV_COLLAPSE) < 0)
			atomic_store(&load->error, -errno);
		else
			atomic_fetch_add(&load->calls, 1);
	}
	return NULL;
}

static int start_load(struct collapse *collapse, struct load_thread *load, struct message *why)
{
	int error;

	if (load->load == NEIGHBOURS_IDLE)
		return 0;
	if (load->load == NEIGHBOURS_SCAN)
		return transaction_write(collapse->transaction,
					 KHUGEPAGED_FOLDER "/scan_sleep_millisecs", "0", why);
	error = -pthread_create(&load->thread, NULL, load_main, load);
	load->started = error == 0;
	return error ? message_set_errno(why, error, "thread") : 0;
}

static void stop_load(struct load_thread *load)
{
	atomic_store(&load->stop, 1);
	if (load->started)
		pthread_join(load->thread, NULL);
	load->started = false;
}

/* --- work --- */

/* Pages that can be faulted before all must be dropped: not the first of each table. */
static uint64_t page_count(const struct collapse *collapse, const struct memory *memory)
{
	return memory->faulted_bytes / collapse->table_bytes * (collapse->pages_per_table - 1);
}

static char *page_at(const struct collapse *collapse, char *from, uint64_t i)
{
	uint64_t per_table = collapse->pages_per_table - 1;

	return from + i / per_table * collapse->table_bytes +
	       (1 + i % per_table) * collapse->page_bytes;
}

/* Untimed: gives the pages back; their tables stay for the first page of each. */
static void drop_pages(const struct collapse *collapse, const struct memory *memory, char *from)
{
	for (uint64_t at = 0; at < memory->faulted_bytes; at += collapse->table_bytes)
		madvise(from + at + collapse->page_bytes,
			collapse->table_bytes - collapse->page_bytes, MADV_DONTNEED);
}

static int64_t time_fault(const struct collapse *collapse, struct memory *memory, char *from,
			  uint64_t i)
{
	uint64_t pages = page_count(collapse, memory);
	int64_t begin_ns;

	if (i % pages == 0)
		drop_pages(collapse, memory, from);
	begin_ns = clock_now_ns();
	*(volatile char *)page_at(collapse, from, i % pages) = 1;
	return clock_now_ns() - begin_ns;
}

static int64_t time_map(void)
{
	int64_t begin_ns = clock_now_ns();
	void *mapped =
		mmap(NULL, SMALL_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (mapped == MAP_FAILED)
		return -errno;
	munmap(mapped, SMALL_BYTES);
	return clock_now_ns() - begin_ns;
}

static int64_t time_protect(struct memory *memory)
{
	int64_t begin_ns = clock_now_ns();

	if (mprotect(memory->other, SMALL_BYTES, PROT_READ) < 0 ||
	    mprotect(memory->other, SMALL_BYTES, PROT_READ | PROT_WRITE) < 0)
		return -errno;
	return clock_now_ns() - begin_ns;
}

static int64_t time_work(const struct collapse *collapse, enum work work, struct memory *memory,
			 uint64_t i)
{
	switch (work) {
	case WORK_FAULT_SAME:
		return time_fault(collapse, memory, memory->faulted, i);
	case WORK_FAULT_OTHER:
		return time_fault(collapse, memory, memory->other, i);
	case WORK_MAP:
		return time_map();
	case WORK_PROTECT:
		return time_protect(memory);
	default:
		return -EINVAL;
	}
}

/* Does @work for @ns in this thread. */
static int do_work(const struct collapse *collapse, enum work work, struct memory *memory,
		   int64_t ns, struct result *result)
{
	const int64_t period_ns = NS_PER_S / RATE_PER_S;
	int64_t begin_ns, due_ns, now_ns, took_ns;

	result->count = 0;
	result->offered = (uint64_t)(ns / period_ns);
	/* The kernel may else put wakeups off by 50 us. */
	prctl(PR_SET_TIMERSLACK, 1);
	begin_ns = due_ns = clock_now_ns();
	while ((due_ns += period_ns) - begin_ns <= ns && result->count < SAMPLES_MOST) {
		clock_sleep_until(due_ns);
		now_ns = clock_now_ns();
		took_ns = work == WORK_WAKEUP ? now_ns - due_ns
					      : time_work(collapse, work, memory, result->count);
		if (work != WORK_WAKEUP && took_ns < 0)
			return (int)took_ns;
		result->values[result->count++] = (double)took_ns - collapse->clock_cost_ns;
		now_ns = clock_now_ns();
		if (now_ns > due_ns + period_ns) {
			uint64_t missed = (uint64_t)((now_ns - due_ns) / period_ns);

			due_ns += (int64_t)missed * period_ns;
		}
		if (collapse_stopping(collapse))
			return -EINTR;
	}
	return 0;
}

/* --- wakeups, in a process of their own --- */

struct wakeup_body {
	const struct collapse *collapse;
	int64_t ns;
	struct result *result;
};

static int wakeup_main(void *argument)
{
	struct wakeup_body *body = argument;

	return do_work(body->collapse, WORK_WAKEUP, NULL, body->ns, body->result);
}

static int measure_wakeups(struct collapse *collapse, int64_t ns, struct result *result,
			   struct message *why)
{
	struct child_settings settings = {.name = "wakeups", .transaction = collapse->transaction};
	struct wakeup_body body = {collapse, ns, result};
	struct child child;
	int status, error = child_start(&settings, wakeup_main, &body, &child, why);
	pid_t pid = child.pid;

	if (error)
		return error;
	while ((error = child_wait(&child, clock_now_ns() + 200 * NS_PER_MS, &status)) ==
	       -ETIMEDOUT)
		if (collapse_stopping(collapse)) {
			child_kill(&child, 2 * NS_PER_S, collapse->transaction);
			return -EINTR;
		}
	if (collapse->transaction)
		transaction_disown_process(collapse->transaction, pid);
	return error ?: status ? message_set(why, -ECHILD, "the process to be woken failed") : 0;
}

/* --- the row --- */

static void put_result(struct collapse *collapse, enum work work, struct result *result)
{
	struct collapse_samples samples = {result->values, result->count, result->count};

	collapse_prefix(collapse, "%s_", works[work].name);
	collapse_put_samples(collapse, &samples, SAMPLES_P99_9 | SAMPLES_MAX, "%s",
			     works[work].title);
	collapse_put(collapse, "done_pct", "%",
		     100 * (double)result->count / (double)result->offered,
		     "%s, done of %d offered a second", works[work].title, RATE_PER_S);
}

static int measure_works(struct collapse *collapse, struct memory *memory, struct result *result,
			 struct message *why)
{
	int64_t ns = collapse->settings->window_ns / 10;
	int error = 0;

	if (ns > WINDOW_MOST_NS)
		ns = WINDOW_MOST_NS;
	if (ns < WINDOW_LEAST_NS)
		ns = WINDOW_LEAST_NS;
	for (int work = 0; work < WORKS && !error; work++) {
		if (work == WORK_WAKEUP)
			error = measure_wakeups(collapse, ns, result, why);
		else
			error = do_work(collapse, (enum work)work, memory, ns, result);
		if (!error)
			put_result(collapse, (enum work)work, result);
	}
	return error;
}

int collapse_neighbours_row(struct collapse *collapse, const struct collapse_row *row,
			    struct message *why)
{
	struct result *result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct memory memory;
	struct load_thread load = {.collapse = collapse,
				   .memory = &memory,
				   .load = (enum neighbour_load)row->argument};
	struct khugepaged_sample before = {0}, after = {0};
	struct collapse_window window;
	int64_t begin_ns;
	int error;

	if (result == MAP_FAILED)
		return -errno;
	memset(result, 0, sizeof(*result)); /* its pages exist before anything is timed */
	error = make_memory(collapse, load.load, &memory, why);
	if (error)
		goto unmap;
	collapse_window_begin(collapse, &window);
	error = start_load(collapse, &load, why);
	khugepaged_sample(collapse->khugepaged, &before);
	begin_ns = clock_now_ns();
	if (!error)
		error = measure_works(collapse, &memory, result, why);
	khugepaged_sample(collapse->khugepaged, &after);
	stop_load(&load);
	collapse_window_end(collapse, &window,
			    WINDOW_SPLITS | WINDOW_COMPACTS |
				    (load.load == NEIGHBOURS_SCAN ? WINDOW_KHUGEPAGED : 0));
	collapse->prefix[0] = '\0';
	if (!error && (load.load == NEIGHBOURS_COLLAPSE || load.load == NEIGHBOURS_LOOP))
		collapse_put(collapse, "calls_per_s", "calls/s",
			     (double)atomic_load(&load.calls) * 1e9 /
				     (double)(clock_now_ns() - begin_ns),
			     "MADV_COLLAPSE calls a second");
	if (!error && atomic_load(&load.error))
		collapse_break(collapse, "MADV_COLLAPSE failed beside (%s)",
			       strerrordesc_np(-atomic_load(&load.error)));
	if (!error && load.load == NEIGHBOURS_SCAN && after.full_scans == before.full_scans)
		collapse_break(collapse, "khugepaged did not scan everything once meanwhile");
	free_memory(&memory);
unmap:
	munmap(result, sizeof(*result));
	return error;
}
