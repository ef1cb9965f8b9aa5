// SPDX-License-Identifier: MIT
/* Objects: made, written, advised, waited for, and freed by a worker as i915 frees them. */
#include <linux/fs.h>
#include <linux/highmem.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <linux/uio.h>

#include "i915lab.h"

/*
 * The last reference may go in an interrupt or in a caller that holds locks, so the work is left to
 * the worker or to the next who creates: that throttles a program that makes and closes objects.
 */
static void free_object(struct drm_gem_object *base)
{
	struct lab_object *object = to_lab_object(base);
	struct lab *lab = lab_of(object);

	if (llist_add(&object->freed, &lab->free_list))
		queue_work(lab->workqueue, &lab->free_work);
}

static const struct drm_gem_object_funcs object_funcs = {
	.free = free_object,
};

void lab_flush_free_objects(struct lab *lab)
{
	struct lab_object *object, *next;

	llist_for_each_entry_safe(object, next, llist_del_all(&lab->free_list), freed)
	{
		lab_lock(lab);
		lab_unbind(object, true);
		lab_unlock(lab);
		lab_put_pages(object);
		drm_gem_object_release(&object->base);
		kfree(object);
		cond_resched();
	}
}

void lab_free_work(struct work_struct *work)
{
	lab_flush_free_objects(container_of(work, struct lab, free_work));
}

struct lab_object *lab_object_lookup(struct drm_file *file, u32 handle)
{
	struct drm_gem_object *base = drm_gem_object_lookup(file, handle);

	return base ? to_lab_object(base) : NULL;
}

static struct file *object_file(struct lab *lab, u64 size)
{
	if (lab->huge_mount)
		return shmem_file_setup_with_mnt(lab->huge_mount, "i915", size, VM_NORESERVE);
	return shmem_file_setup("i915", size, VM_NORESERVE);
}

static int create(struct lab *lab, struct drm_file *file, u64 *size, u32 *handle)
{
	struct lab_object *object;
	struct file *memory;
	int error;

	lab_flush_free_objects(lab);
	*size = round_up(*size, PAGE_SIZE);
	if (*size == 0)
		return -EINVAL;
	if (*size >> PAGE_SHIFT > INT_MAX)
		return -E2BIG;
	object = kzalloc(sizeof(*object), GFP_KERNEL);
	if (!object)
		return -ENOMEM;
	memory = object_file(lab, *size);
	if (IS_ERR(memory)) {
		kfree(object);
		return PTR_ERR(memory);
	}
	/* As i915's: not movable, since the pages are pinned, and grouped with what is reclaimable.
	 */
	mapping_set_gfp_mask(memory->f_mapping, GFP_HIGHUSER | __GFP_RECLAIMABLE);
	drm_gem_private_object_init(&lab->drm, &object->base, *size);
	object->base.filp = memory;
	object->base.funcs = &object_funcs;
	INIT_LIST_HEAD(&object->link);
	error = drm_gem_handle_create(file, &object->base, handle);
	lab_object_put(object); /* the handle has its own */
	return error;
}

int lab_create_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct drm_i915_gem_create *arguments = data;

	return create(to_lab(device), file, &arguments->size, &arguments->handle);
}

/* There is one region, and naming it changes nothing. */
static int check_regions(u64 address)
{
	struct drm_i915_gem_create_ext_memory_regions extension;
	struct drm_i915_gem_memory_class_instance region;

	if (copy_from_user(&extension, u64_to_user_ptr(address), sizeof(extension)))
		return -EFAULT;
	if (extension.base.name != I915_GEM_CREATE_EXT_MEMORY_REGIONS ||
	    extension.base.next_extension || extension.pad || extension.num_regions != 1)
		return -EINVAL;
	if (copy_from_user(&region, u64_to_user_ptr(extension.regions), sizeof(region)))
		return -EFAULT;
	return region.memory_class == I915_MEMORY_CLASS_SYSTEM && !region.memory_instance ? 0
											  : -EINVAL;
}

int lab_create_ext_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct drm_i915_gem_create_ext *arguments = data;
	int error = 0;

	if (arguments->flags)
		return -EINVAL;
	if (arguments->extensions)
		error = check_regions(arguments->extensions);
	if (error)
		return error;
	return create(to_lab(device), file, &arguments->size, &arguments->handle);
}

int lab_object_wait(struct lab_object *object, bool all, s64 timeout_ns)
{
	const ktime_t *ends = all ? object->busy_until : object->written_until;
	ktime_t start = ktime_get();
	unsigned int i;

	for (i = 0; i < LAB_ENGINES; i++) {
		s64 left_ns = timeout_ns;
		int error;

		if (timeout_ns > 0)
			left_ns = max(timeout_ns - ktime_sub(ktime_get(), start), 0ll);
		error = lab_engine_wait(&lab_of(object)->engines[i], READ_ONCE(ends[i]), left_ns);
		if (error)
			return error;
	}
	return 0;
}

int lab_wait_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct drm_i915_gem_wait *arguments = data;
	struct lab_object *object;
	ktime_t start = ktime_get();
	int error;

	if (arguments->flags)
		return -EINVAL;
	object = lab_object_lookup(file, arguments->bo_handle);
	if (!object)
		return -ENOENT;
	error = lab_object_wait(object, true, arguments->timeout_ns);
	/* What is left, for a call that a signal interrupted and that is made again. */
	if (arguments->timeout_ns > 0)
		arguments->timeout_ns =
			max(arguments->timeout_ns - ktime_sub(ktime_get(), start), 0ll);
	lab_object_put(object);
	return error;
}

