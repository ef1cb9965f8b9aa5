/* SPDX-License-Identifier: MIT */
/* The calls of the uAPI, checked as i915 of 6.1 checks them (drivers/gpu/drm/i915/gem,
 * i915_query.c). */
#undef _FILE_OFFSET_BITS
#include "uapi.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <drm.h>
#include <i915_drm.h>

#define PAGE UINT64_C(4096)

static int do_version(struct device_file *file, struct drm_version *version)
{
	if (version->name && version->name_len >= 4)
		memcpy(version->name, "i915", 4);
	version->name_len = 4;
	version->date_len = version->desc_len = 0;
	version->version_major = 1;
	version->version_minor = 6;
	version->version_patchlevel = 0;
	return 0;
}

static int do_getparam(struct device_file *file, struct drm_i915_getparam *arguments)
{
	const uint8_t *engines = double_personality()->engines;
	int value;

	switch (arguments->param) {
	case I915_PARAM_CHIPSET_ID:
		value = double_personality()->chipset;
		break;
	case I915_PARAM_HAS_EXECBUF2:
	case I915_PARAM_HAS_EXEC_NO_RELOC:
	case I915_PARAM_HAS_EXEC_HANDLE_LUT:
	case I915_PARAM_HAS_WAIT_TIMEOUT:
		value = 1;
		break;
	case I915_PARAM_HAS_BSD:
		value = engines[I915_ENGINE_CLASS_VIDEO] > 0;
		break;
	case I915_PARAM_HAS_BSD2:
		value = engines[I915_ENGINE_CLASS_VIDEO] > 1;
		break;
	case I915_PARAM_HAS_BLT:
		value = engines[I915_ENGINE_CLASS_COPY] > 0;
		break;
	case I915_PARAM_HAS_VEBOX:
		value = engines[I915_ENGINE_CLASS_VIDEO_ENHANCE] > 0;
		break;
	case I915_PARAM_MMAP_GTT_VERSION:
		value = double_personality()->mmap_gtt_version;
		break;
	default:
		return -EINVAL;
	}
	*arguments->value = value;
	return 0;
}

static int do_create(struct device_file *file, struct drm_i915_gem_create *arguments)
{
	uint64_t unit = double_personality()->discrete ? 16 * PAGE : PAGE;
	struct object *object;

	if (arguments->pad)
		breach(file, 0, "create: pad is not 0");
	if (arguments->size == 0)
		return breach(file, -EINVAL, "create: size 0");
	file->creates++;
	if (file->failures.enomem_at && file->creates >= file->failures.enomem_at)
		return -ENOMEM;
	object = model_create(file, (arguments->size + unit - 1) / unit * unit);
	if (!object)
		return -ENOMEM;
	arguments->handle = object->handle;
	arguments->size = object->bytes;
	file->counts.created++;
	return 0;
}

static int do_close(struct device_file *file, struct drm_gem_close *arguments)
{
	struct object *object = model_object(file, arguments->handle);

	if (!object)
		return breach(file, -EINVAL, "close: no handle %u", arguments->handle);
	if (arguments->pad)
		breach(file, 0, "close: pad is not 0");
	model_destroy(file, object);
	file->counts.closed++;
	return 0;
}

static int do_pwrite(struct device_file *file, struct drm_i915_gem_pwrite *arguments)
{
	struct object *object = model_object(file, arguments->handle);
	int error;

	if (!double_personality()->pwrite_and_mmap || file->failures.no_pwrite)
		return -EOPNOTSUPP;
	if (!object)
		return breach(file, -ENOENT, "pwrite: no handle %u", arguments->handle);
	if (arguments->offset > object->bytes ||
	    arguments->size > object->bytes - arguments->offset)
		return breach(file, -EINVAL, "pwrite: past the end");
	error = object->madvise ? -EFAULT : 0;
	if (error)
		return breach(file, error, "pwrite: object is DONTNEED");
	if (pwrite(object->memory, (const void *)(uintptr_t)arguments->data_ptr, arguments->size,
		   (off_t)arguments->offset) != (ssize_t)arguments->size)
		return -ENOMEM;
	file->counts.pwritten++;
	return 0;
}

