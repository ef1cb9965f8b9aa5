// SPDX-License-Identifier: MIT
/*
 * Giving pages back under memory pressure, in the order and by the measure of i915's shrinker:
 * purgeable objects first, whole objects, each by a trylock, since the caller may be an allocation
 * of ours that holds others.
 */
#include <linux/module.h>
#include <linux/oom.h>
#include <linux/swap.h>

#include "i915lab.h"

#define LEAST_BATCH 128ul /* the memory management's own, in pages */

/* What was given back since boot: /sys/module/i915lab/parameters. Under list_lock. */
static unsigned long purged_objects, purged_pages, released_pages;
module_param(purged_objects, ulong, 0444);
module_param(purged_pages, ulong, 0444);
module_param(released_pages, ulong, 0444);

/* Without swap only what nobody wants can go. */
static bool can_release(struct lab_object *object)
{
	return object->madv == I915_MADV_DONTNEED || get_nr_swap_pages() > 0;
}

/* With the object locked: pages that it gave back. */
static unsigned long release_object(struct lab_object *object, unsigned int flags)
{
	struct lab *lab = lab_of(object);
	unsigned long pages = object->base.size >> PAGE_SHIFT;
	bool purge = object->madv == I915_MADV_DONTNEED;

	if (!object->pages || lab_unbind(object, flags & LAB_SHRINK_WAIT))
		return 0;
	if (flags & LAB_SHRINK_ADDRESSES)
		return pages;
	if (lab_put_pages(object))
		return 0;
	if (purge)
		lab_truncate(object);
	else if (flags & LAB_SHRINK_WRITEBACK)
		lab_write_back(object);
	spin_lock(&lab->list_lock);
	if (purge) {
		purged_objects++;
		purged_pages += pages;
	} else {
		released_pages += pages;
	}
	spin_unlock(&lab->list_lock);
	return pages;
}

/*
 * Walks one list until @target pages are released. Each object looked at moves to a list of those
 * that were seen, since the list changes whenever its lock is dropped.
 */
static unsigned long shrink_list(struct lab *lab, struct list_head *list, unsigned long target,
				 unsigned long *scanned, unsigned int flags)
{
	struct lab_object *object;
	unsigned long released = 0;
	LIST_HEAD(seen);

	spin_lock(&lab->list_lock);
	while (released < target &&
	       (object = list_first_entry_or_null(list, struct lab_object, link))) {
		list_move_tail(&object->link, &seen);
		if (!can_release(object) && !(flags & LAB_SHRINK_ADDRESSES))
			continue;
		/* Closed and not yet freed: the worker has it. */
		if (!kref_get_unless_zero(&object->base.refcount))
			continue;
		spin_unlock(&lab->list_lock);
		if (dma_resv_trylock(object->base.resv)) {
			released += release_object(object, flags);
			*scanned += object->base.size >> PAGE_SHIFT;
			dma_resv_unlock(object->base.resv);
		}
		lab_object_put(object);
		spin_lock(&lab->list_lock);
	}
	list_splice_tail(&seen, list);
	spin_unlock(&lab->list_lock);
	return released;
}

unsigned long lab_shrink(struct lab *lab, unsigned long pages, unsigned long *scanned,
			 unsigned int flags)
{
	unsigned long released, none = 0;
	bool unlock;

	if (!lab_lock_in_reclaim(lab, &unlock))
		return 0;
	if (!scanned)
		scanned = &none;
	released = shrink_list(lab, &lab->purgeable, pages, scanned, flags);
	if (released < pages)
		released += shrink_list(lab, &lab->shrinkable, pages - released, scanned, flags);
	if (unlock)
		lab_unlock(lab);
	return released;
}

/* The names of the two are i915's, so that traces and profiles read as on hardware. */
static unsigned long i915_gem_shrinker_count(struct shrinker *shrinker,
					     struct shrink_control *control)
{
	struct lab *lab = container_of(shrinker, struct lab, shrinker);
	unsigned long pages = READ_ONCE(lab->listed_bytes) >> PAGE_SHIFT;
	unsigned long objects = READ_ONCE(lab->listed_objects);

	/* Two objects a batch: less is not worth a call, since objects go whole. */
	if (objects)
		shrinker->batch = max((shrinker->batch + 2 * pages / objects) / 2, LEAST_BATCH);
	return pages;
}

static unsigned long i915_gem_shrinker_scan(struct shrinker *shrinker,
					    struct shrink_control *control)
{
	struct lab *lab = container_of(shrinker, struct lab, shrinker);
	unsigned long released;

	/* Set to what was looked at, or reclaim would take one object for one batch. */
	control->nr_scanned = 0;
	released = lab_shrink(lab, control->nr_to_scan, &control->nr_scanned, 0);
	if (control->nr_scanned < control->nr_to_scan && current_is_kswapd())
		released +=
			lab_shrink(lab, control->nr_to_scan - control->nr_scanned,
				   &control->nr_scanned, LAB_SHRINK_WAIT | LAB_SHRINK_WRITEBACK);
	return control->nr_scanned ? released : SHRINK_STOP;
}

static int on_oom(struct notifier_block *block, unsigned long event, void *data)
{
	struct lab *lab = container_of(block, struct lab, oom);
	unsigned long *released = data;

	*released += lab_shrink(lab, ULONG_MAX, NULL, LAB_SHRINK_WRITEBACK);
	return NOTIFY_DONE;
}

int lab_shrinker_register(struct lab *lab)
{
	int error;

	lab->shrinker.count_objects = i915_gem_shrinker_count;
	lab->shrinker.scan_objects = i915_gem_shrinker_scan;
	lab->shrinker.seeks = DEFAULT_SEEKS;
	lab->shrinker.batch = 4096;
	error = register_shrinker(&lab->shrinker, "drm-i915_gem");
	if (error)
		return error;
	lab->oom.notifier_call = on_oom;
	return register_oom_notifier(&lab->oom);
}
