/* SPDX-License-Identifier: MIT */
/* Finding the device, its context and its engines. */
#include "backends/i915_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <xf86drm.h>

#include "backends/drm_node.h"

#define INTEL 0x8086
#define MAX_DEVICES 64

static void list_device(char *list, size_t size, const drmDevice *device)
{
	size_t used = strlen(list);

	if (device->bustype == DRM_BUS_PCI)
		snprintf(list + used, size - used, "%s%04x:%04x", used ? ", " : "",
			 device->deviceinfo.pci->vendor_id, device->deviceinfo.pci->device_id);
	else
		snprintf(list + used, size - used, "%sa device that is not on PCI",
			 used ? ", " : "");
}

static bool matches(const struct drm_filter *filter, const drmDevice *device)
{
	char slot[32];

	if (filter->path) {
		for (int type = 0; type < DRM_NODE_MAX; type++)
			if ((device->available_nodes & (1 << type)) &&
			    strcmp(device->nodes[type], filter->path) == 0)
				return true;
		return false;
	}
	if (device->bustype != DRM_BUS_PCI)
		return false;
	snprintf(slot, sizeof(slot), "%04x:%02x:%02x.%u", device->businfo.pci->domain,
		 device->businfo.pci->bus, device->businfo.pci->dev, device->businfo.pci->func);
	return device->deviceinfo.pci->vendor_id == (filter->vendor < 0 ? INTEL : filter->vendor) &&
	       (filter->device < 0 || device->deviceinfo.pci->device_id == filter->device) &&
	       (!filter->slot[0] || strcmp(filter->slot, slot) == 0);
}

/* The node to open: what was named, else the render node, else the primary one (before 3.15). */
static const char *node_of(const struct drm_filter *filter, const drmDevice *device)
{
	if (filter->path)
		return filter->path;
	if (device->available_nodes & (1 << DRM_NODE_RENDER))
		return device->nodes[DRM_NODE_RENDER];
	if (device->available_nodes & (1 << DRM_NODE_PRIMARY))
		return device->nodes[DRM_NODE_PRIMARY];
	return NULL;
}

static int open_node(struct i915 *gpu, const char *node, struct message *message)
{
	char driver[32];
	int error;

	gpu->descriptor = open(node, O_RDWR | O_CLOEXEC);
	if (gpu->descriptor < 0) {
		error = -errno;
		if (error == -EACCES || error == -EPERM)
			return message_set(
				message, -EACCES,
				"%s: no permission: run as root or join the group that owns "
				"the node (often render)",
				node);
		return message_set_errno(message, error, "%s", node);
	}
	error = drm_driver_name(gpu->descriptor, driver, sizeof(driver));
	if (error)
		return message_set_errno(message, error, "%s: asking for its driver", node);
	if (strcmp(driver, "i915") != 0)
		return message_set(message, -ENODEV,
				   "%s is driven by %s, not i915: try --backend drm-dumb or shm",
				   node, driver);
	/* Holding the primary node must not make us the display's master. */
	drmDropMaster(gpu->descriptor);
	snprintf(gpu->node, sizeof(gpu->node), "%s", node);
	return 0;
}

int i915_find(const struct backend_settings *settings, struct i915 *gpu, struct message *message)
{
	drmDevicePtr devices[MAX_DEVICES];
	struct drm_filter filter;
	const char *node = NULL;
	char found[200] = "";
	int64_t skip;
	int count, error = drm_filter_parse(settings->device, &filter, message);

	if (error)
		return error;
	skip = filter.card < 0 ? 0 : filter.card;
	count = drmGetDevices2(0, devices, MAX_DEVICES);
	for (int i = 0; i < count; i++) {
		list_device(found, sizeof(found), devices[i]);
		if (!node && matches(&filter, devices[i]) && skip-- == 0)
			node = node_of(&filter, devices[i]);
	}
	if (node)
		error = open_node(gpu, node, message);
	else
		error = message_set(message, -ENODEV, "no %s: DRM devices here: %s",
				    settings->device ? settings->device : "Intel GPU",
				    found[0] ? found
					     : "none (is /dev/dri there, the driver loaded?)");
	if (count > 0)
		drmFreeDevices(devices, count);
	return error;
}

int i915_get_parameter(const struct i915 *gpu, int32_t parameter, int32_t *ret_value)
{
	int value = 0;
	struct drm_i915_getparam arguments = {.param = parameter, .value = &value};
	int error = drm_call(gpu->descriptor, DRM_IOCTL_I915_GETPARAM, &arguments);

	if (!error)
		*ret_value = value;
	return error;
}

static bool has(const struct i915 *gpu, int32_t parameter)
{
	int32_t value;

	return i915_get_parameter(gpu, parameter, &value) == 0 && value > 0;
}

/* A query item in the two steps of the uAPI; allocated, or NULL where the kernel does not know it.
 */
