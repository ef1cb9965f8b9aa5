/* SPDX-License-Identifier: MIT */
#include "undo/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

#define MAGIC "syslatency-journal"
#define VERSION 2
#define SAME_PID_JOURNALS 100

/* After su(1) the variable may still name another user's folder. */
static bool is_own_folder(const char *path)
{
	struct stat status;

	return path && *path == '/' && stat(path, &status) == 0 && S_ISDIR(status.st_mode) &&
	       status.st_uid == geteuid() && access(path, W_OK) == 0;
}

static int directory_path(char *buffer, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	int length;

	if (geteuid() == 0 || *machine_root())
		return machine_path("/run/syslatency", buffer, size);
	if (is_own_folder(runtime))
		length = snprintf(buffer, size, "%s/syslatency", runtime);
	else
		length = snprintf(buffer, size, "/tmp/syslatency-%u", (unsigned int)geteuid());
	return length < 0 || (size_t)length >= size ? -ENAMETOOLONG : 0;
}

int journal_open_directory(bool make, struct message *message)
{
	char path[PATH_MAX];
	struct stat status;
	int fd, result;

	result = directory_path(path, sizeof(path));
	if (result < 0)
		return message_set_errno(message, result, "folder of the journals");
	if (make && mkdir(path, 0700) < 0 && errno != EEXIST)
		return message_set_errno(message, -errno,
					 "cannot make %s, which notes how to put changes back",
					 path);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return message_set_errno(message, -errno, "cannot open %s", path);
	if (fstat(fd, &status) < 0)
		result = message_set_errno(message, -errno, "%s", path);
	else if (status.st_uid != geteuid() || (status.st_mode & 022))
		result = message_set(message, -EACCES,
				     "%s is not safe: it must belong to you and be writable by "
				     "nobody else; remove it",
				     path);
	if (result < 0) {
		close(fd);
		return result;
	}
	return fd;
}

/* Pids mean something only in one boot and one pid namespace. */
static void boot_identity(char *buffer, size_t size)
{
	char boot[64] = "unknown";
	struct stat status = {0};

	machine_read_line("/proc/sys/kernel/random/boot_id", boot, sizeof(boot));
	stat("/proc/self/ns/pid", &status);
	snprintf(buffer, size, "%s/%ju", boot, (uintmax_t)status.st_ino);
}

/* What was left half written was never acknowledged; a line after it must not complete it. */
static int drop_torn_line(int fd, off_t *end)
{
	off_t start = *end;
	char last;

	while (start > 0 && pread(fd, &last, 1, start - 1) == 1 && last != '\n')
		start--;
	if (start != *end && ftruncate(fd, start) < 0)
		return -errno;
	*end = start;
	return 0;
}

int journal_append(int fd, const char *line)
{
	off_t end = lseek(fd, 0, SEEK_END);
	char buffer[UNDO_LINE_BYTES + 32];
	int length, result;

	if (end < 0)
		return -errno;
	length = snprintf(buffer, sizeof(buffer), "%s\n", line);
	if (length >= (int)sizeof(buffer))
		return -EMSGSIZE;
	result = drop_torn_line(fd, &end);
	if (result < 0)
		return result;
	result = write_all(fd, buffer, (size_t)length);
	if (result < 0 && ftruncate(fd, end) < 0)
		return -errno;
	return result;
}

int journal_mark_done(int fd, uint64_t sequence)
{
	char line[32];

	snprintf(line, sizeof(line), "done %" PRIu64, sequence);
	return journal_append(fd, line);
}

static int write_header(int fd, pid_t pid, uint64_t start_ticks, const char *program)
{
	char header[512], boot[128], name[64];
	size_t i;

	boot_identity(boot, sizeof(boot));
	snprintf(name, sizeof(name), "%s", program);
	for (i = 0; name[i]; i++)
		if ((unsigned char)name[i] <= ' ' || (unsigned char)name[i] >= 0x7f)
			name[i] = '_';
	snprintf(header, sizeof(header), MAGIC " %d\nboot %s\nprogram %d %" PRIu64 " %s", VERSION,
		 boot, (int)pid, start_ticks, name);
	return journal_append(fd, header);
}