static int do_mmap(struct device_file *file, struct drm_i915_gem_mmap *arguments)
{
	struct object *object = model_object(file, arguments->handle);
	void *memory;

	if (!double_personality()->pwrite_and_mmap)
		return -EOPNOTSUPP;
	if (arguments->flags & ~(uint64_t)I915_MMAP_WC)
		return breach(file, -EINVAL, "mmap: unknown flags");
	if (!object)
		return breach(file, -ENOENT, "mmap: no handle %u", arguments->handle);
	if (arguments->size == 0 || arguments->offset % PAGE || arguments->offset > object->bytes ||
	    arguments->size > object->bytes - arguments->offset)
		return breach(file, -EINVAL, "mmap: range outside the object");
	memory = real_mmap(NULL, arguments->size, PROT_READ | PROT_WRITE, MAP_SHARED,
			   object->memory, (off_t)arguments->offset);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	arguments->addr_ptr = (uintptr_t)memory;
	file->counts.mapped++;
	return 0;
}

static int do_mmap_offset(struct device_file *file, struct drm_i915_gem_mmap_offset *arguments)
{
	struct object *object = model_object(file, arguments->handle);

	if (!object)
		return breach(file, -ENOENT, "mmap_offset: no handle %u", arguments->handle);
	if (double_personality()->mmap_gtt_version >= 4) {
		if (arguments->pad || arguments->extensions)
			breach(file, 0, "mmap_offset: pad or extensions are not 0");
		if (arguments->flags > I915_MMAP_OFFSET_FIXED)
			return breach(file, -EINVAL, "mmap_offset: unknown flags");
		/* Local memory takes FIXED alone, system memory all but FIXED. */
		if (double_personality()->discrete != (arguments->flags == I915_MMAP_OFFSET_FIXED))
			return -ENODEV;
	}
	arguments->offset = (uint64_t)arguments->handle << 36;
	object->has_offset = true;
	return 0;
}

int double_mmap(int descriptor, size_t length, int flags, off_t offset, int *ret_memory,
		off_t *ret_offset)
{
	uint64_t within = (uint64_t)offset & ((UINT64_C(1) << 36) - 1);
	struct device_file *file;
	struct object *object;
	int error = 0;

	model_lock();
	file = model_file(descriptor);
	object = model_object(file, (uint32_t)((uint64_t)offset >> 36));
	if (!object || !object->has_offset)
		error = breach(file, -EINVAL, "mmap(2): an offset that MMAP_OFFSET did not give");
	else if (!(flags & MAP_SHARED))
		error = breach(file, -EINVAL, "mmap(2): a private mapping");
	else if (within > object->bytes || length > object->bytes - within)
		error = breach(file, -EINVAL, "mmap(2): past the end of the object");
	if (!error) {
		*ret_memory = object->memory;
		*ret_offset = (off_t)within;
		file->counts.mapped++;
	}
	model_unlock();
	return error;
}

static void sleep_until(int64_t deadline_ns)
{
	struct timespec time = {deadline_ns / 1000000000, deadline_ns % 1000000000};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) == EINTR)
		;
}

static int do_set_domain(struct device_file *file, struct drm_i915_gem_set_domain *arguments)
{
	struct object *object = model_object(file, arguments->handle);
	uint32_t both = arguments->read_domains | arguments->write_domain;

	if (double_personality()->discrete)
		return -ENODEV;
	if (both & ~(uint32_t)(I915_GEM_DOMAIN_CPU | I915_GEM_DOMAIN_GTT | I915_GEM_DOMAIN_WC))
		return breach(file, -EINVAL, "set_domain: a domain of the GPU");
	if (arguments->write_domain && arguments->read_domains != arguments->write_domain)
		return breach(file, -EINVAL, "set_domain: write domain is not the read domain");
	if (!object)
		return breach(file, -ENOENT, "set_domain: no handle %u", arguments->handle);
	if (object->madvise)
		return breach(file, -EFAULT, "set_domain: object is DONTNEED");
	return model_get_pages(object);
}