static void *query(const struct i915 *gpu, uint64_t id)
{
	struct drm_i915_query_item item = {.query_id = id};
	struct drm_i915_query arguments = {.num_items = 1, .items_ptr = (uintptr_t)&item};
	void *data;

	if (drm_call(gpu->descriptor, DRM_IOCTL_I915_QUERY, &arguments) != 0 || item.length <= 0)
		return NULL;
	data = calloc(1, (size_t)item.length);
	if (!data)
		return NULL;
	item.data_ptr = (uintptr_t)data;
	if (drm_call(gpu->descriptor, DRM_IOCTL_I915_QUERY, &arguments) != 0 || item.length <= 0) {
		free(data);
		return NULL;
	}
	return data;
}

/* A context of our own whose engine map holds all engines (5.3 and later). */
static int make_engine_map(struct i915 *gpu, const struct drm_i915_query_engine_info *info)
{
	I915_DEFINE_CONTEXT_PARAM_ENGINES(map, I915_MAX_ENGINES) = {0};
	size_t count = info->num_engines < I915_MAX_ENGINES ? info->num_engines : I915_MAX_ENGINES;
	struct drm_i915_gem_context_create_ext_setparam set_map = {
		.base.name = I915_CONTEXT_CREATE_EXT_SETPARAM,
		.param = {.param = I915_CONTEXT_PARAM_ENGINES,
			  .size = (uint32_t)(sizeof(map.extensions) +
					     count * sizeof(map.engines[0])),
			  .value = (uintptr_t)&map},
	};
	struct drm_i915_gem_context_create_ext create = {
		.flags = I915_CONTEXT_CREATE_FLAGS_USE_EXTENSIONS,
		.extensions = (uintptr_t)&set_map,
	};
	int error;

	for (size_t i = 0; i < count; i++)
		map.engines[i] = info->engines[i].engine;
	error = drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_CONTEXT_CREATE_EXT, &create);
	if (error)
		return error;
	gpu->context = create.ctx_id;
	gpu->owns_context = gpu->engine_map = true;
	for (size_t i = 0; i < count; i++)
		gpu->engines[i] = i;
	gpu->engine_count = count;
	return 0;
}

/* Ring selectors of execbuf, as kernels before 5.3 and GPUs without an engine query have. */
static void add_legacy_rings(struct i915 *gpu)
{
	struct drm_i915_gem_context_create create = {0};

	if (drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_CONTEXT_CREATE, &create) == 0) {
		gpu->context = create.ctx_id;
		gpu->owns_context = true;
	}
	gpu->engines[gpu->engine_count++] = I915_EXEC_RENDER;
	if (has(gpu, I915_PARAM_HAS_BSD2)) {
		gpu->engines[gpu->engine_count++] = I915_EXEC_BSD | I915_EXEC_BSD_RING1;
		gpu->engines[gpu->engine_count++] = I915_EXEC_BSD | I915_EXEC_BSD_RING2;
	} else if (has(gpu, I915_PARAM_HAS_BSD)) {
		gpu->engines[gpu->engine_count++] = I915_EXEC_BSD;
	}
	if (has(gpu, I915_PARAM_HAS_BLT))
		gpu->engines[gpu->engine_count++] = I915_EXEC_BLT;
	if (has(gpu, I915_PARAM_HAS_VEBOX))
		gpu->engines[gpu->engine_count++] = I915_EXEC_VEBOX;
}

static void find_memory(struct i915 *gpu)
{
	struct drm_i915_query_memory_regions *regions = query(gpu, DRM_I915_QUERY_MEMORY_REGIONS);
	struct drm_i915_gem_context_param size = {.ctx_id = gpu->context,
						  .param = I915_CONTEXT_PARAM_GTT_SIZE};

	for (uint32_t i = 0; regions && i < regions->num_regions; i++)
		if (regions->regions[i].region.memory_class == I915_MEMORY_CLASS_DEVICE)
			gpu->discrete = true;
	free(regions);
	if (drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_CONTEXT_GETPARAM, &size) == 0)
		gpu->wide_addresses = size.value > (UINT64_C(1) << 32);
}

int i915_find_engines(struct i915 *gpu, struct message *message)
{
	struct drm_i915_query_engine_info *info;
	int error = drm_call(gpu->descriptor, DRM_IOCTL_I915_GEM_THROTTLE, NULL);

	if (error)
		return message_set_errno(message, error,
					 error == -EIO
						 ? "%s: the GPU is wedged (the kernel gave up on "
						   "it; see dmesg, reboot)"
						 : "%s: the GPU does not answer",
					 gpu->node);
	error = i915_get_parameter(gpu, I915_PARAM_CHIPSET_ID, &gpu->chipset_id);
	if (error)
		return message_set_errno(message, error, "%s: its chipset id", gpu->node);
	if (!has(gpu, I915_PARAM_HAS_EXECBUF2))
		return message_set(message, -ENOTSUP, "%s: this i915 has no EXECBUFFER2",
				   gpu->node);
	info = query(gpu, DRM_I915_QUERY_ENGINE_INFO);
	if (!info || info->num_engines == 0 || make_engine_map(gpu, info) != 0)
		add_legacy_rings(gpu);
	free(info);
	find_memory(gpu);
	return 0;
}
