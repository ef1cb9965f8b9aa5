/* SPDX-License-Identifier: MIT */
/*
 * The events, and what each means to a replay. What an event holds is read from the kernel's own
 * description, so that a kernel that moves or renames fields is read right, and one that lacks an
 * event is only blind in that place.
 */
#include "causes/tracefs_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <tracefs/tracefs.h>

#include "base/array.h"

#define LIGHT 1
#define FULL 2

#define EVENT(level_, system_, name_, kind_, cause_, ...)                                          \
	{                                                                                          \
		.system = system_, .name = name_, .level = level_, .kind = kind_, .cause = cause_, \
		.fields = {                                                                        \
			__VA_ARGS__                                                                \
		}                                                                                  \
	}

/* A pair of events around a region, with the same fields. */
#define REGION(level, system, begin, end, cause, ...)                 \
	EVENT(level, system, begin, TRACE_ENTER, cause, __VA_ARGS__), \
		EVENT(level, system, end, TRACE_LEAVE, cause, __VA_ARGS__)

#define HANDLER(system, begin, end, cause, ...)                          \
	EVENT(FULL, system, begin, TRACE_IRQ_ENTER, cause, __VA_ARGS__), \
		EVENT(FULL, system, end, TRACE_IRQ_LEAVE, cause, __VA_ARGS__)

const struct event_row event_rows[] = {
	EVENT(LIGHT, "sched", "sched_switch", TRACE_SWITCH, CAUSE_UNKNOWN, "prev_state",
	      "prev_comm", "next_pid", "next_comm", "next_prio", "prev_pid"),
	EVENT(LIGHT, "sched", "sched_waking", TRACE_WAKING, CAUSE_UNKNOWN, "pid", "comm",
	      "target_cpu"),
	REGION(LIGHT, "vmscan", "mm_vmscan_direct_reclaim_begin", "mm_vmscan_direct_reclaim_end",
	       CAUSE_DIRECT_RECLAIM, NULL),
	REGION(LIGHT, "vmscan", "mm_vmscan_memcg_reclaim_begin", "mm_vmscan_memcg_reclaim_end",
	       CAUSE_MEMCG_RECLAIM, NULL),
	REGION(LIGHT, "vmscan", "mm_vmscan_memcg_softlimit_reclaim_begin",
	       "mm_vmscan_memcg_softlimit_reclaim_end", CAUSE_MEMCG_RECLAIM, NULL),
	REGION(LIGHT, "vmscan", "mm_vmscan_node_reclaim_begin", "mm_vmscan_node_reclaim_end",
	       CAUSE_DIRECT_RECLAIM, NULL),
	REGION(LIGHT, "vmscan", "mm_shrink_slab_start", "mm_shrink_slab_end", CAUSE_SHRINKER,
	       "shrink"),
	EVENT(LIGHT, "vmscan", "mm_vmscan_lru_shrink_inactive", TRACE_RECLAIMED, CAUSE_UNKNOWN,
	      "nr_scanned", "nr_reclaimed", "reclaim_flags"),
	REGION(LIGHT, "compaction", "mm_compaction_begin", "mm_compaction_end", CAUSE_COMPACTION,
	       NULL),
	EVENT(LIGHT, "huge_memory", "mm_collapse_huge_page", TRACE_COLLAPSE, CAUSE_UNKNOWN, "mm"),
	REGION(LIGHT, "writeback", "writeback_start", "writeback_written", CAUSE_WRITEBACK, NULL),
	HANDLER("irq", "irq_handler_entry", "irq_handler_exit", CAUSE_IRQ, "irq", "name"),
	HANDLER("irq", "softirq_entry", "softirq_exit", CAUSE_SOFTIRQ, "vec"),
	HANDLER("irq_vectors", "local_timer_entry", "local_timer_exit", CAUSE_IRQ, NULL),
	HANDLER("irq_vectors", "reschedule_entry", "reschedule_exit", CAUSE_IRQ, NULL),
	HANDLER("irq_vectors", "call_function_entry", "call_function_exit", CAUSE_IRQ, NULL),
	HANDLER("irq_vectors", "call_function_single_entry", "call_function_single_exit", CAUSE_IRQ,
		NULL),
	HANDLER("irq_vectors", "irq_work_entry", "irq_work_exit", CAUSE_IRQ, NULL),
	HANDLER("timer", "hrtimer_expire_entry", "hrtimer_expire_exit", CAUSE_IRQ, "function"),
	REGION(FULL, "lock", "contention_begin", "contention_end", CAUSE_LOCK, "flags",
	       "lock_addr"),
	/*
	 * Of the sampler alone, and where a sample takes the lock. A writer first spins on a
	 * semaphore, which contention_begin does not tell.
	 */
	REGION(FULL, "mmap_lock", "mmap_lock_start_locking", "mmap_lock_acquire_returned",
	       CAUSE_LOCK, "write", "mm"),
	/* Of the sampler alone and to zram alone, where a write ends before it returns. */
	REGION(FULL, "block", "block_bio_queue", "block_bio_complete", CAUSE_SWAP_IO, "rwbs"),
	/* Written by a trigger of sched_waking; there is nothing to enable. */
	EVENT(FULL, "ftrace", "kernel_stack", TRACE_STACK, CAUSE_UNKNOWN, "caller"),
};

