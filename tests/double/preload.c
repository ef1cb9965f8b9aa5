/* SPDX-License-Identifier: MIT */
/* The interposed calls: paths of the device go to a faked tree, descriptors of it to the model. */
#undef _FILE_OFFSET_BITS
#undef _FORTIFY_SOURCE
#include "i915_double.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

int (*real_close)(int);
void *(*real_mmap)(void *, size_t, int, int, int, off_t);
int (*real_open)(const char *, int, ...);
static int (*real_ioctl)(int, unsigned long, ...);
static int (*real_openat)(int, const char *, int, ...);
static DIR *(*real_opendir)(const char *);
static int (*real_stat)(const char *, struct stat *);
static int (*real_access)(const char *, int);
static ssize_t (*real_readlink)(const char *, char *, size_t);
static char *(*real_realpath)(const char *, char *);
static FILE *(*real_fopen)(const char *, const char *);
static int (*real_scandir)(const char *, struct dirent ***, int (*)(const struct dirent *),
			   int (*)(const struct dirent **, const struct dirent **));

static void *next(const char *name)
{
	void *symbol = dlsym(RTLD_NEXT, name);

	if (!symbol)
		abort();
	return symbol;
}

__attribute__((constructor)) static void find_real(void)
{
	if (real_scandir)
		return;
	real_close = (int (*)(int))next("close");
	real_mmap = (void *(*)(void *, size_t, int, int, int, off_t))next("mmap");
	real_open = (int (*)(const char *, int, ...))next("open");
	real_ioctl = (int (*)(int, unsigned long, ...))next("ioctl");
	real_openat = (int (*)(int, const char *, int, ...))next("openat");
	real_opendir = (DIR * (*)(const char *)) next("opendir");
	real_stat = (int (*)(const char *, struct stat *))next("stat");
	real_access = (int (*)(const char *, int))next("access");
	real_readlink = (ssize_t(*)(const char *, char *, size_t))next("readlink");
	real_realpath = (char *(*)(const char *, char *))dlvsym(RTLD_NEXT, "realpath", "GLIBC_2.3");
	real_fopen = (FILE * (*)(const char *, const char *)) next("fopen");
	real_scandir =
		(int (*)(const char *, struct dirent ***, int (*)(const struct dirent *),
			 int (*)(const struct dirent **, const struct dirent **)))next("scandir");
}

static bool is_node(const char *path, unsigned int *ret_minor)
{
	if (strcmp(path, "/dev/dri/card0") == 0)
		*ret_minor = 0;
	else if (strcmp(path, "/dev/dri/renderD128") == 0)
		*ret_minor = 128;
	else
		return false;
	return true;
}

static int open_device(const char *path, int flags, unsigned int minor)
{
	char buffer[PATH_MAX];
	int descriptor = real_open(double_path(path, buffer, sizeof(buffer)), flags);
	int error;

	if (descriptor < 0)
		return -1;
	error = double_open(descriptor, minor >= 128);
	if (error) {
		real_close(descriptor);
		errno = -error;
		return -1;
	}
	return descriptor;
}

