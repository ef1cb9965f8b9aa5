/* SPDX-License-Identifier: MIT */
#ifndef TESTS_FAKE_ROOT_H
#define TESTS_FAKE_ROOT_H

/* A machine laid out in a temporary folder, for code that reads through base/file. */
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"

struct fake_root {
	char path[PATH_MAX / 2];
};

static inline void fake_root_open(struct fake_root *root)
{
	snprintf(root->path, sizeof(root->path), "%s/syslatency-root.XXXXXX",
		 getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	if (!mkdtemp(root->path))
		abort();
	machine_set_root(root->path);
}

/* Makes the folders too. */
static inline void fake_root_write(const struct fake_root *root, const char *path, const char *text)
{
	char full[PATH_MAX], *slash;
	FILE *stream;

	snprintf(full, sizeof(full), "%s%s", root->path, path);
	slash = strrchr(full, '/');
	*slash = '\0';
	if (file_make_directories(full))
		abort();
	*slash = '/';
	stream = fopen(full, "w");
	if (!stream || fputs(text, stream) < 0 || fclose(stream))
		abort();
}

static inline int fake_root_remove_one(const char *path, const struct stat *status, int kind,
				       struct FTW *walk)
{
	(void)status;
	(void)kind;
	(void)walk;
	return remove(path);
}

static inline void fake_root_close(struct fake_root *root)
{
	machine_set_root(NULL);
	nftw(root->path, fake_root_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

#endif
