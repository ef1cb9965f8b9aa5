/* SPDX-License-Identifier: MIT */
#ifndef RECORD_VARIANT_H
#define RECORD_VARIANT_H

/* How the pages of gem buffers are held. */
enum variant { VARIANT_BASELINE, VARIANT_STOCK, VARIANT_MAPPING, VARIANT_MLOCK };
#define VARIANT_COUNT 4

const char *variant_name(enum variant variant);
int variant_parse(const char *name, enum variant *ret_variant); /* -EINVAL */

#endif
