/* SPDX-License-Identifier: MIT */
/*
 * syslatency lab: i915's user interface without a GPU. Objects, their pages, the shrinker and the
 * freeing behave as those of i915 in 6.1 do; the engines only let time pass.
 */
#ifndef I915LAB_H
#define I915LAB_H

#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kref.h>
#include <linux/ktime.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/refcount.h>
#include <linux/scatterlist.h>
#include <linux/shrinker.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>

#include <drm/drm_device.h>
#include <drm/drm_file.h>
#include <drm/drm_gem.h>
#include <drm/drm_mm.h>
#include <uapi/drm/i915_drm.h>

/* One engine of each class, as a Kaby Lake GT2 has; the index is the class of the uAPI. */
#define LAB_ENGINES 4
#define LAB_MAP_MAX (I915_EXEC_RING_MASK + 1)
#define LAB_MADV_PURGED 2
#define LAB_ADDRESSES_END (1ull << 47) /* half of them: what is above is written sign-extended */

/* What getting and putting an object's pages does to their LRU lists. */
enum lab_variant {
	LAB_STOCK,
	LAB_MAPPING,
	LAB_MAPPING_V7,
	LAB_MLOCK,
};

struct lab_engine {
	struct lab *lab;
	unsigned int index;
	spinlock_t lock;
	struct list_head requests; /* in the order of their ends */
	ktime_t busy_until;
	ktime_t interrupt_at; /* 0: the timer is not armed */
	struct hrtimer timer;
	struct tasklet_struct retire;
	wait_queue_head_t wait;
};

struct lab {
	struct drm_device drm;
	struct vfsmount *huge_mount; /* NULL: objects are on the kernel's own tmpfs */

	/* The objects that have pages; list_lock is never held over an allocation. */
	spinlock_t list_lock;
	struct list_head purgeable, shrinkable;
	unsigned long listed_objects, listed_bytes;
	struct shrinker shrinker;
	struct notifier_block oom;

	struct llist_head free_list;
	struct work_struct free_work;
	struct workqueue_struct *workqueue;

	spinlock_t addresses_lock;
	struct drm_mm addresses;

	struct lab_engine engines[LAB_ENGINES];

	struct mutex device_lock; /* of 2018: see lab_lock() */
	struct task_struct *device_lock_owner;
};

struct lab_object {
	struct drm_gem_object base;

	/* Under the lock of base.resv. */
	struct sg_table *pages;
	enum lab_variant variant; /* that the pages were got with */
	bool dirty, bound;
	u32 madv;
	struct drm_mm_node address;
	u64 batch_start, batch_bytes; /* up to its end; 0: not looked at since it was written */

	atomic_t pins; /* users of the pages that do not hold the lock */
	ktime_t busy_until[LAB_ENGINES];
	ktime_t written_until[LAB_ENGINES];

	struct list_head link; /* list_lock */
	struct llist_node freed;
};

struct lab_context {
	struct kref references;
	struct drm_file *file;	   /* only compared */
	unsigned int engine_count; /* 0: no map, the flags of execbuf name a ring */
	u8 engines[LAB_MAP_MAX];
	unsigned int queued[LAB_ENGINES]; /* requests; under the engine's lock */
};

struct lab_file {
	struct xarray contexts; /* index 0: the one that every file has */
};

struct lab_request {
	refcount_t references;
	struct list_head link;
	struct lab_context *context;
	ktime_t submitted, end;
	bool interrupt; /* somebody waits for the end */
	unsigned int count;
	struct drm_gem_object *objects[];
};

static inline struct lab *to_lab(struct drm_device *device)
{
	return container_of(device, struct lab, drm);
}

static inline struct lab_object *to_lab_object(struct drm_gem_object *object)
{
	return container_of(object, struct lab_object, base);
}

static inline struct lab *lab_of(struct lab_object *object)
{
	return to_lab(object->base.dev);
}

static inline void lab_object_put(struct lab_object *object)
{
	drm_gem_object_put(&object->base);
}

