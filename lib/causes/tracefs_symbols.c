/* SPDX-License-Identifier: MIT */
#include "causes/tracefs_internal.h"

#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"

struct symbol {
	uint64_t address;
	const char *name;
};

struct symbols {
	char *text; /* holds the names */
	struct symbol *items;
	size_t count;
};

static int by_address(const void *a, const void *b)
{
	uint64_t left = ((const struct symbol *)a)->address;
	uint64_t right = ((const struct symbol *)b)->address;

	return left < right ? -1 : left > right ? 1 : 0;
}

/* "ffffffff81000000 T name\t[module]": functions only. */
static bool take_line(char *line, struct symbol *symbol)
{
	char *end;

	symbol->address = strtoull(line, &end, 16);
	if (symbol->address == 0 || end[0] != ' ' || !end[1] || end[2] != ' ' ||
	    !strchr("tTwW", end[1]))
		return false;
	symbol->name = end + 3;
	end[3 + strcspn(end + 3, "\t\n")] = '\0';
	return true;
}

struct symbols *symbols_read(void)
{
	struct symbols *symbols = calloc(1, sizeof(*symbols));
	size_t lines = 0;
	char *line, *next;

	if (!symbols || machine_read("/proc/kallsyms", &symbols->text, NULL) < 0) {
		free(symbols);
		return NULL;
	}
	for (line = symbols->text; *line; line++)
		lines += *line == '\n';
	symbols->items = calloc(lines + 1, sizeof(*symbols->items));
	for (line = symbols->text; symbols->items && line && *line; line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		if (symbols->count <= lines && take_line(line, &symbols->items[symbols->count]))
			symbols->count++;
	}
	if (symbols->count == 0) {
		symbols_free(symbols);
		return NULL;
	}
	qsort(symbols->items, symbols->count, sizeof(*symbols->items), by_address);
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	free(symbols->items);
	free(symbols->text);
	free(symbols);
}

const char *symbols_find(const struct symbols *symbols, uint64_t address)
{
	size_t low = 0, high = symbols ? symbols->count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->items[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	/* Nothing of the kernel is a mebibyte long: further off it is another mapping. */
	if (low == 0 || address - symbols->items[low - 1].address > (1U << 20))
		return NULL;
	return symbols->items[low - 1].name;
}

struct string_pool {
	void *root;
};

static int compare_strings(const void *a, const void *b)
{
	return strcmp(a, b);
}

struct string_pool *string_pool_new(void)
{
	return calloc(1, sizeof(struct string_pool));
}

void string_pool_free(struct string_pool *pool)
{
	if (!pool)
		return;
	tdestroy(pool->root, free);
	free(pool);
}

const char *string_pool_keep(struct string_pool *pool, const char *text, size_t length)
{
	char key[256], *copy;
	void *found;

	length = strnlen(text, length < sizeof(key) - 1 ? length : sizeof(key) - 1);
	memcpy(key, text, length);
	key[length] = '\0';
	found = tfind(key, &pool->root, compare_strings);
	if (found)
		return *(char **)found;
	copy = strdup(key);
	if (copy && !tsearch(copy, &pool->root, compare_strings)) {
		free(copy);
		copy = NULL;
	}
	return copy;
}
