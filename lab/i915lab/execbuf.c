// SPDX-License-Identifier: MIT
/* EXECBUFFER2, with i915's checks in i915's order where a program can tell. */
#include <linux/highmem.h>
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "i915lab.h"

#define MI_NOOP 0
#define MI_BATCH_BUFFER_END 0x05000000
/* What each request costs, and each command of 4 bytes. */
#define REQUEST_NS 2000
#define NS_OF_BYTES(bytes) ((bytes) / 4)

/* Fences, relocations, parallel batches and fixed addresses have no model here. */
#define FLAGS_KNOWN                                                                           \
	(I915_EXEC_RING_MASK | I915_EXEC_BSD_MASK | I915_EXEC_GEN7_SOL_RESET |                \
	 I915_EXEC_IS_PINNED | I915_EXEC_NO_RELOC | I915_EXEC_HANDLE_LUT | I915_EXEC_SECURE | \
	 I915_EXEC_BATCH_FIRST)
#define OBJECT_FLAGS_KNOWN                                                     \
	(EXEC_OBJECT_NEEDS_FENCE | EXEC_OBJECT_NEEDS_GTT | EXEC_OBJECT_WRITE | \
	 EXEC_OBJECT_SUPPORTS_48B_ADDRESS | EXEC_OBJECT_ASYNC | EXEC_OBJECT_CAPTURE)

struct execbuf {
	struct lab *lab;
	struct drm_i915_gem_execbuffer2 *arguments;
	struct drm_i915_gem_exec_object2 *entries;
	struct lab_request *request;
	struct lab_engine *engine;
	struct lab_object *batch;
	unsigned int count;
};

static int check(const struct drm_i915_gem_execbuffer2 *arguments)
{
	if (arguments->buffer_count < 1 ||
	    arguments->buffer_count > INT_MAX / sizeof(struct drm_i915_gem_exec_object2))
		return -EINVAL;
	if (arguments->flags & ~(u64)FLAGS_KNOWN)
		return -EINVAL;
	if (arguments->num_cliprects || arguments->cliprects_ptr || arguments->DR1 ||
	    (arguments->DR4 && arguments->DR4 != U32_MAX))
		return -EINVAL;
	if ((arguments->batch_start_offset | arguments->batch_len) & 7)
		return -EINVAL;
	if (arguments->flags & I915_EXEC_SECURE)
		return -EPERM;
	return 0;
}

static int select_engine(struct execbuf *execbuf)
{
	static const u8 rings[] = {
		[I915_EXEC_DEFAULT] = I915_ENGINE_CLASS_RENDER,
		[I915_EXEC_RENDER] = I915_ENGINE_CLASS_RENDER,
		[I915_EXEC_BSD] = I915_ENGINE_CLASS_VIDEO,
		[I915_EXEC_BLT] = I915_ENGINE_CLASS_COPY,
		[I915_EXEC_VEBOX] = I915_ENGINE_CLASS_VIDEO_ENHANCE,
	};
	const struct lab_context *context = execbuf->request->context;
	u64 flags = execbuf->arguments->flags;
	unsigned int ring = flags & I915_EXEC_RING_MASK;

	if (context->engine_count) {
		if (ring >= context->engine_count)
			return -EINVAL;
		execbuf->engine = &execbuf->lab->engines[context->engines[ring]];
		return 0;
	}
	/* With one video engine which of two is meant does not matter. */
	if (ring >= ARRAY_SIZE(rings) || (ring != I915_EXEC_BSD && (flags & I915_EXEC_BSD_MASK)))
		return -EINVAL;
	execbuf->engine = &execbuf->lab->engines[rings[ring]];
	return 0;
}

static int check_entry(const struct drm_i915_gem_exec_object2 *entry)
{
	if (entry->relocation_count || entry->flags & ~(u64)OBJECT_FLAGS_KNOWN)
		return -EINVAL;
	if (entry->alignment && !is_power_of_2(entry->alignment))
		return -EINVAL;
	return 0;
}

static int look_up(struct execbuf *execbuf, struct drm_file *file)
{
	struct drm_i915_gem_execbuffer2 *arguments = execbuf->arguments;
	struct lab_request *request = execbuf->request;
	unsigned int batch = arguments->flags & I915_EXEC_BATCH_FIRST ? 0 : execbuf->count - 1;
	u64 size;

	while (request->count < execbuf->count) {
		const struct drm_i915_gem_exec_object2 *entry = &execbuf->entries[request->count];
		struct drm_gem_object *object = drm_gem_object_lookup(file, entry->handle);
		int error;

		if (!object)
			return -ENOENT;
		request->objects[request->count++] = object;
		error = check_entry(entry);
		if (error)
			return error;
	}
	if (execbuf->entries[batch].flags & EXEC_OBJECT_WRITE)
		return -EINVAL;
	size = request->objects[batch]->size;
	if (arguments->batch_start_offset >= size ||
	    arguments->batch_len > size - arguments->batch_start_offset)
		return -EINVAL;
	execbuf->batch = to_lab_object(request->objects[batch]);
	return 0;
}

/*
 * How far the engine would read: up to the end command. Kept until the object is written, since the
 * engine's reading costs the CPU nothing and so ours must not, batch after batch.
 */