/* driver.c: parameters, and the lock of 2018. */
enum lab_variant lab_variant_now(void);
void lab_lock(struct lab *lab);
void lab_unlock(struct lab *lab);
bool lab_lock_in_reclaim(struct lab *lab, bool *ret_unlock);

/* object.c */
struct lab_object *lab_object_lookup(struct drm_file *file, u32 handle); /* a reference, or NULL */
void lab_flush_free_objects(struct lab *lab);
void lab_free_work(struct work_struct *work);
/* Waits for the engines, or the writing ones only: 0, -ETIME, -ERESTARTSYS. */
int lab_object_wait(struct lab_object *object, bool all, s64 timeout_ns);
int lab_create_ioctl(struct drm_device *device, void *data, struct drm_file *file);
int lab_create_ext_ioctl(struct drm_device *device, void *data, struct drm_file *file);
int lab_pwrite_ioctl(struct drm_device *device, void *data, struct drm_file *file);
int lab_madvise_ioctl(struct drm_device *device, void *data, struct drm_file *file);
int lab_set_domain_ioctl(struct drm_device *device, void *data, struct drm_file *file);
int lab_wait_ioctl(struct drm_device *device, void *data, struct drm_file *file);
int lab_busy_ioctl(struct drm_device *device, void *data, struct drm_file *file);

/* pages.c: with the object locked. */
int lab_get_pages(struct lab_object *object); /* 0, -EFAULT not WILLNEED, -ENOMEM */
int lab_put_pages(struct lab_object *object); /* 0, -EBUSY */
int lab_bind(struct lab_object *object, u64 alignment, bool wide);
int lab_unbind(struct lab_object *object, bool wait); /* 0, -EBUSY */
void lab_truncate(struct lab_object *object);
void lab_write_back(struct lab_object *object);

/* shrinker.c */
enum {
	LAB_SHRINK_WAIT = 1,	  /* for objects that an engine uses */
	LAB_SHRINK_WRITEBACK = 2, /* start writing WILLNEED objects to swap */
	LAB_SHRINK_ADDRESSES = 4, /* unbind only */
};
unsigned long lab_shrink(struct lab *lab, unsigned long pages, unsigned long *scanned,
			 unsigned int flags);
int lab_shrinker_register(struct lab *lab);

/* engine.c */
void lab_engine_init(struct lab *lab, unsigned int index);
void lab_request_put(struct lab_request *request);
/* Runs @request for @length_ns once @after is past, and sets its end. */
void lab_engine_submit(struct lab_engine *engine, struct lab_request *request, ktime_t after,
		       u64 length_ns);
void lab_engine_interrupt(struct lab_engine *engine, ktime_t end);
int lab_engine_wait(struct lab_engine *engine, ktime_t end, s64 timeout_ns);
void lab_engine_wait_uninterruptible(struct lab_engine *engine, ktime_t end);
int lab_engine_make_room(struct lab_engine *engine, struct lab_context *context, bool block);
int lab_throttle_ioctl(struct drm_device *device, void *data, struct drm_file *file);

/* context.c */
int lab_open(struct drm_device *device, struct drm_file *file);
void lab_postclose(struct drm_device *device, struct drm_file *file);
struct lab_context *lab_context_get(struct drm_file *file, u32 id); /* a reference, or NULL */
void lab_context_put(struct lab_context *context);
int lab_context_create_ioctl(struct drm_device *device, void *data, struct drm_file *file);
int lab_context_destroy_ioctl(struct drm_device *device, void *data, struct drm_file *file);
int lab_context_getparam_ioctl(struct drm_device *device, void *data, struct drm_file *file);

/* execbuf.c, query.c */
int lab_execbuf_ioctl(struct drm_device *device, void *data, struct drm_file *file);
int lab_getparam_ioctl(struct drm_device *device, void *data, struct drm_file *file);
int lab_query_ioctl(struct drm_device *device, void *data, struct drm_file *file);

#endif
