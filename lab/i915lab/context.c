// SPDX-License-Identifier: MIT
/* Files and contexts: a context is a map of engines and its place in their rings. */
#include <linux/slab.h>
#include <linux/uaccess.h>

#include "i915lab.h"

static void free_context(struct kref *references)
{
	kfree(container_of(references, struct lab_context, references));
}

void lab_context_put(struct lab_context *context)
{
	kref_put(&context->references, free_context);
}

static struct lab_context *new_context(struct drm_file *file)
{
	struct lab_context *context = kzalloc(sizeof(*context), GFP_KERNEL);

	if (!context)
		return NULL;
	kref_init(&context->references);
	context->file = file;
	return context;
}

int lab_open(struct drm_device *device, struct drm_file *file)
{
	struct lab_file *own = kzalloc(sizeof(*own), GFP_KERNEL);
	struct lab_context *context = new_context(file);
	int error = -ENOMEM;

	if (own && context) {
		xa_init_flags(&own->contexts, XA_FLAGS_ALLOC);
		error = xa_err(xa_store(&own->contexts, 0, context, GFP_KERNEL));
	}
	if (error) {
		kfree(context);
		kfree(own);
		return error;
	}
	file->driver_priv = own;
	return 0;
}

void lab_postclose(struct drm_device *device, struct drm_file *file)
{
	struct lab_file *own = file->driver_priv;
	struct lab_context *context;
	unsigned long id;

	xa_for_each(&own->contexts, id, context) lab_context_put(context);
	xa_destroy(&own->contexts);
	kfree(own);
}

struct lab_context *lab_context_get(struct drm_file *file, u32 id)
{
	struct lab_file *own = file->driver_priv;
	struct lab_context *context;

	xa_lock(&own->contexts);
	context = xa_load(&own->contexts, id);
	if (context)
		kref_get(&context->references);
	xa_unlock(&own->contexts);
	return context;
}

/* I915_CONTEXT_PARAM_ENGINES: the index of execbuf's flags to an engine. */
static int set_engines(struct lab_context *context, const struct drm_i915_gem_context_param *param)
{
	struct i915_context_param_engines __user *user = u64_to_user_ptr(param->value);
	struct i915_engine_class_instance entry;
	unsigned int i, count;
	u64 extensions;

	if (param->size < sizeof(*user) || (param->size - sizeof(*user)) % sizeof(entry))
		return -EINVAL;
	count = (param->size - sizeof(*user)) / sizeof(entry);
	if (count == 0 || count > LAB_MAP_MAX)
		return -EINVAL;
	if (get_user(extensions, &user->extensions))
		return -EFAULT;
	if (extensions)
		return -EINVAL;
	for (i = 0; i < count; i++) {
		if (copy_from_user(&entry, &user->engines[i], sizeof(entry)))
			return -EFAULT;
		if (entry.engine_class >= LAB_ENGINES || entry.engine_instance)
			return -ENOENT;
		context->engines[i] = entry.engine_class;
	}
	context->engine_count = count;
	return 0;
}

static int apply_extensions(struct lab_context *context, u64 next)
{
	struct drm_i915_gem_context_create_ext_setparam extension;
	unsigned int left = 16; /* a chain may be a circle */
	int error;

	for (; next; next = extension.base.next_extension) {
		if (left-- == 0)
			return -E2BIG;
		if (copy_from_user(&extension, u64_to_user_ptr(next), sizeof(extension)))
			return -EFAULT;
		if (extension.base.name != I915_CONTEXT_CREATE_EXT_SETPARAM ||
		    extension.param.ctx_id || extension.param.param != I915_CONTEXT_PARAM_ENGINES)
			return -EINVAL;
		error = set_engines(context, &extension.param);
		if (error)
			return error;
	}
	return 0;
}

/* CONTEXT_CREATE has the same number and ends before the extensions: they are 0 then. */
int lab_context_create_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct drm_i915_gem_context_create_ext *arguments = data;
	struct lab_file *own = file->driver_priv;
	struct lab_context *context;
	int error = 0;

	if (arguments->flags & I915_CONTEXT_CREATE_FLAGS_UNKNOWN)
		return -EINVAL;
	context = new_context(file);
	if (!context)
		return -ENOMEM;
	if (arguments->flags & I915_CONTEXT_CREATE_FLAGS_USE_EXTENSIONS)
		error = apply_extensions(context, arguments->extensions);
	if (!error)
		error = xa_alloc(&own->contexts, &arguments->ctx_id, context,
				 XA_LIMIT(1, I915_EXEC_CONTEXT_ID_MASK), GFP_KERNEL);
	if (error)
		lab_context_put(context);
	return error;
}

int lab_context_destroy_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct drm_i915_gem_context_destroy *arguments = data;
	struct lab_file *own = file->driver_priv;
	struct lab_context *context;

	if (arguments->pad)
		return -EINVAL;
	if (arguments->ctx_id == 0)
		return -ENOENT;
	context = xa_erase(&own->contexts, arguments->ctx_id);
	if (!context)
		return -ENOENT;
	lab_context_put(context);
	return 0;
}

int lab_context_getparam_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct drm_i915_gem_context_param *arguments = data;
	struct lab_context *context = lab_context_get(file, arguments->ctx_id);

	if (!context)
		return -ENOENT;
	lab_context_put(context);
	if (arguments->param != I915_CONTEXT_PARAM_GTT_SIZE)
		return -EINVAL;
	arguments->size = 0;
	arguments->value = 2 * LAB_ADDRESSES_END;
	return 0;
}
