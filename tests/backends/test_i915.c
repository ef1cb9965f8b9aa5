/* SPDX-License-Identifier: MIT */
/* The i915 backend against the preloaded double; the program runs itself again with it. */
#include "support/testing.h"

#include <errno.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "backends/drm_node.h"
#include "base/array.h"
#include "base/clock.h"
#include "ops.h"

#define MIB (UINT64_C(1) << 20)

static char tree[256], log_path[300];

/* What the double wrote about the last closed node. */
struct seen {
	unsigned long long created, pwritten, mapped, submitted, advised, closed, purged, left,
		breaches;
};

static void play(const char *personality, const char *fail, const char *purge)
{
	unlink(log_path);
	if (personality)
		setenv("I915_DOUBLE", personality, 1);
	else
		unsetenv("I915_DOUBLE");
	setenv("I915_DOUBLE_FAIL", fail ? fail : "", 1);
	if (purge)
		setenv("I915_DOUBLE_PURGE", purge, 1);
	else
		unsetenv("I915_DOUBLE_PURGE");
}

static struct seen read_log(void)
{
	struct seen seen = {0};
	char line[512];
	FILE *stream = fopen(log_path, "r");

	assert_non_null(stream);
	while (fgets(line, sizeof(line), stream)) {
		if (strncmp(line, "breach", 6) == 0)
			fprintf(stderr, "# %s", line);
		if (strncmp(line, "closed:", 7) == 0)
			sscanf(line,
			       "closed: created=%llu pwritten=%llu mapped=%llu submitted=%llu "
			       "advised=%llu closed=%llu purged=%llu left=%llu breaches=%llu",
			       &seen.created, &seen.pwritten, &seen.mapped, &seen.submitted,
			       &seen.advised, &seen.closed, &seen.purged, &seen.left,
			       &seen.breaches);
	}
	fclose(stream);
	return seen;
}

static struct backend *open_backend(const struct backend_settings *settings)
{
	struct backend *backend = NULL;
	struct message message = {""};

	if (backend_find("i915")->open(settings, &backend, &message) != 0)
		fail_msg("%s", message.text);
	return backend;
}

/* One turn of the load: allocate, run on every engine, release. Returns the number of execbufs. */
static uint64_t turn(struct backend *backend, uint64_t bytes, int *ret_error)
{
	struct buffer buffer = {.bytes = bytes};
	struct random random;
	uint64_t submitted = 0;
	int error;

	random_seed(&random, 7);
	error = backend->ops->allocate(backend, &buffer);
	if (!error) {
		error = backend->ops->exercise(backend, &buffer, &random, &submitted);
		if (error)
			backend->ops->release(backend, &buffer);
		else
			error = backend->ops->release(backend, &buffer);
	}
	*ret_error = error;
	return submitted;
}

static void run_clean(const char *personality, uint64_t engines, bool pwrite)
{
	struct backend_settings settings = {.variant = VARIANT_STOCK};
	struct backend *backend;
	struct seen seen;
	int error;

	play(personality, NULL, NULL);
	backend = open_backend(&settings);
	assert_non_null(backend->notes[0]);
	assert_string_equal(backend->release_context, "load");
	for (int i = 0; i < 10; i++) {
		assert_int_equal(turn(backend, 4096, &error), engines);
		assert_int_equal(error, 0);
	}
	backend->ops->close(backend);
	seen = read_log();
	assert_int_equal(seen.breaches, 0);
	assert_int_equal(seen.left, 0);
	assert_int_equal(seen.created, seen.closed);
	/* On local memory each buffer is pinned by one execbuf more. */
	assert_true(seen.submitted >= 10 * engines + engines);
	if (pwrite)
		assert_true(seen.pwritten >= 10 && seen.mapped == 0);
	else
		assert_true(seen.mapped >= 10 && seen.pwritten == 0);
}

