/* SPDX-License-Identifier: MIT */
/*
 * Dumb buffers of any DRM driver that keeps them in shmem (vgem, vkms, virtio-gpu): mapping one
 * makes drm_gem_get_pages() hold all its pages (drivers/gpu/drm/drm_gem.c), unmapping puts them.
 * With -m on the lab's vgem, released buffers go to its shrinker (lab/patches/common.patch).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <drm.h>
#include <drm_mode.h>

#include "backends/drm_node.h"
#include "base/array.h"
#include "base/file.h"
#include "base/thread_timer.h"
#include "ops.h"

extern const struct backend_ops backend_drm_dumb;

#define OBSERVED_BYTES (UINT64_C(16) << 20)

/* The ioctl that lab/patches/common.patch adds to vgem: shape and meaning of i915's MADVISE. */
struct vgem_madvise {
	uint32_t handle, madv, retained, pad;
};
#define VGEM_MADVISE DRM_IOWR(DRM_COMMAND_BASE + 0x3, struct vgem_madvise)
#define VGEM_DONTNEED 1

/* Drivers whose dumb buffers are pinned shmem, best first; others are taken only when named. */
static const char *const known_drivers[] = {"vgem", "vkms", "virtio_gpu"};

struct drm_dumb {
	struct backend backend;
	int descriptor;
	char node[64], driver[32];
	bool has_shrinker;
	uint32_t *leaked;
	size_t leaked_count, leaked_size, cursor;
	pthread_mutex_t lock;
	char notes[3][200];
};

static int close_handle(const struct drm_dumb *device, uint32_t handle)
{
	struct drm_mode_destroy_dumb destroy = {.handle = handle};

	return drm_call(device->descriptor, DRM_IOCTL_MODE_DESTROY_DUMB, &destroy);
}

/* Dumb buffers are pictures: a row of a page, as many rows as pages. */
static int create(const struct drm_dumb *device, uint64_t *bytes, uint32_t *ret_handle)
{
	uint64_t rows = (*bytes + 4095) / 4096;
	struct drm_mode_create_dumb arguments = {
		.width = 1024, .height = (uint32_t)rows, .bpp = 32};
	int error;

	if (rows > UINT32_MAX / 4096)
		return -EFBIG;
	error = drm_call(device->descriptor, DRM_IOCTL_MODE_CREATE_DUMB, &arguments);
	if (error)
		return error;
	*bytes = arguments.size;
	*ret_handle = arguments.handle;
	return 0;
}

static int map(const struct drm_dumb *device, struct buffer *buffer)
{
	struct drm_mode_map_dumb arguments = {.handle = (uint32_t)buffer->handle};
	int error = drm_call(device->descriptor, DRM_IOCTL_MODE_MAP_DUMB, &arguments);
	void *memory;

	if (error)
		return error;
	memory = mmap(NULL, buffer->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, device->descriptor,
		      (off_t)arguments.offset);
	if (memory == MAP_FAILED)
		return -errno;
	buffer->memory = memory;
	return 0;
}

static void end_phase(struct thread_timer *timer, struct buffer *buffer, enum buffer_phase phase)
{
	thread_timer_add(timer, &buffer->phase_ns[phase], &buffer->phase_cpu_ns[phase]);
}

/* Mapping pins (the driver reads in every page), touching faults the pages into the mapping. */
static int allocate(struct backend *backend, struct buffer *buffer)
{
	struct drm_dumb *device = (struct drm_dumb *)backend;
	struct random random;
	uint32_t handle = 0;
	struct thread_timer timer;
	int error;

	memset(buffer->phase_ns, 0, sizeof(buffer->phase_ns));
	memset(buffer->phase_cpu_ns, 0, sizeof(buffer->phase_cpu_ns));
	thread_timer_start(&timer);
	error = create(device, &buffer->bytes, &handle);
	end_phase(&timer, buffer, BUFFER_ALLOCATE);
	buffer->handle = handle;
	if (!error)
		error = map(device, buffer);
	if (error) {
		if (handle)
			close_handle(device, handle);
		buffer->handle = 0;
		if (error == -ENODEV || error == -ENXIO)
			atomic_store(&backend->failure, "drm-dumb: the device is gone");
		return error;
	}
	end_phase(&timer, buffer, BUFFER_PIN);
	random_seed(&random, (uint64_t)timer.wall_ns ^ handle);
	random_fill(&random, buffer->memory, buffer->bytes);
	end_phase(&timer, buffer, BUFFER_POPULATE);
	return 0;
}

static int give_away(const struct drm_dumb *device, uint32_t handle, bool *ret_retained)
{
	struct vgem_madvise arguments = {.handle = handle, .madv = VGEM_DONTNEED};
	int error = drm_call(device->descriptor, VGEM_MADVISE, &arguments);

	if (!error)
		*ret_retained = arguments.retained != 0;
	return error;
}

/* As on i915: a handle is closed only once its pages were purged, else there is nothing to shrink.
 */
