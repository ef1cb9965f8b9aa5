/* SPDX-License-Identifier: MIT */
#include "loads/load_run.h"

#include "base/clock.h"

extern const struct backend_ops backend_shm;

static struct load_settings gem_settings(enum variant variant)
{
	struct load_settings settings = {
		.ops = load_find("gem"),
		.backend = &backend_shm,
		.backend_settings = {.variant = variant},
		.footprint_bytes = 64 * MIB,
		.limit_bytes = 256 * MIB,
	};

	return settings;
}

static void holds_and_churns(enum variant variant)
{
	struct load_settings settings = gem_settings(variant);
	const double footprint_pages = 64 * 256;
	struct message message = {""};
	struct load_run run;
	double unevictable, mlocked;

	run_prepare(&run, 256 * MIB, 0);
	assert_int_equal(cpu_list_allowed(0, &settings.cpus), 0);
	assert_int_equal(run_start(&run, &settings, 20 * NS_PER_S, &message), 0);
	run_measure(&run, NS_PER_S);
	run_show(&run);
	assert_true(run_stat(&run, "buffers") >= 2);
	assert_true(run_stat(&run, "ops") == run_stat(&run, "submissions"));
	assert_true(run_stat(&run, "populate_ns") > 0);
	assert_true(run_stat(&run, "release_ns") > 0);
	assert_true(atomic_load(&run.process.load.shared->pinned_bytes) >= 64 * MIB);
	assert_string_equal(run.process.load.shared->pin_method, "vmsplice");
	assert_string_equal(run.process.load.shared->release_context, "load");
	assert_non_null(strstr(run.process.load.shared->note.text, "shrinker"));
	assert_true(run_level(&run, "memcg.usage_bytes") >= (int64_t)(64 * MIB));

	/* What the kernel says that these pages are, and a neighbour's in between. */
	assert_true(run_stat(&run, "observed_pages") == footprint_pages);
	unevictable = run_stat(&run, "observed_unevictable_pages");
	mlocked = run_stat(&run, "observed_mlock_pages");
	if (geteuid() == 0 && variant == VARIANT_STOCK)
		assert_true(unevictable < footprint_pages * 0.4);
	else if (geteuid() == 0)
		assert_true(unevictable > footprint_pages * 0.6);
	if (geteuid() == 0 && variant == VARIANT_MLOCK)
		assert_true(mlocked > footprint_pages * 0.6);
	else if (geteuid() == 0)
		assert_true(mlocked < footprint_pages * 0.4);
	run_end(&run);
	/* It ends when it is told; how soon is the machine's affair. */
	assert_true(run.stop_ns < 20 * NS_PER_S);
	cpu_list_free(&settings.cpus);
}

static void stock(void **state)
{
	holds_and_churns(VARIANT_STOCK);
}

static void mapping(void **state)
{
	holds_and_churns(VARIANT_MAPPING);
}

static void mlocked(void **state)
{
	holds_and_churns(VARIANT_MLOCK);
}

static void leak_is_a_bounded_queue(void **state)
{
	struct load_settings settings = gem_settings(VARIANT_STOCK);
	struct load_run run;

	settings.footprint_bytes = 0;
	settings.backend_settings.leak = true;
	run_prepare(&run, 256 * MIB, 0);
	assert_int_equal(run_start(&run, &settings, 20 * NS_PER_S, NULL), 0);
	run_measure(&run, NS_PER_S);
	run_show(&run);
	assert_true(run_stat(&run, "budget_bytes") == 64 * MIB);
	assert_true(run_stat(&run, "queued_bytes") >= 32 * MIB);
	assert_true(run_stat(&run, "queued_bytes") <= 64 * MIB);
	assert_true(run_stat(&run, "release_ns") > 0);
	assert_true(run_level(&run, "memcg.usage_bytes") < (int64_t)(100 * MIB));
	run_end(&run);
}

static double rate_at_ten_a_second(void)
{
	struct load_settings settings = gem_settings(VARIANT_STOCK);
	struct load_run run;
	double rate;

	settings.footprint_bytes = 0;
	settings.rate_per_s = 10;
	run_prepare(&run, 256 * MIB, 0);
	assert_int_equal(cpu_list_allowed(0, &settings.cpus), 0);
	assert_int_equal(run_start(&run, &settings, 20 * NS_PER_S, NULL), 0);
	run_measure(&run, 2 * NS_PER_S);
	rate = run_stat(&run, "ops_per_s");
	run_end(&run);
	cpu_list_free(&settings.cpus);
	return rate;
}

/* All workers together: never more; less only while others leave the machine too little, for which
 * a few tries allow. */
static void rate_is_kept_over_all_workers(void **state)
{
	double rate = 0;

	for (int try = 0; try < 5 && rate < 8.5; try++) {
		rate = rate_at_ten_a_second();
		assert_true(rate <= 11.5);
	}
	assert_true(rate >= 8.5);
}

static void impossible_settings_are_told(void **state)
{
	struct load_settings settings = gem_settings(VARIANT_STOCK);
	struct message message = {""};
	struct load_process process;

	settings.footprint_bytes = 250 * MIB;
	assert_int_equal(load_start(&settings, NULL, &process, &message), -EINVAL);
	assert_non_null(strstr(message.text, "--limit"));
	settings = gem_settings(VARIANT_STOCK);
	settings.backend = NULL;
	assert_int_equal(load_start(&settings, NULL, &process, &message), -EINVAL);
	assert_non_null(strstr(message.text, "backend"));
	loads_free(&process, 1);
}