/* Engines that use it are bits from 16 up; the one that writes last is its class + 1 besides. */
int lab_busy_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct drm_i915_gem_busy *arguments = data;
	struct lab_object *object = lab_object_lookup(file, arguments->handle);
	ktime_t written = ktime_get(), now = written;
	unsigned int i, writer = 0;

	if (!object)
		return -ENOENT;
	arguments->busy = 0;
	for (i = 0; i < LAB_ENGINES; i++) {
		if (now < READ_ONCE(object->busy_until[i]))
			arguments->busy |= 0x10000u << i;
		if (written < READ_ONCE(object->written_until[i])) {
			written = READ_ONCE(object->written_until[i]);
			writer = i + 1;
		}
	}
	arguments->busy |= writer;
	lab_object_put(object);
	return 0;
}

int lab_madvise_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct drm_i915_gem_madvise *arguments = data;
	struct lab *lab = to_lab(device);
	struct lab_object *object;
	int error;

	if (arguments->madv > I915_MADV_DONTNEED)
		return -EINVAL;
	object = lab_object_lookup(file, arguments->handle);
	if (!object)
		return -ENOENT;
	error = dma_resv_lock_interruptible(object->base.resv, NULL);
	if (error)
		goto out;
	if (object->madv != LAB_MADV_PURGED)
		object->madv = arguments->madv;
	if (object->pages) {
		spin_lock(&lab->list_lock);
		list_move_tail(&object->link, object->madv == I915_MADV_WILLNEED ? &lab->shrinkable
										 : &lab->purgeable);
		spin_unlock(&lab->list_lock);
	} else if (object->madv == I915_MADV_DONTNEED) {
		lab_truncate(object);
	}
	arguments->retained = object->madv != LAB_MADV_PURGED;
	dma_resv_unlock(object->base.resv);
out:
	lab_object_put(object);
	return error;
}

int lab_set_domain_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct drm_i915_gem_set_domain *arguments = data;
	bool write = arguments->write_domain;
	struct lab_object *object;
	int error;

	if ((arguments->read_domains | arguments->write_domain) &
	    ~(I915_GEM_DOMAIN_CPU | I915_GEM_DOMAIN_GTT | I915_GEM_DOMAIN_WC))
		return -EINVAL;
	if (write && arguments->read_domains != arguments->write_domain)
		return -EINVAL;
	if (!arguments->read_domains)
		return 0;
	object = lab_object_lookup(file, arguments->handle);
	if (!object)
		return -ENOENT;
	error = lab_object_wait(object, write, -1);
	if (!error)
		error = dma_resv_lock_interruptible(object->base.resv, NULL);
	if (error)
		goto out;
	error = lab_get_pages(object);
	if (!error && write) {
		object->dirty = true;
		object->batch_bytes = 0;
	}
	dma_resv_unlock(object->base.resv);
out:
	lab_object_put(object);
	return error;
}

/* Before the object has pages a write need not get them all: it goes through the page cache. */
static int write_file(struct lab_object *object, const struct drm_i915_gem_pwrite *arguments)
{
	loff_t position = arguments->offset;
	struct iov_iter iterator;
	struct iovec vector;
	ssize_t written;
	int error;

	error = import_single_range(WRITE, u64_to_user_ptr(arguments->data_ptr), arguments->size,
				    &vector, &iterator);
	if (error)
		return error;
	written = vfs_iter_write(object->base.filp, &iterator, &position, 0);
	if (written < 0)
		return written;
	return written == arguments->size ? 0 : -EFAULT;
}

static int write_pages(struct lab_object *object, const struct drm_i915_gem_pwrite *arguments)
{
	const char __user *from = u64_to_user_ptr(arguments->data_ptr);
	u64 left = arguments->size, offset = arguments->offset;
	struct sg_page_iter iterator;

	for_each_sgtable_page(object->pages, &iterator, offset >> PAGE_SHIFT)
	{
		unsigned int within = offset_in_page(offset);
		unsigned int length = min_t(u64, left, PAGE_SIZE - within);
		void *memory = kmap_local_page(sg_page_iter_page(&iterator));
		unsigned long missed = copy_from_user(memory + within, from, length);

		kunmap_local(memory);
		if (missed)
			return -EFAULT;
		from += length;
		offset += length;
		left -= length;
		if (!left)
			break;
	}
	return 0;
}

/* Not with the object locked: copying from user space may fault, and faults come before this lock.
 */
static int write_pinned(struct lab_object *object, const struct drm_i915_gem_pwrite *arguments)
{
	int error = lab_object_wait(object, true, -1);

	if (!error)
		error = dma_resv_lock_interruptible(object->base.resv, NULL);
	if (error)
		return error;
	error = lab_get_pages(object);
	if (!error) {
		atomic_inc(&object->pins);
		object->dirty = true;
		object->batch_bytes = 0;
	}
	dma_resv_unlock(object->base.resv);
	if (error)
		return error;
	error = write_pages(object, arguments);
	atomic_dec(&object->pins);
	return error;
}

int lab_pwrite_ioctl(struct drm_device *device, void *data, struct drm_file *file)
{
	struct drm_i915_gem_pwrite *arguments = data;
	struct lab_object *object;
	int error;

	if (arguments->size == 0)
		return 0;
	object = lab_object_lookup(file, arguments->handle);
	if (!object)
		return -ENOENT;
	if (arguments->offset > object->base.size ||
	    arguments->size > object->base.size - arguments->offset)
		error = -EINVAL;
	else if (READ_ONCE(object->pages))
		error = write_pinned(object, arguments);
	else if (READ_ONCE(object->madv) != I915_MADV_WILLNEED)
		error = -EFAULT;
	else
		error = write_file(object, arguments);
	lab_object_put(object);
	return error;
}
