/* SPDX-License-Identifier: MIT */
#include "causes/tracefs_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define RING_LEAST_BYTES (UINT64_C(16) << 20)
#define RING_BYTES_PER_CPU (UINT64_C(4) << 20)
#define RING_MOST_BYTES (UINT64_C(128) << 20)

#define EDGE_NS (2 * EXPLAIN_LEAD_NS)

int ring_open(struct ring *ring, size_t page_bytes, size_t cpu_count)
{
	uint64_t bytes = cpu_count * RING_BYTES_PER_CPU;

	memset(ring, 0, sizeof(*ring));
	bytes = bytes < RING_LEAST_BYTES ? RING_LEAST_BYTES : bytes;
	bytes = bytes > RING_MOST_BYTES ? RING_MOST_BYTES : bytes;
	ring->page_bytes = page_bytes;
	ring->count = bytes / page_bytes;
	ring->cpu_count = cpu_count;
	ring->memory = mmap(NULL, ring->count * page_bytes, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (ring->memory == MAP_FAILED) {
		ring->memory = NULL;
		return -ENOMEM;
	}
	/* What is swapped out would make the collector part of what it watches. */
	ring->locked = mlock(ring->memory, ring->count * page_bytes) == 0;
	ring->slots = calloc(ring->count, sizeof(*ring->slots));
	ring->last = calloc(cpu_count, sizeof(*ring->last));
	ring->sequences = calloc(cpu_count, sizeof(*ring->sequences));
	if (!ring->slots || !ring->last || !ring->sequences) {
		ring_close(ring);
		return -ENOMEM;
	}
	for (size_t i = 0; i < ring->count; i++)
		ring->slots[i].cpu = -1;
	for (size_t i = 0; i < cpu_count; i++)
		ring->last[i] = -1;
	return 0;
}

void ring_close(struct ring *ring)
{
	if (ring->memory)
		munmap(ring->memory, ring->count * ring->page_bytes);
	free(ring->slots);
	free(ring->last);
	free(ring->sequences);
	memset(ring, 0, sizeof(*ring));
}

unsigned char *ring_next(struct ring *ring)
{
	for (size_t tried = 0; tried < ring->count; tried++) {
		if (!ring->slots[ring->next].kept)
			return ring->memory + ring->next * ring->page_bytes;
		ring->next = (ring->next + 1) % ring->count;
	}
	return NULL;
}

void ring_put(struct ring *ring, int32_t cpu, int64_t start_ns)
{
	struct ring_slot *slot = &ring->slots[ring->next];
	ssize_t last = ring->last[cpu];

	/* The slot may have been another CPU's last page, long ago. */
	for (size_t i = 0; i < ring->cpu_count; i++)
		if (ring->last[i] == (ssize_t)ring->next)
			ring->last[i] = -1;
	if (last >= 0)
		ring->slots[last].end_ns = start_ns;
	*slot = (struct ring_slot){
		.cpu = cpu,
		.start_ns = start_ns,
		.end_ns = INT64_MAX,
		.sequence = ring->sequences[cpu]++,
	};
	ring->last[cpu] = (ssize_t)ring->next;
	ring->next = (ring->next + 1) % ring->count;
}

static bool overlaps(const struct ring_slot *slot, int64_t from_ns, int64_t to_ns)
{
	return slot->cpu >= 0 && !slot->kept && slot->start_ns <= to_ns && slot->end_ns >= from_ns;
}

static size_t count_overlapping(const struct ring *ring, int64_t from_ns, int64_t to_ns)
{
	size_t needed = 0;

	for (size_t i = 0; i < ring->count; i++)
		needed += overlaps(&ring->slots[i], from_ns, to_ns);
	return needed;
}

/* Keeps at most @room pages; returns how many. */
static size_t keep_between(struct ring *ring, int64_t from_ns, int64_t to_ns, size_t room)
{
	size_t used = 0;

	for (size_t i = 0; i < ring->count && used < room; i++)
		if (overlaps(&ring->slots[i], from_ns, to_ns)) {
			ring->slots[i].kept = true;
			used++;
		}
	return used;
}

size_t ring_keep(struct ring *ring, const struct explain_window *windows, size_t count)
{
	size_t room = ring->count - ring->count / 4, whole = 0;

	for (size_t i = 0; i < ring->count; i++)
		ring->slots[i].kept = false;
	for (size_t i = 0; i < count; i++) {
		int64_t from_ns = windows[i].when_ns - EXPLAIN_LEAD_NS;
		int64_t to_ns = windows[i].when_ns + windows[i].late_ns + EXPLAIN_TAIL_NS;

		if (count_overlapping(ring, from_ns, to_ns) <= room) {
			room -= keep_between(ring, from_ns, to_ns, room);
			whole++;
			continue;
		}
		/* Of a stall too long to keep: how it began and how it ended. */
		room -= keep_between(ring, from_ns, from_ns + EDGE_NS, room);
		room -= keep_between(ring, to_ns - EDGE_NS, to_ns, room);
	}
	return whole;
}
