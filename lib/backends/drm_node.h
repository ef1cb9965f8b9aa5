/* SPDX-License-Identifier: MIT */
#ifndef BACKENDS_DRM_NODE_H
#define BACKENDS_DRM_NODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message.h"

/* What the DRM backends share: restartable ioctls, device nodes, the filter of --device, and the
 * observation of what a driver does to the pages that it pins. */

/* How long a call is restarted (EINTR, EAGAIN) before the device counts as stuck. */
#define DRM_RESTART_LIMIT_NS INT64_C(10000000000)

/* ioctl(2), restarted; 0 or -errno, -ETIMEDOUT after DRM_RESTART_LIMIT_NS of restarts. */
int drm_call(int descriptor, unsigned long request, void *argument);

/* Name of the driver behind an open node (DRM_IOCTL_VERSION). */
int drm_driver_name(int descriptor, char *name, size_t size);

/*
 * --device in the words of IGT's filters: a path below /dev/dri, or
 * "pci:vendor=8086,device=5912,card=0,slot=0000:00:02.0" (hexadecimal ids, or vendor=intel; every
 * part optional; card counts the matches).
 */
struct drm_filter {
	const char *path; /* NULL: no path */
	int64_t vendor;	  /* -1: any */
	int64_t device;	  /* -1: any */
	int64_t card;	  /* -1: the first */
	char slot[32];	  /* "": any */
};

/* @text may be NULL: matches anything. -EINVAL with what is understood. */
int drm_filter_parse(const char *text, struct drm_filter *ret_filter, struct message *message);

/* What a driver made of pages that it pinned, from the change of levels in /proc/vmstat. */
struct drm_levels {
	int64_t unevictable_pages, mlock_pages;
};

int drm_levels_read(struct drm_levels *ret_levels);

/*
 * "mlock", "mapping or mapping-v7" (the two look alike until release), "stock", or NULL when the
 * change is neither about @pages nor about nothing.
 */
const char *drm_variant_of(const struct drm_levels *before, const struct drm_levels *after,
			   uint64_t pages);

#endif
