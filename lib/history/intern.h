/* SPDX-License-Identifier: MIT */
#ifndef HISTORY_INTERN_H
#define HISTORY_INTERN_H

#include <stddef.h>
#include <stdint.h>

/* Texts that occur many times, each kept once and known by its number (0, 1, 2... in the order of
 * first use). */
struct intern {
	char **texts;
	size_t count, capacity;
	uint32_t *slots; /* number + 1; 0: free */
	size_t slot_count;
};

/* -ENOMEM. @ret_number is the text's, whether new or known. */
int intern_add(struct intern *intern, const char *text, size_t size, uint32_t *ret_number);
void intern_free(struct intern *intern);

#endif
