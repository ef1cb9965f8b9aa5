/* SPDX-License-Identifier: MIT */
/*
 * Reads a file tree through the page cache, again and again. Each file is evicted first, or a
 * second pass would copy memory and allocate nothing; and a page that was cached outside the group
 * would never be charged to it. A tree too small to turn the cache over is helped by sparse files
 * without a name: reading a hole fills the page cache with pages like any other, and takes no disk
 * space.
 */
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/pace.h"
#include "ops.h"

#define READ_BYTES ((size_t)256 << 10)
/* Of one file, so that a sparse giant does not become the whole load. */
#define FILE_MOST_BYTES (UINT64_C(1) << 30)
#define OWN_FILES 8
/* Longest wait for a full cache, where only a slow disk can fill it: as long as IGT's head start.
 */
#define STEADY_MOST_NS (5 * NS_PER_S)

enum {
	EXTRA_FILES,
	EXTRA_PASSES,
	EXTRA_SKIPPED,
	EXTRA_CUT,
	EXTRA_STORAGE_BYTES,
	EXTRA_OWN_BYTES,
};

static const char *const file_cache_extras[] = {
	"files",	  "passes", "files_skipped", "files_cut", "storage_read_bytes",
	"own_file_bytes", NULL,
};

static const struct claim file_cache_claims[] = {
	{
		.name = "files were read",
		.witness = "load_stats.file-cache.bytes",
		.test = CLAIM_AT_LEAST,
		.bound = 1 << 20,
		.why = "less than 1 MiB went through the page cache",
		.advice = "name a tree with files: --file-cache-dir",
	},
	{
		.name = "the page cache is under pressure",
		.witness = "counters.vmstat.pgscan_file",
		.test = CLAIM_AT_LEAST,
		.bound = 1024,
		.why = "reclaim scanned nearly no file page: there was free memory for all that was read",
		.advice = "lower --limit, or measure longer so that the files fill the memory",
		.failure = CLAIM_CASTS_DOUBT,
		.own = "derived.group_reclaim",
		.own_least = 1,
	},
	{.name = NULL},
};

struct file_cache {
	struct load *load;
	const char *directory;
	char *block;
	uint64_t wanted_bytes; /* of a pass: what turns the group's cache over; 0: no matter */
	uint64_t pass_bytes;
	int own[OWN_FILES];
	uint64_t own_bytes; /* of each */
	struct pace pace;
};

static void count(struct file_cache *cache, unsigned int extra, uint64_t value)
{
	atomic_fetch_add_explicit(&cache->load->shared->extra[extra], value, memory_order_relaxed);
}

/* What really came from storage; 0 on kernels without task I/O accounting. */
static void publish_storage(struct file_cache *cache)
{
	struct rusage usage;

	if (getrusage(RUSAGE_SELF, &usage) == 0)
		atomic_store_explicit(&cache->load->shared->extra[EXTRA_STORAGE_BYTES],
				      (uint64_t)usage.ru_inblock * 512, memory_order_relaxed);
}

static void become_steady(struct file_cache *cache)
{
	int32_t starting = LOAD_STARTING;

	/* The rate is offered from here on; the working set is built as fast as it can be. */
	if (atomic_compare_exchange_strong(&cache->load->shared->state, &starting, LOAD_STEADY))
		pace_start(&cache->pace, cache->load->settings.rate_per_s);
}

static void count_bytes(struct file_cache *cache, uint64_t bytes)
{
	struct load_shared *shared = cache->load->shared;
	uint64_t total;

	total = atomic_fetch_add_explicit(&shared->bytes, bytes, memory_order_relaxed) + bytes;
	cache->pass_bytes += bytes;
	/* The working set is the group's cache filled; without a group, whatever there is. */
	if (total >= cache->load->settings.limit_bytes || !cache->load->settings.in_memcg ||
	    (cache->own_bytes == 0 && clock_now_ns() - cache->pace.start_ns > STEADY_MOST_NS))
		become_steady(cache);
}

