// SPDX-License-Identifier: MIT
/*
 * The device: QEMU's i6300esb, an Intel device that does nothing by itself, under the name of i915.
 * Built in and never unbound, so nothing is taken down.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/mount.h>
#include <linux/pci.h>
#include <linux/rcupdate.h>

#include <drm/drm_drv.h>
#include <drm/drm_ioctl.h>

#include "i915lab.h"

static const char *const variant_names[] = {
	[LAB_STOCK] = "stock",
	[LAB_MAPPING] = "mapping",
	[LAB_MAPPING_V7] = "mapping-v7",
	[LAB_MLOCK] = "mlock",
	NULL,
};
static int variant = LAB_MAPPING_V7;

static int set_variant(const char *text, const struct kernel_param *parameter)
{
	int found = sysfs_match_string(variant_names, text);

	if (found < 0)
		return found;
	WRITE_ONCE(variant, found);
	return 0;
}

static int get_variant(char *text, const struct kernel_param *parameter)
{
	return sysfs_emit(text, "%s\n", variant_names[READ_ONCE(variant)]);
}

static const struct kernel_param_ops variant_ops = {.set = set_variant, .get = get_variant};
module_param_cb(variant, &variant_ops, NULL, 0644);
MODULE_PARM_DESC(variant, "of pages got from now on: stock, mapping, mapping-v7 (default), mlock");

static bool lock_2018;
module_param(lock_2018, bool, 0444);
MODULE_PARM_DESC(lock_2018,
		 "one mutex for the device, held over the shrinker's scan (default: no)");

static char *huge = "never";
module_param(huge, charp, 0444);
MODULE_PARM_DESC(huge, "pages of objects as of tmpfs: never (default), within_size, always");

enum lab_variant lab_variant_now(void)
{
	return READ_ONCE(variant);
}

/*
 * The driver of 2018 had one mutex for execution, unbinding and the shrinker's whole scan. These do
 * nothing unless it is asked for.
 */
void lab_lock(struct lab *lab)
{
	if (!lock_2018)
		return;
	mutex_lock(&lab->device_lock);
	lab->device_lock_owner = current;
}

void lab_unlock(struct lab *lab)
{
	if (!lock_2018)
		return;
	lab->device_lock_owner = NULL;
	mutex_unlock(&lab->device_lock);
}

/*
 * The caller may be an allocation of ours that has the mutex; anyone else spins for it until the
 * scheduler wants the CPU, and then goes without.
 */
bool lab_lock_in_reclaim(struct lab *lab, bool *ret_unlock)
{
	bool locked;

	*ret_unlock = false;
	if (!lock_2018 || READ_ONCE(lab->device_lock_owner) == current)
		return true;
	preempt_disable();
	while (!(locked = mutex_trylock(&lab->device_lock)) && !need_resched())
		cpu_relax();
	preempt_enable();
	if (locked)
		lab->device_lock_owner = current;
	*ret_unlock = locked;
	return locked;
}

/* debugfs: programs that quiesce i915 write bits here. */
enum {
	DROP_UNBOUND = 1,
	DROP_BOUND = 2,
	DROP_ACTIVE = 8,
	DROP_FREED = 0x10,
	DROP_SHRINK_ALL = 0x20,
	DROP_IDLE = 0x40,
	DROP_RCU = 0x200,
};

static int drop_caches(void *data, u64 what)
{
	struct lab *lab = data;
	unsigned int i;

	for (i = 0; what & (DROP_ACTIVE | DROP_IDLE) && i < LAB_ENGINES; i++) {
		int error = lab_engine_wait(&lab->engines[i], READ_ONCE(lab->engines[i].busy_until),
					    -1);

		if (error)
			return error;
	}
	if (what & (DROP_UNBOUND | DROP_BOUND | DROP_SHRINK_ALL))
		lab_shrink(lab, ULONG_MAX, NULL, 0);
	if (what & DROP_RCU)
		rcu_barrier();
	if (what & DROP_FREED)
		flush_work(&lab->free_work);
	return 0;
}
DEFINE_DEBUGFS_ATTRIBUTE(drop_caches_fops, NULL, drop_caches, "0x%llx\n");

static void make_debugfs(struct drm_minor *minor)
{
	debugfs_create_file("i915_gem_drop_caches", 0200, minor->debugfs_root, to_lab(minor->dev),
			    &drop_caches_fops);
}

#define LAB_IOCTL(name, function) DRM_IOCTL_DEF_DRV(I915_##name, function, DRM_RENDER_ALLOW)

