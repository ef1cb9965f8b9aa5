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

#include "base/clock.h"
#include "base/file.h"
#include "undo/lock.h"
#include "undo/process.h"

#define MAGIC "syslatency-journal"
#define VERSION 1
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

int journal_append(const struct journal *journal, const char *line)
{
	char buffer[UNDO_LINE_BYTES + 32];
	size_t length = strlen(line);
	off_t before = lseek(journal->fd, 0, SEEK_END);
	char last = '\n';
	int result;

	if (before < 0)
		return -errno;
	if (length + 3 > sizeof(buffer))
		return -EMSGSIZE;
	/* A torn line (of a disk that was full) must not swallow this one. */
	if (before > 0 && pread(journal->fd, &last, 1, before - 1) != 1)
		return -EIO;
	length = (size_t)snprintf(buffer, sizeof(buffer), "%s%s\n", last == '\n' ? "" : "\n", line);
	result = write_all(journal->fd, buffer, length);
	if (result < 0 && ftruncate(journal->fd, before) < 0)
		return -errno;
	return result;
}

int journal_mark_done(const struct journal *journal, uint64_t sequence)
{
	char line[32];

	snprintf(line, sizeof(line), "done %" PRIu64, sequence);
	return journal_append(journal, line);
}

void journal_remove(const struct journal *journal)
{
	if (journal->published)
		unlinkat(journal->directory_fd, journal->name, 0);
	else if (*journal->unfinished)
		unlinkat(journal->directory_fd, journal->unfinished, 0);
}

void journal_close(struct journal *journal)
{
	if (journal->fd >= 0)
		close(journal->fd);
	if (journal->directory_fd >= 0)
		close(journal->directory_fd);
	journal->fd = journal->directory_fd = -1;
}

static int write_header(const struct journal *journal, const char *program)
{
	char header[512], boot[128], name[64];
	uint64_t start_ticks;
	size_t i;
	int result;

	result = process_start_ticks(getpid(), &start_ticks);
	if (result < 0)
		return result;
	boot_identity(boot, sizeof(boot));
	snprintf(name, sizeof(name), "%s", program);
	for (i = 0; name[i]; i++)
		if ((unsigned char)name[i] <= ' ' || (unsigned char)name[i] >= 0x7f)
			name[i] = '_';
	snprintf(header, sizeof(header), MAGIC " %d\nboot %s\nprogram %d %" PRIu64 " %s", VERSION,
		 boot, (int)getpid(), start_ticks, name);
	return journal_append(journal, header);
}

