/* SPDX-License-Identifier: MIT */
#include "sys/gpu.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/json.h"
#include "config.h"

#define VENDOR_INTEL 0x8086

/* Device ids by generation: include/drm/intel/pciids.h (i915_pciids.h before 6.14). */
static const struct {
	uint16_t first, last;
	const char *platform;
} platforms[] = {
	{0x0042, 0x0046, "ilk"},  {0x0102, 0x012a, "snb"},  {0x0152, 0x0152, "ivb"},
	{0x0155, 0x0155, "byt"},  {0x0156, 0x0156, "ivb"},  {0x0157, 0x0157, "byt"},
	{0x015a, 0x016a, "ivb"},  {0x0402, 0x042e, "hsw"},  {0x0a02, 0x0a2e, "hsw"},
	{0x0a84, 0x0a84, "bxt"},  {0x0c02, 0x0c2e, "hsw"},  {0x0d02, 0x0d2e, "hsw"},
	{0x0f30, 0x0f33, "byt"},  {0x1602, 0x163e, "bdw"},  {0x1902, 0x193d, "skl"},
	{0x1a84, 0x1a85, "bxt"},  {0x22b0, 0x22b3, "bsw"},  {0x2a02, 0x2a12, "i965gm"},
	{0x2a42, 0x2a42, "gm45"}, {0x2e02, 0x2e92, "g45"},  {0x3184, 0x3185, "glk"},
	{0x3e90, 0x3e9c, "cfl"},  {0x3ea0, 0x3ea9, "cfl"},  {0x4541, 0x4571, "ehl"},
	{0x4626, 0x462a, "adlp"}, {0x4680, 0x4693, "adls"}, {0x46a0, 0x46c3, "adlp"},
	{0x46d0, 0x46d4, "adln"}, {0x4905, 0x4909, "dg1"},  {0x4c80, 0x4c9a, "rkl"},
	{0x4e51, 0x4e71, "jsl"},  {0x4f80, 0x4f88, "dg2"},  {0x5690, 0x56c2, "dg2"},
	{0x5902, 0x593b, "kbl"},  {0x5a84, 0x5a85, "bxt"},  {0x6420, 0x64b0, "lnl"},
	{0x7d40, 0x7d40, "mtl"},  {0x7d41, 0x7d41, "arl"},  {0x7d45, 0x7d45, "mtl"},
	{0x7d51, 0x7d51, "arl"},  {0x7d55, 0x7d60, "mtl"},  {0x7d67, 0x7d67, "arl"},
	{0x7dd1, 0x7dd1, "arl"},  {0x7dd5, 0x7dd5, "mtl"},  {0x87c0, 0x87c0, "kbl"},
	{0x87ca, 0x87ca, "cfl"},  {0x8a50, 0x8a71, "icl"},  {0x9a40, 0x9af8, "tgl"},
	{0x9b21, 0x9bf6, "cml"},  {0xa001, 0xa011, "pnv"},  {0xa720, 0xa721, "rplp"},
	{0xa780, 0xa78b, "rpls"}, {0xa7a0, 0xa7ad, "rplp"}, {0xb080, 0xb0b0, "ptl"},
	{0xe202, 0xe223, "bmg"},
};

const char *gpu_platform(uint16_t vendor, uint16_t device)
{
	if (vendor != VENDOR_INTEL)
		return NULL;
	for (size_t i = 0; i < ARRAY_SIZE(platforms); i++)
		if (device >= platforms[i].first && device <= platforms[i].last)
			return platforms[i].platform;
	return NULL;
}

#if HAVE_PCIACCESS
#include <pciaccess.h>

/* Reads pci.ids only; the bus is not touched, so it works for ids of a device that is not here. */
static json_t *name_of(uint16_t vendor, uint16_t device)
{
	struct pci_id_match match = {vendor, device, PCI_MATCH_ANY, PCI_MATCH_ANY};
	const char *device_name = NULL, *vendor_name = NULL;
	char name[256];

	pci_get_strings(&match, &device_name, &vendor_name, NULL, NULL);
	if (!device_name)
		return json_null();
	snprintf(name, sizeof(name), "%s%s%s", vendor_name ? vendor_name : "",
		 vendor_name ? " " : "", device_name);
	return json_string_or_null(name);
}
#else
static json_t *name_of(uint16_t vendor, uint16_t device)
{
	return json_null();
}
#endif

/* Last part of what the link @path points to. */
static int link_name(const char *path, char *buffer, size_t size)
{
	char full[PATH_MAX], target[PATH_MAX];
	const char *last;
	ssize_t length;

	if (machine_path(path, full, sizeof(full)))
		return -ENAMETOOLONG;
	length = readlink(full, target, sizeof(target) - 1);
	if (length < 0)
		return -errno;
	target[length] = '\0';
	last = strrchr(target, '/');
	return snprintf(buffer, size, "%s", last ? last + 1 : target) >= (int)size ? -ENAMETOOLONG
										   : 0;
}

