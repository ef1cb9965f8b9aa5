/* SPDX-License-Identifier: MIT */
#include "history/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

static size_t slot_of(const struct intern *intern, const char *text, size_t size)
{
	size_t at = hash_json(text, size, false) & (intern->slot_count - 1);

	while (intern->slots[at]) {
		const char *known = intern->texts[intern->slots[at] - 1];

		if (strlen(known) == size && memcmp(known, text, size) == 0)
			break;
		at = (at + 1) & (intern->slot_count - 1);
	}
	return at;
}

/* At most half of the slots are in use. */
static int grow(struct intern *intern)
{
	size_t capacity = intern->capacity ? 2 * intern->capacity : 64;
	char **texts = reallocarray(intern->texts, capacity, sizeof(*texts));
	uint32_t *slots;

	if (!texts)
		return -ENOMEM;
	intern->texts = texts;
	slots = calloc(2 * capacity, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	free(intern->slots);
	intern->slots = slots;
	intern->slot_count = 2 * capacity;
	intern->capacity = capacity;
	for (size_t i = 0; i < intern->count; i++)
		slots[slot_of(intern, texts[i], strlen(texts[i]))] = (uint32_t)i + 1;
	return 0;
}

int intern_add(struct intern *intern, const char *text, size_t size, uint32_t *ret_number)
{
	size_t at;
	int error = intern->count == intern->capacity ? grow(intern) : 0;

	if (error)
		return error;
	at = slot_of(intern, text, size);
	if (!intern->slots[at]) {
		char *copy = strndup(text, size);

		if (!copy)
			return -ENOMEM;
		intern->texts[intern->count++] = copy;
		intern->slots[at] = (uint32_t)intern->count;
	}
	*ret_number = intern->slots[at] - 1;
	return 0;
}

void intern_free(struct intern *intern)
{
	for (size_t i = 0; i < intern->count; i++)
		free(intern->texts[i]);
	free(intern->texts);
	free(intern->slots);
	*intern = (struct intern){.texts = NULL};
}
