/* SPDX-License-Identifier: MIT */
#ifndef BACKENDS_SHM_PIN_H
#define BACKENDS_SHM_PIN_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Ways to hold one more reference on every page of a mapping from user space, as a driver does with
 * shmem_read_mapping_page(): the page stays on its LRU list and in the page cache, and neither
 * reclaim nor migration can take it. The mapping may go afterwards.
 */
struct pin_method {
	const char *name;
	const char *stands_for; /* the kernel path, for the documentation and the record */
	bool needs_memfd;	/* cannot take SysV segments */
	/*
	 * Pins @bytes (whole pages) at @address, backed by @memfd when needs_memfd. -ENOTSUP or
	 * -EPERM where the kernel refuses, -EMFILE without descriptors, -ENOMEM.
	 */
	int (*pin)(void *address, uint64_t bytes, int memfd, void **ret_pin);
	void (*unpin)(void *pin); /* NULL is accepted */
};

extern const struct pin_method pin_vmsplice, pin_udmabuf, pin_uring;

/* Best match to the driver first; NULL-terminated. */
extern const struct pin_method *const pin_methods[];

#endif