/* A name that is free: an older journal of the same pid may still wait for a restore. */
static int choose_name(struct journal *journal)
{
	int number;

	for (number = 0; number < SAME_PID_JOURNALS; number++) {
		if (number == 0)
			snprintf(journal->name, sizeof(journal->name), "%d.journal", (int)getpid());
		else
			snprintf(journal->name, sizeof(journal->name), "%d.%d.journal",
				 (int)getpid(), number);
		if (faccessat(journal->directory_fd, journal->name, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? 0 : -errno;
	}
	return -EEXIST;
}

int journal_publish(struct journal *journal)
{
	char unnamed[64];
	int result;

	snprintf(unnamed, sizeof(unnamed), "/proc/self/fd/%d", journal->fd);
	if (*journal->unfinished)
		result = linkat(journal->directory_fd, journal->unfinished, journal->directory_fd,
				journal->name, 0);
	else
		result = linkat(AT_FDCWD, unnamed, journal->directory_fd, journal->name,
				AT_SYMLINK_FOLLOW);
	if (result < 0)
		return -errno;
	if (*journal->unfinished)
		unlinkat(journal->directory_fd, journal->unfinished, 0);
	journal->published = true;
	return 0;
}

/* Without a name, so that nothing is left of it, where the file system can do that. */
static int open_unfinished(struct journal *journal)
{
	journal->fd =
		openat(journal->directory_fd, ".", O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	if (journal->fd >= 0)
		return 0;
	snprintf(journal->unfinished, sizeof(journal->unfinished), "%d.new", (int)getpid());
	unlinkat(journal->directory_fd, journal->unfinished, 0); /* a dead one's: the pid is ours */
	journal->fd = openat(journal->directory_fd, journal->unfinished,
			     O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	return journal->fd < 0 ? -errno : 0;
}

int journal_create(const char *program, struct journal *ret_journal, struct message *message)
{
	struct journal journal = {.fd = -1, .directory_fd = -1};
	int result;

	journal.directory_fd = journal_open_directory(true, message);
	if (journal.directory_fd < 0)
		return journal.directory_fd;
	result = open_unfinished(&journal);
	if (result < 0) {
		message_set_errno(message, result, "cannot make a journal");
		goto close_journal;
	}
	result = flock(journal.fd, LOCK_EX | LOCK_NB) < 0 ? -errno : 0;
	if (result == 0)
		result = write_header(&journal, program);
	if (result == 0)
		result = choose_name(&journal);
	if (result < 0) {
		message_set_errno(message, result,
				  "cannot write the journal that lets changes be put back");
		journal_remove(&journal);
		goto close_journal;
	}
	*ret_journal = journal;
	return 0;

close_journal:
	journal_close(&journal);
	return result;
}

static bool load_header(struct journal_content *content, char **at, struct message *message,
			int *ret_error)
{
	char boot[128], wanted[128], name[64];
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
	    sscanf(program, "program %d %" SCNu64 " %63s", &pid, &start_ticks, name) != 3) {
		*ret_error = message_set(message, -EBADMSG, "journal with a damaged header");
		return false;
	}
	boot_identity(wanted, sizeof(wanted));
	content->this_boot = strcmp(boot, wanted) == 0;
	content->pid = pid;
	content->start_ticks = start_ticks;
	snprintf(content->program, sizeof(content->program), "%s", name);
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

void journal_content_free(struct journal_content *content)
{
	undo_list_clear(&content->list);
}

static int check_file(int fd, const char *name, struct message *message)
{
	struct stat status;

	if (fstat(fd, &status) < 0)
		return message_set_errno(message, -errno, "%s", name);
	if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || (status.st_mode & 022) ||
	    status.st_nlink > 2) /* two for a moment while it is being published */
		return message_set(message, -EACCES,
				   "%s is not trusted: it must be a file of yours that nobody else "
				   "can write; remove it",
				   name);
	return 0;
}

static enum journal_state judge(const struct journal_content *content, pid_t self)
{
	if (content->pid == 0 || !content->this_boot)
		return JOURNAL_STALE;
	if (content->pid != self && process_alive(content->pid, content->start_ticks))
		return JOURNAL_ACTIVE;
	if (undo_list_left(&content->list) == 0 && !content->damaged)
		return JOURNAL_STALE;
	return JOURNAL_ABANDONED;
}

int journal_claim(int directory_fd, const char *name, pid_t self, struct journal *ret_journal,
		  struct journal_content *ret_content, enum journal_state *ret_state,
		  struct message *message)
{
	struct journal journal = {.directory_fd = -1, .published = true};
	int result;

	snprintf(journal.name, sizeof(journal.name), "%s", name);
	journal.fd =
		openat(directory_fd, name, O_RDWR | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (journal.fd < 0)
		return message_set_errno(message, -errno, "cannot open journal %s", name);
	*ret_content = (struct journal_content){0};
	*ret_state = JOURNAL_ACTIVE;
	result = check_file(journal.fd, name, message);
	if (result == 0 && flock(journal.fd, LOCK_EX | LOCK_NB) < 0) {
		result = errno == EWOULDBLOCK ? 0 : -errno;
		goto close_journal;
	}
	if (result == 0)
		result = journal_load(journal.fd, ret_content, message);
	if (result < 0)
		goto close_journal;
	*ret_state = judge(ret_content, self);
	journal.directory_fd = fcntl(directory_fd, F_DUPFD_CLOEXEC, 3);
	if (journal.directory_fd < 0) {
		result = message_set_errno(message, -errno, "journal %s", name);
		journal_content_free(ret_content);
		goto close_journal;
	}
	*ret_journal = journal;
	return 0;

close_journal:
	close(journal.fd);
	*ret_journal = (struct journal){.fd = -1, .directory_fd = -1};
	return result;
}

static void note_done(void *data, const struct undo_record *record)
{
	journal_mark_done(data, record->sequence);
}

static int64_t at_most(int64_t wanted_ns, int64_t limit_ns)
{
	return wanted_ns < limit_ns ? wanted_ns : limit_ns;
}

int journal_undo(const struct journal *journal, struct journal_content *content, pid_t spare,
		 int64_t limit_ns, struct message *message)
{
	struct journal writable = *journal;
	struct undo_context context = {
		.program = spare,
		.process_ns = at_most(10 * NS_PER_S, limit_ns),
		.busy_ns = at_most(5 * NS_PER_S, limit_ns),
		.swap_ns = at_most(30 * NS_PER_S, limit_ns),
		.done = note_done,
		.data = &writable,
	};
	int lock_fd = -1, result;

	if (undo_list_is_global(&content->list)) {
		lock_fd = lock_acquire(journal->directory_fd, "syslatency restore", getpid(),
				       at_most(lock_wait_ns(), limit_ns), message);
		if (lock_fd < 0)
			return lock_fd;
	}
	result = undo_list_run(&content->list, 0, &context, message);
	if (result == 0 && content->damaged)
		result = message_set(
			message, -EBADMSG,
			"journal %s has lines that cannot be read; the rest was put back",
			journal->name);
	if (result == 0)
		journal_remove(journal);
	lock_release(lock_fd);
	return result;
}
