/* SPDX-License-Identifier: MIT */
#ifndef SYS_KERNEL_CONFIG_H
#define SYS_KERNEL_CONFIG_H

#include <stddef.h>

/*
 * Text of the running kernel's configuration, from the first of /proc/config.gz (with zlib),
 * /boot/config-<release>, /lib/modules/<release>/config, /lib/modules/<release>/build/.config.
 * *ret_text is the caller's to free; *ret_source is static text that names the kind of file.
 * -ENOENT: none of them can be read.
 */
int kernel_config_read(const char *release, char **ret_text, const char **ret_source);

/* Value of CONFIG_<name> ("y", "m", "250") into @buffer; -ENOENT when it is not set. */
int kernel_config_get(const char *text, const char *name, char *buffer, size_t size);

#endif