const size_t event_row_count = ARRAY_SIZE(event_rows);

bool event_is_required(const struct event_row *row)
{
	return strcmp(row->system, "sched") == 0;
}

/* Optional as a whole: interrupts of x86 have names of their own, others go by irq_handler_*. */
static bool is_worth_telling(const struct event_row *row)
{
	return strcmp(row->system, "irq_vectors") != 0 && strcmp(row->system, "block") != 0 &&
	       !strstr(row->name, "softlimit") && !strstr(row->name, "node_reclaim");
}

static int add_row(struct event_table *table, const struct event_row *row)
{
	struct tep_event *event = tep_find_event_by_name(table->tep, row->system, row->name);
	struct event_reader *reader;

	if (!event)
		return -ENOENT;
	if ((size_t)event->id >= table->count) {
		size_t count = (size_t)event->id + 64;
		struct event_reader *grown = realloc(table->readers, count * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		memset(&grown[table->count], 0, (count - table->count) * sizeof(*grown));
		table->readers = grown;
		table->count = count;
	}
	reader = &table->readers[event->id];
	reader->row = row;
	reader->common_pid = tep_find_common_field(event, "common_pid");
	for (int i = 0; i < EVENT_FIELDS && row->fields[i]; i++)
		reader->fields[i] = tep_find_field(event, row->fields[i]);
	return 0;
}

int event_table_open(struct event_table *table, const char *directory, int level,
		     struct message *message)
{
	static const char *const systems[] = {"sched",	   "irq",   "irq_vectors", "timer",
					      "vmscan",	   "lock",  "compaction",  "huge_memory",
					      "writeback", "block", "mmap_lock",   "ftrace",
					      NULL};
	size_t used = 0;

	memset(table, 0, sizeof(*table));
	tracefs_set_loglevel(TEP_LOG_NONE);
	table->tep = tracefs_local_events_system(directory, systems);
	if (!table->tep)
		return message_set(message, -ENOTSUP, "no event is described below %s/events",
				   directory);
	for (size_t i = 0; i < event_row_count; i++) {
		const struct event_row *row = &event_rows[i];
		int error = row->level > level ? 0 : add_row(table, row);

		if (error == -ENOENT && event_is_required(row)) {
			event_table_close(table);
			return message_set(message, -ENOTSUP,
					   "this kernel has no event %s:%s: build it with "
					   "CONFIG_EVENT_TRACING",
					   row->system, row->name);
		}
		if (error == -ENOMEM) {
			event_table_close(table);
			return message_set_errno(message, error, "events");
		}
		if (error == -ENOENT && is_worth_telling(row) && used < sizeof(table->missing))
			used += (size_t)snprintf(table->missing + used,
						 sizeof(table->missing) - used, "%s%s",
						 used ? " " : "", row->name);
	}
	return 0;
}

void event_table_close(struct event_table *table)
{
	if (table->tep)
		tep_free(table->tep);
	free(table->readers);
	table->tep = NULL;
	table->readers = NULL;
	table->count = 0;
}

/* A field as a number; 0 when this kernel has it not. */
static int64_t number(const struct event_reader *reader, int index, const void *data)
{
	unsigned long long value = 0;

	if (reader->fields[index])
		tep_read_number_field(reader->fields[index], data, &value);
	return (int64_t)value;
}

/* A text field inside the event, of fixed place or behind an offset. */
static const char *text(const struct event_reader *reader, int index, const char *data, int size,
			struct string_pool *pool)
{
	struct tep_format_field *field = reader->fields[index];
	int offset, length;

	if (!field)
		return NULL;
	offset = field->offset;
	length = field->size;
	if (field->flags & TEP_FIELD_IS_DYNAMIC) {
		uint32_t where;

		memcpy(&where, data + field->offset, sizeof(where));
		offset = where & 0xffff;
		length = where >> 16;
	}
	if (offset < 0 || length <= 0 || offset + length > size)
		return NULL;
	return string_pool_keep(pool, data + offset, (size_t)length);
}

/* prev_state: bits of include/linux/sched.h; 0x100 (and what lay above before 4.14): preempted. */
static int32_t state_of(int64_t bits)
{
	if (bits & 0x100 || (bits & 0xff) == 0)
		return STATE_RUNNABLE;
	if (bits & (0x04 | 0x08))
		return STATE_STOPPED;
	if (bits & 0x02)
		return STATE_BLOCKED;
	return bits & (0x10 | 0x20) ? STATE_DEAD : STATE_SLEEPING;
}

/* "call_function_single_entry" is "call function". */
static const char *vector_name(const struct event_row *row)
{
	static const char *const names[] = {"local timer", "reschedule", "call function",
					    "irq work"};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(row->name, names[i], strcspn(names[i], " ")) == 0)
			return names[i];
	return NULL;
}

