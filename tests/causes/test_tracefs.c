/* SPDX-License-Identifier: MIT */
/* The collector's parts, and one whole collection around a thread of the test's own. */
#include "support/testing.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "causes/tracefs_internal.h"
#include "run/run.h"
#include "ops.h"
#include "record/record.h"

#define HUGE_BYTES ((size_t)2 << 20)

static void test_ring_keeps_what_overlaps(void **state)
{
	struct explain_window window = {.when_ns = 1000000000, .late_ns = 5000000};
	struct ring ring;
	size_t kept = 0;

	assert_int_equal(ring_open(&ring, 4096, 2), 0);
	/* Pages of 10 ms each on CPU 0, and one on CPU 1 that lasts. */
	assert_non_null(ring_next(&ring));
	ring_put(&ring, 1, 0);
	for (int i = 0; i < 200; i++) {
		assert_non_null(ring_next(&ring));
		ring_put(&ring, 0, i * INT64_C(10000000));
	}
	assert_int_equal(ring_keep(&ring, &window, 1), 1);
	for (size_t i = 0; i < ring.count; i++) {
		const struct ring_slot *slot = &ring.slots[i];

		kept += slot->kept;
		if (slot->kept)
			assert_true(slot->end_ns >= window.when_ns - EXPLAIN_LEAD_NS &&
				    slot->start_ns <=
					    window.when_ns + window.late_ns + EXPLAIN_TAIL_NS);
	}
	/* 65 ms of CPU 0 in pages of 10 ms that it touches, and the long page of CPU 1. */
	assert_in_range(kept, 7, 10);
	assert_true(ring.slots[0].kept);
	/* However many come after, what is kept stays. */
	for (size_t i = 0; i < 3 * ring.count; i++) {
		assert_non_null(ring_next(&ring));
		ring_put(&ring, 0, INT64_C(3000000000) + (int64_t)i);
	}
	for (size_t i = 0, still = 0; i <= ring.count; i++) {
		if (i == ring.count)
			assert_int_equal(still, kept);
		else
			still += ring.slots[i].kept;
	}
	/* What is not asked for any more is given back. */
	assert_int_equal(ring_keep(&ring, NULL, 0), 0);
	for (size_t i = 0; i < ring.count; i++)
		assert_false(ring.slots[i].kept);
	ring_close(&ring);
}

static void test_ring_never_fills_with_kept_pages(void **state)
{
	/* A stall that all pages lie in, and a short delay near its end. */
	struct explain_window windows[] = {{.when_ns = 0, .late_ns = INT64_C(3600000000000)},
					   {.when_ns = INT64_C(3000000000), .late_ns = 1000000}};
	size_t kept = 0, near = 0;
	struct ring ring;

	assert_int_equal(ring_open(&ring, 4096, 1), 0);
	for (size_t i = 0; i < ring.count; i++) {
		assert_non_null(ring_next(&ring));
		ring_put(&ring, 0, (int64_t)i * 1000000);
	}
	/* The stall is not kept whole, and leaves room for the short delay and for what comes. */
	assert_int_equal(ring_keep(&ring, windows, 2), 1);
	for (size_t i = 0; i < ring.count; i++) {
		kept += ring.slots[i].kept;
		near += ring.slots[i].kept && i >= 2950 && i <= 3011;
	}
	assert_true(kept < ring.count / 2);
	assert_int_equal(near, 62);
	assert_true(ring.slots[0].kept);
	assert_non_null(ring_next(&ring));
	ring_close(&ring);
}

static void test_strings_are_kept_once(void **state)
{
	struct string_pool *pool = string_pool_new();
	const char *first = string_pool_keep(pool, "kswapd0\0rubbish", 15);

	assert_string_equal(first, "kswapd0");
	assert_ptr_equal(first, string_pool_keep(pool, "kswapd0", 7));
	assert_string_equal(string_pool_keep(pool, "kswapd0", 6), "kswapd");
	assert_string_equal(string_pool_keep(pool, "", 0), "");
	string_pool_free(pool);
}

static void test_symbols(void **state)
{
	struct symbols *symbols = symbols_read();

	if (!symbols)
		SKIP_BECAUSE("the kernel hides its symbols");
	assert_null(symbols_find(symbols, 1));
	assert_null(symbols_find(symbols, UINT64_MAX));
	symbols_free(symbols);
	symbols_free(NULL);
}

/* Without anything that it needs, the collector says what would enable more. */
static void test_says_what_is_missing(void **state)
{
	extern const struct cause_ops cause_tracefs;
	struct cause_settings settings = {.level = 1, .worst = 1};
	struct message message = {""};
	void *started = NULL;
	char tree[128];
	int error;

	testing_make_tree(tree, sizeof(tree));
	machine_set_root(tree);
	error = cause_tracefs.start(&settings, &started, &message);
	machine_set_root(NULL);
	testing_remove_tree(tree);
	assert_true(error < 0);
	assert_null(started);
	assert_non_null(strstr(message.text, geteuid() == 0 ? "mount -t tracefs" : "root"));
}

