/* SPDX-License-Identifier: MIT */
/* What scanning and collapsing do to their neighbours: page faults, mappings, wakeups. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/array.h"
#include "base/clock.h"
#include "collapse/beside.h"
#include "sys/child.h"

#define WORKED_MOST (UINT64_C(1) << 30)
#define FAULTED_TABLES_MOST 4
#define WINDOW_MOST_NS (2 * NS_PER_S) /* of one kind of work in one run */
#define WINDOW_LEAST_NS (100 * NS_PER_MS)

static const struct {
	const char *name, *title;
} works[BESIDE_WORKS] = {
	{"fault_same", "4K fault, same mapping"}, {"fault_other", "4K fault, other mapping"},
	{"map", "mmap + munmap of 64K"},	  {"protect", "mprotect of 64K, twice"},
	{"wakeup", "wakeup of another process"},
};

/* --- memory --- */

static void free_memory(struct beside_memory *memory)
{
	thp_region_unmap(&memory->region);
	thp_region_unmap(&memory->other_region);
}

/* Small pages made huge by MADV_COLLAPSE, so that the mapping needs no advice of its own. */
static int make_memory(struct collapse *collapse, enum beside_load load,
		       struct beside_memory *memory, struct message *why)
{
	uint64_t table_bytes = collapse->table_bytes, bytes, faulted = collapse->tables / 8;
	int error;

	if (faulted > FAULTED_TABLES_MOST)
		faulted = FAULTED_TABLES_MOST;
	*memory = (struct beside_memory){.faulted_bytes = (faulted ? faulted : 1) * table_bytes};
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
	if (load != BESIDE_SCAN && load != BESIDE_LOOP)
		return 0;
	for (uint64_t at = 0; at < memory->worked_bytes; at += collapse->page_bytes)
		*(volatile char *)(memory->worked + at) = 1;
	if (madvise(memory->worked, memory->worked_bytes, MADV_COLLAPSE) < 0)
		error = message_set_errno(why, -errno, "cannot collapse the memory to work on");
	/* The tables that are faulted are refused for their holes. */
	if (!error && load == BESIDE_SCAN &&
	    madvise(memory->worked, memory->region.bytes, MADV_HUGEPAGE) < 0)
		error = message_set_errno(why, -errno, "MADV_HUGEPAGE");
	if (error)
		free_memory(memory);
	return error;
}

/* --- loads --- */

struct load_thread {
	const struct collapse *collapse;
	const struct beside_memory *memory;
	enum beside_load load;
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

		for (uint64_t at = 0; at < collapse->table_bytes; at += collapse->page_bytes)
			*(volatile char *)(table + at) = 1;
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

	if (load->load == BESIDE_COLLAPSE) {
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

	if (load->load == BESIDE_IDLE)
		return 0;
	if (load->load == BESIDE_SCAN)
		return knobs_write(collapse->knobs, KHUGEPAGED_FOLDER "/scan_sleep_millisecs", "0",
				   why);
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

/* --- wakeups, in a process of their own --- */

struct wakeup_body {
	const struct collapse *collapse;
	int64_t ns;
	struct beside_result *result;
};

static int wakeup_main(void *argument)
{
	struct wakeup_body *body = argument;

	return beside_do(body->collapse, BESIDE_WAKEUP, NULL, body->ns, body->result);
}

static int measure_wakeups(struct collapse *collapse, int64_t ns, struct beside_result *result,
			   struct message *why)
{
	struct child_settings settings = {.name = "wakeups", .knobs = collapse->knobs};
	struct wakeup_body body = {collapse, ns, result};
	struct child child;
	int status, error = child_start(&settings, wakeup_main, &body, &child, why);
	pid_t pid = child.pid;

	if (error)
		return error;
	while ((error = child_wait(&child, clock_now_ns() + 200 * NS_PER_MS, &status)) ==
	       -ETIMEDOUT)
		if (collapse_stopping(collapse)) {
			child_kill(&child, 2 * NS_PER_S, collapse->knobs);
			return -EINTR;
		}
	if (collapse->knobs)
		knobs_disown_process(collapse->knobs, pid);
	return error ?: status ? message_set(why, -ECHILD, "the process to be woken failed") : 0;
}

/* --- the row --- */

static void put_result(struct collapse *collapse, enum beside_work work,
		       const struct beside_result *result)
{
	static const struct {
		const char *name, *title;
		double fraction;
	} points[] = {{"p50_ns", "p50", 0.5},
		      {"p99_ns", "p99", 0.99},
		      {"p99_9_ns", "p99.9", 0.999},
		      {"max_ns", "max", 1}};
	struct collapse_samples samples = {(double *)result->values, result->count, result->count};
	char name[64];

	collapse_samples_sort(&samples);
	for (size_t i = 0; i < ARRAY_SIZE(points); i++) {
		snprintf(name, sizeof(name), "%s_%s", works[work].name, points[i].name);
		collapse_put(collapse, name, "ns", false,
			     collapse_samples_at(&samples, points[i].fraction), "%s, %s",
			     works[work].title, points[i].title);
	}
	snprintf(name, sizeof(name), "%s_done_pct", works[work].name);
	collapse_put(collapse, name, "%", true,
		     100 * (double)result->count / (double)result->offered,
		     "%s, done of %d offered a second", works[work].title, BESIDE_RATE_PER_S);
}

static int measure_works(struct collapse *collapse, struct beside_memory *memory,
			 struct beside_result *result, struct message *why)
{
	int64_t ns = collapse->settings->window_ns / 10;
	int error = 0;

	if (ns > WINDOW_MOST_NS)
		ns = WINDOW_MOST_NS;
	if (ns < WINDOW_LEAST_NS)
		ns = WINDOW_LEAST_NS;
	for (int work = 0; work < BESIDE_WORKS && !error; work++) {
		if (work == BESIDE_WAKEUP)
			error = measure_wakeups(collapse, ns, result, why);
		else
			error = beside_do(collapse, (enum beside_work)work, memory, ns, result);
		if (!error)
			put_result(collapse, (enum beside_work)work, result);
	}
	return error;
}

int collapse_beside_row(struct collapse *collapse, const struct collapse_row *row,
			struct message *why)
{
	struct beside_result *result = mmap(NULL, sizeof(*result), PROT_READ | PROT_WRITE,
					    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	size_t mark = collapse->knobs ? knobs_mark(collapse->knobs) : 0;
	struct beside_memory memory;
	struct load_thread load = {
		.collapse = collapse, .memory = &memory, .load = (enum beside_load)row->argument};
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
				    (load.load == BESIDE_SCAN ? WINDOW_KHUGEPAGED : 0));
	if (!error && (load.load == BESIDE_COLLAPSE || load.load == BESIDE_LOOP))
		collapse_put(collapse, "calls_per_s", "calls/s", true,
			     (double)atomic_load(&load.calls) * 1e9 /
				     (double)(clock_now_ns() - begin_ns),
			     "MADV_COLLAPSE calls a second");
	if (!error && atomic_load(&load.error))
		collapse_break(collapse, "MADV_COLLAPSE failed beside (%s)",
			       strerrordesc_np(-atomic_load(&load.error)));
	if (!error && load.load == BESIDE_SCAN && after.full_scans == before.full_scans)
		collapse_break(collapse, "khugepaged did not scan everything once meanwhile");
	if (collapse->knobs && knobs_undo_to(collapse->knobs, mark, why) < 0 && !error)
		error = -EIO;
	free_memory(&memory);
unmap:
	munmap(result, sizeof(*result));
	return error;
}