int open(const char *path, int flags, ...)
{
	char buffer[PATH_MAX];
	const char *faked;
	unsigned int minor;
	va_list list;
	mode_t mode;

	find_real();
	va_start(list, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
	va_end(list);
	faked = double_path(path, buffer, sizeof(buffer));
	if (faked && is_node(path, &minor))
		return open_device(path, flags, minor);
	return real_open(faked ? faked : path, flags, mode);
}

int open64(const char *path, int flags, ...) __attribute__((alias("open")));

int __open_2(const char *path, int flags);
int __open_2(const char *path, int flags)
{
	return open(path, flags);
}

int __open64_2(const char *path, int flags) __attribute__((alias("__open_2")));

int openat(int directory, const char *path, int flags, ...)
{
	va_list list;
	mode_t mode;

	find_real();
	va_start(list, flags);
	mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
	va_end(list);
	if (path[0] == '/')
		return open(path, flags, mode);
	return real_openat(directory, path, flags, mode);
}

int openat64(int directory, const char *path, int flags, ...) __attribute__((alias("openat")));

int close(int descriptor)
{
	find_real();
	double_close(descriptor);
	return real_close(descriptor);
}

int ioctl(int descriptor, unsigned long request, ...)
{
	va_list list;
	void *argument;
	int error;

	find_real();
	va_start(list, request);
	argument = va_arg(list, void *);
	va_end(list);
	if (!double_owns(descriptor))
		return real_ioctl(descriptor, request, argument);
	error = double_ioctl(descriptor, request, argument);
	if (error) {
		errno = -error;
		return -1;
	}
	return 0;
}

void *mmap(void *address, size_t length, int protection, int flags, int descriptor, off_t offset)
{
	int memory, error;
	off_t memory_offset;

	/* A sanitizer that is still setting itself up maps memory, and cannot look up a symbol. */
	if (descriptor < 0 || !double_owns(descriptor))
		return (void *)syscall(SYS_mmap, address, length, protection, flags, descriptor,
				       offset);
	find_real();
	error = double_mmap(descriptor, length, flags, offset, &memory, &memory_offset);
	if (error) {
		errno = -error;
		return MAP_FAILED;
	}
	return real_mmap(address, length, protection, flags, memory, memory_offset);
}

void *mmap64(void *address, size_t length, int protection, int flags, int descriptor, off_t offset)
	__attribute__((alias("mmap")));

DIR *opendir(const char *path)
{
	char buffer[PATH_MAX];
	const char *faked;

	find_real();
	faked = double_path(path, buffer, sizeof(buffer));
	return real_opendir(faked ? faked : path);
}

int scandir(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
	    int (*compare)(const struct dirent **, const struct dirent **))
{
	char buffer[PATH_MAX];
	const char *faked;

	find_real();
	faked = double_path(path, buffer, sizeof(buffer));
	return real_scandir(faked ? faked : path, entries, filter, compare);
}

/* The same structures on 64-bit machines; by another name here, since the header's types differ. */
int scandir_64(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
	       int (*compare)(const struct dirent **, const struct dirent **)) __asm__("scandir64");
int scandir_64(const char *path, struct dirent ***entries, int (*filter)(const struct dirent *),
	       int (*compare)(const struct dirent **, const struct dirent **))
{
	return scandir(path, entries, filter, compare);
}

int stat(const char *path, struct stat *result)
{
	char buffer[PATH_MAX];
	const char *faked;
	unsigned int minor;
	int status;

	find_real();
	faked = double_path(path, buffer, sizeof(buffer));
	status = real_stat(faked ? faked : path, result);
	if (faked && status == 0 && is_node(path, &minor)) {
		result->st_mode = S_IFCHR | 0660;
		result->st_rdev = makedev(226, minor);
	}
	return status;
}

int stat64(const char *path, struct stat64 *result)
{
	return stat(path, (struct stat *)result);
}

int access(const char *path, int mode)
{
	char buffer[PATH_MAX];
	const char *faked;

	find_real();
	faked = double_path(path, buffer, sizeof(buffer));
	return real_access(faked ? faked : path, mode);
}

ssize_t readlink(const char *path, char *target, size_t size)
{
	char buffer[PATH_MAX];
	const char *faked;

	find_real();
	faked = double_path(path, buffer, sizeof(buffer));
	return real_readlink(faked ? faked : path, target, size);
}

char *realpath(const char *path, char *resolved)
{
	char buffer[PATH_MAX];
	const char *faked;

	find_real();
	faked = double_path(path, buffer, sizeof(buffer));
	return real_realpath(faked ? faked : path, resolved);
}

char *__realpath_chk(const char *path, char *resolved, size_t size);
char *__realpath_chk(const char *path, char *resolved, size_t size)
{
	return realpath(path, resolved);
}

FILE *fopen(const char *path, const char *mode)
{
	char buffer[PATH_MAX];
	const char *faked;

	find_real();
	faked = double_path(path, buffer, sizeof(buffer));
	return real_fopen(faked ? faked : path, mode);
}

FILE *fopen64(const char *path, const char *mode) __attribute__((alias("fopen")));
