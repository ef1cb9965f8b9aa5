/* SPDX-License-Identifier: MIT */
/*
 * The lab's driver that speaks i915, by its ioctls: shell/lab_i915 runs this in a machine that has
 * it. Times are only asked to be long enough.
 */
#include "support/testing.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include <i915_drm.h>
#include <xf86drm.h>

#include "backends/drm_node.h"
#include "base/array.h"
#include "base/clock.h"

#define BATCH_END UINT32_C(0x05000000)
#define LONG_BYTES (UINT64_C(64) << 20)
#define LONG_NS ((int64_t)LONG_BYTES / 4) /* a command of 4 bytes in 1 ns */
#define QUEUED 30 /* of them: still busy when a slow machine looks, and no full ring */

static int card = -1;
static char drop_caches_path[64];

static int call(unsigned long request, void *arguments)
{
	return drm_call(card, request, arguments);
}

static uint32_t create(uint64_t bytes)
{
	struct drm_i915_gem_create arguments = {.size = bytes};

	assert_int_equal(call(DRM_IOCTL_I915_GEM_CREATE, &arguments), 0);
	return arguments.handle;
}

static void destroy(uint32_t handle)
{
	struct drm_gem_close arguments = {.handle = handle};

	assert_int_equal(call(DRM_IOCTL_GEM_CLOSE, &arguments), 0);
}

static int write_end(uint32_t handle, uint64_t offset)
{
	uint32_t command = BATCH_END;
	struct drm_i915_gem_pwrite arguments = {.handle = handle,
						.offset = offset,
						.size = sizeof(command),
						.data_ptr = (uintptr_t)&command};

	return call(DRM_IOCTL_I915_GEM_PWRITE, &arguments);
}

static uint32_t create_batch(uint64_t bytes)
{
	uint32_t handle = create(bytes);

	assert_int_equal(write_end(handle, bytes - 4), 0);
	return handle;
}

/* @entries as in the uAPI: the batch last. */
static int execute(struct drm_i915_gem_exec_object2 *entries, uint32_t count, uint64_t flags)
{
	struct drm_i915_gem_execbuffer2 arguments = {
		.buffers_ptr = (uintptr_t)entries, .buffer_count = count, .flags = flags};

	return call(DRM_IOCTL_I915_GEM_EXECBUFFER2, &arguments);
}

static int run(uint32_t batch, uint64_t engine)
{
	struct drm_i915_gem_exec_object2 entry = {.handle = batch};

	return execute(&entry, 1, engine);
}

static void queue(uint32_t batch, uint64_t engine)
{
	for (int i = 0; i < QUEUED; i++)
		assert_int_equal(run(batch, engine), 0);
}

static int wait_for(uint32_t handle, int64_t timeout_ns)
{
	struct drm_i915_gem_wait arguments = {.bo_handle = handle, .timeout_ns = timeout_ns};

	return call(DRM_IOCTL_I915_GEM_WAIT, &arguments);
}

static uint32_t busy(uint32_t handle)
{
	struct drm_i915_gem_busy arguments = {.handle = handle};

	assert_int_equal(call(DRM_IOCTL_I915_GEM_BUSY, &arguments), 0);
	return arguments.busy;
}

static bool retained(uint32_t handle, uint32_t advice)
{
	struct drm_i915_gem_madvise arguments = {.handle = handle, .madv = advice};

	assert_int_equal(call(DRM_IOCTL_I915_GEM_MADVISE, &arguments), 0);
	return arguments.retained;
}

static void shrink_all(void)
{
	int drop_caches = open(drop_caches_path, O_WRONLY | O_CLOEXEC);

	assert_true(drop_caches >= 0);
	assert_int_equal(write(drop_caches, "0x20", 4), 4);
	close(drop_caches);
}

static void it_tells_that_it_is_the_lab(void **state)
{
	drmVersionPtr version = drmGetVersion(card);

	(void)state;
	assert_non_null(version);
	assert_string_equal(version->name, "i915");
	assert_non_null(strstr(version->desc, "syslatency lab"));
	drmFreeVersion(version);
}

static void engines_are_told_by_the_error(void **state)
{
	static const uint64_t there[] = {I915_EXEC_DEFAULT, I915_EXEC_RENDER, I915_EXEC_BSD,
					 I915_EXEC_BLT, I915_EXEC_VEBOX};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(there); i++)
		assert_int_equal(run(0, there[i]), -ENOENT);
	assert_int_equal(run(0, I915_EXEC_VEBOX + 1), -EINVAL);
	assert_int_equal(run(0, I915_EXEC_BLT | I915_EXEC_BSD_RING1), -EINVAL);
}