/* ---- a backend that fails as told, in the load's own process ---- */

struct fake {
	struct backend public;
	_Atomic uint64_t calls;
};

static int fake_open(const struct backend_settings *settings, struct backend **ret_backend,
		     struct message *message)
{
	struct fake *fake;

	if (settings->device)
		return message_set(message, -ENODEV, "fake: no such device");
	fake = calloc(1, sizeof(*fake));
	if (!fake)
		return -ENOMEM;
	fake->public.release_context = "shrinker";
	fake->public.pin_method = "driver";
	*ret_backend = &fake->public;
	return 0;
}

static int fake_short_of_memory(struct backend *backend, struct buffer *buffer)
{
	struct fake *fake = (struct fake *)backend;

	return atomic_fetch_add(&fake->calls, 1) % 2 ? -ENOMEM : 0;
}

static int fake_hangs(struct backend *backend, struct buffer *buffer)
{
	atomic_store(&backend->failure, "the GPU hangs");
	return -EIO;
}

static int fake_exercise(struct backend *backend, struct buffer *buffer, struct random *random,
			 uint64_t *ret_submitted)
{
	/* Without -m a driver's buffers are small, with it they are big. */
	if (buffer->bytes != 4096 && buffer->bytes != 16 * MIB)
		return -EINVAL;
	*ret_submitted = 4;
	return 0;
}

static int fake_release(struct backend *backend, struct buffer *buffer)
{
	return 0;
}

static void fake_close(struct backend *backend)
{
	free(backend);
}

static struct backend_ops fake_backend(int (*allocate)(struct backend *, struct buffer *))
{
	struct backend_ops ops = {
		.name = "fake",
		.summary = "fails as told",
		.variants = 1 << VARIANT_STOCK,
		.open = fake_open,
		.allocate = allocate,
		.exercise = fake_exercise,
		.release = fake_release,
		.close = fake_close,
	};

	return ops;
}

static void want_of_memory_is_waited_out_and_counted(void **state)
{
	struct backend_ops ops = fake_backend(fake_short_of_memory);
	struct load_settings settings = {.ops = load_find("gem"), .backend = &ops};
	struct load_run run;

	settings.backend_settings.variant = VARIANT_STOCK;
	run_prepare(&run, 0, 0);
	assert_int_equal(run_start(&run, &settings, 5 * NS_PER_S, NULL), 0);
	run_measure(&run, NS_PER_S / 2);
	run_show(&run);
	assert_true(run_stat(&run, "allocation_failures") >= 2);
	assert_true(run_stat(&run, "buffers") >= 2);
	assert_true(run_stat(&run, "submissions") == 4 * run_stat(&run, "buffers"));
	assert_true(run_stat(&run, "bytes") == 4096 * run_stat(&run, "buffers"));
	run_end(&run);
}

static void a_fault_of_the_driver_ends_it_with_words(void **state)
{
	struct backend_ops ops = fake_backend(fake_hangs);
	struct load_settings settings = {.ops = load_find("gem"), .backend = &ops};
	struct message message = {""};
	struct load_run run;

	settings.backend_settings.variant = VARIANT_STOCK;
	settings.footprint_bytes = 32 * MIB;
	run_prepare(&run, 0, 0);
	assert_int_equal(run_start(&run, &settings, 5 * NS_PER_S, &message), -EIO);
	assert_non_null(strstr(message.text, "the GPU hangs"));
	assert_non_null(strstr(message.text, "footprint"));
	run_end(&run);

	/* The same in the churn, after it was steady. */
	settings.footprint_bytes = 0;
	run_prepare(&run, 0, 0);
	run_start(&run, &settings, 5 * NS_PER_S, &message);
	for (int i = 0; i < 500 && loads_poll(&run.process, 1, &message) == 0; i++)
		clock_sleep_for(10 * NS_PER_MS);
	assert_int_equal(loads_poll(&run.process, 1, &message), -ECHILD);
	assert_non_null(strstr(message.text, "the GPU hangs"));
	run_end(&run);
	assert_true(run.process.died);
}

static void a_backend_that_does_not_open_is_told(void **state)
{
	struct backend_ops ops = fake_backend(fake_hangs);
	struct load_settings settings = {.ops = load_find("gem"), .backend = &ops};
	struct message message = {""};
	struct load_run run;

	settings.backend_settings.variant = VARIANT_STOCK;
	settings.backend_settings.device = "/dev/dri/card9";
	run_prepare(&run, 0, 0);
	assert_int_equal(run_start(&run, &settings, 5 * NS_PER_S, &message), -ENODEV);
	assert_string_equal(message.text, "fake: no such device");
	run_end(&run);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stock),
		cmocka_unit_test(mapping),
		cmocka_unit_test(mlocked),
		cmocka_unit_test(leak_is_a_bounded_queue),
		cmocka_unit_test(rate_is_kept_over_all_workers),
		cmocka_unit_test(impossible_settings_are_told),
		cmocka_unit_test(want_of_memory_is_waited_out_and_counted),
		cmocka_unit_test(a_fault_of_the_driver_ends_it_with_words),
		cmocka_unit_test(a_backend_that_does_not_open_is_told),
	};

	return cmocka_run_group_tests_name("load gem", tests, NULL, NULL);
}
