/* SPDX-License-Identifier: MIT */
#ifndef BASE_EXIT_H
#define BASE_EXIT_H

/* Exit codes of every program. */
enum exit_code {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
	EXIT_REGRESSION = 3, /* or a breached threshold */
	EXIT_INVALID = 4,    /* measured, but the run does not prove what it claims */
	EXIT_SKIPPED = 77,   /* cannot be done on this machine */
};

/* -EINVAL: usage; -ENODEV, -ENOTSUP, -EPERM, -EACCES, -ENXIO: cannot run here; else failed. */
enum exit_code exit_code_of(int error);

#endif