static const char *softirq_name(int64_t vector)
{
	static const char *const names[] = {"HI",	"TIMER",   "NET_TX", "NET_RX",	"BLOCK",
					    "IRQ_POLL", "TASKLET", "SCHED",  "HRTIMER", "RCU"};

	return vector >= 0 && vector < 10 ? names[vector] : "unknown";
}

/* Flags LCB_F_* of include/trace/events/lock.h. */
static const char *lock_name(int64_t flags)
{
	if (flags & 32)
		return "a mutex";
	if (flags & 16)
		return "a per-CPU read-write semaphore";
	if (flags & 1)
		return flags & (2 | 4) ? "a read-write spin lock" : "a spin lock";
	if (flags & 4)
		return "a read-write semaphore (to write)";
	if (flags & 2)
		return "a read-write semaphore (to read)";
	return "a lock";
}

/*
 * The functions that the interrupted task was in, innermost first: what lies below the frame of
 * the interrupt's entry, at most four.
 */
static const char *stack_text(const struct event_reader *reader, const char *data, int size,
			      const struct symbols *symbols, struct string_pool *pool)
{
	struct tep_format_field *field = reader->fields[0];
	int frames = field ? (size - field->offset) / 8 : 0, first = -1, named = 0;
	char buffer[160] = "";
	size_t used = 0;

	if (!symbols)
		return NULL;
	for (int pass = 0; pass < 2; pass++) {
		for (int i = pass ? first + 1 : 0; i < frames && (pass == 0 || first >= 0); i++) {
			uint64_t address;
			const char *name;

			memcpy(&address, data + field->offset + 8 * i, sizeof(address));
			name = address && address != UINT64_MAX ? symbols_find(symbols, address)
								: NULL;
			if (!name)
				continue;
			if (pass == 0 && (strncmp(name, "asm_", 4) == 0 ||
					  strncmp(name, "el1h_64_irq", 11) == 0))
				first = i;
			if (pass == 1 && named < 4 && used < sizeof(buffer)) {
				used += (size_t)snprintf(buffer + used, sizeof(buffer) - used,
							 "%s%s", named ? " < " : "", name);
				named++;
			}
		}
	}
	return named ? string_pool_keep(pool, buffer, sizeof(buffer)) : NULL;
}

static const char *function_name(const struct event_reader *reader, const void *data,
				 const struct symbols *symbols, struct string_pool *pool)
{
	const char *name = symbols_find(symbols, (uint64_t)number(reader, 0, data));

	return name ? string_pool_keep(pool, name, strlen(name)) : NULL;
}

