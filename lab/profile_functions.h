/* SPDX-License-Identifier: MIT */
#ifndef LAB_PROFILE_FUNCTIONS_H
#define LAB_PROFILE_FUNCTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* The kernel's functions by address. A function is an index of "functions"; the first are no
 * symbols. */
enum { FUNCTION_USER, FUNCTION_UNKNOWN, FUNCTION_HALT, FUNCTION_FIRST };

struct function {
	uint64_t address;
	char *name;
	bool entry;    /* of interrupts and exceptions */
	bool switches; /* from the stack of one task to that of another */
};

extern struct function *functions;

/* @path: as /proc/kallsyms. -1: it cannot be read, or has no function of the kernel. */
int functions_read(const char *path);

uint32_t function_at(uint64_t address);

/* For the plugin, which cannot hand an error on: ends the machine. */
void out_of_memory(void) __attribute__((noreturn));

#endif
