/* SPDX-License-Identifier: MIT */
/* Objects, their contents, submission, and batches of a wanted length. */
#include "backends/i915_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "backends/drm_node.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/parse.h"

#define ALIVE_TIMEOUT_NS (2 * NS_PER_S)
#define PAGE UINT64_C(4096)
#define BATCH_MAX_BYTES (UINT64_C(64) << 20)

int i915_create(const struct i915 *gpu, uint64_t *bytes, uint32_t *ret_handle)
{
	struct drm_i915_gem_create create = {.size = *bytes};
	int error = drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_CREATE, &create);

	if (error)
		return error;
	*bytes = create.size;
	*ret_handle = create.handle;
	return 0;
}

void i915_close_handle(const struct i915 *gpu, uint32_t handle)
{
	struct drm_gem_close arguments = {.handle = handle};

	if (handle)
		drm_call(gpu->descriptor, DRM_IOCTL_GEM_CLOSE, &arguments);
}

static int set_domain(const struct i915 *gpu, uint32_t handle, uint32_t read, uint32_t write)
{
	struct drm_i915_gem_set_domain arguments = {
		.handle = handle, .read_domains = read, .write_domain = write};

	return drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_SET_DOMAIN, &arguments);
}

static int write_mapped(uint8_t *memory, uint64_t within, uint32_t command)
{
	*(volatile uint32_t *)(memory + within) = command;
	return munmap(memory, PAGE) == 0 ? 0 : -errno;
}

static int write_mmap_offset(const struct i915 *gpu, uint32_t handle, uint64_t offset,
			     uint32_t command)
{
	struct drm_i915_gem_mmap_offset arguments = {.handle = handle, .flags = gpu->mmap_flags};
	uint64_t page = offset & ~(PAGE - 1);
	void *memory;
	int error = drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_MMAP_OFFSET, &arguments);

	if (error)
		return error;
	if (gpu->mmap_flags == I915_MMAP_OFFSET_WB) {
		error = set_domain(gpu, handle, I915_GEM_DOMAIN_CPU, I915_GEM_DOMAIN_CPU);
		if (error)
			return error;
	}
	memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, gpu->descriptor,
		      (off_t)(arguments.offset + page));
	if (memory == MAP_FAILED)
		return -errno;
	return write_mapped(memory, offset - page, command);
}

static int write_mmap(const struct i915 *gpu, uint32_t handle, uint64_t offset, uint32_t command)
{
	uint64_t page = offset & ~(PAGE - 1);
	struct drm_i915_gem_mmap arguments = {.handle = handle, .offset = page, .size = PAGE};
	int error = drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_MMAP, &arguments);

	if (!error)
		error = set_domain(gpu, handle, I915_GEM_DOMAIN_CPU, I915_GEM_DOMAIN_CPU);
	if (error)
		return error;
	return write_mapped((uint8_t *)(uintptr_t)arguments.addr_ptr, offset - page, command);
}

int i915_write_command(const struct i915 *gpu, uint32_t handle, uint64_t offset, uint32_t command)
{
	struct drm_i915_gem_pwrite arguments = {
		.handle = handle,
		.offset = offset,
		.size = sizeof(command),
		.data_ptr = (uintptr_t)&command,
	};

	if (gpu->write == I915_WRITE_MMAP_OFFSET)
		return write_mmap_offset(gpu, handle, offset, command);
	if (gpu->write == I915_WRITE_MMAP)
		return write_mmap(gpu, handle, offset, command);
	return drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_PWRITE, &arguments);
}

/*
 * PWRITE is refused on gen 12 and later but for TGL, by errno that varied; MMAP_OFFSET exists since
 * 5.5 (MMAP_GTT_VERSION 4), where the kinds of mapping depend on the part; MMAP is older.
 */