static void every_generation(void **state)
{
	run_clean("kbl", 4, true);
	run_clean("tgl", 5, true);
	run_clean("adl", 5, false);
	run_clean("dg2", 10, false);
	run_clean("ivb", 3, true);
}

static void old_mapping_where_writing_is_refused(void **state)
{
	struct backend_settings settings = {.variant = VARIANT_STOCK};
	struct backend *backend;
	struct seen seen;
	int error;

	play("ivb", "nopwrite", NULL);
	backend = open_backend(&settings);
	assert_non_null(strstr(backend->notes[0], "written by MMAP"));
	assert_int_equal(turn(backend, MIB, &error), 3);
	backend->ops->close(backend);
	seen = read_log();
	assert_int_equal(seen.breaches, 0);
	assert_true(seen.mapped > 0);
}

static void leak_closes_only_what_was_purged(void **state)
{
	struct backend_settings settings = {.variant = VARIANT_STOCK, .leak = true};
	struct backend *backend;
	struct seen seen;
	int error;

	play("kbl", NULL, "8388608"); /* eight of 1 MiB */
	backend = open_backend(&settings);
	assert_string_equal(backend->release_context, "shrinker");
	for (int i = 0; i < 100; i++) {
		turn(backend, MIB, &error);
		assert_int_equal(error, 0);
	}
	backend->ops->close(backend);
	seen = read_log();
	assert_int_equal(seen.breaches, 0);
	assert_true(seen.purged > 50);
	assert_true(seen.closed > 50);
	/* At most what the shrinker leaves, and what was purged since it was looked at. */
	assert_true(seen.left < 40);
}

static void nothing_is_closed_while_nothing_is_purged(void **state)
{
	struct backend_settings settings = {.variant = VARIANT_STOCK, .leak = true};
	struct backend *backend;
	struct seen seen;
	int error;

	play("kbl", NULL, NULL);
	backend = open_backend(&settings);
	for (int i = 0; i < 20; i++)
		turn(backend, 4096, &error);
	backend->ops->close(backend);
	seen = read_log();
	assert_int_equal(seen.breaches, 0);
	assert_int_equal(seen.purged, 0);
	assert_true(seen.advised > 20);
	assert_int_equal(seen.left, 20);
}

static void leak_in_a_group_is_refused(void **state)
{
	struct backend_settings settings = {.leak = true, .in_memcg = true};
	struct backend *backend = NULL;
	struct message message = {""};

	play("kbl", NULL, NULL);
	assert_int_equal(backend_find("i915")->open(&settings, &backend, &message), -ENOTSUP);
	assert_non_null(strstr(message.text, "shrinker"));
	assert_null(backend);
}

static void dependencies_add_a_written_object(void **state)
{
	struct backend_settings settings = {.dependencies = true};
	struct backend *backend;
	struct seen seen;
	int error;

	play("tgl", NULL, NULL);
	backend = open_backend(&settings);
	assert_int_equal(turn(backend, 4096, &error), 5);
	assert_int_equal(error, 0);
	backend->ops->close(backend);
	seen = read_log();
	assert_int_equal(seen.breaches, 0);
	assert_int_equal(seen.left, 0);
}

/* Bytes of the batch that -r 10ms makes. */
static double calibrated_bytes(void)
{
	struct backend_settings settings = {.batch_ns = 10 * NS_PER_MS};
	struct backend *backend = open_backend(&settings);
	double size = 0;
	char unit = 0;
	int error;

	assert_non_null(backend->notes[1]);
	assert_int_equal(sscanf(backend->notes[1], "-r: batches of %lf%c take", &size, &unit), 2);
	assert_int_equal(turn(backend, 4096, &error), 4);
	assert_int_equal(error, 0);
	backend->ops->close(backend);
	assert_int_equal(read_log().breaches, 0);
	return size * (unit == 'M' ? 1048576.0 : unit == 'K' ? 1024.0 : 1.0);
}

