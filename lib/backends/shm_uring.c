/* SPDX-License-Identifier: MIT */
#include "backends/shm_pin.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <sys/uio.h>

/*
 * Registered buffers of io_uring: pin_user_pages(FOLL_LONGTERM), one ring a buffer. A pin counts as
 * many references on its page, and since Linux 6.4 reclaim moves such pages to the active list,
 * where a driver's stay inactive: the reason why vmsplice goes first.
 */
#define URING_BUFFER_BYTES (UINT64_C(1) << 30) /* the kernel's limit for one */

static void uring_unpin(void *data)
{
	struct io_uring *ring = data;

	if (!ring)
		return;
	/* Closing alone would drop the references later, from a worker of the kernel. */
	io_uring_unregister_buffers(ring);
	io_uring_queue_exit(ring);
	free(ring);
}

static int uring_pin(void *address, uint64_t bytes, int memfd, void **ret_pin)
{
	size_t count = (size_t)((bytes + URING_BUFFER_BYTES - 1) / URING_BUFFER_BYTES);
	struct iovec *vectors = calloc(count, sizeof(*vectors));
	struct io_uring *ring = malloc(sizeof(*ring));
	int error = -ENOMEM;

	if (!ring || !vectors)
		goto fail;
	for (size_t i = 0; i < count; i++) {
		uint64_t at = i * URING_BUFFER_BYTES;

		vectors[i].iov_base = (char *)address + at;
		vectors[i].iov_len =
			bytes - at < URING_BUFFER_BYTES ? bytes - at : URING_BUFFER_BYTES;
	}
	error = io_uring_queue_init(1, ring, 0);
	if (error < 0)
		goto fail;
	error = io_uring_register_buffers(ring, vectors, (unsigned int)count);
	if (error < 0) {
		io_uring_queue_exit(ring);
		goto fail;
	}
	free(vectors);
	*ret_pin = ring;
	return 0;
fail:
	free(vectors);
	free(ring);
	return error;
}

const struct pin_method pin_uring = {
	.name = "io_uring",
	.stands_for = "pin_user_pages(FOLL_LONGTERM), held by registered buffers",
	.pin = uring_pin,
	.unpin = uring_unpin,
};