static int look_for_purged(struct drm_dumb *device, size_t most)
{
	for (size_t i = 0; i < most && device->leaked_count; i++) {
		bool retained;
		int error;

		if (device->cursor >= device->leaked_count)
			device->cursor = 0;
		error = give_away(device, device->leaked[device->cursor], &retained);
		if (error)
			return error;
		if (retained) {
			device->cursor++;
			continue;
		}
		close_handle(device, device->leaked[device->cursor]);
		device->leaked[device->cursor] = device->leaked[--device->leaked_count];
	}
	return 0;
}

static int remember(struct drm_dumb *device, uint32_t handle)
{
	int error = 0;

	pthread_mutex_lock(&device->lock);
	if (device->leaked_count == device->leaked_size) {
		size_t size = device->leaked_size ? 2 * device->leaked_size : 64;
		uint32_t *handles = reallocarray(device->leaked, size, sizeof(*handles));

		if (!handles) {
			error = -ENOMEM;
			goto out;
		}
		device->leaked = handles;
		device->leaked_size = size;
	}
	device->leaked[device->leaked_count++] = handle;
	error = look_for_purged(device, 4);
out:
	pthread_mutex_unlock(&device->lock);
	return error;
}

/* The driver's pages stay pinned over the unmapping: DONTNEED holds them for the shrinker. */
static int leak(struct drm_dumb *device, struct buffer *buffer)
{
	bool retained;
	int error = give_away(device, (uint32_t)buffer->handle, &retained);

	if (error)
		return error;
	if (munmap(buffer->memory, buffer->bytes) != 0)
		return -errno;
	return remember(device, (uint32_t)buffer->handle);
}

static int release(struct backend *backend, struct buffer *buffer)
{
	struct drm_dumb *device = (struct drm_dumb *)backend;
	struct thread_timer timer;
	int error = 0;

	thread_timer_start(&timer);
	if (backend->settings.leak && device->has_shrinker) {
		error = leak(device, buffer);
	} else {
		if (munmap(buffer->memory, buffer->bytes) != 0)
			error = -errno;
		if (!error)
			error = close_handle(device, (uint32_t)buffer->handle);
	}
	end_phase(&timer, buffer, BUFFER_RELEASE);
	buffer->memory = NULL;
	buffer->handle = 0;
	return error;
}

static void close_device(struct backend *backend)
{
	struct drm_dumb *device = (struct drm_dumb *)backend;

	if (!device)
		return;
	for (size_t i = 0; i < device->leaked_count; i++)
		close_handle(device, device->leaked[i]);
	if (device->descriptor >= 0)
		close(device->descriptor);
	free(device->leaked);
	pthread_mutex_destroy(&device->lock);
	free(device);
}

/* The capability is told by display drivers alone, and vgem is none: try. */
static int try_buffer(const struct drm_dumb *device)
{
	uint64_t bytes = 4096;
	uint32_t handle;
	int error = create(device, &bytes, &handle);

	return error ? error : close_handle(device, handle);
}

/* Opens @node when it is @driver's (NULL: any) and has dumb buffers: 0, or -errno with @why filled.
 */
static int open_node(struct drm_dumb *device, const char *node, const char *driver, char *why,
		     size_t size)
{
	int error = machine_open(node, O_RDWR);

	if (error < 0) {
		snprintf(why, size, "%s: %s", node, strerror(-error));
		return error;
	}
	device->descriptor = error;
	/* Opening the primary node may have made us the display's master. */
	drm_call(device->descriptor, DRM_IOCTL_DROP_MASTER, NULL);
	error = drm_driver_name(device->descriptor, device->driver, sizeof(device->driver));
	if (error) {
		snprintf(why, size, "%s: %s", node, strerror(-error));
	} else if (driver && strcmp(driver, device->driver) != 0) {
		error = -ENODEV;
		snprintf(why, size, "%s is %s (not taken unless named with --device)", node,
			 device->driver);
	} else {
		error = try_buffer(device);
		if (error)
			snprintf(why, size, "%s (%s): a dumb buffer: %s", node, device->driver,
				 strerror(-error));
	}
	if (error) {
		close(device->descriptor);
		device->descriptor = -1;
		return error;
	}
	snprintf(device->node, sizeof(device->node), "%s", node);
	return 0;
}

static int is_card(const struct dirent *entry)
{
	return strncmp(entry->d_name, "card", 4) == 0;
}

/* Looks for @driver among the cards; why each was passed over is left in @found. */
static int find_driver(struct drm_dumb *device, const char *driver, char *found, size_t size,
		       int *worst)
{
	char directory[300], why[128];
	struct dirent **entries = NULL;
	int count = -1, error = -ENODEV;

	found[0] = '\0';
	if (machine_path("/dev/dri", directory, sizeof(directory)) == 0)
		count = scandir(directory, &entries, is_card, versionsort);
	for (int i = 0; i < count; i++) {
		char node[64];

		snprintf(node, sizeof(node), "/dev/dri/%.40s", entries[i]->d_name);
		free(entries[i]);
		if (error == 0)
			continue;
		error = open_node(device, node, driver, why, sizeof(why));
		if (error == -EACCES || error == -EPERM)
			*worst = -EACCES;
		if (error)
			snprintf(found + strlen(found), size - strlen(found), "%s%s",
				 found[0] ? "; " : "", why);
	}
	free(entries);
	return error;
}

