/* SPDX-License-Identifier: MIT */
#ifndef DOUBLE_UAPI_H
#define DOUBLE_UAPI_H

#include <i915_drm.h>

#include "model.h"

/* Calls of the uAPI, with the model's lock held: 0 or -errno. */
int do_execbuf(struct device_file *file, struct drm_i915_gem_execbuffer2 *arguments);

struct context *find_context(struct device_file *file, uint64_t id); /* NULL: none */

#endif
