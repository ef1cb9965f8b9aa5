/* SPDX-License-Identifier: MIT */
/* The shm backend against what the kernel says of its pages: /proc/self/pagemap, kpageflags,
 * vmstat. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "backends/shm_pin.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "ops.h"

extern const struct backend_ops backend_shm;

#define MIB (UINT64_C(1) << 20)
#define KPF_LRU (1ULL << 5)
#define KPF_ACTIVE (1ULL << 6)
#define KPF_UNEVICTABLE (1ULL << 18)

static const enum variant pinned_variants[] = {VARIANT_STOCK, VARIANT_MAPPING, VARIANT_MLOCK};

static struct backend *open_shm(enum variant variant, const char *method)
{
	struct backend_settings settings = {.variant = variant, .pin_method = method};
	struct message message = {""};
	struct backend *backend = NULL;
	int error = backend_shm.open(&settings, &backend, &message);

	if (error < 0)
		print_message("# %s %s: %s\n", variant_name(variant), method ? method : "auto",
			      message.text);
	return backend;
}

static void allocate(struct backend *backend, struct buffer *buffer, uint64_t bytes)
{
	memset(buffer, 0, sizeof(*buffer));
	buffer->bytes = bytes;
	assert_int_equal(backend_shm.allocate(backend, buffer), 0);
}

static void release(struct backend *backend, struct buffer *buffer)
{
	assert_int_equal(backend_shm.release(backend, buffer), 0);
	assert_null(buffer->private_data);
}

static int64_t vmstat(const char *name)
{
	int64_t value = -1;
	char *text;

	machine_write("/proc/sys/vm/stat_refresh", "1");
	assert_int_equal(machine_read("/proc/vmstat", &text, NULL), 0);
	text_find_int64(text, name, &value);
	free(text);
	return value;
}

static size_t count_descriptors(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 4096; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Frame numbers of a buffer's pages, through a second attach; 0 where a page is not present. */
static uint64_t *frames_of(const struct buffer *buffer, size_t count)
{
	uint64_t *frames = calloc(count, sizeof(*frames));
	volatile char *address = shmat((int)buffer->handle, NULL, SHM_RDONLY);
	int pagemap = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);

	assert_non_null(frames);
	assert_true(address != (void *)-1);
	assert_true(pagemap >= 0);
	for (size_t i = 0; i < count; i++)
		(void)address[i * 4096];
	assert_int_equal(pread(pagemap, frames, count * 8, (off_t)((uintptr_t)address / 4096 * 8)),
			 (ssize_t)(count * 8));
	for (size_t i = 0; i < count; i++)
		frames[i] = frames[i] >> 63 ? frames[i] & ((1ULL << 55) - 1) : 0;
	close(pagemap);
	shmdt((const void *)address);
	return frames;
}

static uint64_t page_flags(uint64_t frame)
{
	int fd = open("/proc/kpageflags", O_RDONLY | O_CLOEXEC);
	uint64_t flags = 0;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &flags, 8, (off_t)(frame * 8)), 8);
	close(fd);
	return flags;
}

static void need_root(void)
{
	if (geteuid() != 0) {
		print_message("# skipped: frame numbers need root\n");
		skip();
	}
}

static void every_variant_allocates_and_releases(void **state)
{
	for (int variant = 0; variant < VARIANT_COUNT; variant++) {
		struct backend *backend = open_shm((enum variant)variant, NULL);
		struct buffer buffer;
		size_t before = count_descriptors();

		assert_non_null(backend);
		assert_string_equal(backend->pin_method,
				    variant == VARIANT_BASELINE ? "none" : "vmsplice");
		assert_string_equal(backend->release_context, "load");
		for (int i = 0; i < 5; i++) {
			allocate(backend, &buffer, 8 * MIB);
			assert_true(buffer.phase_ns[BUFFER_ALLOCATE] > 0);
			assert_true(buffer.phase_ns[BUFFER_POPULATE] > 0);
			assert_true(buffer.phase_ns[BUFFER_PIN] >= 0);
			assert_int_equal(buffer.memory != NULL, variant == VARIANT_MLOCK);
			release(backend, &buffer);
			assert_true(buffer.phase_ns[BUFFER_RELEASE] > 0);
		}
		assert_int_equal(count_descriptors(), before);
		backend_shm.close(backend);
	}
}

/* Odd sizes: one page, no multiple of the pipe, no multiple of a page. */
static void any_size_is_pinned_whole(void **state)
{
	static const uint64_t sizes[] = {4096, 100, 33 * 4096, MIB + 4096, 3 * MIB + 5 * 4096};

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct backend *backend = open_shm(VARIANT_MLOCK, NULL);
		struct buffer buffer;

		assert_non_null(backend);
		allocate(backend, &buffer, sizes[i]);
		release(backend, &buffer);
		backend_shm.close(backend);
	}
}

