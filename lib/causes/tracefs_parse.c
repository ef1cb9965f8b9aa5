/* SPDX-License-Identifier: MIT */
/* Kept pages to events; after the run only. */
#include "causes/tracefs_internal.h"

#include <errno.h>
#include <kbuffer.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

struct event_list {
	struct trace_event *items;
	size_t count, capacity;
};

/* NULL without memory. */
static struct trace_event *append(struct event_list *list, int32_t cpu, int64_t when_ns)
{
	if (array_reserve(&list->items, &list->capacity, list->count + 1) < 0)
		return NULL;
	list->items[list->count] = (struct trace_event){
		.kind = TRACE_LOST, .cpu = cpu, .when_ns = when_ns, .priority = -1};
	return &list->items[list->count++];
}

struct parser {
	struct kbuffer *kbuffer;
	const struct event_table *table;
	const struct symbols *symbols;
	struct string_pool *pool;
};

static int parse_page(const struct parser *parser, void *page, int32_t cpu, struct event_list *list)
{
	unsigned long long when_ns;
	void *data;

	if (kbuffer_load_subbuffer(parser->kbuffer, page) < 0)
		return 0;
	data = kbuffer_read_event(parser->kbuffer, &when_ns);
	if (data && kbuffer_missed_events(parser->kbuffer) != 0 &&
	    !append(list, cpu, (int64_t)when_ns))
		return -ENOMEM;
	for (; data; data = kbuffer_next_event(parser->kbuffer, &when_ns)) {
		struct trace_event *event = append(list, cpu, (int64_t)when_ns);

		if (!event)
			return -ENOMEM;
		if (!event_read(parser->table, data, kbuffer_event_size(parser->kbuffer),
				parser->symbols, parser->pool, event))
			list->count--;
	}
	return 0;
}

static int by_sequence(const void *a, const void *b)
{
	const struct ring_slot *left = *(const struct ring_slot *const *)a;
	const struct ring_slot *right = *(const struct ring_slot *const *)b;

	if (left->cpu != right->cpu)
		return left->cpu < right->cpu ? -1 : 1;
	return left->sequence < right->sequence ? -1 : left->sequence > right->sequence ? 1 : 0;
}

/* Equal times keep the order of their CPU: a merge of sorted runs, two at a time. */
static int merge(struct trace_event *events, size_t from, size_t middle, size_t to)
{
	size_t left = 0, count = middle - from, right = middle, at = from;
	struct trace_event *copy;

	if (count == 0)
		return 0;
	copy = malloc(count * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memcpy(copy, &events[from], count * sizeof(*copy));
	while (left < count) {
		if (right < to && events[right].when_ns < copy[left].when_ns)
			events[at++] = events[right++];
		else
			events[at++] = copy[left++];
	}
	free(copy);
	return 0;
}

static int parse_slots(const struct parser *parser, const struct ring *ring,
		       const struct ring_slot **slots, size_t used, struct event_list *list)
{
	size_t run = 0; /* where the events of this CPU begin */
	int error = 0;

	for (size_t i = 0; i < used && !error; i++) {
		const struct ring_slot *slot = slots[i];
		bool first = i == 0 || slots[i - 1]->cpu != slot->cpu;

		if (first) {
			error = merge(list->items, 0, run, list->count);
			run = list->count;
		}
		/* Not kept, or written over: what came between is not known. */
		if (!error &&
		    (first ? slot->sequence > 0 : slot->sequence != slots[i - 1]->sequence + 1) &&
		    !append(list, slot->cpu, slot->start_ns))
			error = -ENOMEM;
		if (!error)
			error = parse_page(parser,
					   ring->memory +
						   (size_t)(slot - ring->slots) * ring->page_bytes,
					   slot->cpu, list);
	}
	return error ? error : merge(list->items, 0, run, list->count);
}

int parse_ring(const struct ring *ring, const struct event_table *table,
	       const struct symbols *symbols, struct string_pool *pool,
	       struct trace_event **ret_events, size_t *ret_count)
{
	const struct ring_slot **slots = calloc(ring->count, sizeof(*slots));
	struct event_list list = {0};
	struct parser parser = {
		.kbuffer = kbuffer_alloc(sizeof(long) == 8 ? KBUFFER_LSIZE_8 : KBUFFER_LSIZE_4,
					 tep_is_bigendian() ? KBUFFER_ENDIAN_BIG
							    : KBUFFER_ENDIAN_LITTLE),
		.table = table,
		.symbols = symbols,
		.pool = pool,
	};
	int error = slots && parser.kbuffer ? 0 : -ENOMEM;
	size_t used = 0;

	for (size_t i = 0; i < ring->count && !error; i++)
		if (ring->slots[i].cpu >= 0 && ring->slots[i].kept)
			slots[used++] = &ring->slots[i];
	if (!error) {
		qsort(slots, used, sizeof(*slots), by_sequence);
		error = parse_slots(&parser, ring, slots, used, &list);
	}
	if (parser.kbuffer)
		kbuffer_free(parser.kbuffer);
	free(slots);
	if (error) {
		free(list.items);
		return error;
	}
	*ret_events = list.items;
	*ret_count = list.count;
	return 0;
}
