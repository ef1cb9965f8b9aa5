/* SPDX-License-Identifier: MIT */
/* The drm-dumb backend on a real DRM device: run by "scripts/lab test" in a machine that has vgem.
 */
#include "support/testing.h"

#include <errno.h>
#include <pthread.h>
#include <unistd.h>

#include "backends/drm_node.h"
#include "base/clock.h"
#include "base/file.h"
#include "ops.h"

#define MIB (UINT64_C(1) << 20)

static const struct backend_ops *ops;

static struct backend *open_backend(const struct backend_settings *settings)
{
	struct backend *backend = NULL;
	struct message message = {""};
	int error = ops->open(settings, &backend, &message);

	if (error == -ENODEV || error == -EACCES) {
		SKIP_BECAUSE("%s", message.text);
		return NULL;
	}
	if (error)
		fail_msg("%s", message.text);
	for (int i = 0; i < 4 && backend->notes[i]; i++)
		print_message("# %s\n", backend->notes[i]);
	return backend;
}

static int64_t unevictable(void)
{
	struct drm_levels levels = {0};

	assert_int_equal(drm_levels_read(&levels), 0);
	return levels.unevictable_pages;
}

/* virtio-gpu frees behind one's back, when its host has answered: waits until the level stays. */
static int64_t settled(void)
{
	int64_t level = unevictable(), last;

	do {
		last = level;
		clock_sleep_for(200 * NS_PER_MS);
		level = unevictable();
	} while (level < last - 100 || level > last + 100);
	return level;
}

static void pages_are_pinned_and_released(void **state)
{
	struct backend_settings settings = {.variant = VARIANT_STOCK};
	struct backend *backend = open_backend(&settings);
	struct buffer buffer = {.bytes = 64 * MIB};
	int64_t before, held, after;
	uint64_t zeros = 0;

	if (!backend)
		return;
	before = settled();
	assert_int_equal(ops->allocate(backend, &buffer), 0);
	held = unevictable();
	assert_int_equal(buffer.bytes, 64 * MIB);
	assert_non_null(buffer.memory);
	for (uint64_t i = 0; i < buffer.bytes; i += 4096)
		zeros += *(uint64_t *)((char *)buffer.memory + i) == 0;
	assert_true(zeros < 4);
	for (int phase = BUFFER_ALLOCATE; phase <= BUFFER_PIN; phase++)
		assert_true(buffer.phase_ns[phase] > 0);
	assert_int_equal(ops->release(backend, &buffer), 0);
	assert_true(buffer.phase_ns[BUFFER_RELEASE] > 0);
	after = settled();
	print_message("# nr_unevictable %lld, %lld while held, %lld after\n", (long long)before,
		      (long long)held, (long long)after);
	/* 16384 pages; what is marked comes and goes with the buffer. */
	if (backend->observed_variant && strcmp(backend->observed_variant, "stock") != 0) {
		assert_true(held - before > 15000 && held - before < 18000);
		assert_true(after - before < 1500);
	}
	ops->close(backend);
}

/* Debian 12's kernel is 6.1: mapping-v7 for every driver. The lab's own say theirs in the release.
 */
static void observed_variant_is_right_for_the_kernel(void **state)
{
	struct backend_settings settings = {.variant = VARIANT_MAPPING};
	struct backend *backend = open_backend(&settings);
	const char *wanted = "mapping or mapping-v7";
	char release[128];

	if (!backend)
		return;
	assert_int_equal(machine_read_line("/proc/sys/kernel/osrelease", release, sizeof(release)),
			 0);
	if (strstr(release, "-stock"))
		wanted = "stock";
	else if (strstr(release, "-mlock"))
		wanted = "mlock";
	else if (strncmp(release, "6.1.", 4) != 0)
		SKIP_BECAUSE("kernel %s", release);
	assert_non_null(backend->observed_variant);
	assert_string_equal(backend->observed_variant, wanted);
	ops->close(backend);
}