static int put_driver(json_t *gpu, const char *device_path)
{
	char path[PATH_MAX], driver[64], version[128];
	bool has_driver, has_version = false;

	snprintf(path, sizeof(path), "%s/driver", device_path);
	has_driver = link_name(path, driver, sizeof(driver)) == 0;
	if (has_driver) {
		/* Drivers in the tree have no version but the kernel's; others (nvidia) say one. */
		snprintf(path, sizeof(path), "/sys/module/%s/version", driver);
		has_version = machine_read_line(path, version, sizeof(version)) == 0;
	}
	if (json_put(gpu, "driver", json_string_or_null(has_driver ? driver : NULL)))
		return -ENOMEM;
	return json_put(gpu, "driver_version", json_string_or_null(has_version ? version : NULL));
}

static uint16_t read_id(const char *device_path, const char *file)
{
	char path[PATH_MAX], line[32];

	snprintf(path, sizeof(path), "%s/%s", device_path, file);
	if (machine_read_line(path, line, sizeof(line)))
		return 0;
	return (uint16_t)strtoul(line, NULL, 16);
}

static int add_pci(json_t *gpus, const char *slot)
{
	char device_path[128], path[PATH_MAX], line[32], id[8];
	uint16_t vendor, device;
	const char *platform;
	json_t *gpu;

	snprintf(device_path, sizeof(device_path), "/sys/bus/pci/devices/%.32s", slot);
	snprintf(path, sizeof(path), "%s/class", device_path);
	/* Base class 03 is a display controller. */
	if (machine_read_line(path, line, sizeof(line)) || strncmp(line, "0x03", 4) != 0)
		return 0;
	vendor = read_id(device_path, "vendor");
	device = read_id(device_path, "device");
	platform = gpu_platform(vendor, device);
	gpu = json_object();
	if (!gpu || json_array_append_new(gpus, gpu))
		return -ENOMEM;
	if (json_put(gpu, "slot", json_string(slot)))
		return -ENOMEM;
	snprintf(id, sizeof(id), "%04x", vendor);
	if (json_put(gpu, "vendor", json_string(id)))
		return -ENOMEM;
	snprintf(id, sizeof(id), "%04x", device);
	if (json_put(gpu, "device", json_string(id)) ||
	    json_put(gpu, "name", name_of(vendor, device)) ||
	    json_put(gpu, "platform", json_string_or_null(platform)))
		return -ENOMEM;
	return put_driver(gpu, device_path);
}

/* A card of the DRM core that sits on no PCI device: vgem, vkms, an SoC's. */
static int add_other(json_t *gpus, const char *card)
{
	char device_path[128], path[PATH_MAX], subsystem[64];
	json_t *gpu;

	if (strncmp(card, "card", 4) != 0 || strchr(card, '-'))
		return 0; /* card0-HDMI-A-1 is a connector */
	snprintf(device_path, sizeof(device_path), "/sys/class/drm/%.32s/device", card);
	snprintf(path, sizeof(path), "%s/subsystem", device_path);
	if (link_name(path, subsystem, sizeof(subsystem)) == 0 && strcmp(subsystem, "pci") == 0)
		return 0;
	gpu = json_object();
	if (!gpu || json_array_append_new(gpus, gpu))
		return -ENOMEM;
	if (json_put(gpu, "slot", json_null()) || json_put(gpu, "vendor", json_null()) ||
	    json_put(gpu, "device", json_null()) || json_put(gpu, "name", json_string(card)) ||
	    json_put(gpu, "platform", json_null()))
		return -ENOMEM;
	return put_driver(gpu, device_path);
}

/* In the order of names, so that two lists of one machine are equal. */
static int for_each_name(const char *directory, json_t *gpus,
			 int (*add)(json_t *gpus, const char *name))
{
	char path[PATH_MAX];
	struct dirent **names;
	int count, error = 0;

	if (machine_path(directory, path, sizeof(path)))
		return 0;
	count = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < count; i++) {
		if (!error && names[i]->d_name[0] != '.')
			error = add(gpus, names[i]->d_name);
		free(names[i]);
	}
	if (count >= 0)
		free(names);
	return error;
}

json_t *gpu_list(void)
{
	json_t *gpus = json_array();

	if (gpus && (for_each_name("/sys/bus/pci/devices", gpus, add_pci) ||
		     for_each_name("/sys/class/drm", gpus, add_other))) {
		json_decref(gpus);
		return NULL;
	}
	return gpus;
}