/* Evicts and reads an open regular file, a block at a time so that a stop is seen. */
static void read_file(struct file_cache *cache, int fd, uint64_t most_bytes)
{
	uint64_t done = 0;

	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	while (!load_stopping(cache->load)) {
		ssize_t got = read(fd, cache->block, READ_BYTES);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			count(cache, EXTRA_SKIPPED, 1);
		if (got <= 0)
			break;
		done += (uint64_t)got;
		count_bytes(cache, (uint64_t)got);
		if (done >= most_bytes) {
			count(cache, EXTRA_CUT, 1);
			break;
		}
	}
	count(cache, EXTRA_FILES, 1);
	atomic_fetch_add_explicit(&cache->load->shared->ops, 1, memory_order_relaxed);
	publish_storage(cache);
}

/*
 * Regular files only: no symlink is followed, no FIFO waited for, no device opened, even when the
 * name became one since it was listed. -errno when it is none.
 */
static int open_regular(const char *path)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	struct stat status;
	int fd = open(path, flags | O_NOATIME);

	if (fd < 0 && errno == EPERM) /* O_NOATIME is the owner's */
		fd = open(path, flags);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &status) < 0 || !S_ISREG(status.st_mode)) {
		close(fd);
		return -EINVAL;
	}
	return fd;
}

static void visit(struct file_cache *cache, const FTSENT *entry)
{
	int fd;

	if (entry->fts_info == FTS_DNR || entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS)
		count(cache, EXTRA_SKIPPED, 1);
	if (entry->fts_info != FTS_F || !S_ISREG(entry->fts_statp->st_mode) ||
	    entry->fts_statp->st_size == 0)
		return;
	if (!pace_wait(&cache->pace, &cache->load->shared->stop))
		return;
	fd = open_regular(entry->fts_accpath);
	if (fd < 0) {
		count(cache, EXTRA_SKIPPED, 1);
		return;
	}
	read_file(cache, fd, FILE_MOST_BYTES);
	close(fd);
}

/* One pass over the tree, within its mount. fts(3) keeps a handful of descriptors at any depth. */
static int walk(struct file_cache *cache)
{
	char *roots[] = {(char *)cache->directory, NULL};
	FTS *tree = fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
	FTSENT *entry;

	if (!tree)
		return -errno;
	while (!load_stopping(cache->load) && (entry = fts_read(tree)))
		visit(cache, entry);
	fts_close(tree);
	return 0;
}

/* ---- files of our own, for a tree that is too small ---- */

/* Pages of tmpfs are anonymous to reclaim: no place for a file cache. */
static bool is_on_disk(const char *directory)
{
	struct statfs status;

	return statfs(directory, &status) == 0 && status.f_type != TMPFS_MAGIC &&
	       status.f_type != RAMFS_MAGIC;
}

