// SPDX-License-Identifier: MIT
/* GETPARAM and QUERY: what the device says of itself. Its chipset id is the true one, no GPU's. */
#include <linux/mm.h>
#include <linux/pci.h>
#include <linux/uaccess.h>

#include "i915lab.h"

static int value_of(struct lab *lab, int param, int *ret_value)
{
	switch (param) {
	case I915_PARAM_CHIPSET_ID:
		*ret_value = to_pci_dev(lab->drm.dev)->device;
		return 0;
	case I915_PARAM_REVISION:
		*ret_value = to_pci_dev(lab->drm.dev)->revision;
		return 0;
	case I915_PARAM_HAS_ALIASING_PPGTT:
		*ret_value = 3; /* full, 48 bits */
		return 0;
	case I915_PARAM_HAS_GEM:
	case I915_PARAM_HAS_BSD:
	case I915_PARAM_HAS_BLT:
	case I915_PARAM_HAS_VEBOX:
	case I915_PARAM_HAS_LLC:
	case I915_PARAM_HAS_EXECBUF2:
	case I915_PARAM_HAS_RELAXED_FENCING:
	case I915_PARAM_HAS_COHERENT_RINGS:
	case I915_PARAM_HAS_RELAXED_DELTA:
	case I915_PARAM_HAS_WAIT_TIMEOUT:
	case I915_PARAM_HAS_PINNED_BATCHES:
	case I915_PARAM_HAS_EXEC_NO_RELOC:
	case I915_PARAM_HAS_EXEC_HANDLE_LUT:
	case I915_PARAM_HAS_EXEC_ASYNC:
	case I915_PARAM_HAS_EXEC_BATCH_FIRST:
		*ret_value = 1;
		return 0;
	case I915_PARAM_HAS_BSD2:
	case I915_PARAM_HAS_GPU_RESET:
	case I915_PARAM_HAS_SECURE_BATCHES:
	case I915_PARAM_HAS_EXEC_SOFTPIN:
	case I915_PARAM_HAS_EXEC_FENCE:
	case I915_PARAM_HAS_SCHEDULER:
	case I915_PARAM_MMAP_GTT_VERSION: /* objects are written with PWRITE */
		*ret_value = 0;
		return 0;
	default:
		return -EINVAL;
	}
}

int lab_getparam_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct drm_i915_getparam *arguments = data;
	int value, error = value_of(to_lab(device), arguments->param, &value);

	if (error)
		return error;
	return put_user(value, arguments->value) ? -EFAULT : 0;
}

/* The steps that all queries share: the size that is needed, or the answer. */
static int answer(const struct drm_i915_query_item *item, const void *data, int size)
{
	if (item->flags)
		return -EINVAL;
	if (item->length == 0)
		return size;
	if (item->length < size)
		return -EINVAL;
	return copy_to_user(u64_to_user_ptr(item->data_ptr), data, size) ? -EFAULT : size;
}

static int query_engines(const struct drm_i915_query_item *item)
{
	struct {
		struct drm_i915_query_engine_info head;
		struct drm_i915_engine_info engines[LAB_ENGINES];
	} info = {.head.num_engines = LAB_ENGINES};
	unsigned int i;

	for (i = 0; i < LAB_ENGINES; i++)
		info.engines[i].engine.engine_class = i;
	return answer(item, &info, sizeof(info));
}

static int query_regions(const struct drm_i915_query_item *item)
{
	struct {
		struct drm_i915_query_memory_regions head;
		struct drm_i915_memory_region_info regions[1];
	} info = {.head.num_regions = 1};

	info.regions[0].region.memory_class = I915_MEMORY_CLASS_SYSTEM;
	info.regions[0].probed_size = (u64)totalram_pages() << PAGE_SHIFT;
	info.regions[0].unallocated_size = info.regions[0].probed_size;
	return answer(item, &info, sizeof(info));
}

int lab_query_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct drm_i915_query *arguments = data;
	struct drm_i915_query_item __user *items = u64_to_user_ptr(arguments->items_ptr);
	u32 i;

	if (arguments->flags)
		return -EINVAL;
	for (i = 0; i < arguments->num_items; i++) {
		struct drm_i915_query_item item;
		int length;

		if (copy_from_user(&item, &items[i], sizeof(item)))
			return -EFAULT;
		if (item.query_id == 0)
			return -EINVAL;
		if (item.query_id == DRM_I915_QUERY_ENGINE_INFO)
			length = query_engines(&item);
		else if (item.query_id == DRM_I915_QUERY_MEMORY_REGIONS)
			length = query_regions(&item);
		else
			length = -EINVAL;
		if (put_user(length, &items[i].length))
			return -EFAULT;
	}
	return 0;
}