static const struct drm_ioctl_desc ioctls[] = {
	LAB_IOCTL(GETPARAM, lab_getparam_ioctl),
	LAB_IOCTL(QUERY, lab_query_ioctl),
	LAB_IOCTL(GEM_CREATE, lab_create_ioctl),
	LAB_IOCTL(GEM_CREATE_EXT, lab_create_ext_ioctl),
	LAB_IOCTL(GEM_PWRITE, lab_pwrite_ioctl),
	LAB_IOCTL(GEM_MADVISE, lab_madvise_ioctl),
	LAB_IOCTL(GEM_SET_DOMAIN, lab_set_domain_ioctl),
	LAB_IOCTL(GEM_WAIT, lab_wait_ioctl),
	LAB_IOCTL(GEM_BUSY, lab_busy_ioctl),
	LAB_IOCTL(GEM_THROTTLE, lab_throttle_ioctl),
	LAB_IOCTL(GEM_EXECBUFFER2_WR, lab_execbuf_ioctl),
	LAB_IOCTL(GEM_CONTEXT_CREATE_EXT, lab_context_create_ioctl),
	LAB_IOCTL(GEM_CONTEXT_DESTROY, lab_context_destroy_ioctl),
	LAB_IOCTL(GEM_CONTEXT_GETPARAM, lab_context_getparam_ioctl),
};

DEFINE_DRM_GEM_FOPS(lab_fops);

/* The version is that of i915 in 6.1; the description keeps its records from passing for
 * hardware's. */
static const struct drm_driver lab_driver = {
	.driver_features = DRIVER_GEM | DRIVER_RENDER,
	.open = lab_open,
	.postclose = lab_postclose,
	.debugfs_init = make_debugfs,
	.ioctls = ioctls,
	.num_ioctls = ARRAY_SIZE(ioctls),
	.fops = &lab_fops,
	.name = "i915",
	.desc = "syslatency lab: i915 without a GPU",
	.date = "20201103",
	.major = 1,
	.minor = 6,
};

static struct vfsmount *mount_for(const char *option)
{
	struct file_system_type *type;
	char options[32];

	if (strcmp(option, "never") == 0)
		return NULL;
	type = get_fs_type("tmpfs");
	if (!type)
		return ERR_PTR(-ENODEV);
	snprintf(options, sizeof(options), "huge=%s", option);
	return vfs_kern_mount(type, SB_KERNMOUNT, type->name, options);
}

static int probe(struct pci_dev *device, const struct pci_device_id *id)
{
	struct lab *lab;
	unsigned int i;
	int error;

	lab = devm_drm_dev_alloc(&device->dev, &lab_driver, struct lab, drm);
	if (IS_ERR(lab))
		return PTR_ERR(lab);
	error = pcim_enable_device(device);
	if (error)
		return error;
	lab->huge_mount = mount_for(huge);
	if (IS_ERR(lab->huge_mount))
		return PTR_ERR(lab->huge_mount);
	/* Named as i915's: its workers read the same in a trace. */
	lab->workqueue = alloc_ordered_workqueue("i915", 0);
	if (!lab->workqueue)
		return -ENOMEM;
	spin_lock_init(&lab->list_lock);
	INIT_LIST_HEAD(&lab->purgeable);
	INIT_LIST_HEAD(&lab->shrinkable);
	init_llist_head(&lab->free_list);
	INIT_WORK(&lab->free_work, lab_free_work);
	spin_lock_init(&lab->addresses_lock);
	drm_mm_init(&lab->addresses, PAGE_SIZE, LAB_ADDRESSES_END - PAGE_SIZE);
	mutex_init(&lab->device_lock);
	for (i = 0; i < LAB_ENGINES; i++)
		lab_engine_init(lab, i);
	/* Never freed, even when what follows fails: the memory management may know it by then. */
	drm_dev_get(&lab->drm);
	error = lab_shrinker_register(lab);
	if (error)
		return error;
	return drm_dev_register(&lab->drm, 0);
}

/* QEMU's watchdog "i6300esb": Intel's vendor number is what programs look for. */
static const struct pci_device_id devices[] = {{PCI_DEVICE(PCI_VENDOR_ID_INTEL, 0x25ab)}, {}};

static struct pci_driver lab_pci_driver = {
	.name = "i915",
	.id_table = devices,
	.probe = probe,
	.driver.suppress_bind_attrs = true,
};
builtin_pci_driver(lab_pci_driver);

MODULE_DESCRIPTION("syslatency lab: i915's user interface without a GPU");
MODULE_LICENSE("Dual MIT/GPL");