/*
 * The double runs a command of 4 bytes a nanosecond: 400 us are 1.6 MB. A busy machine makes the
 * time look longer and so the batch shorter, hence several tries.
 */
static void batches_last_as_long_as_asked(void **state)
{
	struct backend_settings settings = {0};
	struct backend *backend;
	double most = 0;

	play("kbl", NULL, NULL);
	for (int i = 0; i < 8 && most < 0.25e6; i++) {
		double bytes = calibrated_bytes();

		most = bytes > most ? bytes : most;
	}
	assert_true(most >= 0.25e6 && most < 0.45e6);

	settings.batch_ns = -65536; /* raw bytes */
	backend = open_backend(&settings);
	assert_non_null(strstr(backend->notes[1], "batches of 64K"));
	backend->ops->close(backend);
	assert_int_equal(read_log().breaches, 0);
}

static void interrupted_calls_are_restarted(void **state)
{
	struct backend_settings settings = {0};
	struct backend *backend;
	struct seen seen;
	int error;

	play("kbl", "eintr*3,eagain*2", NULL);
	backend = open_backend(&settings);
	for (int i = 0; i < 50; i++) {
		assert_int_equal(turn(backend, 4096, &error), 4);
		assert_int_equal(error, 0);
	}
	backend->ops->close(backend);
	seen = read_log();
	assert_int_equal(seen.breaches, 0);
	assert_int_equal(seen.left, 0);
}

/* Turns until one fails; the errno, and why. */
static int fails_with(const char *personality, const char *fail, const char *why)
{
	struct backend_settings settings = {0};
	struct backend *backend;
	const char *failure;
	int error = 0;

	play(personality, fail, NULL);
	backend = open_backend(&settings);
	for (int i = 0; i < 100 && !error; i++)
		turn(backend, MIB, &error);
	failure = atomic_load(&backend->failure);
	if (why) {
		assert_non_null(failure);
		assert_non_null(strstr(failure, why));
	}
	backend->ops->close(backend);
	assert_int_equal(read_log().breaches, 0);
	return error;
}

static void failures_end_the_load_with_a_reason(void **state)
{
	assert_int_equal(fails_with("kbl", "eio@20", "hung"), -EIO);
	assert_int_equal(fails_with("kbl", "enodev@20", "gone"), -ENODEV);
	assert_int_equal(fails_with("kbl", "enospc@20", "address space"), -ENOSPC);
	assert_int_equal(fails_with("kbl", "enomem@20", NULL), -ENOMEM);
}

static void refuses(const char *personality, const char *fail, const char *device, int error,
		    const char *why)
{
	struct backend_settings settings = {.device = device};
	struct backend *backend = NULL;
	struct message message = {""};

	play(personality, fail, NULL);
	assert_int_equal(backend_find("i915")->open(&settings, &backend, &message), error);
	if (!strstr(message.text, why) || strchr(message.text, '\n'))
		fail_msg("'%s' does not say '%s' in one line", message.text, why);
	assert_null(backend);
}

static void says_why_there_is_no_gpu(void **state)
{
	refuses("kbl", "eio@1", NULL, -EIO, "wedged");
	refuses("kbl", "hang@1", NULL, -ETIMEDOUT, "busy or hung");
	refuses("kbl", "eacces", NULL, -EACCES, "render");
	refuses("kbl", NULL, "pci:vendor=1002", -ENODEV, "8086:5912");
	refuses("kbl", NULL, "pci:device=9999", -ENODEV, "8086:5912");
	refuses("kbl", NULL, "pci:card=1", -ENODEV, "8086:5912");
	refuses("kbl", NULL, "pci:colour=red", -EINVAL, "not understood");
	refuses("kbl", NULL, "/dev/dri/renderD129", -ENODEV, "8086:5912");
	refuses(NULL, NULL, "/dev/dri/renderD250", -ENODEV, "renderD250");
}

