/* SPDX-License-Identifier: MIT */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/parse.h"

/* The one piece of process-wide state: set once at start, before any thread or child exists. */
static char root_prefix[PATH_MAX];

void machine_set_root(const char *prefix)
{
	size_t length;

	snprintf(root_prefix, sizeof(root_prefix), "%s", prefix ? prefix : "");
	length = strlen(root_prefix);
	while (length > 0 && root_prefix[length - 1] == '/')
		root_prefix[--length] = '\0';
}

const char *machine_root(void)
{
	return root_prefix;
}

int machine_path(const char *path, char *buffer, size_t size)
{
	int length = snprintf(buffer, size, "%s%s", root_prefix, path);

	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

int machine_open(const char *path, int flags)
{
	char full[PATH_MAX];
	int error = machine_path(path, full, sizeof(full));
	int fd;

	if (error)
		return error;
	fd = open(full, flags | O_CLOEXEC, 0644);
	return fd < 0 ? -errno : fd;
}

bool machine_exists(const char *path)
{
	char full[PATH_MAX];

	return machine_path(path, full, sizeof(full)) == 0 && access(full, F_OK) == 0;
}

bool machine_writable(const char *path)
{
	char full[PATH_MAX];

	return machine_path(path, full, sizeof(full)) == 0 && access(full, W_OK) == 0;
}

static int read_descriptor(int fd, char **ret_text, size_t *ret_size)
{
	size_t capacity = 4096, size = 0;
	char *text = malloc(capacity), *larger;
	int error;

	if (!text)
		return -ENOMEM;
	for (;;) {
		ssize_t got = read(fd, text + size, capacity - size - 1);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			error = -errno;
			free(text);
			return error;
		}
		if (got == 0)
			break;
		size += (size_t)got;
		if (capacity - size < 2) {
			larger = realloc(text, capacity * 2);
			if (!larger) {
				free(text);
				return -ENOMEM;
			}
			text = larger;
			capacity *= 2;
		}
	}
	text[size] = '\0';
	*ret_text = text;
	if (ret_size)
		*ret_size = size;
	return 0;
}

int machine_read(const char *path, char **ret_text, size_t *ret_size)
{
	int fd = machine_open(path, O_RDONLY);
	int error;

	if (fd < 0)
		return fd;
	error = read_descriptor(fd, ret_text, ret_size);
	close(fd);
	return error;
}

int machine_read_line(const char *path, char *buffer, size_t size)
{
	char *text;
	size_t length;
	int error = machine_read(path, &text, NULL);

	if (error)
		return error;
	length = strcspn(text, "\n");
	if (length >= size) {
		error = -EOVERFLOW;
	} else {
		memcpy(buffer, text, length);
		buffer[length] = '\0';
	}
	free(text);
	return error;
}

int machine_read_int64(const char *path, int64_t *ret_value)
{
	char line[64];
	size_t length;
	int error = machine_read_line(path, line, sizeof(line));

	if (error)
		return error;
	length = strlen(line);
	while (length > 0 && (line[length - 1] == ' ' || line[length - 1] == '\t'))
		line[--length] = '\0';
	return parse_int64(line, INT64_MIN, INT64_MAX, ret_value);
}

int machine_write(const char *path, const char *text)
{
	int fd = machine_open(path, O_WRONLY);
	size_t size = strlen(text);
	ssize_t written;
	int error = 0;

	if (fd < 0)
		return fd;
	do {
		written = write(fd, text, size);
	} while (written < 0 && errno == EINTR);
	if (written < 0)
		error = -errno;
	else if ((size_t)written != size)
		error = -EIO;
	if (close(fd) < 0 && !error)
		error = -errno;
	return error;
}