static bool is_given_back(struct backend *backend)
{
	int64_t before = vmstat("nr_shmem"), during, after;
	struct buffer buffer;

	allocate(backend, &buffer, 32 * MIB);
	during = vmstat("nr_shmem");
	release(backend, &buffer);
	after = vmstat("nr_shmem");
	return during - before > 32 * 256 / 2 && llabs(after - before) < 1024;
}

static void memory_is_given_back(void **state)
{
	struct backend *backend = open_shm(VARIANT_MAPPING, NULL);
	bool given_back = false;

	assert_non_null(backend);
	for (int attempt = 0; attempt < 5 && !given_back; attempt++)
		given_back = is_given_back(backend);
	assert_true(given_back);
	backend_shm.close(backend);
}

/* Not two pages alike, none of them easy: each has all byte values about equally often. */
static void content_is_hard_to_compress(void **state)
{
	struct backend *backend = open_shm(VARIANT_MLOCK, NULL);
	struct buffer buffer;

	assert_non_null(backend);
	allocate(backend, &buffer, MIB);
	for (size_t page = 0; page < MIB / 4096; page++) {
		const unsigned char *at = (const unsigned char *)buffer.memory + page * 4096;
		unsigned int counts[256] = {0}, used = 0;

		for (size_t i = 0; i < 4096; i++)
			used += counts[at[i]]++ == 0;
		assert_in_range(used, 250, 256);
		if (page > 0)
			assert_int_not_equal(memcmp(at, at - 4096, 4096), 0);
	}
	release(backend, &buffer);
	backend_shm.close(backend);
}

static size_t moved_by_compaction(struct backend *backend, size_t pages)
{
	uint64_t *before, *after;
	struct buffer buffer;
	size_t moved = 0, absent = 0;

	allocate(backend, &buffer, pages * 4096);
	before = frames_of(&buffer, pages);
	assert_int_equal(machine_write("/proc/sys/vm/compact_memory", "1"), 0);
	after = frames_of(&buffer, pages);
	for (size_t i = 0; i < pages; i++) {
		absent += before[i] == 0 || after[i] == 0;
		moved += before[i] != after[i];
	}
	assert_int_equal(absent, 0);
	release(backend, &buffer);
	free(before);
	free(after);
	return moved;
}

static void compaction_moves_no_pinned_page(void **state)
{
	const size_t pages = 2048;
	struct backend *backend;

	need_root();
	if (!machine_writable("/proc/sys/vm/compact_memory")) {
		print_message("# skipped: this kernel cannot be told to compact\n");
		skip();
	}
	backend = open_shm(VARIANT_BASELINE, NULL);
	print_message("# baseline: %zu of %zu pages moved\n", moved_by_compaction(backend, pages),
		      pages);
	backend_shm.close(backend);
	for (size_t m = 0; pin_methods[m]; m++) {
		if (pin_methods[m]->needs_memfd)
			continue;
		for (size_t i = 0; i < 3; i++) {
			backend = open_shm(pinned_variants[i], pin_methods[m]->name);
			if (!backend)
				continue;
			assert_int_equal(moved_by_compaction(backend, pages), 0);
			backend_shm.close(backend);
		}
	}
}

/* A buffer that moves when it is not pinned: without it the test above could not fail. */
static void compaction_moves_pages_that_are_not_pinned(void **state)
{
	struct backend *backend;
	size_t moved = 0;

	need_root();
	backend = open_shm(VARIANT_BASELINE, NULL);
	for (int attempt = 0; attempt < 5 && moved == 0; attempt++)
		moved = moved_by_compaction(backend, 8192);
	backend_shm.close(backend);
	if (moved == 0) {
		print_message("# skipped: memory here is so tidy that compaction finds no work\n");
		skip();
	}
	assert_true(moved > 0);
}

/* By how much the machine's counts rise for a buffer of @pages: what others do meanwhile is in
 * them. */
static void rise_of(enum variant variant, int64_t pages, int64_t *ret_unevictable,
		    int64_t *ret_mlocked)
{
	struct backend *backend = open_shm(variant, NULL);
	int64_t unevictable = vmstat("nr_unevictable"), mlocked = vmstat("nr_mlock");
	struct buffer buffer;

	assert_non_null(backend);
	allocate(backend, &buffer, (uint64_t)pages * 4096);
	*ret_unevictable = vmstat("nr_unevictable") - unevictable;
	*ret_mlocked = vmstat("nr_mlock") - mlocked;
	release(backend, &buffer);
	backend_shm.close(backend);
	print_message("# %s: of %lld pages %lld unevictable, %lld mlocked\n", variant_name(variant),
		      (long long)pages, (long long)*ret_unevictable, (long long)*ret_mlocked);
}