static void filters_find_it(void **state)
{
	static const char *const filters[] = {"/dev/dri/renderD128",
					      "/dev/dri/card0",
					      "drm:/dev/dri/card0",
					      "pci:vendor=8086",
					      "pci:vendor=intel,device=5912,card=0",
					      "pci:vendor=Intel",
					      "pci:slot=0000:00:02.0",
					      "pci:"};

	play("kbl", NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(filters); i++) {
		struct backend_settings settings = {.device = filters[i]};
		struct backend *backend = open_backend(&settings);

		backend->ops->close(backend);
	}
	assert_int_equal(read_log().breaches, 0);
}

static void *worker(void *argument)
{
	struct backend *backend = argument;
	int error = 0;

	for (int i = 0; i < 100 && !error; i++)
		turn(backend, 65536, &error);
	return (void *)(intptr_t)error;
}

static void threads_share_it(void **state)
{
	struct backend_settings settings = {.leak = true};
	struct backend *backend;
	pthread_t threads[4];
	struct seen seen;

	play("kbl", "eintr*1", "1048576");
	backend = open_backend(&settings);
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, worker, backend), 0);
	for (int i = 0; i < 4; i++) {
		void *result;

		pthread_join(threads[i], &result);
		assert_int_equal((intptr_t)result, 0);
	}
	backend->ops->close(backend);
	seen = read_log();
	assert_int_equal(seen.breaches, 0);
	assert_true(seen.purged > 0);
}

static void names_what_it_observed(void **state)
{
	const struct drm_levels none = {1000, 50}, marked = {5100, 50}, locked = {5100, 4140},
				half = {3000, 50};

	assert_string_equal(drm_variant_of(&none, &none, 4096), "stock");
	assert_string_equal(drm_variant_of(&none, &marked, 4096), "mapping or mapping-v7");
	assert_string_equal(drm_variant_of(&none, &locked, 4096), "mlock");
	assert_null(drm_variant_of(&none, &half, 4096));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_generation),
		cmocka_unit_test(old_mapping_where_writing_is_refused),
		cmocka_unit_test(leak_closes_only_what_was_purged),
		cmocka_unit_test(nothing_is_closed_while_nothing_is_purged),
		cmocka_unit_test(leak_in_a_group_is_refused),
		cmocka_unit_test(dependencies_add_a_written_object),
		cmocka_unit_test(batches_last_as_long_as_asked),
		cmocka_unit_test(interrupted_calls_are_restarted),
		cmocka_unit_test(failures_end_the_load_with_a_reason),
		cmocka_unit_test(says_why_there_is_no_gpu),
		cmocka_unit_test(filters_find_it),
		cmocka_unit_test(threads_share_it),
		cmocka_unit_test(names_what_it_observed),
	};
	char library[300], options[300];
	int failed;

	snprintf(library, sizeof(library), "%s/tests/double/libi915double.so",
		 getenv("TEST_BUILD_ROOT") ? getenv("TEST_BUILD_ROOT") : "build");
	if (!getenv("TEST_I915_AGAIN")) {
		setenv("TEST_I915_AGAIN", "1", 1);
		testing_make_tree(tree, sizeof(tree));
		setenv("I915_DOUBLE_TREE", tree, 1);
		setenv("LD_PRELOAD", library, 1);
		/* The double comes before the sanitizer's library, and calls on into it. */
		snprintf(options, sizeof(options), "%s:verify_asan_link_order=0",
			 getenv("ASAN_OPTIONS") ? getenv("ASAN_OPTIONS") : "");
		setenv("ASAN_OPTIONS", options, 1);
		execv("/proc/self/exe", argv);
		return 1;
	}
	snprintf(tree, sizeof(tree), "%s", getenv("I915_DOUBLE_TREE"));
	unsetenv("LD_PRELOAD");
	snprintf(log_path, sizeof(log_path), "%s/log", tree);
	setenv("I915_DOUBLE_LOG", log_path, 1);
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	testing_remove_tree(tree);
	return failed;
}