int machine_read_choice(const char *path, char *buffer, size_t size)
{
	char line[512];
	char *open_bracket, *close_bracket;
	int error = machine_read_line(path, line, sizeof(line));

	if (error)
		return error;
	open_bracket = strchr(line, '[');
	close_bracket = open_bracket ? strchr(open_bracket, ']') : NULL;
	if (close_bracket) {
		*close_bracket = '\0';
		memmove(line, open_bracket + 1, strlen(open_bracket + 1) + 1);
	}
	if (strlen(line) >= size)
		return -EOVERFLOW;
	strcpy(buffer, line);
	return 0;
}

int text_find_int64(const char *text, const char *key, int64_t *ret_value)
{
	size_t length = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		const char *at;
		char *end;
		long long value;

		while (*line == '\n')
			line++;
		if (strncmp(line, key, length) != 0)
			continue;
		at = line + length;
		if (*at == ':')
			at++;
		else if (*at != ' ' && *at != '\t')
			continue;
		at += strspn(at, " \t");
		errno = 0;
		value = strtoll(at, &end, 10);
		if (end == at)
			return -EINVAL;
		if (errno)
			return -ERANGE;
		*ret_value = value;
		return 0;
	}
	return -ENOENT;
}

int file_read(const char *path, char **ret_text, size_t *ret_size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int error;

	if (fd < 0)
		return -errno;
	error = read_descriptor(fd, ret_text, ret_size);
	close(fd);
	return error;
}

int write_all(int fd, const void *data, size_t size)
{
	const char *at = data;

	while (size > 0) {
		ssize_t written = write(fd, at, size);

		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return -errno;
		at += written;
		size -= (size_t)written;
	}
	return 0;
}

/*
 * A device, pipe or socket is written to, never replaced by a file of its name. A FIFO that nobody
 * reads is refused: waiting for its reader could last for ever.
 */
static int write_in_place(const char *path, const void *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	int error;

	if (fd < 0)
		return errno == ENXIO ? -EPIPE : -errno;
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	error = write_all(fd, data, size);
	if (close(fd) < 0 && !error)
		error = -errno;
	return error;
}

/* Where a symbolic link leads; a file is made where it leads to none. */
static int follow_link(const char *path, char target[PATH_MAX])
{
	int fd;

	if (realpath(path, target))
		return 0;
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0644);
	if (fd < 0)
		return -errno;
	close(fd);
	return realpath(path, target) ? 0 : -errno;
}

static int replace_regular(const char *path, const void *data, size_t size)
{
	char temporary[PATH_MAX];
	int fd, error;

	if (snprintf(temporary, sizeof(temporary), "%s.%d.new", path, (int)getpid()) >=
	    (int)sizeof(temporary))
		return -ENAMETOOLONG;
	fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	error = write_all(fd, data, size);
	if (!error && fsync(fd) < 0)
		error = -errno;
	if (close(fd) < 0 && !error)
		error = -errno;
	if (!error && rename(temporary, path) < 0)
		error = -errno;
	if (error)
		unlink(temporary);
	return error;
}

int file_replace(const char *path, const void *data, size_t size)
{
	char target[PATH_MAX];
	struct stat status;
	int error;

	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode))
		return S_ISDIR(status.st_mode) ? -EISDIR : write_in_place(path, data, size);
	if (lstat(path, &status) < 0 || !S_ISLNK(status.st_mode))
		return replace_regular(path, data, size);
	error = follow_link(path, target);
	return error ? error : replace_regular(target, data, size);
}

int file_make_directories(const char *path)
{
	char partial[PATH_MAX];
	struct stat status;

	if (snprintf(partial, sizeof(partial), "%s", path) >= (int)sizeof(partial))
		return -ENAMETOOLONG;
	for (char *slash = strchr(partial + 1, '/'); partial[0] && slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(partial, 0777) < 0 && errno != EEXIST)
			return -errno;
		*slash = '/';
	}
	if (mkdir(partial, 0777) < 0 && errno != EEXIST)
		return -errno;
	if (stat(partial, &status) < 0)
		return -errno;
	return S_ISDIR(status.st_mode) ? 0 : -ENOTDIR;
}
