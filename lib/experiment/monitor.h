/* SPDX-License-Identifier: MIT */
#ifndef EXPERIMENT_MONITOR_H
#define EXPERIMENT_MONITOR_H

#include <stdint.h>
#include <sys/types.h>

/*
 * The monitor of one command: its parent in our place, so that somebody is left to end it when we
 * are killed. What it is told by the control pipe:
 *   'i'   SIGINT to the command's process group, as a terminal would send it
 *   't'   SIGTERM to it, then SIGKILL to the whole session after MONITOR_GRACE_NS
 *   'k'   SIGKILL to the whole session
 *   end   (we are dead) as 't'
 */
#define MONITOR_GRACE_NS (15 * INT64_C(1000000000))

struct monitor_orders {
	char *const *argv;
	const char *working_directory, *record_path;
	int64_t block;					      /* 0: none is said */
	int control, report, standard_output, standard_error; /* the monitor's ends */
	int ours[4]; /* our ends of those pipes, to be closed in the monitor */
};

struct monitor_report {
	int32_t wait_status;
	int32_t exec_error;
	int32_t left_behind;
	int32_t stuck; /* processes that did not even end by SIGKILL (D state) */
	int64_t elapsed_ns;
};

/* The body of the monitor's process; never returns. */
__attribute__((noreturn)) void monitor_main(const struct monitor_orders *orders);

#endif
