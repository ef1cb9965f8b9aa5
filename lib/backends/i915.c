/* SPDX-License-Identifier: MIT */
/*
 * Buffers of an Intel GPU, by the raw uAPI of i915. Execbuf on an object makes the driver hold all
 * its pages; SET_DOMAIN does so without work for the GPU, and is what allocate() pins with. Nothing
 * here resets the GPU or touches work of others.
 */
#include "backends/i915_internal.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/drm_node.h"
#include "base/thread_timer.h"

#define OBSERVED_BYTES (UINT64_C(16) << 20)

/* What a buffer keeps in private_data. */
struct i915_buffer {
	uint64_t offset; /* GPU address that the last execbuf gave it */
};

int i915_failed(struct i915 *gpu, int error)
{
	const char *why = NULL;

	if (error == -EIO)
		why = "i915: the GPU hung and the kernel gave up on it (EIO; see dmesg): reboot before "
		      "measuring again";
	else if (error == -ENODEV || error == -ENXIO)
		why = "i915: the device is gone (unplugged or unbound)";
	else if (error == -ETIMEDOUT || error == -ETIME)
		why = "i915: the GPU took no work for 10 s (hung or held by another program; see dmesg)";
	else if (error == -ENOSPC)
		why = "i915: no room in the GPU's address space for the buffer (ENOSPC): fewer or "
		      "smaller buffers";
	if (why)
		atomic_store(&gpu->backend.failure, why);
	return error;
}

static void describe(struct i915 *gpu)
{
	static const char *const writes[I915_WRITES] = {"PWRITE", "MMAP_OFFSET", "MMAP"};
	char text[160];

	snprintf(text, sizeof(text), "i915 %04x at %s: %zu engines (%s), written by %s",
		 (unsigned int)gpu->chipset_id, gpu->node, gpu->engine_count,
		 gpu->engine_map ? "context map" : "legacy rings", writes[gpu->write]);
	i915_add_note(gpu, text);
}

/* Pins a buffer and looks where its pages went; the label of the user is not asked. */
static void observe(struct i915 *gpu)
{
	struct buffer buffer = {.bytes = OBSERVED_BYTES};
	struct drm_levels before, after = {0};
	const char *variant = NULL;
	char text[160];

	if (gpu->discrete) {
		i915_add_note(
			gpu,
			"discrete GPU: buffers live in local memory, pinned shmem pages and their "
			"variants do not apply");
		return;
	}
	if (drm_levels_read(&before) != 0 ||
	    gpu->backend.ops->allocate(&gpu->backend, &buffer) != 0)
		return;
	if (drm_levels_read(&after) == 0)
		variant = drm_variant_of(&before, &after, buffer.bytes / 4096);
	gpu->backend.observed_variant = variant;
	i915_close_handle(gpu, (uint32_t)buffer.handle);
	free(buffer.private_data);
	snprintf(text, sizeof(text),
		 "pinning %llu pages moved nr_unevictable by %lld, nr_mlock by %lld: observed %s",
		 (unsigned long long)(buffer.bytes / 4096),
		 (long long)(after.unevictable_pages - before.unevictable_pages),
		 (long long)(after.mlock_pages - before.mlock_pages),
		 variant ? variant : "neither");
	i915_add_note(gpu, text);
}

static int make_dependency(struct i915 *gpu, struct message *message)
{
	uint64_t bytes = 4096;
	int error;

	if (!gpu->backend.settings.dependencies)
		return 0;
	error = i915_create(gpu, &bytes, &gpu->dependency);
	if (error)
		return message_set_errno(message, error, "%s: the object of -i", gpu->node);
	return 0;
}

static void close_all(struct backend *backend)
{
	struct i915 *gpu = (struct i915 *)backend;

	if (!gpu)
		return;
	if (gpu->descriptor >= 0) {
		/* What was leaked and not purged goes with the descriptor. */
		i915_close_handle(gpu, gpu->batch);
		i915_close_handle(gpu, gpu->dependency);
		if (gpu->owns_context) {
			struct drm_i915_gem_context_destroy destroy = {.ctx_id = gpu->context};

			drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_CONTEXT_DESTROY, &destroy);
		}
		close(gpu->descriptor);
	}
	free(gpu->leaked.handles);
	pthread_mutex_destroy(&gpu->leaked.lock);
	free(gpu);
}

