/* SPDX-License-Identifier: MIT */
#include "sys/kernel_config.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "config.h"

#if HAVE_ZLIB
#include <zlib.h>

#define CONFIG_BYTES_MAX (16 << 20) /* a text of 16 MB is no kernel configuration */

static int read_compressed(const char *path, char **ret_text)
{
	char full[PATH_MAX], *text = NULL, *grown;
	size_t size = 0, capacity = 0;
	int got, error = machine_path(path, full, sizeof(full));
	gzFile stream;

	if (error)
		return error;
	stream = gzopen(full, "rb");
	if (!stream)
		return -ENOENT;
	do {
		if (capacity - size < 65536) {
			capacity = capacity ? capacity * 2 : 262144;
			grown = capacity > CONFIG_BYTES_MAX ? NULL : realloc(text, capacity);
			if (!grown) {
				error = -ENOMEM;
				goto out;
			}
			text = grown;
		}
		got = gzread(stream, text + size, 65535);
		if (got < 0) {
			error = -EIO;
			goto out;
		}
		size += (size_t)got;
	} while (got > 0);
	text[size] = '\0';
	*ret_text = text;
	text = NULL;
out:
	gzclose(stream);
	free(text);
	return error;
}
#else
static int read_compressed(const char *path, char **ret_text)
{
	return -ENOTSUP;
}
#endif

int kernel_config_read(const char *release, char **ret_text, const char **ret_source)
{
	static const char *const plain[] = {"/boot/config-%s", "/lib/modules/%s/config",
					    "/lib/modules/%s/build/.config"};
	static const char *const sources[] = {"/boot", "/lib/modules", "/lib/modules build"};
	char path[PATH_MAX];

	if (read_compressed("/proc/config.gz", ret_text) == 0) {
		*ret_source = "/proc/config.gz";
		return 0;
	}
	for (size_t i = 0; i < ARRAY_SIZE(plain); i++) {
		const char *hole = strstr(plain[i], "%s");

		if (snprintf(path, sizeof(path), "%.*s%s%s", (int)(hole - plain[i]), plain[i],
			     release, hole + 2) >= (int)sizeof(path))
			continue;
		if (machine_read(path, ret_text, NULL) == 0) {
			*ret_source = sources[i];
			return 0;
		}
	}
	return -ENOENT;
}

int kernel_config_get(const char *text, const char *name, char *buffer, size_t size)
{
	char key[96];
	size_t length = (size_t)snprintf(key, sizeof(key), "CONFIG_%s=", name);

	for (const char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, length) != 0)
			continue;
		line += length;
		if (strcspn(line, "\n") >= size)
			return -EOVERFLOW;
		snprintf(buffer, size, "%.*s", (int)strcspn(line, "\n"), line);
		return 0;
	}
	return -ENOENT;
}
