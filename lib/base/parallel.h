/* SPDX-License-Identifier: MIT */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include <stddef.h>

/*
 * Calls work(data, i) for each i below @count, on as many threads as there are CPUs to run on (the
 * caller's among them); returns when all are done. Where no thread can be made, the caller does
 * the rest. Items must not depend on each other.
 */
void parallel_for(size_t count, void (*work)(void *data, size_t index), void *data);

#endif