static int open_gpu(const struct backend_settings *settings, struct backend **ret_backend,
		    struct message *message)
{
	struct i915 *gpu;
	int error;

	if (settings->leak && settings->in_memcg)
		return message_set(
			message, -ENOTSUP,
			"-m does nothing on i915 under a memory limit: reclaim of a group does "
			"not call the driver's shrinker, so nothing would be purged; use "
			"--scope machine");
	gpu = calloc(1, sizeof(*gpu));
	if (!gpu)
		return -ENOMEM;
	gpu->backend.ops = &backend_i915;
	gpu->backend.settings = *settings;
	gpu->backend.pin_method = "driver";
	gpu->backend.release_context = settings->leak ? "shrinker" : "load";
	gpu->descriptor = -1;
	gpu->exec_flags = I915_EXEC_HANDLE_LUT | I915_EXEC_NO_RELOC;
	pthread_mutex_init(&gpu->leaked.lock, NULL);

	error = i915_find(settings, gpu, message);
	if (!error)
		error = i915_find_engines(gpu, message);
	if (!error)
		error = i915_choose_write(gpu, message);
	if (!error)
		error = i915_check_alive(gpu, message);
	if (error)
		goto fail;
	describe(gpu);
	error = make_dependency(gpu, message);
	if (!error)
		error = i915_make_batch(gpu, message);
	if (error)
		goto fail;
	observe(gpu);
	*ret_backend = &gpu->backend;
	return 0;
fail:
	close_all(&gpu->backend);
	return error;
}

/* Makes the driver hold the pages; where SET_DOMAIN is refused (local memory), by a first execbuf.
 */
static int pin(struct i915 *gpu, struct buffer *buffer)
{
	struct drm_i915_gem_set_domain arguments = {
		.handle = (uint32_t)buffer->handle,
		.read_domains = I915_GEM_DOMAIN_CPU,
	};
	struct i915_buffer *private = buffer->private_data;
	int error = drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_SET_DOMAIN, &arguments);

	if (error != -ENODEV || !gpu->discrete)
		return error;
	return i915_submit(gpu, gpu->engines[0], arguments.handle,
			   gpu->batch ? gpu->batch : arguments.handle,
			   gpu->batch ? gpu->batch_bytes : 0, &private->offset);
}

static void end_phase(struct thread_timer *timer, struct buffer *buffer, enum buffer_phase phase)
{
	thread_timer_add(timer, &buffer->phase_ns[phase], &buffer->phase_cpu_ns[phase]);
}

static int allocate(struct backend *backend, struct buffer *buffer)
{
	struct i915 *gpu = (struct i915 *)backend;
	struct i915_buffer *private = calloc(1, sizeof(*private));
	uint32_t handle = 0;
	struct thread_timer timer;
	int error;

	if (!private)
		return -ENOMEM;
	memset(buffer->phase_ns, 0, sizeof(buffer->phase_ns));
	memset(buffer->phase_cpu_ns, 0, sizeof(buffer->phase_cpu_ns));
	thread_timer_start(&timer);
	error = i915_create(gpu, &buffer->bytes, &handle);
	end_phase(&timer, buffer, BUFFER_ALLOCATE);
	buffer->handle = handle;
	buffer->private_data = private;
	if (!error)
		error = i915_write_command(gpu, handle, 0, MI_BATCH_BUFFER_END);
	end_phase(&timer, buffer, BUFFER_POPULATE);
	if (!error)
		error = pin(gpu, buffer);
	if (error) {
		i915_close_handle(gpu, handle);
		free(private);
		buffer->handle = 0;
		buffer->private_data = NULL;
		return i915_failed(gpu, error);
	}
	end_phase(&timer, buffer, BUFFER_PIN);
	return 0;
}

