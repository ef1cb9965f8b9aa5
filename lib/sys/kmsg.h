/* SPDX-License-Identifier: MIT */
#ifndef SYS_KMSG_H
#define SYS_KMSG_H

#include <jansson.h>

/* The kernel log from now on: hung task, soft lockup, OOM, RCU stall, allocation failure, RT
 * throttling. */
struct kmsg;

int kmsg_open(struct kmsg **ret_kmsg); /* -EPERM (dmesg_restrict): the record says so */
/* [{"kind": "hung-task", "when_us": ..., "text": "..."}]; never NULL but without memory. */
json_t *kmsg_collect(struct kmsg *kmsg);
void kmsg_close(struct kmsg *kmsg);

#endif
