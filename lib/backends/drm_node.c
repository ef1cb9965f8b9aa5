/* SPDX-License-Identifier: MIT */
#include "backends/drm_node.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>

#include <drm.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "base/proc.h"

int drm_call(int descriptor, unsigned long request, void *argument)
{
	int64_t deadline_ns = 0;

	while (ioctl(descriptor, request, argument) != 0) {
		if (errno != EINTR && errno != EAGAIN)
			return -errno;
		if (deadline_ns == 0)
			deadline_ns = clock_now_ns() + DRM_RESTART_LIMIT_NS;
		else if (clock_now_ns() > deadline_ns)
			return -ETIMEDOUT;
	}
	return 0;
}

int drm_driver_name(int descriptor, char *name, size_t size)
{
	struct drm_version version = {.name = name, .name_len = size - 1};
	int error = drm_call(descriptor, DRM_IOCTL_VERSION, &version);

	if (error)
		return error;
	name[version.name_len < size ? version.name_len : size - 1] = '\0';
	return 0;
}

static int parse_hex(const char *text, int64_t *ret_value)
{
	char *end;
	unsigned long value;

	errno = 0;
	value = strtoul(text, &end, 16);
	if (errno || end == text || *end || value > 0xffff || text[0] == '-' || text[0] == '+')
		return -EINVAL;
	*ret_value = (int64_t)value;
	return 0;
}

/* One "key=value" of a pci filter. */
static int filter_part(struct drm_filter *filter, const char *part)
{
	if (strcasecmp(part, "vendor=intel") == 0) {
		filter->vendor = 0x8086;
		return 0;
	}
	if (strncmp(part, "vendor=", 7) == 0)
		return parse_hex(part + 7, &filter->vendor);
	if (strncmp(part, "device=", 7) == 0)
		return parse_hex(part + 7, &filter->device);
	if (strncmp(part, "card=", 5) == 0)
		return parse_int64(part + 5, 0, 255, &filter->card);
	if (strncmp(part, "slot=", 5) == 0 && strlen(part + 5) < sizeof(filter->slot) && part[5]) {
		strcpy(filter->slot, part + 5);
		return 0;
	}
	return -EINVAL;
}

int drm_filter_parse(const char *text, struct drm_filter *ret_filter, struct message *message)
{
	struct drm_filter filter = {.vendor = -1, .device = -1, .card = -1};
	char copy[128], *position = NULL;

	if (!text) {
		*ret_filter = filter;
		return 0;
	}
	if (strncmp(text, "drm:", 4) == 0)
		text += 4;
	if (strncmp(text, "/dev/dri/", 9) == 0) {
		filter.path = text;
		*ret_filter = filter;
		return 0;
	}
	if (strncmp(text, "pci:", 4) != 0 || strlen(text) >= sizeof(copy))
		goto bad;
	strcpy(copy, text + 4);
	for (char *part = strtok_r(copy, ",", &position); part;
	     part = strtok_r(NULL, ",", &position))
		if (filter_part(&filter, part) != 0)
			goto bad;
	*ret_filter = filter;
	return 0;
bad:
	return message_set(
		message, -EINVAL,
		"device filter '%s' is not understood: use /dev/dri/NODE or "
		"pci:vendor=8086,device=5912,card=0,slot=0000:00:02.0 (each part optional)",
		text);
}

int drm_levels_read(struct drm_levels *ret_levels)
{
	struct proc_unevictable now;
	int error = proc_read_unevictable(&now);

	if (!error)
		*ret_levels = (struct drm_levels){now.pages, now.mlock_pages};
	return error;
}

const char *drm_variant_of(const struct drm_levels *before, const struct drm_levels *after,
			   uint64_t pages)
{
	int64_t most = (int64_t)(pages - pages / 4), least = (int64_t)(pages / 4);
	int64_t unevictable = after->unevictable_pages - before->unevictable_pages;
	int64_t mlocked = after->mlock_pages - before->mlock_pages;

	if (mlocked >= most)
		return "mlock";
	if (mlocked > least)
		return NULL;
	if (unevictable >= most)
		return "mapping or mapping-v7";
	if (unevictable <= least && unevictable >= -least)
		return "stock";
	return NULL;
}
