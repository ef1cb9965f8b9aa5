/* SPDX-License-Identifier: MIT */
#include "base/parallel.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define THREADS_MAX 16

struct queue {
	void (*work)(void *data, size_t index);
	void *data;
	size_t count;
	_Atomic size_t next;
};

static void *take_turns(void *argument)
{
	struct queue *queue = argument;
	size_t index;

	while ((index = atomic_fetch_add(&queue->next, 1)) < queue->count)
		queue->work(queue->data, index);
	return NULL;
}

static size_t processors(void)
{
	cpu_set_t allowed;

	/* More CPUs than the mask holds: more than there are threads here. */
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return THREADS_MAX;
	return (size_t)CPU_COUNT(&allowed);
}

void parallel_for(size_t count, void (*work)(void *data, size_t index), void *data)
{
	struct queue queue = {.work = work, .data = data, .count = count};
	size_t most = processors(), wanted, made = 0;
	pthread_t threads[THREADS_MAX];

	wanted = count < most ? count : most;
	wanted = wanted < THREADS_MAX ? wanted : THREADS_MAX;
	while (made + 1 < wanted && pthread_create(&threads[made], NULL, take_turns, &queue) == 0)
		made++;
	take_turns(&queue);
	for (size_t i = 0; i < made; i++)
		pthread_join(threads[i], NULL);
}
