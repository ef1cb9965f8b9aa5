/* SPDX-License-Identifier: MIT */
#include "share.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/parse.h"

int parse_share(const char *argument, const char *option, double most, double *ret_share,
		struct message *message)
{
	size_t length = strlen(argument);
	bool percent = length > 1 && argument[length - 1] == '%';
	char text[64];
	double value;

	snprintf(text, sizeof(text), "%.*s", (int)(percent ? length - 1 : length), argument);
	if (length >= sizeof(text) || parse_double(text, &value) < 0)
		return message_set(message, -EINVAL,
				   "%s: '%.60s' is not a share: write it like 5%% or 0.05", option,
				   argument);
	value /= percent ? 100 : 1;
	if (!(value > 0 && value < most))
		return message_set(message, -EINVAL, "%s: %.60s is not between 0 and %g%%", option,
				   argument, 100 * most);
	*ret_share = value;
	return 0;
}

int parse_share_or_zero(const char *argument, const char *option, double most, double *ret_share,
			struct message *message)
{
	if (strcmp(argument, "0") != 0 && strcmp(argument, "0%") != 0)
		return parse_share(argument, option, most, ret_share, message);
	*ret_share = 0;
	return 0;
}