/* One execbuf on every engine, in an order drawn anew. */
static int exercise(struct backend *backend, struct buffer *buffer, struct random *random,
		    uint64_t *ret_submitted)
{
	struct i915 *gpu = (struct i915 *)backend;
	struct i915_buffer *private = buffer->private_data;
	uint32_t handle = (uint32_t)buffer->handle, batch = gpu->batch ? gpu->batch : handle;
	size_t order[I915_MAX_ENGINES];

	for (size_t i = 0; i < gpu->engine_count; i++)
		order[i] = i;
	random_shuffle(random, order, gpu->engine_count);
	for (size_t i = 0; i < gpu->engine_count; i++) {
		int error = i915_submit(gpu, gpu->engines[order[i]], handle, batch,
					gpu->batch ? gpu->batch_bytes : 0, &private->offset);

		if (error)
			return i915_failed(gpu, error);
		(*ret_submitted)++;
	}
	return 0;
}

/* DONTNEED; *ret_retained false once the shrinker has taken the pages. */
static int give_away(const struct i915 *gpu, uint32_t handle, bool *ret_retained)
{
	struct drm_i915_gem_madvise arguments = {.handle = handle, .madv = I915_MADV_DONTNEED};
	int error = drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_MADVISE, &arguments);

	if (!error)
		*ret_retained = arguments.retained != 0;
	return error;
}

/*
 * Closes purged handles among the next few of those that were leaked. A live one must stay open:
 * closing it would free its pages here and leave the shrinker nothing to do.
 */
static int look_for_purged(struct i915 *gpu, size_t most)
{
	struct i915_leaked *leaked = &gpu->leaked;

	for (size_t i = 0; i < most && leaked->count; i++) {
		bool retained;
		int error;

		if (leaked->cursor >= leaked->count)
			leaked->cursor = 0;
		error = give_away(gpu, leaked->handles[leaked->cursor], &retained);
		if (error)
			return error;
		if (retained) {
			leaked->cursor++;
			continue;
		}
		i915_close_handle(gpu, leaked->handles[leaked->cursor]);
		leaked->handles[leaked->cursor] = leaked->handles[--leaked->count];
	}
	return 0;
}

static int leak(struct i915 *gpu, uint32_t handle)
{
	struct i915_leaked *leaked = &gpu->leaked;
	bool retained;
	int error = give_away(gpu, handle, &retained);

	if (error)
		return error;
	if (!retained) {
		i915_close_handle(gpu, handle);
		return 0;
	}
	pthread_mutex_lock(&leaked->lock);
	if (leaked->count == leaked->size) {
		size_t size = leaked->size ? 2 * leaked->size : 64;
		uint32_t *handles = reallocarray(leaked->handles, size, sizeof(*handles));

		if (!handles) {
			error = -ENOMEM;
			goto out;
		}
		leaked->handles = handles;
		leaked->size = size;
	}
	leaked->handles[leaked->count++] = handle;
	error = look_for_purged(gpu, 4);
out:
	pthread_mutex_unlock(&leaked->lock);
	return error;
}

static int release(struct backend *backend, struct buffer *buffer)
{
	struct i915 *gpu = (struct i915 *)backend;
	struct drm_gem_close arguments = {.handle = (uint32_t)buffer->handle};
	struct thread_timer timer;
	int error;

	thread_timer_start(&timer);
	if (gpu->backend.settings.leak)
		error = leak(gpu, arguments.handle);
	else
		error = drm_call(gpu->descriptor, DRM_IOCTL_GEM_CLOSE, &arguments);
	end_phase(&timer, buffer, BUFFER_RELEASE);
	free(buffer->private_data);
	buffer->private_data = NULL;
	buffer->handle = 0;
	return i915_failed(gpu, error);
}

const struct backend_ops backend_i915 = {
	.name = "i915",
	.summary = "Intel GPU: GEM objects and execbuf on every engine",
	.flags = BACKEND_NEEDS_DEVICE | BACKEND_RELEASES_IN_SHRINKER,
	.preference = 2,
	.variants = 1U << VARIANT_BASELINE | 1U << VARIANT_STOCK | 1U << VARIANT_MAPPING |
		    1U << VARIANT_MLOCK,
	.open = open_gpu,
	.allocate = allocate,
	.exercise = exercise,
	.release = release,
	.close = close_all,
};
