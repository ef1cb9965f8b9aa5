/* SPDX-License-Identifier: MIT */
#include "undo/verbs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEEPEST 16 /* our own trees are shallow */

static int remove_at(int parent, const char *name, dev_t device, int depth);

/* Empties an open directory; takes @fd over. */
static int empty_directory(int fd, dev_t device, int depth)
{
	DIR *directory = fdopendir(fd);
	struct dirent *entry;
	int result, first = 0;

	if (!directory) {
		result = -errno;
		close(fd);
		return result;
	}
	while ((entry = readdir(directory))) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		result = remove_at(dirfd(directory), entry->d_name, device, depth + 1);
		if (result < 0 && first == 0)
			first = result;
	}
	closedir(directory);
	return first;
}

/* Refuses another device (a mount inside) and what another user owns. */
static int remove_at(int parent, const char *name, dev_t device, int depth)
{
	struct stat status;
	int fd, result;

	if (fstatat(parent, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : -errno;
	if (device && status.st_dev != device)
		return -EXDEV;
	if (status.st_uid != geteuid())
		return -EPERM;
	if (!S_ISDIR(status.st_mode))
		return unlinkat(parent, name, 0) < 0 && errno != ENOENT ? -errno : 0;
	if (depth > DEEPEST)
		return -ELOOP;
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return errno == ENOENT ? 0 : -errno;
	result = empty_directory(fd, status.st_dev, depth);
	if (unlinkat(parent, name, AT_REMOVEDIR) < 0 && errno != ENOENT)
		return result < 0 ? result : -errno;
	return 0;
}

int undo_remove_tree(const char *path)
{
	const char *slash = strrchr(path, '/');
	char *parent;
	int fd, result;

	if (!slash || !slash[1])
		return -EINVAL;
	parent = strndup(path, slash == path ? 1 : (size_t)(slash - path));
	if (!parent)
		return -ENOMEM;
	fd = open(parent, O_PATH | O_DIRECTORY | O_CLOEXEC);
	result = fd < 0 ? -errno : 0;
	free(parent);
	if (result < 0)
		return result == -ENOENT ? 0 : result;
	result = remove_at(fd, slash + 1, 0, 0);
	close(fd);
	return result;
}