/* An address as something to compare: which address space it is of. */
static int32_t identity(int64_t address)
{
	return (int32_t)((uint64_t)address >> 6 & INT32_MAX);
}

static void read_switch(const struct event_reader *reader, const char *data, int size,
			struct string_pool *pool, struct trace_event *event)
{
	event->tid = (int32_t)number(reader, 5, data);
	event->value = state_of(number(reader, 0, data));
	event->comm = text(reader, 1, data, size, pool);
	event->other = (int32_t)number(reader, 2, data);
	event->other_comm = text(reader, 3, data, size, pool);
	event->priority = (int32_t)number(reader, 4, data);
}

static void read_name(const struct event_reader *reader, const char *data, int size,
		      const struct symbols *symbols, struct string_pool *pool,
		      struct trace_event *event)
{
	const struct event_row *row = reader->row;
	char name[64];

	if (strcmp(row->system, "irq_vectors") == 0) {
		event->name = vector_name(row);
	} else if (event->cause == CAUSE_SOFTIRQ) {
		event->name = softirq_name(number(reader, 0, data));
	} else if (event->cause == CAUSE_SHRINKER) {
		event->name = function_name(reader, data, symbols, pool);
	} else if (event->cause == CAUSE_SWAP_IO && reader->fields[0]) {
		const char *operation = text(reader, 0, data, size, pool);

		event->name =
			operation && strchr(operation, 'W') ? "writes to zram" : "reads from zram";
	} else if (strcmp(row->system, "mmap_lock") == 0) {
		event->name =
			number(reader, 0, data) ? "mmap_lock (to write)" : "mmap_lock (to read)";
		event->other = identity(number(reader, 1, data));
	} else if (event->cause == CAUSE_LOCK) {
		event->lock = (uint64_t)number(reader, 1, data);
		event->name = reader->fields[0] ? lock_name(number(reader, 0, data)) : NULL;
	} else if (strcmp(row->system, "timer") == 0) {
		const char *function = function_name(reader, data, symbols, pool);

		snprintf(name, sizeof(name), "timer %s", function ? function : "");
		event->name = string_pool_keep(pool, name, sizeof(name));
	} else if (strcmp(row->system, "irq") == 0) {
		const char *device = text(reader, 1, data, size, pool);

		snprintf(name, sizeof(name), "%lld%s%s", (long long)number(reader, 0, data),
			 device ? " " : "", device ? device : "");
		event->name = string_pool_keep(pool, name, sizeof(name));
	}
}

bool event_read(const struct event_table *table, void *data, int size,
		const struct symbols *symbols, struct string_pool *pool, struct trace_event *event)
{
	unsigned short id;
	const struct event_reader *reader;
	unsigned long long pid = 0;

	memcpy(&id, data, sizeof(id)); /* common_type comes first in every event */
	if (id >= table->count || !table->readers[id].row)
		return false;
	reader = &table->readers[id];
	if (reader->common_pid)
		tep_read_number_field(reader->common_pid, data, &pid);
	event->tid = (int32_t)pid;
	event->kind = reader->row->kind;
	event->cause = reader->row->cause;
	event->priority = -1;
	switch (event->kind) {
	case TRACE_SWITCH:
		read_switch(reader, data, size, pool, event);
		break;
	case TRACE_WAKING:
		event->other = (int32_t)number(reader, 0, data);
		event->other_comm = text(reader, 1, data, size, pool);
		event->value = reader->fields[2] ? (int32_t)number(reader, 2, data) : -1;
		break;
	case TRACE_RECLAIMED:
		/* RECLAIM_WB_ANON is 1, RECLAIM_WB_FILE 2 (include/trace/events/vmscan.h). */
		event->other = (int32_t)number(reader, 0, data);
		event->value = (int32_t)number(reader, 1, data);
		if (number(reader, 2, data) & 2)
			event->value = -event->value;
		break;
	case TRACE_COLLAPSE:
		event->other = identity(number(reader, 0, data));
		break;
	case TRACE_STACK:
		event->name = stack_text(reader, data, size, symbols, pool);
		return event->name != NULL;
	default:
		read_name(reader, data, size, symbols, pool, event);
		break;
	}
	return true;
}
