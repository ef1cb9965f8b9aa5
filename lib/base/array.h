/* SPDX-License-Identifier: MIT */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

/*
 * An array that grows: a pointer, a count that the caller keeps and a capacity, all zero at first;
 * freed by free(3). Makes room for @count elements by doubling, so that adding n of them one by one
 * costs O(n). 0, or -ENOMEM with all as it was.
 */
#define array_reserve(items, capacity, count) \
	array_grow((void **)(items), (capacity), (count), sizeof(**(items)))

static inline int array_grow(void **items, size_t *capacity, size_t count, size_t element_bytes)
{
	size_t larger = *capacity ? *capacity : 8;
	void *moved;

	if (count <= *capacity)
		return 0;
	while (larger < count) {
		if (larger > SIZE_MAX / 2)
			return -ENOMEM;
		larger *= 2;
	}
	if (larger > SIZE_MAX / element_bytes)
		return -ENOMEM;
	moved = realloc(*items, larger * element_bytes);
	if (!moved)
		return -ENOMEM;
	*items = moved;
	*capacity = larger;
	return 0;
}

#endif
