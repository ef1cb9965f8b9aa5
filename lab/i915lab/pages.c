// SPDX-License-Identifier: MIT
/*
 * The pages of an object: got from shmem as i915 gets them, with the LRU treatment of the variant.
 * Called with the object locked.
 */
#include <linux/pagemap.h>
#include <linux/pagevec.h>
#include <linux/shmem_fs.h>
#include <linux/slab.h>
#include <linux/swap.h>
#include <linux/writeback.h>

#include "i915lab.h"

/* mm/internal.h; not exported, so the driver must be built in. */
void mlock_folio(struct folio *folio);
void munlock_page(struct page *page);

static struct address_space *mapping_of(struct lab_object *object)
{
	return object->base.filp->f_mapping;
}

static void release_batch(struct pagevec *batch)
{
	check_move_unevictable_pages(batch);
	__pagevec_release(batch);
	cond_resched();
}

/*
 * Lets go of the first @count pages. The order is each variant's own: v2 of the patch clears the
 * mark after the pages are put and then walks the mapping; what was merged clears it first and
 * moves the pages back in batches; mlock unlocks each page; stock pages never left their list.
 */
static void release_pages_of(struct lab_object *object, struct sg_table *table, unsigned int count,
			     bool keep)
{
	struct address_space *mapping = mapping_of(object);
	struct sg_page_iter iterator;
	struct pagevec batch;

	pagevec_init(&batch);
	if (object->variant == LAB_MAPPING_V7)
		mapping_clear_unevictable(mapping);
	for_each_sg_page(table->sgl, &iterator, count, 0)
	{
		struct page *page = sg_page_iter_page(&iterator);

		/* What is not wanted any more need not be written to swap. */
		if (keep && object->dirty)
			set_page_dirty(page);
		if (keep)
			mark_page_accessed(page);
		if (object->variant == LAB_MAPPING_V7) {
			if (!pagevec_add(&batch, page))
				release_batch(&batch);
			continue;
		}
		if (object->variant == LAB_MLOCK)
			munlock_page(compound_head(page));
		put_page(page);
	}
	if (pagevec_count(&batch))
		release_batch(&batch);
	if (object->variant == LAB_MAPPING) {
		mapping_clear_unevictable(mapping);
		shmem_unlock_mapping(mapping);
	}
	object->dirty = false;
	sg_free_table(table);
	kfree(table);
}

/*
 * First without reclaim, so that a shortage does not start the victim's; then by giving up pages of
 * our own; then with all that reclaim can do, but without the OOM killer: user space is told.
 */
static struct page *get_one(struct lab *lab, struct address_space *mapping, pgoff_t index,
			    unsigned int count)
{
	gfp_t gfp = mapping_gfp_constraint(mapping, ~__GFP_RECLAIM) | __GFP_NORETRY | __GFP_NOWARN;
	struct page *page = shmem_read_mapping_page_gfp(mapping, index, gfp);

	if (!IS_ERR(page))
		return page;
	lab_shrink(lab, 2 * count, NULL, 0);
	cond_resched();
	gfp = mapping_gfp_mask(mapping) | __GFP_RETRY_MAYFAIL | __GFP_NOWARN;
	return shmem_read_mapping_page_gfp(mapping, index, gfp);
}

/* For the shrinker, which counts and takes whole objects. */
static void list_object(struct lab_object *object)
{
	struct lab *lab = lab_of(object);

	spin_lock(&lab->list_lock);
	list_add_tail(&object->link, &lab->shrinkable);
	lab->listed_objects++;
	lab->listed_bytes += object->base.size;
	spin_unlock(&lab->list_lock);
}

static void unlist_object(struct lab_object *object)
{
	struct lab *lab = lab_of(object);

	spin_lock(&lab->list_lock);
	list_del_init(&object->link);
	lab->listed_objects--;
	lab->listed_bytes -= object->base.size;
	spin_unlock(&lab->list_lock);
}