/* ---- a lock that is held by the collapse of a huge page ---- */

struct collapse {
	_Atomic bool stop;
	_Atomic int32_t tid;
	char *memory;
	size_t pages;
};

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

/* Takes huge pages apart and collapses them again, which holds the lock of the address space. */
static void *collapse_again_and_again(void *data)
{
	struct collapse *collapse = data;
	size_t bytes = collapse->pages * HUGE_BYTES;

	pthread_setname_np(pthread_self(), "collapser");
	atomic_store(&collapse->tid, gettid());
	while (!atomic_load(&collapse->stop)) {
		madvise(collapse->memory, bytes, MADV_DONTNEED);
		madvise(collapse->memory, bytes, MADV_NOHUGEPAGE);
		for (size_t at = 0; at < bytes; at += 4096)
			collapse->memory[at] = 1;
		madvise(collapse->memory, bytes, MADV_HUGEPAGE);
		if (madvise(collapse->memory, bytes, MADV_COLLAPSE) < 0 && errno == EINVAL)
			break;
	}
	return NULL;
}

/* Samples as the thp measure does: map, touch, unmap; each needs the same lock. */
static void sample(struct sampling_thread *thread, int64_t until_ns)
{
	while (clock_now_ns() < until_ns) {
		int64_t begin_ns = clock_now_ns();
		char *memory = mmap(NULL, 1 << 16, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (memory == MAP_FAILED)
			break;
		memory[0] = 1;
		munmap(memory, 1 << 16);
		sampling_add(thread, begin_ns, clock_now_ns() - begin_ns);
		clock_sleep_for(200 * NS_PER_US);
	}
}

static bool names_collapse(const struct record *record, char *said, size_t size)
{
	const json_t *entry;
	size_t i;

	json_array_foreach (record->causes, i, entry) {
		const char *sentence = json_get_string(entry, "sentence", "");

		snprintf(said, size, "%s", sentence);
		if ((strstr(sentence, "mmap_lock") || strstr(sentence, "semaphore")) &&
		    strstr(sentence, "collapser") && strstr(sentence, "collapsing a huge page"))
			return true;
	}
	return false;
}

static int collect_collapse(struct record *record, struct message *message)
{
	extern const struct cause_ops cause_tracefs;
	struct sampling_thread *thread = calloc(1, sizeof(*thread));
	struct cause_settings settings = {.level = 2,
					  .worst = 10,
					  .threads = thread,
					  .thread_count = 1,
					  .subject = SUBJECT_INTERVAL,
					  .guest = true};
	struct collapse collapse = {.pages = 8};
	struct cause_end end = {.threads = thread, .thread_count = 1};
	pthread_t collapser;
	void *started;
	int error;

	assert_non_null(thread);
	collapse.memory = mmap(NULL, (collapse.pages + 1) * HUGE_BYTES, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(collapse.memory != MAP_FAILED);
	collapse.memory = (char *)(((uintptr_t)collapse.memory + HUGE_BYTES - 1) &
				   ~(uintptr_t)(HUGE_BYTES - 1));
	thread->tid = gettid();
	thread->cpu = -1;
	error = transaction_open(&settings.transaction, "test", message);
	if (!error)
		error = cause_tracefs.start(&settings, &started, message);
	if (!error) {
		end.begin_ns = clock_now_ns();
		pthread_create(&collapser, NULL, collapse_again_and_again, &collapse);
		sample(thread, clock_now_ns() + NS_PER_S);
		cause_tracefs.poll(started, thread, 1);
		atomic_store(&collapse.stop, true);
		pthread_join(collapser, NULL);
		error = cause_tracefs.finish(started, &end, record, message);
	}
	transaction_close(settings.transaction, NULL);
	free(thread);
	return error;
}

static void test_lock_held_by_collapse(void **state)
{
	char said[600] = "";
	bool named = false;

	if (geteuid() != 0)
		SKIP_BECAUSE("kernel events need root");
	for (int attempt = 0; attempt < 4 && !named; attempt++) {
		struct record *record = record_new("test");
		struct message message = {""};
		int error = collect_collapse(record, &message);

		if (error) {
			record_free(record);
			SKIP_BECAUSE("%s", message.text);
		}
		assert_string_equal(record->trace_level, "full");
		named = names_collapse(record, said, sizeof(said));
		record_free(record);
	}
	if (!named)
		fail_msg("the last said: %s", said);
}

static void test_stale_instance_is_removed(void **state)
{
	struct message message = {""};
	struct instance instance;
	struct transaction *transaction;
	char path[256];
	pid_t child;

	if (geteuid() != 0)
		SKIP_BECAUSE("kernel events need root");
	/* The pid of a process that is gone. */
	child = fork();
	if (child == 0)
		_exit(0);
	waitpid(child, NULL, 0);
	assert_int_equal(transaction_open(&transaction, "test", &message), 0);
	if (instance_find(&instance, transaction, &message) < 0) {
		transaction_close(transaction, NULL);
		SKIP_BECAUSE("%s", message.text);
	}
	snprintf(path, sizeof(path), "%s/instances/" INSTANCE_PREFIX "%d", instance.directory,
		 (int)child);
	assert_int_equal(mkdir(path, 0755), 0);
	assert_int_equal(instance_make(&instance, transaction, BUFFER_DEFAULT_KIB, &message), 0);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(access(instance.path, F_OK), 0);
	instance_close(&instance);
	assert_int_equal(transaction_close(transaction, &message), 0);
	assert_int_equal(access(instance.path, F_OK), -1);
}

/* More than any machine has is refused before anything is taken: the default serves then. */
static void test_smaller_buffer_where_memory_is_short(void **state)
{
	const int64_t more_than_there_is_kib = INT64_C(1) << 40;
	struct message message = {""};
	struct instance instance;
	struct transaction *transaction;

	if (geteuid() != 0)
		SKIP_BECAUSE("kernel events need root");
	assert_int_equal(transaction_open(&transaction, "test", &message), 0);
	if (instance_find(&instance, transaction, &message) < 0) {
		transaction_close(transaction, NULL);
		SKIP_BECAUSE("%s", message.text);
	}
	assert_int_equal(instance_make(&instance, transaction, more_than_there_is_kib, &message),
			 0);
	assert_int_equal(instance.buffer_kib, BUFFER_DEFAULT_KIB);
	instance_close(&instance);
	assert_int_equal(transaction_close(transaction, &message), 0);
}

/* From now on no directory is made in this process, as if the kernel had no memory. */
static int deny_directories(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef SYS_mkdir
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdir, 1, 0),
#endif
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mkdirat, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOMEM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {ARRAY_SIZE(code), code};

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return -errno;
	return 0;
}

/* Called while the run warms up: what it makes before is there. */
static void deny_now(void *data, const struct run_progress *progress)
{
	int *denied = data;

	if (progress->stage == RUN_WARMING_UP && *denied == 0)
		*denied = deny_directories() == 0 ? 1 : -1;
}

/* 0: counters and one note; 77: cannot be tried; else what is wrong. */
static int run_without_memory_for_an_instance(void)
{
	struct run_settings settings = {
		.benchmark = "test_tracefs",
		.measure = measure_find("wakeup"),
		.duration_ns = 300 * NS_PER_MS,
		.trace_level = 2,
		.warmup_ns = 300 * NS_PER_MS,
		.backend_settings = {.variant = VARIANT_STOCK},
		.progress = deny_now,
	};
	struct message message = {""};
	struct record *record;
	size_t notes = 0, i;
	const json_t *note;
	int wrong = 0, denied = 0;

	settings.progress_data = &denied;
	if (run_execute(&settings, &record, &message) < 0) {
		fprintf(stderr, "%s\n", message.text);
		return 1;
	}
	if (denied <= 0)
		return denied < 0 ? 77 : 5;
	json_array_foreach (record->notes, i, note) {
		const char *text = json_string_value(note);

		printf("# note: %s\n", text);
		notes += strstr(text, "causes without tracefs") != NULL &&
			 strstr(text, "Cannot allocate memory") != NULL;
	}
	if (notes != 1)
		wrong = 2;
	else if (strcmp(record->trace_level, "off") != 0)
		wrong = 3;
	else if (json_array_size(record->causes) == 0)
		wrong = 4;
	record_free(record);
	fflush(stdout);
	return wrong;
}

static void test_counters_where_there_is_no_memory(void **state)
{
	struct message message = {""};
	struct instance instance;
	struct transaction *transaction;
	int status, error;
	pid_t child;

	if (geteuid() != 0)
		SKIP_BECAUSE("kernel events need root");
	assert_int_equal(transaction_open(&transaction, "test", &message), 0);
	error = instance_find(&instance, transaction, &message);
	instance_close(&instance);
	assert_int_equal(transaction_close(transaction, NULL), 0);
	if (error)
		SKIP_BECAUSE("%s", message.text);
	fflush(stdout);
	child = fork();
	if (child == 0)
		_exit(run_without_memory_for_an_instance());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		SKIP_BECAUSE("no seccomp filter in this kernel");
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring_keeps_what_overlaps),
		cmocka_unit_test(test_ring_never_fills_with_kept_pages),
		cmocka_unit_test(test_strings_are_kept_once),
		cmocka_unit_test(test_symbols),
		cmocka_unit_test(test_says_what_is_missing),
		cmocka_unit_test(test_stale_instance_is_removed),
		cmocka_unit_test(test_smaller_buffer_where_memory_is_short),
		cmocka_unit_test(test_counters_where_there_is_no_memory),
		cmocka_unit_test(test_lock_held_by_collapse),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