int i915_choose_write(struct i915 *gpu, struct message *message)
{
	static const uint64_t kinds[] = {I915_MMAP_OFFSET_WC, I915_MMAP_OFFSET_WB,
					 I915_MMAP_OFFSET_FIXED};
	uint64_t bytes = PAGE;
	uint32_t handle;
	int32_t version = 0;
	int error = i915_create(gpu, &bytes, &handle);

	if (error)
		return message_set_errno(message, error, "%s: creating a 4 KiB object", gpu->node);
	gpu->write = I915_WRITE_PWRITE;
	error = i915_write_command(gpu, handle, 0, MI_BATCH_BUFFER_END);
	i915_get_parameter(gpu, I915_PARAM_MMAP_GTT_VERSION, &version);
	for (size_t i = 0; error && version >= 4 && i < ARRAY_SIZE(kinds); i++) {
		gpu->write = I915_WRITE_MMAP_OFFSET;
		gpu->mmap_flags = kinds[i];
		error = i915_write_command(gpu, handle, 0, MI_BATCH_BUFFER_END);
	}
	if (error && version < 4) {
		gpu->write = I915_WRITE_MMAP;
		error = i915_write_command(gpu, handle, 0, MI_BATCH_BUFFER_END);
	}
	i915_close_handle(gpu, handle);
	if (error)
		return message_set_errno(message, error,
					 "%s: no way to write an object works (PWRITE, mappings)",
					 gpu->node);
	return 0;
}

int i915_submit(struct i915 *gpu, uint64_t engine, uint32_t buffer, uint32_t batch,
		uint64_t batch_bytes, uint64_t *offset)
{
	uint64_t address = gpu->wide_addresses ? EXEC_OBJECT_SUPPORTS_48B_ADDRESS : 0;
	struct drm_i915_gem_exec_object2 objects[3] = {0};
	struct drm_i915_gem_execbuffer2 execbuf = {
		.buffers_ptr = (uintptr_t)objects,
		.batch_len = (uint32_t)batch_bytes,
		.rsvd1 = gpu->context,
	};
	uint64_t flags = atomic_load_explicit(&gpu->exec_flags, memory_order_relaxed);
	size_t count = 0, watched = 0;
	int error;

	if (gpu->dependency) {
		objects[count].handle = gpu->dependency;
		objects[count++].flags = EXEC_OBJECT_WRITE | address;
	}
	if (buffer && buffer != batch) {
		watched = count;
		objects[count].handle = buffer;
		objects[count++].flags = address;
	} else {
		watched = count;
	}
	objects[count].handle = batch;
	objects[count++].flags = address;
	objects[watched].offset = offset ? *offset : 0;
	execbuf.buffer_count = (uint32_t)count;
	execbuf.flags = engine | flags;
	error = drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_EXECBUFFER2, &execbuf);
	if (error == -EINVAL && flags) {
		/* Before 3.9 (NO_RELOC) and 3.10 (HANDLE_LUT) the flags are unknown. */
		execbuf.flags = engine;
		error = drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_EXECBUFFER2, &execbuf);
		if (!error)
			atomic_store_explicit(&gpu->exec_flags, 0, memory_order_relaxed);
	}
	if (!error && offset)
		*offset = objects[watched].offset;
	return error;
}

int i915_wait(const struct i915 *gpu, uint32_t handle, int64_t timeout_ns)
{
	struct drm_i915_gem_wait arguments = {.bo_handle = handle, .timeout_ns = timeout_ns};

	return drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_WAIT, &arguments);
}

int i915_check_alive(struct i915 *gpu, struct message *message)
{
	uint64_t bytes = PAGE;
	uint32_t handle;
	int error = i915_create(gpu, &bytes, &handle);

	if (!error)
		error = i915_write_command(gpu, handle, 0, MI_BATCH_BUFFER_END);
	for (size_t i = 0; !error && i < gpu->engine_count; i++) {
		error = i915_submit(gpu, gpu->engines[i], 0, handle, 0, NULL);
		if (!error)
			error = i915_wait(gpu, handle, ALIVE_TIMEOUT_NS);
	}
	i915_close_handle(gpu, handle);
	if (error == -ETIME || error == -ETIMEDOUT)
		return message_set(
			message, -ETIMEDOUT,
			"%s: the GPU is busy or hung: an empty batch did not finish in 2 s",
			gpu->node);
	if (error)
		return message_set_errno(message, error, "%s: running an empty batch%s", gpu->node,
					 error == -EIO ? " (the GPU is wedged; see dmesg)" : "");
	return 0;
}

/* Batches in flight at once, so that the time of one call does not count, and times measured. */
#define CALIBRATION_RUNS 8
#define CALIBRATION_TIMES 3

