/* SPDX-License-Identifier: MIT */
#include "base/hash.h"

#include <string.h>

static uint64_t mix(uint64_t hash, uint64_t word)
{
	unsigned __int128 product = (unsigned __int128)(hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);

	return (uint64_t)product ^ (uint64_t)(product >> 64) ^ (hash << 29 | hash >> 35);
}

struct hashing {
	uint64_t hash;
	unsigned char word[8];
	size_t used, size;
};

static void hash_byte(struct hashing *hashing, char c)
{
	uint64_t word;

	hashing->word[hashing->used++] = (unsigned char)c;
	hashing->size++;
	if (hashing->used < sizeof(hashing->word))
		return;
	memcpy(&word, hashing->word, sizeof(word));
	hashing->hash = mix(hashing->hash, word);
	hashing->used = 0;
}

uint64_t hash_json(const char *text, size_t size, bool blanks)
{
	struct hashing hashing = {.hash = UINT64_C(0x243f6a8885a308d3)};
	bool string = false;
	uint64_t word;
	size_t i = 0;

	while (size && strchr(" \t\r\n", text[size - 1]) && text[size - 1])
		size--;
	for (; !blanks && i + 8 <= size; i += 8) {
		memcpy(&word, text + i, sizeof(word));
		hashing.hash = mix(hashing.hash, word);
		hashing.size += 8;
	}
	for (; i < size; i++) {
		if (blanks && !string && strchr(" \t\r\n", text[i]))
			continue;
		if (text[i] == '"')
			string = !string;
		hash_byte(&hashing, text[i]);
		if (string && text[i] == '\\' && i + 1 < size)
			hash_byte(&hashing, text[++i]);
	}
	while (hashing.used)
		hash_byte(&hashing, 0);
	return mix(hashing.hash, size == 0 ? 0 : hashing.size);
}