static int find_node(struct drm_dumb *device, struct message *message)
{
	char found[320];
	int worst = -ENODEV;

	for (size_t i = 0; i < ARRAY_SIZE(known_drivers); i++)
		if (find_driver(device, known_drivers[i], found, sizeof(found), &worst) == 0)
			return 0;
	return message_set(message, worst,
			   "no DRM device with dumb buffers in shmem (modprobe vgem makes one): %s",
			   found[0] ? found : "there is none in /dev/dri");
}

static int find(struct drm_dumb *device, const char *text, struct message *message)
{
	struct drm_filter filter;
	char why[128];
	int error = drm_filter_parse(text, &filter, message);

	if (error)
		return error;
	if (!text)
		return find_node(device, message);
	if (!filter.path)
		return message_set(message, -EINVAL,
				   "drm-dumb takes a node (/dev/dri/card0), not '%s'", text);
	error = open_node(device, filter.path, NULL, why, sizeof(why));
	return error ? message_set(message, error == -ENOENT ? -ENODEV : error, "%s", why) : 0;
}

/* Stock drivers answer EINVAL to the unknown number, the lab's ENOENT to a handle that is none. */
static bool probe_shrinker(const struct drm_dumb *device)
{
	struct vgem_madvise arguments = {.handle = 0, .madv = VGEM_DONTNEED};

	return strcmp(device->driver, "vgem") == 0 &&
	       drm_call(device->descriptor, VGEM_MADVISE, &arguments) == -ENOENT;
}

static int observe(struct drm_dumb *device, struct message *message)
{
	struct buffer buffer = {.bytes = OBSERVED_BYTES};
	struct drm_levels before = {0}, after = {0};
	const char *variant;
	bool seen = drm_levels_read(&before) == 0;
	int error = allocate(&device->backend, &buffer);

	if (error)
		return message_set_errno(message, error, "%s (%s): a dumb buffer of 16 MiB",
					 device->node, device->driver);
	seen = seen && drm_levels_read(&after) == 0;
	munmap(buffer.memory, buffer.bytes);
	error = close_handle(device, (uint32_t)buffer.handle);
	if (error)
		return message_set_errno(message, error, "%s (%s): DESTROY_DUMB", device->node,
					 device->driver);
	variant = seen ? drm_variant_of(&before, &after, OBSERVED_BYTES / 4096) : NULL;
	device->backend.observed_variant = variant;
	snprintf(device->notes[1], sizeof(device->notes[1]),
		 "pinning %llu pages moved nr_unevictable by %lld, nr_mlock by %lld: observed %s",
		 (unsigned long long)(OBSERVED_BYTES / 4096),
		 (long long)(after.unevictable_pages - before.unevictable_pages),
		 (long long)(after.mlock_pages - before.mlock_pages),
		 variant ? variant : "neither");
	return 0;
}

static int open_device(const struct backend_settings *settings, struct backend **ret_backend,
		       struct message *message)
{
	struct drm_dumb *device = calloc(1, sizeof(*device));
	int error;

	if (!device)
		return -ENOMEM;
	device->backend.ops = &backend_drm_dumb;
	device->backend.settings = *settings;
	device->backend.pin_method = "driver";
	device->descriptor = -1;
	pthread_mutex_init(&device->lock, NULL);
	error = find(device, settings->device, message);
	if (error)
		goto fail;
	device->has_shrinker = probe_shrinker(device);
	if (device->has_shrinker && settings->leak && settings->in_memcg) {
		error = message_set(
			message, -ENOTSUP,
			"-m does nothing on this vgem under a memory limit: reclaim of a "
			"group does not call the driver's shrinker; use --scope machine");
		goto fail;
	}
	device->backend.release_context =
		settings->leak && device->has_shrinker ? "shrinker" : "load";
	snprintf(device->notes[0], sizeof(device->notes[0]), "drm-dumb: %s at %s%s", device->driver,
		 device->node, device->has_shrinker ? ", with the lab's shrinker" : "");
	error = observe(device, message);
	if (error)
		goto fail;
	device->backend.notes[0] = device->notes[0];
	device->backend.notes[1] = device->notes[1];
	*ret_backend = &device->backend;
	return 0;
fail:
	close_device(&device->backend);
	return error;
}

const struct backend_ops backend_drm_dumb = {
	.name = "drm-dumb",
	.summary = "dumb buffers of vgem, vkms or virtio-gpu, pinned by the DRM core",
	.flags = BACKEND_NEEDS_DEVICE,
	.cure = "modprobe vgem",
	.variants = 1U << VARIANT_BASELINE | 1U << VARIANT_STOCK | 1U << VARIANT_MAPPING |
		    1U << VARIANT_MLOCK,
	.open = open_device,
	.allocate = allocate,
	.release = release,
	.close = close_device,
};
