/* SPDX-License-Identifier: MIT */
#ifndef SYS_GPU_H
#define SYS_GPU_H

#include <jansson.h>
#include <stdint.h>

/*
 * The graphics devices of the machine, from sysfs: [{"slot", "vendor": "8086", "device": "5916",
 * "name", "platform": "kbl", "driver", "driver_version"}]. Names come from pci.ids through
 * libpciaccess and are null without it; devices on no PCI bus (vgem) have "slot", "vendor" and
 * "device" null. Never opens a device: that may reset what runs there. NULL without memory.
 */
json_t *gpu_list(void);

/* Short word of an Intel graphics generation ("kbl"), as IGT's users write it; NULL: not known. */
const char *gpu_platform(uint16_t vendor, uint16_t device);

#endif