/* CALIBRATION_RUNS batches back to back; the mean time of one, ns. */
static int time_runs(struct i915 *gpu, uint32_t handle, uint64_t bytes, double *ret_ns)
{
	int64_t start_ns = clock_now_ns();
	int error = 0;

	for (int i = 0; !error && i < CALIBRATION_RUNS; i++)
		error = i915_submit(gpu, gpu->engines[0], 0, handle, bytes, NULL);
	if (!error)
		error = i915_wait(gpu, handle, ALIVE_TIMEOUT_NS);
	*ret_ns = (double)(clock_now_ns() - start_ns) / CALIBRATION_RUNS;
	return error;
}

/*
 * A batch of @bytes of MI_NOOP (0, as new objects are) and the end. *ret_ns is the least of several
 * times: what disturbs a measurement only makes it longer.
 */
static int time_batch(struct i915 *gpu, uint64_t *bytes, uint32_t *ret_handle, double *ret_ns)
{
	double least_ns = 0, ns;
	uint32_t handle;
	int error = i915_create(gpu, bytes, &handle);

	if (error)
		return error;
	error = i915_write_command(gpu, handle, *bytes - 8, MI_BATCH_BUFFER_END);
	if (!error) /* the first run binds the object */
		error = time_runs(gpu, handle, *bytes, &ns);
	for (int i = 0; !error && i < CALIBRATION_TIMES; i++) {
		error = time_runs(gpu, handle, *bytes, &ns);
		if (i == 0 || ns < least_ns)
			least_ns = ns;
	}
	if (error) {
		i915_close_handle(gpu, handle);
		return error;
	}
	*ret_ns = least_ns;
	*ret_handle = handle;
	return 0;
}

static uint64_t round_to_page(double bytes)
{
	if (bytes >= (double)BATCH_MAX_BYTES)
		return BATCH_MAX_BYTES;
	return bytes <= (double)PAGE ? PAGE : ((uint64_t)bytes + PAGE - 1) & ~(PAGE - 1);
}

/*
 * IGT's calibration compared nanoseconds with 5 (microseconds) and so always ended at once. Here
 * the size doubles until a run takes the wanted time, then one step in proportion, measured again.
 */
static int calibrate(struct i915 *gpu, double wanted_ns, double *ret_ns)
{
	uint64_t bytes = PAGE;
	double seen_ns = 0;
	int error = time_batch(gpu, &bytes, &gpu->batch, &seen_ns);

	while (!error && seen_ns < wanted_ns && bytes < BATCH_MAX_BYTES) {
		i915_close_handle(gpu, gpu->batch);
		gpu->batch = 0;
		bytes *= 2;
		error = time_batch(gpu, &bytes, &gpu->batch, &seen_ns);
	}
	if (!error && bytes > PAGE && seen_ns > wanted_ns) {
		i915_close_handle(gpu, gpu->batch);
		gpu->batch = 0;
		bytes = round_to_page((double)bytes * wanted_ns / seen_ns);
		error = time_batch(gpu, &bytes, &gpu->batch, &seen_ns);
	}
	gpu->batch_bytes = bytes;
	*ret_ns = seen_ns;
	return error;
}

int i915_make_batch(struct i915 *gpu, struct message *message)
{
	int64_t wanted_ns = gpu->backend.settings.batch_ns;
	char wanted[32], seen[32], size[32], note[160];
	double seen_ns = 0;
	int error;

	if (wanted_ns == 0)
		return 0;
	if (wanted_ns < 0) {
		gpu->batch_bytes = round_to_page(-(double)wanted_ns);
		error = time_batch(gpu, &gpu->batch_bytes, &gpu->batch, &seen_ns);
	} else {
		error = calibrate(gpu, (double)wanted_ns, &seen_ns);
	}
	if (error)
		return message_set_errno(message, error, "%s: calibrating the batch of -r",
					 gpu->node);
	format_duration(wanted_ns, wanted, sizeof(wanted));
	format_duration((int64_t)seen_ns, seen, sizeof(seen));
	format_size(gpu->batch_bytes, size, sizeof(size));
	snprintf(note, sizeof(note), "-r: batches of %s take %s on the first engine%s%s", size,
		 seen, wanted_ns > 0 ? ", wanted " : "", wanted_ns > 0 ? wanted : "");
	i915_add_note(gpu, note);
	return 0;
}

void i915_add_note(struct i915 *gpu, const char *text)
{
	for (size_t i = 0; i < 4; i++) {
		if (gpu->backend.notes[i])
			continue;
		snprintf(gpu->notes[i], sizeof(gpu->notes[i]), "%s", text);
		gpu->backend.notes[i] = gpu->notes[i];
		return;
	}
}