static int do_madvise(struct device_file *file, struct drm_i915_gem_madvise *arguments)
{
	struct object *object = model_object(file, arguments->handle);

	if (arguments->madv > I915_MADV_DONTNEED)
		return breach(file, -EINVAL, "madvise: unknown advice %u", arguments->madv);
	if (!object)
		return breach(file, -ENOENT, "madvise: no handle %u", arguments->handle);
	if (object->madvise != 2)
		object->madvise = (int)arguments->madv;
	model_shrink(file);
	arguments->retained = object->madvise != 2;
	file->counts.advised++;
	return 0;
}

/* Called with the lock held; sleeps without it. */
static int do_wait(struct device_file *file, struct drm_i915_gem_wait *arguments)
{
	struct object *object = model_object(file, arguments->bo_handle);
	int64_t now_ns = model_now_ns(), until_ns, busy_ns;

	if (arguments->flags)
		return breach(file, -EINVAL, "wait: flags are not 0");
	if (!object)
		return breach(file, -ENOENT, "wait: no handle %u", arguments->bo_handle);
	busy_ns = object->busy_until_ns;
	if (busy_ns <= now_ns)
		return 0;
	until_ns = busy_ns;
	if (arguments->timeout_ns >= 0 && now_ns + arguments->timeout_ns < until_ns)
		until_ns = now_ns + arguments->timeout_ns;
	model_unlock();
	sleep_until(until_ns);
	model_lock();
	return until_ns < busy_ns ? -ETIME : 0;
}

/* --- queries and contexts --- */

static int32_t fill(struct drm_i915_query_item *item, const void *data, size_t size)
{
	const uint32_t *first = (const uint32_t *)(uintptr_t)item->data_ptr;

	if (item->length == 0)
		return (int32_t)size;
	if (item->length < (int32_t)size || !first || first[0] || first[1] || first[2] || first[3])
		return -EINVAL;
	memcpy((void *)(uintptr_t)item->data_ptr, data, size);
	return (int32_t)size;
}

static int32_t query_engines(struct drm_i915_query_item *item)
{
	struct {
		struct drm_i915_query_engine_info info;
		struct drm_i915_engine_info engines[MAX_ENGINES];
	} answer = {0};
	uint32_t count = 0;

	for (uint16_t class = 0; class < 5; class ++) {
		for (uint16_t instance = 0; instance < double_personality()->engines[class];
		     instance++) {
			answer.engines[count].engine.engine_class = class;
			answer.engines[count++].engine.engine_instance = instance;
		}
	}
	answer.info.num_engines = count;
	return fill(item, &answer, sizeof(answer.info) + count * sizeof(answer.engines[0]));
}

static int32_t query_memory(struct drm_i915_query_item *item)
{
	struct {
		struct drm_i915_query_memory_regions info;
		struct drm_i915_memory_region_info regions[2];
	} answer = {0};
	uint32_t count = double_personality()->discrete ? 2 : 1;

	answer.info.num_regions = count;
	answer.regions[0].region.memory_class = I915_MEMORY_CLASS_SYSTEM;
	answer.regions[0].probed_size = UINT64_C(16) << 30;
	answer.regions[1].region.memory_class = I915_MEMORY_CLASS_DEVICE;
	answer.regions[1].probed_size = UINT64_C(8) << 30;
	return fill(item, &answer, sizeof(answer.info) + count * sizeof(answer.regions[0]));
}

