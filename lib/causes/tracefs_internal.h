/* SPDX-License-Identifier: MIT */
#ifndef CAUSES_TRACEFS_INTERNAL_H
#define CAUSES_TRACEFS_INTERNAL_H

#include <event-parse.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/message.h"
#include "explain/explain.h"
#include "undo/transaction.h"
#include "sys/steal.h"

/* Shared by causes/tracefs*.c. */

/* ---- tracefs_events.c: which events, what of each is read, what it means ---- */

#define EVENT_FIELDS 6

struct event_row {
	const char *system, *name;
	int level; /* from this trace level on */
	enum trace_kind kind;
	enum cause_kind cause;
	const char *fields[EVENT_FIELDS]; /* names of those that are read */
};

extern const struct event_row event_rows[];
extern const size_t event_row_count;

/* The scheduler's: without them nothing can be said. */
bool event_is_required(const struct event_row *row);

/* One event of a page through the kernel's own description of it. */
struct event_reader {
	const struct event_row *row;		       /* NULL: not ours */
	struct tep_format_field *fields[EVENT_FIELDS]; /* NULL: this kernel has it not */
	struct tep_format_field *common_pid;
};

struct event_table {
	struct tep_handle *tep;
	struct event_reader *readers; /* by id */
	size_t count;
	char missing[512]; /* names, set apart by blanks */
};

/* Reads the descriptions below @directory. -ENOTSUP names a required event that is not there. */
int event_table_open(struct event_table *table, const char *directory, int level,
		     struct message *message);
void event_table_close(struct event_table *table);

struct symbols;
struct string_pool;

/* Fills @event from @data; false: nothing to say. Strings live in @pool. */
bool event_read(const struct event_table *table, void *data, int size,
		const struct symbols *symbols, struct string_pool *pool, struct trace_event *event);

/* ---- tracefs_symbols.c: names of kernel functions, and strings that stay ---- */

struct symbols *symbols_read(void); /* NULL: hidden (kptr_restrict) or no memory */
void symbols_free(struct symbols *symbols);
/* The function that holds @address; NULL: not known. */
const char *symbols_find(const struct symbols *symbols, uint64_t address);

struct string_pool *string_pool_new(void);
void string_pool_free(struct string_pool *pool);
const char *string_pool_keep(struct string_pool *pool, const char *text, size_t length);

/* ---- tracefs_instance.c: a private trace buffer ---- */

#define INSTANCE_PREFIX "syslatency-"
#define BUFFER_DEFAULT_KIB 2048 /* a CPU */

struct instance {
	char directory[128]; /* of tracefs */
	char path[192];	     /* of the instance */
	int hold_fd;	     /* of tracefs: nobody can unmount it meanwhile */
	int *raw_fds;	     /* trace_pipe_raw of each CPU; -1: none */
	size_t cpu_count;
	int64_t buffer_kib; /* a CPU, as it came to be */
};

/* Finds tracefs, mounting it when that is allowed; instance_close() lets go of it. */
int instance_find(struct instance *instance, struct transaction *transaction,
		  struct message *message);
/*
 * Makes the instance, sets clock and size (@buffer_kib a CPU, less where there is no memory for
 * it); removes those of dead programs. Not tracing yet.
 */
int instance_make(struct instance *instance, struct transaction *transaction, int64_t buffer_kib,
		  struct message *message);
/* Enables the events of the level; sched_waking only for these threads. */
int instance_enable(struct instance *instance, const struct event_table *table, int level,
		    enum explain_subject subject, const struct sampling_thread *threads,
		    size_t count, struct message *message);
int instance_write(const struct instance *instance, const char *file, const char *text);
/* Sum over the CPUs of a line of per_cpu/cpuN/stats ("overrun", "dropped events"). */
int64_t instance_statistic(const struct instance *instance, const char *name);
void instance_close(struct instance *instance); /* files; the transaction removes the instance */

/* ---- tracefs_ring.c: pages in locked memory, kept around the worst delays ---- */

struct ring_slot {
	int32_t cpu; /* -1: free */
	bool kept;
	int64_t start_ns, end_ns; /* end: begin of the CPU's next page, INT64_MAX until it comes */
	uint64_t sequence;	  /* of the CPU's pages */
};

struct ring {
	unsigned char *memory;
	size_t page_bytes, count, next;
	bool locked;
	struct ring_slot *slots;
	ssize_t *last; /* slot of each CPU's last page; -1 */
	uint64_t *sequences;
	size_t cpu_count;
};

int ring_open(struct ring *ring, size_t page_bytes, size_t cpu_count);
void ring_close(struct ring *ring);
/* Where the next page goes: the oldest that is not kept; NULL: none. */
unsigned char *ring_next(struct ring *ring);
/* The page at ring_next() holds events of @cpu from @start_ns on. */
void ring_put(struct ring *ring, int32_t cpu, int64_t start_ns);
/*
 * Keeps the pages that overlap one of the windows (longest first), and no others; at most three
 * quarters of the ring, so of a stall too long for that its edges. Returns how many windows are
 * kept whole.
 */
size_t ring_keep(struct ring *ring, const struct explain_window *windows, size_t count);

/* ---- tracefs_drain.c: from the kernel to the ring ---- */

struct drain {
	struct instance *instance;
	struct ring *ring;
	struct steal_log *steal_log;
	pthread_mutex_t lock; /* ring and steal log */
	pthread_t thread;
	bool running;
	_Atomic bool stop;
	uint64_t bytes;
};

int drain_start(struct drain *drain);
void drain_stop(struct drain *drain); /* takes what is left */

/* ---- tracefs_parse.c: from kept pages to events ---- */

/* Sorted by time; caller frees. */
int parse_ring(const struct ring *ring, const struct event_table *table,
	       const struct symbols *symbols, struct string_pool *pool,
	       struct trace_event **ret_events, size_t *ret_count);

#endif
