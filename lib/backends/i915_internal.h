/* SPDX-License-Identifier: MIT */
#ifndef BACKENDS_I915_INTERNAL_H
#define BACKENDS_I915_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <i915_drm.h>

#include "ops.h"

extern const struct backend_ops backend_i915;

/* Inside of the i915 backend. The uAPI is include/uapi/drm/i915_drm.h of the kernel. */

#define I915_MAX_ENGINES 64 /* I915_EXEC_RING_MASK + 1: what execbuf can address */
#define MI_BATCH_BUFFER_END UINT32_C(0x05000000)

/* How the batch end gets into an object. */
enum i915_write {
	I915_WRITE_PWRITE,
	I915_WRITE_MMAP_OFFSET,
	I915_WRITE_MMAP,
	I915_WRITES,
};

/* A handle that was handed to the shrinker, until MADVISE says that it is purged. */
struct i915_leaked {
	uint32_t *handles;
	size_t count, size, cursor;
	pthread_mutex_t lock;
};

struct i915 {
	struct backend backend;
	int descriptor;
	char node[64];
	int32_t chipset_id;
	uint32_t context; /* 0: the default one (no contexts on this GPU) */
	bool owns_context;
	bool engine_map;     /* engines by index of the map, else legacy ring selectors */
	bool discrete;	     /* objects live in local memory */
	bool wide_addresses; /* more than 4 GiB of GPU addresses */
	uint64_t engines[I915_MAX_ENGINES]; /* execbuf flags that select one */
	size_t engine_count;
	_Atomic uint64_t exec_flags; /* HANDLE_LUT | NO_RELOC, or 0 once they were refused */
	enum i915_write write;
	uint64_t mmap_flags; /* of MMAP_OFFSET */
	uint32_t dependency; /* handle of the -i object; 0 none */
	uint32_t batch;	     /* handle of the -r batch; 0: the buffer is its own */
	uint64_t batch_bytes;
	struct i915_leaked leaked;
	char notes[4][160];
};

/* Opens the node that settings->device names or the first Intel one. */
int i915_find(const struct backend_settings *settings, struct i915 *gpu, struct message *message);

/* Own context and engines; -EIO when the GPU is wedged. */
int i915_find_engines(struct i915 *gpu, struct message *message);

int i915_get_parameter(const struct i915 *gpu, int32_t parameter, int32_t *ret_value);

/* Objects. *bytes is rounded up by the kernel. */
int i915_create(const struct i915 *gpu, uint64_t *bytes, uint32_t *ret_handle);
void i915_close_handle(const struct i915 *gpu, uint32_t handle);

/* Chooses gpu->write by trying on a small object. */
int i915_choose_write(struct i915 *gpu, struct message *message);

/* Writes one 32-bit command at @offset. */
int i915_write_command(const struct i915 *gpu, uint32_t handle, uint64_t offset, uint32_t command);

/*
 * One execbuf of @batch (last in the list) with @buffer and the dependency object before it where
 * they are not 0. *offset (may be NULL) holds the presumed GPU address of the buffer, updated.
 */
int i915_submit(struct i915 *gpu, uint64_t engine, uint32_t buffer, uint32_t batch,
		uint64_t batch_bytes, uint64_t *offset);

/* Waits until the GPU is done with @handle: -ETIME when it is not after @timeout_ns. */
int i915_wait(const struct i915 *gpu, uint32_t handle, int64_t timeout_ns);

/* Every engine runs an empty batch within seconds: -ETIMEDOUT hung or busy, -EIO wedged. */
int i915_check_alive(struct i915 *gpu, struct message *message);

/* Makes gpu->batch as settings.batch_ns says, measuring it on the first engine. */
int i915_make_batch(struct i915 *gpu, struct message *message);

/* Sets backend.failure when @error means that the device is gone or stuck; returns @error. */
int i915_failed(struct i915 *gpu, int error);

void i915_add_note(struct i915 *gpu, const char *text); /* copied; more than four are dropped */

#endif
