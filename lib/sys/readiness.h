/* SPDX-License-Identifier: MIT */
#ifndef SYS_READINESS_H
#define SYS_READINESS_H

#include <jansson.h>

/*
 * What spoils measurements on this machine, as [{"kind", "text", "command"}]: each with the one
 * command that would change it, or null where none would. @environment is of
 * environment_describe(),
 * @counters of snapshot_delta() over a quiet moment (NULL: steal and neighbours are not judged).
 * An empty array: nothing found. NULL without memory.
 */
json_t *readiness_warnings(const json_t *environment, const json_t *counters);

#endif
