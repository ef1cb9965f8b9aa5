/* SPDX-License-Identifier: MIT */
/* Personalities, and the files under /dev/dri and /sys by which programs find a device. */
#undef _FILE_OFFSET_BITS
#include "i915_double.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"

static const struct personality personalities[] = {
	/* Kaby Lake GT2 desktop, a kernel of 2022. */
	{"kbl", 0x5912, {1, 1, 1, 1, 0}, true, true, true, true, false, 4, UINT64_C(1) << 48},
	/* Tiger Lake GT2: the one gen 12 that kept PWRITE and relocations. */
	{"tgl", 0x9a49, {1, 1, 2, 1, 0}, true, true, true, true, false, 4, UINT64_C(1) << 48},
	/* Alder Lake P, with everything old refused. */
	{"adl", 0x46a6, {1, 1, 2, 1, 0}, true, false, false, false, false, 4, UINT64_C(1) << 48},
	/* DG2: local memory, 64 KiB objects. */
	{"dg2", 0x56a0, {1, 1, 2, 2, 4}, true, false, false, false, true, 4, UINT64_C(1) << 48},
	/* Ivy Bridge under 4.19: neither query nor engine map. */
	{"ivb", 0x0166, {1, 1, 1, 0, 0}, false, true, true, true, false, 2, UINT64_C(1) << 31},
};

const struct personality *double_personality(void)
{
	const char *name = getenv("I915_DOUBLE");

	for (size_t i = 0; name && i < ARRAY_SIZE(personalities); i++)
		if (strcmp(personalities[i].name, name) == 0)
			return &personalities[i];
	return NULL;
}

void double_log(const char *format, ...)
{
	const char *path = getenv("I915_DOUBLE_LOG");
	char line[512];
	va_list list;
	int length, descriptor;

	va_start(list, format);
	length = vsnprintf(line, sizeof(line) - 1, format, list);
	va_end(list);
	if (!path || length < 0)
		return;
	length = length < (int)sizeof(line) - 1 ? length : (int)sizeof(line) - 2;
	line[length++] = '\n';
	descriptor = real_open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (descriptor < 0)
		return;
	if (write(descriptor, line, (size_t)length) != length)
		abort();
	real_close(descriptor);
}

static void put(const char *root, const char *path, const void *data, size_t size)
{
	char full[PATH_MAX];
	int descriptor;

	snprintf(full, sizeof(full), "%s%s", root, path);
	for (char *slash = strchr(full + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(full, 0755);
		*slash = '/';
	}
	descriptor = real_open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (descriptor < 0 || write(descriptor, data, size) != (ssize_t)size)
		abort();
	real_close(descriptor);
}

static void put_text(const char *root, const char *path, const char *text)
{
	put(root, path, text, strlen(text));
}

#define DEVICE "/sys/bus/pci/devices/0000:00:02.0"

static void link_to(const char *root, const char *path, const char *target)
{
	char full[PATH_MAX];

	snprintf(full, sizeof(full), "%s%s", root, path);
	unlink(full);
	if (symlink(target, full) != 0)
		abort();
}

static void lay_out(const char *root, const struct personality *personality)
{
	unsigned char header[64] = {0x86, 0x80, [0x0b] = 0x03};
	char text[128];

	header[2] = (unsigned char)personality->chipset;
	header[3] = (unsigned char)(personality->chipset >> 8);
	mkdir(root, 0755);
	put(root, "/dev/dri/card0", "", 0);
	put(root, "/dev/dri/renderD128", "", 0);
	put(root, DEVICE "/config", header, sizeof(header));
	put_text(root, DEVICE "/vendor", "0x8086\n");
	snprintf(text, sizeof(text), "0x%04x\n", personality->chipset);
	put_text(root, DEVICE "/device", text);
	put_text(root, DEVICE "/subsystem_vendor", "0x8086\n");
	put_text(root, DEVICE "/subsystem_device", "0x2212\n");
	put_text(root, DEVICE "/revision", "0x04\n");
	put_text(root, DEVICE "/class", "0x030000\n");
	put_text(root, DEVICE "/irq", "16\n");
	put_text(root, DEVICE "/boot_vga", "1\n");
	put_text(root, DEVICE "/resource", "0x0 0x0 0x0\n");
	snprintf(text, sizeof(text), "DRIVER=i915\nPCI_ID=8086:%04X\nPCI_SLOT_NAME=0000:00:02.0\n",
		 personality->chipset);
	put_text(root, DEVICE "/uevent", text);
	put(root, DEVICE "/drm/card0/dev", "226:0\n", 6);
	put(root, DEVICE "/drm/renderD128/dev", "226:128\n", 8);
	put(root, "/sys/bus/pci/drivers/i915/module", "", 0);
	put(root, "/sys/dev/char/226:0/dev", "226:0\n", 6);
	put(root, "/sys/dev/char/226:128/dev", "226:128\n", 8);
	link_to(root, DEVICE "/subsystem", "../../../../bus/pci");
	link_to(root, DEVICE "/driver", "../../drivers/i915");
	link_to(root, "/sys/dev/char/226:0/device", "../../../bus/pci/devices/0000:00:02.0");
	link_to(root, "/sys/dev/char/226:128/device", "../../../bus/pci/devices/0000:00:02.0");
	put_text(root, "/sys/class/drm/version", "drm 1.1.0 20060810\n");
	for (int i = 0; i < 2; i++) {
		snprintf(text, sizeof(text), "/sys/class/drm/%s", i ? "renderD128" : "card0");
		link_to(root, text,
			i ? "../../bus/pci/devices/0000:00:02.0/drm/renderD128"
			  : "../../bus/pci/devices/0000:00:02.0/drm/card0");
	}
	link_to(root, DEVICE "/drm/card0/device", "../..");
	link_to(root, DEVICE "/drm/renderD128/device", "../..");
}

const char *double_path(const char *path, char *buffer, size_t size)
{
	static const char *const prefixes[] = {
		"/dev/dri", "/sys/dev/char/226:", "/sys/bus/pci/devices", "/sys/class/drm"};
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static const struct personality *laid_out;
	const struct personality *personality;
	const char *root = getenv("I915_DOUBLE_TREE");
	bool ours = false;

	for (size_t i = 0; path && i < ARRAY_SIZE(prefixes); i++)
		ours = ours || strncmp(path, prefixes[i], strlen(prefixes[i])) == 0;
	if (!ours || !root)
		return NULL;
	personality = double_personality();
	if (!personality)
		return NULL;
	pthread_mutex_lock(&lock);
	if (laid_out != personality)
		lay_out(root, personality);
	laid_out = personality;
	pthread_mutex_unlock(&lock);
	snprintf(buffer, size, "%s%s", root, path);
	return buffer;
}