static bool is_near(int64_t value, int64_t wanted, int64_t pages)
{
	return llabs(value - wanted) < pages / 10;
}

static void unevictable_counts_tell_the_variants(void **state)
{
	const int64_t pages = 64 * 256;

	need_root(); /* to fold the per-CPU parts of the counts in */
	for (size_t i = 0; i < 3; i++) {
		enum variant variant = pinned_variants[i];
		bool as_named = false;

		/* Again when a neighbour locked or freed memory just then. */
		for (int attempt = 0; attempt < 5 && !as_named; attempt++) {
			int64_t unevictable, mlocked;

			rise_of(variant, pages, &unevictable, &mlocked);
			as_named =
				is_near(unevictable, variant == VARIANT_STOCK ? 0 : pages, pages) &&
				is_near(mlocked, variant == VARIANT_MLOCK ? pages : 0, pages);
		}
		assert_true(as_named);
	}
}

/* As a driver's: on the LRU, inactive; with SHM_LOCK or mlock unevictable. */
static void pages_are_where_the_drivers_are(void **state)
{
	const size_t pages = 4096;

	need_root();
	for (size_t i = 0; i < 3; i++) {
		struct backend *backend = open_shm(pinned_variants[i], NULL);
		size_t active = 0, unevictable = 0, listed = 0;
		struct buffer buffer;
		uint64_t *frames;

		assert_non_null(backend);
		allocate(backend, &buffer, pages * 4096);
		frames = frames_of(&buffer, pages);
		for (size_t k = 0; k < pages; k++) {
			uint64_t flags = page_flags(frames[k]);

			active += (flags & KPF_ACTIVE) != 0;
			unevictable += (flags & KPF_UNEVICTABLE) != 0;
			listed += (flags & KPF_LRU) != 0;
		}
		free(frames);
		release(backend, &buffer);
		backend_shm.close(backend);
		print_message("# %s: %zu on a list, %zu active, %zu unevictable of %zu\n",
			      variant_name(pinned_variants[i]), listed, active, unevictable, pages);
		assert_true(listed > pages * 9 / 10);
		assert_true(active < pages / 10);
		if (pinned_variants[i] == VARIANT_STOCK)
			assert_true(unevictable < pages / 10);
		else
			assert_true(unevictable > pages * 9 / 10);
	}
}

/* SIGKILL at any moment: the kernel takes back pages, pipes and segments. */
static void sigkill_leaves_nothing(void **state)
{
	struct random random;
	struct shm_info before, after;
	int64_t shmem = vmstat("nr_shmem");

	random_seed(&random, 7);
	assert_true(shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&before) >= 0);
	for (int i = 0; i < 20; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			struct backend *backend = open_shm(pinned_variants[i % 3], NULL);
			struct buffer buffer;

			for (;;) {
				memset(&buffer, 0, sizeof(buffer));
				buffer.bytes = 4 * MIB;
				if (!backend || backend_shm.allocate(backend, &buffer) < 0)
					_exit(1);
				backend_shm.release(backend, &buffer);
			}
		}
		clock_sleep_for((int64_t)random_below(&random, 20 * NS_PER_MS));
		kill(pid, SIGKILL);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
	}
	assert_true(shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&after) >= 0);
	assert_int_equal(after.used_ids, before.used_ids);
	/* All of it would be 20 x 4 MiB; a neighbour's shared memory may come or go meanwhile. */
	for (int i = 0; i < 20 && llabs(vmstat("nr_shmem") - shmem) > 2048; i++)
		clock_sleep_for(100 * NS_PER_MS);
	assert_true(llabs(vmstat("nr_shmem") - shmem) < 20 * 1024 / 2);
}

static int in_child(int (*body)(void))
{
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(body());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int without_descriptors(void)
{
	struct rlimit limit = {32, 32};
	struct buffer buffer = {.bytes = 64 * MIB};
	struct backend *backend;
	size_t before;

	setrlimit(RLIMIT_NOFILE, &limit);
	backend = open_shm(VARIANT_STOCK, "vmsplice");
	if (!backend)
		return 1;
	before = count_descriptors();
	if (backend_shm.allocate(backend, &buffer) != -EMFILE)
		return 2;
	if (!strstr(atomic_load(&backend->failure), "ulimit -n"))
		return 3;
	return count_descriptors() == before ? 0 : 4;
}

static void no_descriptors_left_is_told(void **state)
{
	assert_int_equal(in_child(without_descriptors), 0);
}

/* Root, a soft limit below the hard one: it is raised. */
static int soft_limit(void)
{
	struct rlimit limit;
	struct buffer buffer = {.bytes = 64 * MIB};
	struct backend *backend;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_max < 256)
		return 0;
	limit.rlim_cur = 32;
	setrlimit(RLIMIT_NOFILE, &limit);
	backend = open_shm(VARIANT_STOCK, "vmsplice");
	return backend && backend_shm.allocate(backend, &buffer) == 0 ? 0 : 1;
}

