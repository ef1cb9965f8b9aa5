/* SPDX-License-Identifier: MIT */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Files of the machine (/proc, /sys, /dev, /run...): every machine_* function puts the root prefix
 * before the path, so that tests can lay out a machine of their own in a folder.
 * The prefix comes from machine_set_root(); programs set it from SYSLATENCY_ROOT.
 */
void machine_set_root(const char *prefix); /* NULL or "": the real machine; copied */
const char *machine_root(void);		   /* "" when none */

/* prefix + @path into @buffer; -ENAMETOOLONG. */
int machine_path(const char *path, char *buffer, size_t size);

int machine_open(const char *path, int flags); /* a descriptor (O_CLOEXEC) or -errno */
bool machine_exists(const char *path);
bool machine_writable(const char *path);

/* The whole file, NUL-terminated, to be freed by the caller; @ret_size (may be NULL) without the
 * NUL. */
int machine_read(const char *path, char **ret_text, size_t *ret_size);

/* First line without its newline; -EOVERFLOW when it does not fit. */
int machine_read_line(const char *path, char *buffer, size_t size);
int machine_read_int64(const char *path, int64_t *ret_value);

/* One write(2) into an existing file, as kernel attribute files want it. */
int machine_write(const char *path, const char *text);

/*
 * The selected word of an attribute that lists its choices ("always [madvise] never");
 * a file without brackets gives its first line.
 */
int machine_read_choice(const char *path, char *buffer, size_t size);

/* Value of "KEY: value" or "KEY value" lines (meminfo, vmstat, status...) in @text; -ENOENT. */
int text_find_int64(const char *text, const char *key, int64_t *ret_value);

/* --- files of the user (results): never prefixed --- */

int file_read(const char *path, char **ret_text, size_t *ret_size);

/*
 * Writes a new file beside, syncs it, renames it over @path: readers see old or new, never half. A
 * symbolic link stays, what it leads to is replaced; a device or FIFO is written to (-EPIPE: nobody
 * reads the FIFO).
 */
int file_replace(const char *path, const void *data, size_t size);

/* mkdir -p; 0 when it is there already. */
int file_make_directories(const char *path);

/* The whole of @size or -errno. */
int write_all(int fd, const void *data, size_t size);

#endif