static void execbuf_is_checked(void **state)
{
	struct drm_i915_gem_exec_object2 entries[2] = {0}, bad;
	struct drm_i915_gem_execbuffer2 right = {.buffers_ptr = (uintptr_t)entries,
						 .buffer_count = 2},
					wrong;
	struct drm_i915_gem_relocation_entry relocation = {0};

	(void)state;
	entries[0].handle = create(4096);
	entries[1].handle = create_batch(4096);
	assert_int_equal(call(DRM_IOCTL_I915_GEM_EXECBUFFER2, &right), 0);
#define REFUSED(error, member, value)                                                    \
	do {                                                                             \
		wrong = right;                                                           \
		wrong.member = (value);                                                  \
		assert_int_equal(call(DRM_IOCTL_I915_GEM_EXECBUFFER2, &wrong), (error)); \
	} while (0)
	REFUSED(-EINVAL, buffer_count, 0);
	REFUSED(-EINVAL, flags, UINT64_C(1) << 40);
	REFUSED(-EINVAL, num_cliprects, 1);
	REFUSED(-EINVAL, DR1, 1);
	REFUSED(-EINVAL, batch_len, 4);
	REFUSED(-EINVAL, batch_len, 8192);
	REFUSED(-EINVAL, batch_start_offset, 4096);
	REFUSED(-ENOENT, rsvd1, 4711);
	REFUSED(-EFAULT, buffers_ptr, 0);
#undef REFUSED
#define REFUSED(member, value)                                     \
	do {                                                       \
		bad = entries[1];                                  \
		entries[1].member = (value);                       \
		assert_int_equal(execute(entries, 2, 0), -EINVAL); \
		entries[1] = bad;                                  \
	} while (0)
	REFUSED(handle, entries[0].handle);
	REFUSED(flags, EXEC_OBJECT_WRITE);
	REFUSED(alignment, 12);
	entries[1].relocs_ptr = (uintptr_t)&relocation;
	REFUSED(relocation_count, 1);
#undef REFUSED
	assert_int_equal(execute(entries, 2, 0), 0);
	destroy(entries[0].handle);
	destroy(entries[1].handle);
}

static void addresses_are_given_back(void **state)
{
	struct drm_i915_gem_exec_object2 entries[2] = {0};

	(void)state;
	entries[0].handle = create(1 << 20);
	entries[1].handle = create_batch(4096);
	entries[0].offset = entries[1].offset = 1;
	assert_int_equal(execute(entries, 2, I915_EXEC_NO_RELOC), 0);
	assert_true(entries[0].offset != 1 && entries[0].offset % 4096 == 0);
	assert_true(entries[0].offset < UINT64_C(1) << 32);
	assert_true(entries[1].offset >= entries[0].offset + (1 << 20) ||
		    entries[1].offset + 4096 <= entries[0].offset);
	destroy(entries[0].handle);
	destroy(entries[1].handle);
}

static void batches_take_their_time(void **state)
{
	uint32_t batch = create_batch(LONG_BYTES);
	int64_t start_ns;

	(void)state;
	assert_int_equal(run(batch, I915_EXEC_RENDER), 0); /* gets the pages */
	assert_int_equal(wait_for(batch, -1), 0);
	assert_int_equal(busy(batch), 0);
	start_ns = clock_now_ns();
	queue(batch, I915_EXEC_BLT);
	assert_int_equal(busy(batch), 0x10000 << I915_ENGINE_CLASS_COPY);
	assert_int_equal(wait_for(batch, 0), -ETIME);
	assert_int_equal(wait_for(batch, 1000), -ETIME);
	assert_int_equal(wait_for(batch, -1), 0);
	assert_true(clock_now_ns() - start_ns >= QUEUED * LONG_NS);
	/* A write through the pages is seen: the batch ends at once. */
	assert_int_equal(write_end(batch, 0), 0);
	queue(batch, I915_EXEC_BLT);
	assert_int_equal(wait_for(batch, QUEUED * LONG_NS / 2), 0);
	destroy(batch);
}