static void soft_descriptor_limit_is_raised(void **state)
{
	assert_int_equal(in_child(soft_limit), 0);
}

static int as_ordinary_user(void)
{
	struct rlimit limit = {2 * MIB, 2 * MIB};
	struct buffer small = {.bytes = MIB}, big = {.bytes = 8 * MIB};
	struct backend *backend;

	setrlimit(RLIMIT_MEMLOCK, &limit);
	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 1;
	for (size_t i = 0; i < 3; i++) {
		backend = open_shm(pinned_variants[i], NULL);
		if (!backend)
			return 10;
		memset(&small, 0, sizeof(small));
		small.bytes = MIB;
		if (backend_shm.allocate(backend, &small) < 0)
			return 11;
		if (pinned_variants[i] != VARIANT_STOCK) {
			if (backend_shm.allocate(backend, &big) != -EPERM)
				return 12;
			if (!strstr(atomic_load(&backend->failure), "RLIMIT_MEMLOCK"))
				return 13;
		}
		if (backend_shm.release(backend, &small) < 0)
			return 14;
		backend_shm.close(backend);
	}
	return 0;
}

static void ordinary_users_have_what_their_limits_give(void **state)
{
	need_root();
	assert_int_equal(in_child(as_ordinary_user), 0);
}

/* A segment that a killed ordinary user's process left is removed by the next one. */
static int leftover(void)
{
	struct backend *backend;
	pid_t pid;
	int id;

	if (setgid(65534) < 0 || setuid(65534) < 0)
		return 1;
	pid = fork();
	if (pid == 0) {
		shmget(0x73791234, 4096, IPC_CREAT | IPC_EXCL | 0600);
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	id = shmget(0x73791234, 0, 0);
	if (id < 0)
		return 2;
	backend = open_shm(VARIANT_STOCK, NULL);
	if (!backend)
		return 3;
	if (shmget(0x73791234, 0, 0) >= 0) {
		shmctl(id, IPC_RMID, NULL);
		return 4;
	}
	return 0;
}

static void leftovers_are_removed(void **state)
{
	need_root();
	assert_int_equal(in_child(leftover), 0);
}

static void bad_settings_are_told(void **state)
{
	struct backend_settings settings = {.variant = VARIANT_STOCK, .pin_method = "glue"};
	struct backend *backend = NULL;
	struct message message = {""};

	assert_int_equal(backend_shm.open(&settings, &backend, &message), -EINVAL);
	assert_non_null(strstr(message.text, "glue"));
	assert_non_null(strstr(message.text, "vmsplice"));
	assert_null(backend);

	settings.pin_method = "udmabuf";
	settings.variant = VARIANT_MAPPING;
	assert_int_equal(backend_shm.open(&settings, &backend, &message), -ENOTSUP);
	assert_non_null(strstr(message.text, "udmabuf"));

	settings.pin_method = NULL;
	settings.device = "/dev/dri/card0";
	assert_int_equal(backend_shm.open(&settings, &backend, &message), -EINVAL);
	assert_non_null(strstr(message.text, "/dev/dri/card0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_variant_allocates_and_releases),
		cmocka_unit_test(any_size_is_pinned_whole),
		cmocka_unit_test(memory_is_given_back),
		cmocka_unit_test(content_is_hard_to_compress),
		cmocka_unit_test(compaction_moves_no_pinned_page),
		cmocka_unit_test(compaction_moves_pages_that_are_not_pinned),
		cmocka_unit_test(unevictable_counts_tell_the_variants),
		cmocka_unit_test(pages_are_where_the_drivers_are),
		cmocka_unit_test(sigkill_leaves_nothing),
		cmocka_unit_test(no_descriptors_left_is_told),
		cmocka_unit_test(soft_descriptor_limit_is_raised),
		cmocka_unit_test(ordinary_users_have_what_their_limits_give),
		cmocka_unit_test(leftovers_are_removed),
		cmocka_unit_test(bad_settings_are_told),
	};

	return cmocka_run_group_tests_name("shm", tests, NULL, NULL);
}
