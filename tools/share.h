/* SPDX-License-Identifier: MIT */
#ifndef SHARE_H
#define SHARE_H

#include "base/message.h"

/*
 * "5%" and "0.05" are the same share; it lies in (0, @most). -EINVAL with @option in the message.
 */
int parse_share(const char *argument, const char *option, double most, double *ret_share,
		struct message *message);

/* The same in [0, @most). */
int parse_share_or_zero(const char *argument, const char *option, double most, double *ret_share,
			struct message *message);

#endif
