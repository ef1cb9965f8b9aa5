/* SPDX-License-Identifier: MIT */
#include "base/json_shared.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS_MAX 64

struct json_shared {
	pthread_mutex_t lock;
	size_t count;
	struct known {
		char *text;
		size_t size;
		json_t *value;
	} known[TEXTS_MAX];
};

struct json_shared *json_shared_new(void)
{
	struct json_shared *shared = calloc(1, sizeof(*shared));

	if (shared)
		pthread_mutex_init(&shared->lock, NULL);
	return shared;
}

void json_shared_free(struct json_shared *shared)
{
	if (!shared)
		return;
	for (size_t i = 0; i < shared->count; i++) {
		free(shared->known[i].text);
		json_decref(shared->known[i].value);
	}
	pthread_mutex_destroy(&shared->lock);
	free(shared);
}

static json_t *find(const struct json_shared *shared, const char *text, size_t size)
{
	for (size_t i = 0; i < shared->count; i++)
		if (shared->known[i].size == size && memcmp(shared->known[i].text, text, size) == 0)
			return shared->known[i].value;
	return NULL;
}

/* Another thread may have been faster: then the text is there already. */
static void keep(struct json_shared *shared, const char *text, size_t size, json_t *value)
{
	char *copy = malloc(size ? size : 1);

	if (!copy)
		return;
	memcpy(copy, text, size);
	pthread_mutex_lock(&shared->lock);
	if (shared->count < TEXTS_MAX && !find(shared, text, size)) {
		shared->known[shared->count++] = (struct known){copy, size, json_incref(value)};
		copy = NULL;
	}
	pthread_mutex_unlock(&shared->lock);
	free(copy);
}

json_t *json_shared_get(struct json_shared *shared, const char *text, size_t size)
{
	json_t *value;
	bool full;

	pthread_mutex_lock(&shared->lock);
	value = json_incref(find(shared, text, size));
	full = shared->count == TEXTS_MAX;
	pthread_mutex_unlock(&shared->lock);
	if (value)
		return value;
	value = json_loadb(text, size, 0, NULL);
	if (value && !full)
		keep(shared, text, size, value);
	return value;
}