static void *worker(void *argument)
{
	struct backend *backend = argument;
	intptr_t error = 0;

	for (int i = 0; i < 50 && !error; i++) {
		struct buffer buffer = {.bytes = MIB};

		error = ops->allocate(backend, &buffer);
		if (!error)
			error = ops->release(backend, &buffer);
	}
	return (void *)error;
}

static void threads_share_it(void **state)
{
	struct backend_settings settings = {.variant = VARIANT_STOCK};
	struct backend *backend = open_backend(&settings);
	pthread_t threads[4];

	if (!backend)
		return;
	for (int i = 0; i < 4; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, worker, backend), 0);
	for (int i = 0; i < 4; i++) {
		void *error;

		pthread_join(threads[i], &error);
		assert_int_equal((intptr_t)error, 0);
	}
	ops->close(backend);
}

/* Leaked buffers: to the shrinker where the driver has one, else released at once (the load
 * queues). */
static void leak_goes_where_it_says(void **state)
{
	struct backend_settings settings = {.leak = true};
	struct backend *backend = open_backend(&settings);
	int64_t before, after;
	bool shrinker;

	if (!backend)
		return;
	shrinker = strcmp(backend->release_context, "shrinker") == 0;
	print_message("# released in the %s\n", backend->release_context);
	before = settled();
	for (int i = 0; i < 16; i++) {
		struct buffer buffer = {.bytes = MIB};

		assert_int_equal(ops->allocate(backend, &buffer), 0);
		assert_int_equal(ops->release(backend, &buffer), 0);
	}
	after = settled();
	if (backend->observed_variant && strcmp(backend->observed_variant, "stock") != 0) {
		if (shrinker)
			assert_true(after - before > 3000);
		else
			assert_true(after - before < 1000);
	}
	ops->close(backend);
	if (shrinker) {
		settings.in_memcg = true;
		backend = NULL;
		assert_int_equal(ops->open(&settings, &backend, NULL), -ENOTSUP);
	}
}

/* Every card in turn: vgem and virtio-gpu in the lab. */
static void every_card(void **state)
{
	int opened = 0;

	for (int i = 0; i < 8; i++) {
		char node[32];
		struct backend_settings settings = {.device = node};
		struct backend *backend = NULL;
		struct buffer buffer = {.bytes = 4 * MIB};
		struct message message = {""};

		snprintf(node, sizeof(node), "/dev/dri/card%d", i);
		if (!machine_exists(node))
			continue;
		if (ops->open(&settings, &backend, &message) != 0) {
			print_message("# %s\n", message.text);
			continue;
		}
		print_message("# %s\n# %s\n", backend->notes[0], backend->notes[1]);
		assert_int_equal(ops->allocate(backend, &buffer), 0);
		assert_int_equal(ops->release(backend, &buffer), 0);
		ops->close(backend);
		opened++;
	}
	if (opened == 0)
		SKIP_BECAUSE("no card");
}

static void says_why_there_is_none(void **state)
{
	struct backend_settings settings = {.device = "/dev/dri/card250"};
	struct backend *backend = NULL;
	struct message message = {""};

	assert_int_equal(ops->open(&settings, &backend, &message), -ENODEV);
	assert_non_null(strstr(message.text, "card250"));
	settings.device = "pci:vendor=8086";
	assert_int_equal(ops->open(&settings, &backend, &message), -EINVAL);
	machine_set_root("/nowhere");
	settings.device = NULL;
	assert_int_equal(ops->open(&settings, &backend, &message), -ENODEV);
	assert_non_null(strstr(message.text, "modprobe vgem"));
	machine_set_root(NULL);
	assert_null(backend);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_pinned_and_released),
		cmocka_unit_test(observed_variant_is_right_for_the_kernel),
		cmocka_unit_test(threads_share_it),
		cmocka_unit_test(leak_goes_where_it_says),
		cmocka_unit_test(every_card),
		cmocka_unit_test(says_why_there_is_none),
	};

	ops = backend_find("drm-dumb");
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
