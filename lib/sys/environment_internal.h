/* SPDX-License-Identifier: MIT */
#ifndef SYS_ENVIRONMENT_INTERNAL_H
#define SYS_ENVIRONMENT_INTERNAL_H

/* Shared by the files that make up sys/environment. All return 0 or -ENOMEM. */
#include <jansson.h>
#include <stdint.h>

/* The file's first line, number, or selected word under @key; null when it cannot be read. */
int environment_put_line(json_t *object, const char *key, const char *path);
int environment_put_int64(json_t *object, const char *key, const char *path);
int environment_put_choice(json_t *object, const char *key, const char *path);

/* @value, or null when it is negative: not known. */
int environment_put_known(json_t *object, const char *key, int64_t value);

/* CPU model, count, microcode, frequency, idle, SMT, isolation, mitigations. */
int environment_put_processors(json_t *environment);

/* Memory, swap, huge pages, reclaim settings, NUMA. */
int environment_put_memory(json_t *environment);

/* Board, hypervisor, cgroup. */
int environment_put_host(json_t *environment);

#endif
