/* SPDX-License-Identifier: MIT */
#ifndef SYS_SWAP_H
#define SYS_SWAP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/message.h"

struct transaction;

struct swap_area {
	char device[64]; /* "zram0"; "" when the machine's own swap is used */
	uint64_t bytes;
};

/* Total and free swap of the machine (/proc/swaps), bytes. */
int swap_total(uint64_t *ret_total_bytes, uint64_t *ret_free_bytes);

/*
 * A zram swap area of @bytes: a free device or a hot-added one, mkswap header written by ourselves,
 * lz4 when offered, swapon with a priority above the others. By transaction.
 * -ENODEV without zram, -EPERM without CAP_SYS_ADMIN.
 */
int swap_make_zram(struct transaction *transaction, uint64_t bytes, struct swap_area *ret_area,
		   struct message *message);

#endif
