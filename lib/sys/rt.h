/* SPDX-License-Identifier: MIT */
#ifndef SYS_RT_H
#define SYS_RT_H

#include <stdbool.h>

#include "base/message.h"

/* Real-time scheduling, memory locking and idle-state latency of the calling thread or process. */

struct rt_status {
	int policy;   /* SCHED_FIFO, SCHED_OTHER: read back from the kernel */
	int priority; /* read back */
};

/*
 * FIFO at @priority for the calling thread. -EPERM with the reason that applies: RLIMIT_RTPRIO and
 * no CAP_SYS_NICE; or RT_GROUP_SCHED with a group whose cpu.rt_runtime_us is 0.
 * *ret_status is read back in every case.
 */
int rt_set_fifo(int priority, struct rt_status *ret_status, struct message *message);

/* Why the kernel refused FIFO to the caller, with what to do; reads the machine's files. Returns
 * -EPERM. */
int rt_explain_denied(int priority, struct message *message);

/* Timer slack of 1 ns for the calling thread. */
int rt_set_timer_slack(void);

/* Locks what is mapped now (MCL_CURRENT), not what comes. -ENOMEM/-EPERM with limit and size. */
int rt_lock_memory(struct message *message);

/* Holds /dev/cpu_dma_latency at 0 us until the descriptor is closed; descriptor or -errno. */
int rt_hold_dma_latency(void);

#endif
