/* SPDX-License-Identifier: MIT */
#include "backends/shm_pin.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/udmabuf.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/file.h"
#include "config.h"

const struct pin_method *const pin_methods[] = {
	&pin_vmsplice,
#if HAVE_LIBURING
	&pin_uring,
#endif
	&pin_udmabuf,
	NULL,
};

/*
 * vmsplice(2): a pipe holds a plain reference (FOLL_GET) on each page, one page a slot. What an
 * unprivileged process may make of a pipe is 1 MiB, so one descriptor pins 256 pages.
 */
#define PIPE_BYTES (1 << 20)

struct vmsplice_pin {
	size_t count;
	int read_ends[]; /* the write ends are closed: what is in a pipe stays until the read end
			    goes */
};

static void vmsplice_unpin(void *data)
{
	struct vmsplice_pin *pin = data;

	if (!pin)
		return;
	for (size_t i = 0; i < pin->count; i++)
		close(pin->read_ends[i]);
	free(pin);
}

/* The slots of a new pipe: as many as asked, or as few as the machine grants. */
static int vmsplice_pipe(uint64_t bytes_left, int ends[2], uint64_t *ret_bytes)
{
	uint64_t wanted = bytes_left < PIPE_BYTES ? bytes_left : PIPE_BYTES;
	uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
	int granted, error;

	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		return -errno;
	for (;;) {
		granted = fcntl(ends[1], F_SETPIPE_SZ, (int)wanted);
		if (granted >= (int)wanted)
			break;
		error = granted < 0 ? -errno : -EPERM;
		/* Above pipe-max-size or pipe-user-pages-soft: smaller pipes, but not one
		 * descriptor for every page or two. */
		if (error != -EPERM || wanted / 2 < 16 * page_bytes) {
			close(ends[0]);
			close(ends[1]);
			return error;
		}
		wanted = wanted / 2 / page_bytes * page_bytes;
	}
	*ret_bytes = wanted;
	return 0;
}

static int vmsplice_fill(int pipe, char *address, uint64_t bytes)
{
	while (bytes > 0) {
		struct iovec vector = {address, bytes};
		ssize_t done = vmsplice(pipe, &vector, 1, SPLICE_F_NONBLOCK);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return errno == EFAULT ? -ENOMEM
					       : -errno; /* the page could not be brought in */
		address += done;
		bytes -= (uint64_t)done;
	}
	return 0;
}

/* Pins the front of what is left with one pipe. */
static int vmsplice_pin_part(struct vmsplice_pin *pin, char *address, uint64_t bytes_left,
			     uint64_t *ret_bytes)
{
	int ends[2];
	int error = vmsplice_pipe(bytes_left, ends, ret_bytes);

	if (error < 0)
		return error;
	error = vmsplice_fill(ends[1], address, *ret_bytes);
	close(ends[1]);
	pin->read_ends[pin->count++] = ends[0];
	return error;
}

static int vmsplice_pin(void *address, uint64_t bytes, int memfd, void **ret_pin)
{
	uint64_t least_bytes = 16 * (uint64_t)sysconf(_SC_PAGESIZE) / 2 + 1;
	size_t most = (size_t)(bytes / least_bytes) + 1;
	struct vmsplice_pin *pin = malloc(sizeof(*pin) + most * sizeof(pin->read_ends[0]));
	uint64_t at = 0;

	if (!pin)
		return -ENOMEM;
	pin->count = 0;
	while (at < bytes) {
		uint64_t part = 0;
		int error = vmsplice_pin_part(pin, (char *)address + at, bytes - at, &part);

		if (error < 0) {
			vmsplice_unpin(pin);
			return error;
		}
		at += part;
	}
	*ret_pin = pin;
	return 0;
}

const struct pin_method pin_vmsplice = {
	.name = "vmsplice",
	.stands_for = "plain page reference (FOLL_GET), held by pipes",
	.pin = vmsplice_pin,
	.unpin = vmsplice_unpin,
};

/*
 * udmabuf: the driver's own call, shmem_read_mapping_page(), up to Linux 6.10; memfd_pin_folios()
 * after. Takes sealed memfds only.
 */
struct udmabuf_pin {
	int buffer;
};

static void udmabuf_unpin(void *data)
{
	struct udmabuf_pin *pin = data;

	if (!pin)
		return;
	close(pin->buffer);
	free(pin);
}

static int udmabuf_pin(void *address, uint64_t bytes, int memfd, void **ret_pin)
{
	struct udmabuf_create create = {
		.memfd = (uint32_t)memfd,
		.flags = UDMABUF_FLAGS_CLOEXEC,
		.size = bytes,
	};
	struct udmabuf_pin *pin;
	int device, error = 0;

	if (fcntl(memfd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return -errno;
	device = machine_open("/dev/udmabuf", O_RDWR);
	if (device < 0)
		return device;
	pin = malloc(sizeof(*pin));
	if (!pin) {
		error = -ENOMEM;
		goto out;
	}
	pin->buffer = ioctl(device, UDMABUF_CREATE, &create);
	if (pin->buffer < 0) {
		error = -errno;
		free(pin);
		goto out;
	}
	*ret_pin = pin;
out:
	close(device);
	return error;
}

const struct pin_method pin_udmabuf = {
	.name = "udmabuf",
	.stands_for = "shmem_read_mapping_page() up to 6.10, memfd_pin_folios() after",
	.needs_memfd = true,
	.pin = udmabuf_pin,
	.unpin = udmabuf_unpin,
};
