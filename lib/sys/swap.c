/* SPDX-License-Identifier: MIT */
#include "sys/swap.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file.h"
#include "base/random.h"
#include "undo/transaction.h"

#define HOT_ADD "/sys/class/zram-control/hot_add"
#define HOT_REMOVE "/sys/class/zram-control/hot_remove"
#define DEVICES_MAX 256
#define ADD_ATTEMPTS 4

/* swapon(2); by number, because <sys/swap.h> would find this room's own header. */
#define SWAP_FLAG_PREFER 0x8000
#define HIGHEST_PRIORITY 0x7fff

/* First page of a swap area, include/linux/swap.h union swap_header; the magic ends the page. */
struct swap_header {
	char boot_bits[1024];
	uint32_t version;
	uint32_t last_page;
	uint32_t bad_pages;
	unsigned char uuid[16];
	char volume[16];
};

#define SWAP_MAGIC "SWAPSPACE2"

int swap_total(uint64_t *ret_total_bytes, uint64_t *ret_free_bytes)
{
	uint64_t total = 0, used = 0, kib, used_kib;
	char *text, *at, *line;
	int result = machine_read("/proc/swaps", &text, NULL);

	if (result == -ENOENT) { /* a kernel without swap */
		*ret_total_bytes = *ret_free_bytes = 0;
		return 0;
	}
	if (result < 0)
		return result;
	at = text;
	strsep(&at, "\n"); /* the heading */
	while ((line = strsep(&at, "\n"))) {
		if (sscanf(line, "%*s %*s %" SCNu64 " %" SCNu64, &kib, &used_kib) != 2)
			continue;
		total += kib;
		used += used_kib;
	}
	free(text);
	*ret_total_bytes = total * 1024;
	*ret_free_bytes = (total - used) * 1024;
	return 0;
}

static bool may_administer(void)
{
	struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3];

	return syscall(SYS_capget, &header, data) == 0 &&
	       (data[0].effective & (1u << CAP_SYS_ADMIN));
}

static int device_write(const char *device, const char *attribute, const char *text)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "/sys/block/%s/%s", device, attribute);
	return machine_write(path, text);
}

static bool device_exists(int number)
{
	char path[64];

	snprintf(path, sizeof(path), "/sys/block/zram%d", number);
	return machine_exists(path);
}

/* An existing device without data; the number, or -1. */
static int find_unused(void)
{
	int64_t initialised;
	char path[64];
	int number;

	for (number = 0; number < DEVICES_MAX; number++) {
		snprintf(path, sizeof(path), "/sys/block/zram%d/initstate", number);
		if (machine_read_int64(path, &initialised) == 0 && !initialised)
			return number;
	}
	return -1;
}

/*
 * A new device. It must be registered before it exists, so the number that the kernel will give
 * (the lowest free one) is foreseen; when it gives another, that one is taken away and it goes on.
 */
static int add_device(struct transaction *transaction, char *device, size_t size,
		      struct message *message)
{
	int attempt, number, result;
	char text[16];
	int64_t given;

	for (attempt = 0; attempt < ADD_ATTEMPTS; attempt++) {
		for (number = 0; device_exists(number);)
			number++;
		snprintf(device, size, "zram%d", number);
		result = transaction_own_swap(transaction, device, true, message);
		if (result < 0)
			return result;
		result = machine_read_int64(HOT_ADD, &given);
		if (result == 0 && given == number)
			return 0;
		transaction_disown_swap(transaction, device);
		if (result < 0)
			return message_set_errno(message, result, "cannot add a zram device");
		snprintf(text, sizeof(text), "%" PRId64, given);
		machine_write(HOT_REMOVE, text);
	}
	return message_set(message, -EBUSY, "zram devices come and go; cannot add one");
}

static int claim_device(struct transaction *transaction, char *device, size_t size,
			struct message *message)
{
	int number, result;