static u64 batch_bytes(struct lab_object *batch, u64 start)
{
	u64 at = start;
	struct sg_page_iter iterator;

	if (batch->batch_bytes && batch->batch_start == start)
		return batch->batch_bytes;
	for_each_sgtable_page(batch->pages, &iterator, start >> PAGE_SHIFT)
	{
		u32 *memory = kmap_local_page(sg_page_iter_page(&iterator));
		u32 command = MI_NOOP;

		do {
			command = READ_ONCE(memory[offset_in_page(at) / 4]);
			at += 4;
		} while (command != MI_BATCH_BUFFER_END && offset_in_page(at));
		kunmap_local(memory);
		if (command == MI_BATCH_BUFFER_END)
			break;
	}
	batch->batch_start = start;
	batch->batch_bytes = at - start;
	return batch->batch_bytes;
}

/* When the work of others that this request builds on is done; those engines interrupt for it. */
static ktime_t after_others(struct execbuf *execbuf)
{
	ktime_t after = 0;
	unsigned int i, j;

	for (i = 0; i < execbuf->count; i++) {
		const struct lab_object *object = to_lab_object(execbuf->request->objects[i]);
		u64 flags = execbuf->entries[i].flags;

		if (flags & EXEC_OBJECT_ASYNC)
			continue;
		for (j = 0; j < LAB_ENGINES; j++) {
			ktime_t end = flags & EXEC_OBJECT_WRITE ? object->busy_until[j]
								: object->written_until[j];

			if (j == execbuf->engine->index || ktime_get() >= end)
				continue;
			lab_engine_interrupt(&execbuf->lab->engines[j], end);
			after = max(after, end);
		}
	}
	return after;
}

/* With all objects locked. */
static int bind_and_submit(struct execbuf *execbuf)
{
	struct lab_request *request = execbuf->request;
	struct lab_engine *engine = execbuf->engine;
	unsigned int i;
	u64 bytes;

	for (i = 0; i < execbuf->count; i++) {
		bool wide = execbuf->entries[i].flags & EXEC_OBJECT_SUPPORTS_48B_ADDRESS;
		int error = lab_bind(to_lab_object(request->objects[i]),
				     execbuf->entries[i].alignment, wide);

		if (error)
			return error;
	}
	bytes = batch_bytes(execbuf->batch, execbuf->arguments->batch_start_offset);
	lab_engine_submit(engine, request, after_others(execbuf), REQUEST_NS + NS_OF_BYTES(bytes));
	for (i = 0; i < execbuf->count; i++) {
		struct lab_object *object = to_lab_object(request->objects[i]);

		WRITE_ONCE(object->busy_until[engine->index], request->end);
		object->dirty = true;
		if (execbuf->entries[i].flags & EXEC_OBJECT_WRITE) {
			WRITE_ONCE(object->written_until[engine->index], request->end);
			object->batch_bytes = 0;
		}
		execbuf->entries[i].rsvd2 = execbuf->entries[i].offset != object->address.start;
		execbuf->entries[i].offset = object->address.start;
	}
	return 0;
}

/* The addresses go back where they are not what the program presumed. */
static void write_offsets(struct execbuf *execbuf)
{
	struct drm_i915_gem_exec_object2 __user *user =
		u64_to_user_ptr(execbuf->arguments->buffers_ptr);
	unsigned int i;

	/* The work runs by now, so a fault here is the program's own loss. */
	for (i = 0; i < execbuf->count; i++)
		if (execbuf->entries[i].rsvd2 &&
		    put_user(execbuf->entries[i].offset, &user[i].offset))
			break;
}

static int execute(struct execbuf *execbuf, struct drm_file *file)
{
	bool block = !(file->filp->f_flags & O_NONBLOCK);
	struct ww_acquire_ctx locks;
	int error;

	execbuf->request->context =
		lab_context_get(file, execbuf->arguments->rsvd1 & I915_EXEC_CONTEXT_ID_MASK);
	if (!execbuf->request->context)
		return -ENOENT;
	error = select_engine(execbuf);
	if (!error)
		error = look_up(execbuf, file);
	if (!error)
		error = lab_engine_make_room(execbuf->engine, execbuf->request->context, block);
	if (error)
		return error;
	lab_lock(execbuf->lab);
	error = drm_gem_lock_reservations(execbuf->request->objects, execbuf->count, &locks);
	if (!error) {
		error = bind_and_submit(execbuf);
		drm_gem_unlock_reservations(execbuf->request->objects, execbuf->count, &locks);
	}
	lab_unlock(execbuf->lab);
	/* An object is twice in the list. */
	return error == -EALREADY ? -EINVAL : error;
}

int lab_execbuf_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct execbuf execbuf = {.lab = to_lab(device), .arguments = data};
	int error = check(execbuf.arguments);
	size_t size;

	if (error)
		return error;
	execbuf.count = execbuf.arguments->buffer_count;
	size = execbuf.count * sizeof(*execbuf.entries);
	execbuf.entries = kvmalloc(size, GFP_KERNEL | __GFP_NOWARN);
	execbuf.request = kvzalloc(struct_size(execbuf.request, objects, execbuf.count),
				   GFP_KERNEL | __GFP_NOWARN);
	error = -ENOMEM;
	if (!execbuf.entries || !execbuf.request)
		goto out;
	refcount_set(&execbuf.request->references, 1);
	error = -EFAULT;
	if (!copy_from_user(execbuf.entries, u64_to_user_ptr(execbuf.arguments->buffers_ptr), size))
		error = execute(&execbuf, file);
	lab_request_put(execbuf.request);
	execbuf.request = NULL;
	if (!error)
		write_offsets(&execbuf);
out:
	kvfree(execbuf.entries);
	kvfree(execbuf.request);
	return error;
}