static int do_query(struct device_file *file, struct drm_i915_query *arguments)
{
	struct drm_i915_query_item *items = (void *)(uintptr_t)arguments->items_ptr;

	if (!double_personality()->engine_map)
		return -EINVAL;
	if (arguments->flags)
		return breach(file, -EINVAL, "query: flags are not 0");
	for (uint32_t i = 0; i < arguments->num_items; i++) {
		if (items[i].flags)
			items[i].length =
				breach(file, -EINVAL, "query: flags of an item are not 0");
		else if (items[i].query_id == DRM_I915_QUERY_ENGINE_INFO)
			items[i].length = query_engines(&items[i]);
		else if (items[i].query_id == DRM_I915_QUERY_MEMORY_REGIONS)
			items[i].length = query_memory(&items[i]);
		else
			items[i].length = -EINVAL;
	}
	return 0;
}

static int set_engines(struct device_file *file, struct context *context,
		       const struct drm_i915_gem_context_param *param)
{
	const struct i915_context_param_engines *map = (const void *)(uintptr_t)param->value;
	size_t count = (param->size - sizeof(*map)) / sizeof(map->engines[0]);

	if (param->param != I915_CONTEXT_PARAM_ENGINES || param->ctx_id)
		return breach(file, -EINVAL, "context: setparam %llu of context %u",
			      (unsigned long long)param->param, param->ctx_id);
	if (param->size < sizeof(*map) || (param->size - sizeof(*map)) % sizeof(map->engines[0]) ||
	    count > 64 || map->extensions)
		return breach(file, -EINVAL, "context: engine map of %u bytes", param->size);
	for (size_t i = 0; i < count; i++) {
		struct i915_engine_class_instance engine = map->engines[i];

		if (engine.engine_class >= 5 ||
		    engine.engine_instance >= double_personality()->engines[engine.engine_class])
			return breach(file, -ENOENT, "context: no engine %u:%u",
				      engine.engine_class, engine.engine_instance);
		context->engines[i] = (uint16_t)(engine.engine_class << 8 | engine.engine_instance);
	}
	context->engine_count = (unsigned int)count;
	return 0;
}

static int do_context_create(struct device_file *file,
			     struct drm_i915_gem_context_create_ext *arguments, size_t size)
{
	struct context *context = NULL;
	uint64_t next;
	int error;

	for (size_t i = 0; i < MAX_CONTEXTS && !context; i++)
		if (file->contexts[i].id == 0)
			context = &file->contexts[i];
	if (!context)
		return -ENOMEM;
	memset(context, 0, sizeof(*context));
	if (size >= sizeof(*arguments) && double_personality()->engine_map) {
		if (arguments->flags & I915_CONTEXT_CREATE_FLAGS_UNKNOWN)
			return breach(file, -EINVAL, "context: unknown flags");
		next = arguments->flags & I915_CONTEXT_CREATE_FLAGS_USE_EXTENSIONS
			       ? arguments->extensions
			       : 0;
		while (next) {
			const struct drm_i915_gem_context_create_ext_setparam *extension =
				(const void *)(uintptr_t)next;

			if (extension->base.name != I915_CONTEXT_CREATE_EXT_SETPARAM ||
			    extension->base.flags)
				return breach(file, -EINVAL, "context: unknown extension");
			error = set_engines(file, context, &extension->param);
			if (error)
				return error;
			next = extension->base.next_extension;
		}
	} else if (arguments->flags) { /* the old call: pad must be 0 */
		return breach(file, -EINVAL, "context: pad is not 0");
	}
	context->id = file->next_context++;
	arguments->ctx_id = context->id;
	return 0;
}

struct context *find_context(struct device_file *file, uint64_t id)
{
	for (size_t i = 0; id && i < MAX_CONTEXTS; i++)
		if (file->contexts[i].id == id)
			return &file->contexts[i];
	return NULL;
}