	/* Whoever else looks for an unused device waits until this one is in use. */
	result = transaction_lock(transaction, message);
	if (result < 0)
		return result;
	number = find_unused();
	if (number >= 0) {
		snprintf(device, size, "zram%d", number);
		return transaction_own_swap(transaction, device, false, message);
	}
	if (machine_exists(HOT_ADD))
		return add_device(transaction, device, size, message);
	return message_set(message, -ENODEV,
			   "no zram device: load the module (modprobe zram), or use --swap none");
}

/* lz4 costs least; what is preset stays where it is not offered. */
static void choose_algorithm(const char *device)
{
	char path[64], *text, *at, *word;

	snprintf(path, sizeof(path), "/sys/block/%s/comp_algorithm", device);
	if (machine_read(path, &text, NULL) < 0)
		return;
	at = text;
	while ((word = strsep(&at, " \n")))
		if (strcmp(word, "lz4") == 0)
			machine_write(path, "lz4");
	free(text);
}

static int write_header(const char *path, uint64_t bytes, size_t page_bytes)
{
	struct swap_header *header = aligned_alloc(page_bytes, page_bytes);
	struct random random;
	int fd = -1, result = -ENOMEM;
	size_t i;

	if (!header)
		return result;
	memset(header, 0, page_bytes);
	header->version = 1;
	header->last_page = (uint32_t)(bytes / page_bytes - 1);
	random_seed(&random, random_fresh_seed());
	for (i = 0; i < sizeof(header->uuid); i++)
		header->uuid[i] = (unsigned char)random_next(&random);
	memcpy(header->volume, "syslatency", sizeof("syslatency"));
	memcpy((char *)header + page_bytes - strlen(SWAP_MAGIC), SWAP_MAGIC, strlen(SWAP_MAGIC));
	fd = open(path, O_WRONLY | O_CLOEXEC);
	result = fd < 0 ? -errno : write_all(fd, header, page_bytes);
	if (result == 0 && fsync(fd) < 0)
		result = -errno;
	if (fd >= 0)
		close(fd);
	free(header);
	return result;
}

static int activate(const char *device, uint64_t bytes, size_t page_bytes, struct message *message)
{
	char name[80], path[PATH_MAX], size[32];
	int result;

	snprintf(name, sizeof(name), "/dev/%s", device);
	snprintf(size, sizeof(size), "%" PRIu64, bytes);
	choose_algorithm(device);
	result = device_write(device, "disksize", size);
	if (result < 0)
		return message_set_errno(message, result, "cannot give %s a size of %s bytes",
					 device, size);
	result = machine_path(name, path, sizeof(path));
	if (result == 0)
		result = write_header(path, bytes, page_bytes);
	if (result < 0)
		return message_set_errno(message, result, "cannot write a swap header to %s", name);
	if (syscall(SYS_swapon, path, SWAP_FLAG_PREFER | HIGHEST_PRIORITY) < 0)
		return message_set_errno(message, -errno, "cannot swapon %s", name);
	return 0;
}

int swap_make_zram(struct transaction *transaction, uint64_t bytes, struct swap_area *ret_area,
		   struct message *message)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	struct swap_area area = {.bytes = bytes / page_bytes * page_bytes};
	size_t mark;
	int result;

	if (area.bytes < 10 * page_bytes || area.bytes / page_bytes > UINT32_MAX)
		return message_set(message, -EINVAL, "a swap area cannot have %" PRIu64 " bytes",
				   bytes);
	if (!may_administer())
		return message_set(
			message, -EPERM,
			"making swap needs CAP_SYS_ADMIN: run as root, or use --swap none");
	mark = transaction_mark(transaction);
	result = claim_device(transaction, area.device, sizeof(area.device), message);
	if (result < 0)
		return result;
	result = activate(area.device, area.bytes, page_bytes, message);
	if (result < 0) {
		transaction_undo_to(transaction, mark, NULL);
		return result;
	}
	*ret_area = area;
	return 0;
}