/* Without a name, so that nothing stays, whatever ends us. */
static int open_nameless(const char *directory)
{
	char path[PATH_MAX];
	int fd = open(directory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);

	if (fd >= 0)
		return fd;
	if (snprintf(path, sizeof(path), "%s/syslatency.XXXXXX", directory) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	unlink(path);
	return fd;
}

static int make_own_files(struct file_cache *cache, uint64_t bytes)
{
	const char *const places[] = {cache->directory, "/var/tmp", "/tmp"};
	const char *place = NULL;

	cache->own_bytes = (bytes / OWN_FILES + READ_BYTES) / READ_BYTES * READ_BYTES;
	for (size_t i = 0; i < ARRAY_SIZE(places) && !place; i++)
		if (is_on_disk(places[i]) && access(places[i], W_OK) == 0)
			place = places[i];
	if (!place)
		return -ENOTSUP;
	for (size_t i = 0; i < OWN_FILES; i++) {
		cache->own[i] = open_nameless(place);
		if (cache->own[i] < 0)
			return cache->own[i];
		if (ftruncate(cache->own[i], (off_t)cache->own_bytes) < 0)
			return -errno;
	}
	return 0;
}

/* Reads them until the pass has come to @until_bytes. */
static void read_own_files(struct file_cache *cache, uint64_t until_bytes)
{
	for (size_t i = 0; i < OWN_FILES && cache->own[i] >= 0; i++) {
		uint64_t before = cache->pass_bytes;

		if (before >= until_bytes || !pace_wait(&cache->pace, &cache->load->shared->stop))
			return;
		if (lseek(cache->own[i], 0, SEEK_SET) == 0)
			read_file(cache, cache->own[i], UINT64_MAX);
		count(cache, EXTRA_OWN_BYTES, cache->pass_bytes - before);
	}
}

/*
 * Files of our own, as much as a pass wants. Reading them first fills the group's cache at the
 * speed of memory; a disk would take many seconds, and the window would begin with free memory.
 */
static void fill_cache(struct file_cache *cache)
{
	struct load_shared *shared = cache->load->shared;
	int error;

	if (cache->wanted_bytes == 0)
		return;
	error = make_own_files(cache, cache->wanted_bytes);
	if (error < 0)
		message_set_errno(
			&shared->note, error,
			"file-cache: no files of its own could be made: a small tree does not turn "
			"the page cache over");
	read_own_files(cache, cache->wanted_bytes);
}

/* A pass over the tree, and as much of our own files as it fell short. */
static int pass(struct file_cache *cache)
{
	struct load_shared *shared = cache->load->shared;
	int error;

	cache->pass_bytes = 0;
	error = walk(cache);
	if (error < 0)
		return message_set_errno(&shared->message, error, "file-cache load: cannot walk %s",
					 cache->directory);
	if (load_stopping(cache->load))
		return 0;
	read_own_files(cache, cache->wanted_bytes);
	if (cache->pass_bytes == 0 && !load_stopping(cache->load))
		return message_set(&shared->message, -ENOENT,
				   "file-cache load: there is no file to read in %s",
				   cache->directory);
	count(cache, EXTRA_PASSES, 1);
	become_steady(cache);
	return 0;
}

static struct {
	const char *directory;
} own; /* NULL: / */

static const struct option_row file_cache_options[] = {
	{.kind = OPTION_STRING,
	 .long_name = "file-cache-dir",
	 .argument = "DIR",
	 .settings = &own,
	 .help = "what file-cache reads (default /)"},
	{0},
};

static int file_cache_check(const struct load_settings *settings, struct message *message)
{
	const char *directory = own.directory ? own.directory : "/";
	struct stat status;

	if (stat(directory, &status) < 0)
		return message_set_errno(message, -errno, "--file-cache-dir %s", directory);
	if (!S_ISDIR(status.st_mode))
		return message_set(message, -ENOTDIR, "--file-cache-dir %s: not a directory",
				   directory);
	if (access(directory, R_OK | X_OK) < 0)
		return message_set_errno(message, -errno, "--file-cache-dir %s", directory);
	return 0;
}

static int file_cache_run(struct load *load)
{
	const struct load_settings *settings = &load->settings;
	struct file_cache cache = {
		.load = load,
		.directory = own.directory ? own.directory : "/",
		.own = {-1, -1, -1, -1, -1, -1, -1, -1},
	};
	int error = 0;

	/* A quarter more than the group can hold cannot stay cached. */
	if (settings->budget_bytes > 0)
		cache.wanted_bytes = settings->budget_bytes;
	else if (settings->in_memcg)
		cache.wanted_bytes = settings->limit_bytes / 4 * 5;
	cache.block = malloc(READ_BYTES);
	if (!cache.block)
		return -ENOMEM;
	pace_start(&cache.pace, 0);
	fill_cache(&cache);
	while (error == 0 && !load_stopping(load))
		error = pass(&cache);
	for (size_t i = 0; i < OWN_FILES; i++)
		if (cache.own[i] >= 0)
			close(cache.own[i]);
	free(cache.block);
	return error;
}

const struct load_ops load_file_cache = {
	.name = "file-cache",
	.summary = "reads a file tree through the page cache (--file-cache-dir, default /)",
	.options = file_cache_options,
	.flags = LOAD_FILLS_CACHE | LOAD_REACHES_LIMIT,
	.igt_flag = 'b',
	.extra_names = file_cache_extras,
	.claims = file_cache_claims,
	.check = file_cache_check,
	.run = file_cache_run,
};