static void who_writes_is_waited_for(void **state)
{
	struct drm_i915_gem_exec_object2 entries[2] = {{.flags = EXEC_OBJECT_WRITE}};
	uint32_t batch = create_batch(LONG_BYTES);
	int64_t start_ns;

	(void)state;
	entries[0].handle = create(4096);
	entries[1].handle = batch;
	assert_int_equal(execute(entries, 2, I915_EXEC_RENDER), 0);
	assert_int_equal(wait_for(batch, -1), 0);
	start_ns = clock_now_ns();
	for (int i = 0; i < QUEUED; i++)
		assert_int_equal(execute(entries, 2, i & 1 ? I915_EXEC_BLT : I915_EXEC_RENDER), 0);
	assert_int_equal(busy(entries[0].handle) & 0xffff, I915_ENGINE_CLASS_COPY + 1);
	assert_int_equal(wait_for(entries[0].handle, -1), 0);
	assert_true(clock_now_ns() - start_ns >= QUEUED * LONG_NS);
	destroy(entries[0].handle);
	destroy(batch);
}

static void a_full_ring_holds_up(void **state)
{
	uint32_t batch = create_batch(LONG_BYTES);
	struct drm_i915_gem_exec_object2 entry = {.handle = batch};
	struct drm_i915_gem_execbuffer2 arguments = {.buffers_ptr = (uintptr_t)&entry,
						     .buffer_count = 1};
	int taken = 0, flags = fcntl(card, F_GETFL);

	(void)state;
	assert_int_equal(run(batch, I915_EXEC_RENDER), 0);
	assert_int_equal(wait_for(batch, -1), 0);
	assert_int_equal(fcntl(card, F_SETFL, flags | O_NONBLOCK), 0);
	/* Not by drm_call(), which would try again. */
	while (taken < 200 && ioctl(card, DRM_IOCTL_I915_GEM_EXECBUFFER2, &arguments) == 0)
		taken++;
	assert_int_equal(errno, EAGAIN);
	assert_true(taken >= 64 && taken < 200);
	assert_int_equal(fcntl(card, F_SETFL, flags), 0);
	assert_int_equal(run(batch, I915_EXEC_RENDER), 0);
	assert_int_equal(call(DRM_IOCTL_I915_GEM_THROTTLE, NULL), 0);
	destroy(batch); /* while it is busy: the engine keeps it */
}

static void what_is_not_needed_is_purged(void **state)
{
	uint32_t fresh = create(1 << 20), used = create_batch(1 << 20);

	(void)state;
	assert_false(retained(fresh, I915_MADV_DONTNEED)); /* it has no pages yet */
	assert_int_equal(run(used, I915_EXEC_RENDER), 0);
	assert_int_equal(wait_for(used, -1), 0);
	assert_true(retained(used, I915_MADV_DONTNEED));
	assert_true(retained(used, I915_MADV_WILLNEED));
	shrink_all();
	assert_true(retained(used, I915_MADV_DONTNEED));
	shrink_all();
	assert_false(retained(used, I915_MADV_WILLNEED));
	assert_int_equal(run(used, I915_EXEC_RENDER), -EFAULT);
	assert_int_equal(write_end(used, 0), -EFAULT);
	destroy(fresh);
	destroy(used);
}

static void what_is_busy_is_not_purged(void **state)
{
	uint32_t batch = create_batch(LONG_BYTES);

	(void)state;
	queue(batch, I915_EXEC_RENDER);
	assert_true(retained(batch, I915_MADV_DONTNEED));
	shrink_all();
	assert_true(retained(batch, I915_MADV_DONTNEED));
	assert_int_not_equal(busy(batch), 0);
	assert_int_equal(wait_for(batch, -1), 0);
	shrink_all();
	assert_false(retained(batch, I915_MADV_DONTNEED));
	destroy(batch);
}

