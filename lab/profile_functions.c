/* SPDX-License-Identifier: MIT */
#include "lab/profile_functions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define KERNEL_BEGIN UINT64_C(0xffff800000000000)
#define NEAR_BYTES UINT64_C(0x100000) /* no function is longer */

struct function *functions;
static size_t function_count, function_capacity;

void out_of_memory(void)
{
	fputs("lab/profile: out of memory\n", stderr);
	exit(1);
}

static void add_function(uint64_t address, const char *name)
{
	static const char *const entries[] = {"asm_exc_",
					      "asm_sysvec_",
					      "asm_common_interrupt",
					      "asm_spurious_interrupt",
					      "irq_entries_start",
					      "spurious_entries_start"};
	struct function *function;

	if (array_reserve(&functions, &function_capacity, function_count + 1) < 0)
		out_of_memory();
	function = &functions[function_count++];
	*function = (struct function){.address = address, .name = strdup(name)};
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++)
		function->entry |= strncmp(name, entries[i], strlen(entries[i])) == 0;
	function->switches =
		strcmp(name, "__switch_to") == 0 || strcmp(name, "__switch_to_asm") == 0;
}

static int compare_functions(const void *a, const void *b)
{
	uint64_t left = ((const struct function *)a)->address;
	uint64_t right = ((const struct function *)b)->address;

	return left < right ? -1 : left > right;
}

int functions_read(const char *path)
{
	FILE *file = fopen(path, "r");
	unsigned long long address;
	char line[512], name[256], type;

	if (!file)
		return -1;
	add_function(0, "[user]");
	add_function(0, "[unknown]");
	add_function(0, "[halt]");
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%llx %c %255s", &address, &type, name) == 3 &&
		    strchr("tTwW", type) && address >= KERNEL_BEGIN)
			add_function(address, name);
	fclose(file);
	qsort(functions + FUNCTION_FIRST, function_count - FUNCTION_FIRST, sizeof(*functions),
	      compare_functions);
	return function_count > FUNCTION_FIRST ? 0 : -1;
}

uint32_t function_at(uint64_t address)
{
	size_t low = FUNCTION_FIRST, high = function_count;

	if (address < KERNEL_BEGIN)
		return FUNCTION_USER;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (functions[middle].address <= address)
			low = middle + 1;
		else
			high = middle;
	}
	low--;
	if (low < FUNCTION_FIRST || address - functions[low].address > NEAR_BYTES)
		return FUNCTION_UNKNOWN;
	/* Of several names for one address always the same. */
	while (low > FUNCTION_FIRST && functions[low - 1].address == functions[low].address)
		low--;
	return (uint32_t)low;
}
