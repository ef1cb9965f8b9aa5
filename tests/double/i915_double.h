/* SPDX-License-Identifier: MIT */
#ifndef DOUBLE_I915_DOUBLE_H
#define DOUBLE_I915_DOUBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * A preload library that plays an i915 device by the words of its uAPI, so that the whole gem load
 * runs where there is no Intel GPU. It proves that calls are well formed, not that hardware runs
 * them.
 *
 *   I915_DOUBLE=kbl|tgl|adl|dg2|ivb   which device there is; unset: none, calls pass through
 *   I915_DOUBLE_TREE=DIRECTORY        where the faked /dev/dri and /sys are laid out (required)
 *   I915_DOUBLE_LOG=FILE              breaches of the uAPI, and a line of counts when a node is
 * closed I915_DOUBLE_PURGE=BYTES           the "shrinker": most that DONTNEED objects may hold
 *   I915_DOUBLE_FAIL=WHAT[,WHAT...]   eacces; nopwrite; eintr*N, eagain*N (every call fails N times
 *                                     first); eio@N, enospc@N, hang@N, enodev@N (from the Nth
 * execbuf on), enomem@N (from the Nth object on)
 *
 * A breach is answered with the errno that the kernel gives, and logged: tests fail on any line
 * that starts with "breach".
 */

struct personality {
	const char *name;
	uint16_t chipset;
	uint8_t engines[5]; /* count of each class: render, copy, video, video enhance, compute */
	bool engine_map;    /* query and context map (5.3) */
	bool legacy_rings, pwrite_and_mmap, relocations;
	bool discrete;
	int mmap_gtt_version; /* 4: MMAP_OFFSET */
	uint64_t address_bytes;
};

/* The personality of the environment; NULL: there is no device. */
const struct personality *double_personality(void);

/* A new open file of the device; 0 or -errno. The descriptor is a placeholder. */
int double_open(int descriptor, bool render_node);
bool double_owns(int descriptor);
void double_close(int descriptor);
int double_ioctl(int descriptor, unsigned long request, void *argument); /* 0 or -errno */
/* Memory behind a mapping: a descriptor and an offset in it, or -errno. */
int double_mmap(int descriptor, size_t length, int flags, off_t offset, int *ret_memory,
		off_t *ret_offset);

/* The redirected path in @buffer when @path belongs to the faked device, else NULL. */
const char *double_path(const char *path, char *buffer, size_t size);

void double_log(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Entry points that the interposers hide from the model. */
extern int (*real_close)(int);
extern void *(*real_mmap)(void *, size_t, int, int, int, off_t);
extern int (*real_open)(const char *, int, ...);

#endif