static void contexts_have_maps(void **state)
{
	I915_DEFINE_CONTEXT_PARAM_ENGINES(map, 2) = {0};
	struct drm_i915_gem_context_create_ext_setparam set_map = {
		.base.name = I915_CONTEXT_CREATE_EXT_SETPARAM,
		.param = {.param = I915_CONTEXT_PARAM_ENGINES,
			  .size = sizeof(map),
			  .value = (uintptr_t)&map},
	};
	struct drm_i915_gem_context_create_ext arguments = {
		.flags = I915_CONTEXT_CREATE_FLAGS_USE_EXTENSIONS,
		.extensions = (uintptr_t)&set_map,
	};
	struct drm_i915_gem_context_destroy end = {0};
	struct drm_i915_gem_context_create plain = {0};
	uint32_t batch = create_batch(LONG_BYTES);
	struct drm_i915_gem_exec_object2 entry = {.handle = batch};
	struct drm_i915_gem_execbuffer2 execbuf = {
		.buffers_ptr = (uintptr_t)&entry, .buffer_count = 1, .flags = 1};

	(void)state;
	map.engines[0].engine_class = I915_ENGINE_CLASS_VIDEO;
	map.engines[1].engine_class = I915_ENGINE_CLASS_VIDEO_ENHANCE;
	assert_int_equal(call(DRM_IOCTL_I915_GEM_CONTEXT_CREATE_EXT, &arguments), 0);
	execbuf.rsvd1 = arguments.ctx_id;
	for (int i = 0; i < QUEUED; i++)
		assert_int_equal(call(DRM_IOCTL_I915_GEM_EXECBUFFER2, &execbuf), 0);
	assert_int_equal(busy(batch), 0x10000 << I915_ENGINE_CLASS_VIDEO_ENHANCE);
	execbuf.flags = 2;
	assert_int_equal(call(DRM_IOCTL_I915_GEM_EXECBUFFER2, &execbuf), -EINVAL);
	assert_int_equal(call(DRM_IOCTL_I915_GEM_CONTEXT_DESTROY, &end), -ENOENT);
	end.ctx_id = arguments.ctx_id;
	assert_int_equal(call(DRM_IOCTL_I915_GEM_CONTEXT_DESTROY, &end), 0);
	assert_int_equal(call(DRM_IOCTL_I915_GEM_CONTEXT_DESTROY, &end), -ENOENT);
	set_map.base.next_extension = (uintptr_t)&set_map; /* a circle */
	assert_int_equal(call(DRM_IOCTL_I915_GEM_CONTEXT_CREATE_EXT, &arguments), -E2BIG);
	assert_int_equal(call(DRM_IOCTL_I915_GEM_CONTEXT_CREATE, &plain), 0);
	destroy(batch);
}

static void objects_are_made(void **state)
{
	struct drm_i915_gem_memory_class_instance region = {0};
	struct drm_i915_gem_create_ext_memory_regions regions = {
		.base.name = I915_GEM_CREATE_EXT_MEMORY_REGIONS,
		.num_regions = 1,
		.regions = (uintptr_t)&region,
	};
	struct drm_i915_gem_create_ext extended = {.size = 1, .extensions = (uintptr_t)&regions};
	struct drm_i915_gem_create none = {0}, small = {.size = 5000};

	(void)state;
	assert_int_equal(call(DRM_IOCTL_I915_GEM_CREATE, &none), -EINVAL);
	assert_int_equal(call(DRM_IOCTL_I915_GEM_CREATE, &small), 0);
	assert_int_equal(small.size, 8192);
	assert_int_equal(write_end(small.handle, 8192), -EINVAL);
	assert_int_equal(write_end(small.handle, 8190), -EINVAL);
	assert_int_equal(call(DRM_IOCTL_I915_GEM_CREATE_EXT, &extended), 0);
	assert_int_equal(extended.size, 4096);
	region.memory_class = I915_MEMORY_CLASS_DEVICE;
	assert_int_equal(call(DRM_IOCTL_I915_GEM_CREATE_EXT, &extended), -EINVAL);
	destroy(small.handle);
	destroy(extended.handle);
}

/* The primary node whose driver is i915; its debugfs folder has its number. */
static int open_card(void **state)
{
	char path[32], driver[32];

	(void)state;
	for (int i = 0; i < 16; i++) {
		snprintf(path, sizeof(path), "/dev/dri/card%d", i);
		card = open(path, O_RDWR | O_CLOEXEC);
		if (card >= 0 && drm_driver_name(card, driver, sizeof(driver)) == 0 &&
		    strcmp(driver, "i915") == 0) {
			snprintf(drop_caches_path, sizeof(drop_caches_path),
				 "/sys/kernel/debug/dri/%d/i915_gem_drop_caches", i);
			return 0;
		}
		if (card >= 0)
			close(card);
	}
	return -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_tells_that_it_is_the_lab),
		cmocka_unit_test(engines_are_told_by_the_error),
		cmocka_unit_test(execbuf_is_checked),
		cmocka_unit_test(addresses_are_given_back),
		cmocka_unit_test(batches_take_their_time),
		cmocka_unit_test(who_writes_is_waited_for),
		cmocka_unit_test(a_full_ring_holds_up),
		cmocka_unit_test(what_is_not_needed_is_purged),
		cmocka_unit_test(what_is_busy_is_not_purged),
		cmocka_unit_test(contexts_have_maps),
		cmocka_unit_test(objects_are_made),
	};

	return cmocka_run_group_tests(tests, open_card, NULL);
}
