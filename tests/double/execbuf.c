/* SPDX-License-Identifier: MIT */
/* Submission, checked as i915 of 6.1 checks it (gem/i915_gem_execbuffer.c). */
#undef _FILE_OFFSET_BITS
#include "uapi.h"

#include <errno.h>
#include <stddef.h>

#define HANG_NS INT64_C(1000000000000000)

/* Index of the engine's timeline, or -errno. */
static int select_engine(struct device_file *file, const struct drm_i915_gem_execbuffer2 *arguments)
{
	struct context *context = find_context(file, arguments->rsvd1 & I915_EXEC_CONTEXT_ID_MASK);
	uint64_t ring = arguments->flags & I915_EXEC_RING_MASK,
		 bsd = arguments->flags & I915_EXEC_BSD_MASK;
	static const uint16_t classes[] = {I915_ENGINE_CLASS_RENDER, I915_ENGINE_CLASS_RENDER,
					   I915_ENGINE_CLASS_VIDEO, I915_ENGINE_CLASS_COPY,
					   I915_ENGINE_CLASS_VIDEO_ENHANCE};

	if (!context && (arguments->rsvd1 & I915_EXEC_CONTEXT_ID_MASK))
		return breach(file, -ENOENT, "execbuf: no context %llu",
			      (unsigned long long)arguments->rsvd1);
	if (context && context->engine_count) {
		if (ring >= context->engine_count || bsd)
			return breach(file, -EINVAL, "execbuf: engine %llu is not in the map",
				      (unsigned long long)ring);
		return context->engines[ring] >> 8;
	}
	if (!double_personality()->legacy_rings)
		return breach(file, -EINVAL, "execbuf: a legacy ring");
	if (ring > I915_EXEC_VEBOX || (bsd && ring != I915_EXEC_BSD) ||
	    double_personality()->engines[classes[ring]] == 0 ||
	    (bsd == I915_EXEC_BSD_RING2 &&
	     double_personality()->engines[I915_ENGINE_CLASS_VIDEO] < 2))
		return breach(file, -EINVAL, "execbuf: no ring %llx",
			      (unsigned long long)(arguments->flags & (I915_EXEC_RING_MASK | bsd)));
	return classes[ring];
}

static int check_execbuf(struct device_file *file, const struct drm_i915_gem_execbuffer2 *arguments)
{
	if (arguments->flags &
	    (uint64_t)(int64_t)(__I915_EXEC_UNKNOWN_FLAGS | I915_EXEC_CONSTANTS_MASK |
				I915_EXEC_RESOURCE_STREAMER))
		return breach(file, -EINVAL, "execbuf: flags %llx",
			      (unsigned long long)arguments->flags);
	if (arguments->num_cliprects || arguments->cliprects_ptr || arguments->DR1 ||
	    arguments->DR4)
		return breach(file, -EINVAL, "execbuf: cliprects, DR1 or DR4 are not 0");
	if ((arguments->batch_start_offset | arguments->batch_len) & 7)
		return breach(file, -EINVAL, "execbuf: batch start or length not a multiple of 8");
	if (arguments->buffer_count == 0 || arguments->buffer_count > 16)
		return breach(file, -EINVAL, "execbuf: %u buffers", arguments->buffer_count);
	if (!(arguments->flags & I915_EXEC_NO_RELOC) || !(arguments->flags & I915_EXEC_HANDLE_LUT))
		breach(file, 0, "execbuf: NO_RELOC or HANDLE_LUT left out where they are accepted");
	return 0;
}

static int check_entry(struct device_file *file, const struct drm_i915_gem_exec_object2 *entries,
		       uint32_t index, struct object **ret_object)
{
	const struct drm_i915_gem_exec_object2 *entry = &entries[index];
	struct object *object = model_object(file, entry->handle);

	if (entry->flags & (uint64_t)(int64_t)__EXEC_OBJECT_UNKNOWN_FLAGS)
		return breach(file, -EINVAL, "execbuf: flags %llx of an object",
			      (unsigned long long)entry->flags);
	if (entry->alignment & (entry->alignment - 1))
		return breach(file, -EINVAL, "execbuf: alignment not a power of 2");
	if (entry->rsvd1 || entry->rsvd2)
		breach(file, 0, "execbuf: reserved members of an object are not 0");
	if (entry->relocation_count && !double_personality()->relocations)
		return breach(file, -EINVAL, "execbuf: relocations");
	if (!object)
		return breach(file, -ENOENT, "execbuf: no handle %u", entry->handle);
	for (uint32_t i = 0; i < index; i++)
		if (entries[i].handle == entry->handle)
			return breach(file, -EINVAL, "execbuf: handle %u twice", entry->handle);
	if (object->madvise)
		return breach(file, -EFAULT, "execbuf: object is DONTNEED");
	*ret_object = object;
	return model_get_pages(object);
}

static int scripted(struct device_file *file)
{
	const struct failures *failures = &file->failures;

	file->execbufs++;
	if (failures->eio_at && file->execbufs >= failures->eio_at)
		return -EIO;
	if (failures->enospc_at && file->execbufs >= failures->enospc_at)
		return -ENOSPC;
	return 0;
}

int do_execbuf(struct device_file *file, struct drm_i915_gem_execbuffer2 *arguments)
{
	struct drm_i915_gem_exec_object2 *entries = (void *)(uintptr_t)arguments->buffers_ptr;
	struct object *objects[16];
	int64_t start_ns = model_now_ns(), length_ns;
	uint64_t length;
	int engine, error = scripted(file);

	if (!error)
		error = check_execbuf(file, arguments);
	for (uint32_t i = 0; !error && i < arguments->buffer_count; i++)
		error = check_entry(file, entries, i, &objects[i]);
	if (error)
		return error;
	engine = select_engine(file, arguments);
	if (engine < 0)
		return engine;
	length = objects[arguments->buffer_count - 1]->bytes;
	if (arguments->batch_start_offset >= length ||
	    arguments->batch_len > length - arguments->batch_start_offset)
		return breach(file, -EINVAL, "execbuf: batch outside its object");
	if (arguments->batch_len)
		length = arguments->batch_len;
	else
		length -= arguments->batch_start_offset;
	length_ns = model_run_batch(file, objects[arguments->buffer_count - 1],
				    arguments->batch_start_offset, length);
	if (length_ns < 0 || (file->failures.hang_at && file->execbufs >= file->failures.hang_at))
		length_ns = HANG_NS;
	if (file->engine_busy_until_ns[engine] > start_ns)
		start_ns = file->engine_busy_until_ns[engine];
	file->engine_busy_until_ns[engine] = start_ns + length_ns;
	for (uint32_t i = 0; i < arguments->buffer_count; i++) {
		if (objects[i]->busy_until_ns < start_ns + length_ns)
			objects[i]->busy_until_ns = start_ns + length_ns;
		entries[i].offset = ((uint64_t)entries[i].handle << 24) &
				    (double_personality()->address_bytes - 1);
	}
	file->counts.submitted++;
	return 0;
}
