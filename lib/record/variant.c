/* SPDX-License-Identifier: MIT */
#include "record/variant.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

static const char *const names[VARIANT_COUNT] = {
	[VARIANT_BASELINE] = "baseline",
	[VARIANT_STOCK] = "stock",
	[VARIANT_MAPPING] = "mapping",
	[VARIANT_MLOCK] = "mlock",
};

const char *variant_name(enum variant variant)
{
	return (unsigned int)variant < VARIANT_COUNT ? names[variant] : "unknown";
}

int variant_parse(const char *name, enum variant *ret_variant)
{
	for (size_t i = 0; name && i < VARIANT_COUNT; i++) {
		if (strcmp(name, names[i]) == 0) {
			*ret_variant = (enum variant)i;
			return 0;
		}
	}
	return -EINVAL;
}