/* A restore may have found the file before its lock, and removed it: then it is none. */
static int lock_file(int fd)
{
	struct stat status;

	if (flock(fd, LOCK_EX) < 0 || fstat(fd, &status) < 0)
		return -errno;
	return status.st_nlink == 0 ? -ENOENT : 0;
}

int journal_create(int directory_fd, pid_t pid, uint64_t start_ticks, const char *program,
		   char *name, struct message *message)
{
	int fd = -1, number, result;

	/* An older journal of the same pid may still wait for a restore. */
	for (number = 0; fd < 0 && number < SAME_PID_JOURNALS; number++) {
		snprintf(name, JOURNAL_NAME_BYTES, number ? "%d.%d.journal" : "%d.journal",
			 (int)pid, number);
		fd = openat(directory_fd, name,
			    O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd < 0 && errno != EEXIST)
			break;
		result = fd < 0 ? 0 : lock_file(fd);
		if (result == -ENOENT) {
			close(fd);
			fd = -1;
		}
	}
	if (fd < 0)
		return message_set_errno(message, -errno, "cannot make a journal");
	if (result == 0)
		result = write_header(fd, pid, start_ticks, program);
	if (result == 0)
		return fd;
	unlinkat(directory_fd, name, 0);
	close(fd);
	return message_set_errno(message, result,
				 "cannot write the journal that lets changes be put back");
}

static bool load_header(struct journal_content *content, char **at, struct message *message,
			int *ret_error)
{
	char boot[128], wanted[128];
	char *magic = strsep(at, "\n"), *boot_line = strsep(at, "\n"), *program = strsep(at, "\n");
	uint64_t start_ticks;
	int version = 0, pid;

	*ret_error = 0;
	if (!*at) /* the third line has no newline: killed before it was acknowledged */
		return false;
	if (sscanf(magic, MAGIC " %d", &version) != 1 || version != VERSION) {
		*ret_error = message_set(message, -EPROTONOSUPPORT,
					 "journal of another version (\"%.40s\")", magic);
		return false;
	}
	if (sscanf(boot_line, "boot %127s", boot) != 1 ||
	    sscanf(program, "program %d %" SCNu64, &pid, &start_ticks) != 2) {
		*ret_error = message_set(message, -EBADMSG, "journal with a damaged header");
		return false;
	}
	boot_identity(wanted, sizeof(wanted));
	content->this_boot = strcmp(boot, wanted) == 0;
	content->pid = pid;
	content->start_ticks = start_ticks;
	return true;
}

static void load_line(struct journal_content *content, const char *line)
{
	struct undo_record *record;
	uint64_t sequence;
	char *end;

	if (strncmp(line, "done ", 5) == 0) {
		record = undo_list_find(&content->list, strtoull(line + 5, NULL, 10));
		if (record)
			record->done = true;
		return;
	}
	sequence = strtoull(line, &end, 10);
	if (end == line || *end != ' ' || sequence == 0 ||
	    undo_list_add(&content->list, sequence, end + 1, NULL) < 0)
		content->damaged = true;
}

int journal_load(int fd, struct journal_content *ret_content, struct message *message)
{
	struct journal_content content = {0};
	struct stat status;
	char *text, *at;
	int result = 0;
	ssize_t got;

	if (fstat(fd, &status) < 0)
		return message_set_errno(message, -errno, "journal");
	if (status.st_size > INT_MAX)
		return message_set_errno(message, -EFBIG, "journal");
	text = malloc((size_t)status.st_size + 1);
	if (!text)
		return message_set_errno(message, -ENOMEM, "journal");
	got = pread(fd, text, (size_t)status.st_size, 0);
	if (got < 0) {
		result = message_set_errno(message, -errno, "journal");
		goto free_text;
	}
	text[got] = '\0';
	content.damaged = strlen(text) != (size_t)got;
	at = text;
	if (load_header(&content, &at, message, &result))
		/* strsep leaves NULL after the last piece, which no newline ends. */
		for (char *line = strsep(&at, "\n"); at; line = strsep(&at, "\n"))
			load_line(&content, line);
	if (result == 0)
		*ret_content = content;
free_text:
	free(text);
	return result;
}
