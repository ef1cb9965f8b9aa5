/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <ftw.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "loads/load_run.h"

static char tree[64];

static void put_file(const char *name, size_t bytes)
{
	char path[128], *data = calloc(1, bytes);
	int fd;

	snprintf(path, sizeof(path), "%s/%s", tree, name);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write_all(fd, data, bytes), 0);
	fsync(fd); /* dirty pages cannot be evicted */
	close(fd);
	free(data);
}

/* On a disk: tmpfs has no page cache to turn over. With all that a walker may stumble on. */
static int make_tree(void **state)
{
	char path[128];

	strcpy(tree, "/var/tmp/syslatency-test.XXXXXX");
	assert_non_null(mkdtemp(tree));
	put_file("a", 1 * MIB);
	put_file("b", 3 * MIB);
	put_file("empty", 0);
	snprintf(path, sizeof(path), "%s/fifo", tree);
	assert_int_equal(mkfifo(path, 0600), 0);
	snprintf(path, sizeof(path), "%s/link", tree);
	assert_int_equal(symlink("a", path), 0);
	snprintf(path, sizeof(path), "%s/loop", tree);
	assert_int_equal(symlink("loop", path), 0);
	snprintf(path, sizeof(path), "%s/deep", tree);
	assert_int_equal(mkdir(path, 0700), 0);
	put_file("deep/c", 2 * MIB);
	if (geteuid() == 0) {
		snprintf(path, sizeof(path), "%s/zero", tree);
		mknod(path, S_IFCHR | 0600, 1 << 8 | 5); /* would never end */
	}
	return 0;
}

static int remove_one(const char *path, const struct stat *status, int flag, struct FTW *where)
{
	return remove(path);
}

static int remove_tree(void **state)
{
	return nftw(tree, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static size_t count_files(void)
{
	size_t count = 0;
	char path[128];
	const char *const names[] = {"a", "b", "empty", "deep/c"};

	for (size_t i = 0; i < 4; i++) {
		snprintf(path, sizeof(path), "%s/%s", tree, names[i]);
		count += access(path, R_OK) == 0;
	}
	return count;
}

/* As --file-cache-dir does. */
static const struct load_ops *reading(const char *directory)
{
	const struct load_ops *ops = load_find("file-cache");

	*(const char **)((char *)ops->options->settings + ops->options->offset) = directory;
	return ops;
}

static void regular_files_alone_are_read(void **state)
{
	struct load_settings settings = {.ops = reading(tree)};
	struct load_run run;
	double passes;

	run_prepare(&run, 0, 0);
	assert_int_equal(run_start(&run, &settings, 10 * NS_PER_S, NULL), 0);
	run_measure(&run, NS_PER_S);
	run_show(&run);
	passes = run_stat(&run, "passes");
	assert_true(passes >= 2);
	/* Three files with content, 6 MiB a pass; links, FIFO, device and the empty one are not. */
	assert_true(run_stat(&run, "files") >= 3 * (passes - 1));
	assert_true(run_stat(&run, "files") <= 3 * (passes + 2));
	assert_true(run_stat(&run, "bytes") <= (passes + 2) * 6 * MIB);
	assert_true(run_stat(&run, "own_file_bytes") == 0);
	assert_true(run_stat(&run, "files_skipped") == 0);
	run_end(&run);
	assert_false(run.process.died);
	assert_true(run.stop_ns < NS_PER_S);
	assert_int_equal(count_files(), 4);
}

/* Once evicted, the pages are read in again: not from a cache that another group has filled. */
static void each_pass_reads_from_storage(void **state)
{
	struct load_settings settings = {.ops = reading(tree), .rate_per_s = 30};
	struct load_run run;

	run_prepare(&run, 0, 0);
	assert_int_equal(run_start(&run, &settings, 10 * NS_PER_S, NULL), 0);
	run_measure(&run, NS_PER_S);
	run_show(&run);
	assert_in_range(run_stat(&run, "ops"), 25, 35);
	if (run_stat(&run, "storage_read_bytes") == 0)
		run_end(&run), print_message("# skipped: no storage I/O is accounted here\n"),
			skip();
	assert_true(run_stat(&run, "storage_read_bytes") > 0.5 * run_stat(&run, "bytes"));
	run_end(&run);
}

static void a_small_tree_still_turns_the_groups_cache_over(void **state)
{
	struct load_settings settings = {.ops = reading(tree), .limit_bytes = 64 * MIB};
	struct load_run run;
	int64_t scanned;

	run_prepare(&run, 64 * MIB, 0);
	assert_int_equal(run_start(&run, &settings, 20 * NS_PER_S, NULL), 0);
	run_measure(&run, NS_PER_S);
	run_show(&run);
	scanned = run_delta(&run, "vmstat.pgscan_file");
	print_message("# scanned %lld file pages; the group holds %lld bytes\n", (long long)scanned,
		      (long long)run_level(&run, "memcg.usage_bytes"));
	assert_true(run_stat(&run, "own_file_bytes") > 32 * MIB);
	assert_true(run_stat(&run, "bytes") > 64 * MIB);
	assert_true(run_level(&run, "memcg.usage_bytes") > (int64_t)(48 * MIB));
	if (run_level(&run, "vmstat.pgscan_file") >= 0)
		assert_true(scanned > 4096);
	run_end(&run);
	assert_true(run.stop_ns < NS_PER_S);
}

static void nothing_to_read_is_told(void **state)
{
	struct load_settings settings = {.ops = load_find("file-cache")};
	struct message message = {""};
	char empty[128], file[128];
	struct load_run run;

	snprintf(empty, sizeof(empty), "%s/deep/none", tree);
	assert_int_equal(mkdir(empty, 0700), 0);
	reading(empty);
	run_prepare(&run, 0, 0);
	assert_int_equal(run_start(&run, &settings, 5 * NS_PER_S, &message), -ENOENT);
	assert_non_null(strstr(message.text, "no file to read"));
	run_end(&run);

	assert_int_equal(load_start(&(struct load_settings){.ops = reading("/nowhere/at/all")},
				    NULL, &run.process, &message),
			 -ENOENT);
	assert_non_null(strstr(message.text, "/nowhere/at/all"));
	snprintf(file, sizeof(file), "%s/a", tree);
	assert_int_equal(load_start(&(struct load_settings){.ops = reading(file)}, NULL,
				    &run.process, &message),
			 -ENOTDIR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(regular_files_alone_are_read),
		cmocka_unit_test(each_pass_reads_from_storage),
		cmocka_unit_test(a_small_tree_still_turns_the_groups_cache_over),
		cmocka_unit_test(nothing_to_read_is_told),
	};

	return cmocka_run_group_tests_name("load file-cache", tests, make_tree, remove_tree);
}