static int do_context_destroy(struct device_file *file,
			      struct drm_i915_gem_context_destroy *arguments)
{
	struct context *context = find_context(file, arguments->ctx_id);

	if (arguments->pad || !context)
		return breach(file, -ENOENT, "context: destroying %u", arguments->ctx_id);
	context->id = 0;
	return 0;
}

static int do_context_getparam(struct device_file *file,
			       struct drm_i915_gem_context_param *arguments)
{
	if (arguments->ctx_id && !find_context(file, arguments->ctx_id))
		return breach(file, -ENOENT, "context: getparam of %u", arguments->ctx_id);
	if (arguments->param != I915_CONTEXT_PARAM_GTT_SIZE)
		return -EINVAL;
	arguments->size = 0;
	arguments->value = double_personality()->address_bytes;
	return 0;
}

/* The kernel matches by number and copies as many bytes as the caller's size says. */
static int dispatch(struct device_file *file, unsigned long request, void *argument)
{
	switch (_IOC_NR(request)) {
	case _IOC_NR(DRM_IOCTL_VERSION):
		return do_version(file, argument);
	case _IOC_NR(DRM_IOCTL_DROP_MASTER):
		return file->render_node ? -EACCES : -EINVAL;
	case _IOC_NR(DRM_IOCTL_GEM_CLOSE):
		return do_close(file, argument);
	case DRM_COMMAND_BASE + DRM_I915_GETPARAM:
		return do_getparam(file, argument);
	case DRM_COMMAND_BASE + DRM_I915_GEM_CREATE:
		return do_create(file, argument);
	case DRM_COMMAND_BASE + DRM_I915_GEM_PWRITE:
		return do_pwrite(file, argument);
	case DRM_COMMAND_BASE + DRM_I915_GEM_MMAP:
		return do_mmap(file, argument);
	case DRM_COMMAND_BASE + DRM_I915_GEM_MMAP_GTT:
		return do_mmap_offset(file, argument);
	case DRM_COMMAND_BASE + DRM_I915_GEM_SET_DOMAIN:
		return do_set_domain(file, argument);
	case DRM_COMMAND_BASE + DRM_I915_GEM_MADVISE:
		return do_madvise(file, argument);
	case DRM_COMMAND_BASE + DRM_I915_GEM_WAIT:
		return do_wait(file, argument);
	case DRM_COMMAND_BASE + DRM_I915_GEM_THROTTLE:
		return file->failures.eio_at == 1 ? -EIO : 0;
	case DRM_COMMAND_BASE + DRM_I915_QUERY:
		return do_query(file, argument);
	case DRM_COMMAND_BASE + DRM_I915_GEM_CONTEXT_CREATE:
		return do_context_create(file, argument, _IOC_SIZE(request));
	case DRM_COMMAND_BASE + DRM_I915_GEM_CONTEXT_DESTROY:
		return do_context_destroy(file, argument);
	case DRM_COMMAND_BASE + DRM_I915_GEM_CONTEXT_GETPARAM:
		return do_context_getparam(file, argument);
	case DRM_COMMAND_BASE + DRM_I915_GEM_EXECBUFFER2:
		return do_execbuf(file, argument);
	default:
		return breach(file, -EINVAL, "unknown call %#lx", request);
	}
}

int double_ioctl(int descriptor, unsigned long request, void *argument)
{
	struct device_file *file;
	int error = 0;

	model_lock();
	file = model_file(descriptor);
	if (!file)
		error = -EBADF;
	else if (file->failures.enodev_at && file->execbufs >= file->failures.enodev_at)
		error = -ENODEV;
	else if (file->interrupted < file->failures.eintr) {
		file->interrupted++;
		error = -EINTR;
	} else if (file->interrupted < file->failures.eintr + file->failures.eagain) {
		file->interrupted++;
		error = -EAGAIN;
	} else {
		file->interrupted = 0;
		error = dispatch(file, request, argument);
	}
	model_unlock();
	return error;
}
