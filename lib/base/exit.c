/* SPDX-License-Identifier: MIT */
#include "base/exit.h"

#include <errno.h>

enum exit_code exit_code_of(int error)
{
	switch (error) {
	case 0:
		return EXIT_DONE;
	case -EINVAL:
		return EXIT_USAGE;
	case -ENODEV:
	case -ENXIO:
	case -ENOTSUP:
	case -EPERM:
	case -EACCES:
	case -ENOSYS:
		return EXIT_SKIPPED;
	default:
		return EXIT_FAILED;
	}
}