int lab_get_pages(struct lab_object *object)
{
	struct address_space *mapping = mapping_of(object);
	unsigned int i, count = object->base.size >> PAGE_SHIFT;
	struct scatterlist *entry;
	struct sg_table *table;

	if (object->pages)
		return 0;
	if (object->madv != I915_MADV_WILLNEED)
		return -EFAULT;
	table = kmalloc(sizeof(*table), GFP_KERNEL | __GFP_NOWARN);
	if (!table)
		return -ENOMEM;
	if (sg_alloc_table(table, count, GFP_KERNEL | __GFP_NOWARN)) {
		kfree(table);
		return -ENOMEM;
	}
	object->variant = lab_variant_now();
	if (object->variant == LAB_MAPPING || object->variant == LAB_MAPPING_V7)
		mapping_set_unevictable(mapping);
	for_each_sg(table->sgl, entry, count, i)
	{
		struct page *page;

		cond_resched();
		page = get_one(lab_of(object), mapping, i, count);
		if (IS_ERR(page)) {
			release_pages_of(object, table, i, false);
			/* shmem says ENOSPC; here that means GPU addresses. */
			return PTR_ERR(page) == -ENOSPC ? -ENOMEM : PTR_ERR(page);
		}
		if (object->variant == LAB_MLOCK)
			mlock_folio(page_folio(page));
		sg_set_page(entry, page, PAGE_SIZE, 0);
	}
	object->pages = table;
	list_object(object);
	return 0;
}

int lab_put_pages(struct lab_object *object)
{
	struct sg_table *table = object->pages;

	if (!table)
		return 0;
	if (object->bound || atomic_read(&object->pins))
		return -EBUSY;
	unlist_object(object);
	object->pages = NULL;
	release_pages_of(object, table, table->orig_nents, object->madv == I915_MADV_WILLNEED);
	return 0;
}

int lab_bind(struct lab_object *object, u64 alignment, bool wide)
{
	struct lab *lab = lab_of(object);
	u64 end = wide ? LAB_ADDRESSES_END : U32_MAX & PAGE_MASK;
	int tries = 2, error;

	if (object->bound && (object->address.start & (max(alignment, 1ull) - 1) ||
			      object->address.start + object->address.size > end)) {
		error = lab_unbind(object, true);
		if (error)
			return error;
	}
	if (object->bound)
		return 0;
	error = lab_get_pages(object);
	if (error)
		return error;
	do {
		spin_lock(&lab->addresses_lock);
		error = drm_mm_insert_node_in_range(&lab->addresses, &object->address,
						    object->base.size, alignment, 0, 0, end,
						    DRM_MM_INSERT_BEST);
		spin_unlock(&lab->addresses_lock);
		if (error == -ENOSPC)
			lab_shrink(lab, ULONG_MAX, NULL, LAB_SHRINK_ADDRESSES | LAB_SHRINK_WAIT);
	} while (error == -ENOSPC && --tries);
	object->bound = !error;
	return error;
}

int lab_unbind(struct lab_object *object, bool wait)
{
	struct lab *lab = lab_of(object);
	unsigned int i;

	if (!object->bound)
		return 0;
	for (i = 0; i < LAB_ENGINES; i++) {
		ktime_t end = object->busy_until[i];

		if (ktime_get() >= end)
			continue;
		if (!wait)
			return -EBUSY;
		lab_engine_wait_uninterruptible(&lab->engines[i], end);
	}
	spin_lock(&lab->addresses_lock);
	drm_mm_remove_node(&object->address);
	spin_unlock(&lab->addresses_lock);
	object->bound = false;
	return 0;
}

void lab_truncate(struct lab_object *object)
{
	shmem_truncate_range(file_inode(object->base.filp), 0, (loff_t)-1);
	object->madv = LAB_MADV_PURGED;
	object->batch_bytes = 0;
}

/*
 * Direct reclaim does not write these pages (they are dirty and of a mapping that kswapd writes),
 * so kswapd starts the writing here, once nothing holds them.
 */
void lab_write_back(struct lab_object *object)
{
	struct address_space *mapping = mapping_of(object);
	struct writeback_control control = {
		.sync_mode = WB_SYNC_NONE,
		.nr_to_write = SWAP_CLUSTER_MAX,
		.range_end = LLONG_MAX,
		.for_reclaim = 1,
	};
	pgoff_t i;

	for (i = 0; i < object->base.size >> PAGE_SHIFT; i++) {
		struct page *page = find_lock_page(mapping, i);
		bool locked = true;

		if (!page)
			continue;
		if (!page_mapped(page) && clear_page_dirty_for_io(page)) {
			SetPageReclaim(page);
			/* Unlocks the page when it takes it. */
			locked = mapping->a_ops->writepage(page, &control) != 0;
			if (!PageWriteback(page))
				ClearPageReclaim(page);
		}
		if (locked)
			unlock_page(page);
		put_page(page);
	}
}
