/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>

#include "base/file.h"
#include "run/plan.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static uint64_t budget(const struct load_settings *settings)
{
	return (settings->limit_bytes - settings->footprint_bytes) / 10 * 14;
}

static const struct load_ops gem = {.name = "gem", .flags = LOAD_HOLDS_BUFFERS};
static const struct load_ops swap_load = {
	.name = "swap",
	.flags = LOAD_HOLDS_MEMORY | LOAD_NEEDS_SWAP,
	.default_budget = budget,
};
static const struct machine_memory memory = {.total_bytes = 24 * GIB, .available_bytes = 20 * GIB};

static struct run_settings with_loads(void)
{
	struct run_settings settings = {
		.loads = {&gem, &swap_load},
		.load_count = 2,
		.backend_settings = {.variant = VARIANT_STOCK},
		.limit = {.bytes = 2 * GIB},
		.footprint = {.percent = 50, .is_percent = true},
	};

	return settings;
}

static void arms_get_the_same_traffic(void **state)
{
	struct run_settings settings = with_loads();
	struct run_plan stock, baseline;

	assert_int_equal(run_plan_make(&settings, &memory, &stock, NULL, NULL), 0);
	settings.backend_settings.variant = VARIANT_BASELINE;
	assert_int_equal(run_plan_make(&settings, &memory, &baseline, NULL, NULL), 0);
	assert_true(stock.memcg && baseline.memcg);
	assert_int_equal(stock.load_count, 2);
	assert_int_equal(baseline.load_count, 1);
	assert_int_equal(stock.footprint_bytes, GIB);
	assert_int_equal(baseline.footprint_bytes, 0);
	assert_int_equal(stock.limit_bytes, 2 * GIB);
	assert_int_equal(baseline.limit_bytes, GIB);
	assert_int_equal(stock.loads[1].budget_bytes, baseline.loads[0].budget_bytes);
	assert_true(stock.swap_bytes >= stock.loads[1].budget_bytes);
	assert_int_equal(stock.swap_bytes, baseline.swap_bytes);
}

static void a_drop_in_call_changes_nothing(void **state)
{
	struct run_settings settings = {
		.pure_drop_in = true,
		.loads = {&gem},
		.load_count = 1,
		.backend_settings = {.variant = VARIANT_STOCK},
	};
	struct run_plan plan;

	assert_int_equal(run_plan_make(&settings, &memory, &plan, NULL, NULL), 0);
	assert_false(plan.memcg);
	assert_int_equal(plan.limit_bytes, 0);
	assert_int_equal(plan.swap_bytes, 0);
}

static void threads_leave_the_machine_its_own(void **state)
{
	struct machine_memory small = {.total_bytes = GIB, .available_bytes = 512 * MIB};
	struct run_settings settings = {.threads = 512};
	struct message message = {""};
	struct run_plan plan;
	char tree[256];

	testing_make_tree(tree, sizeof(tree));
	testing_write(tree, "/proc/sys/kernel/pid_max", "32768\n");
	testing_write(tree, "/proc/sys/kernel/threads-max", "190000\n");
	machine_set_root(tree);
	assert_int_equal(run_plan_make(&settings, &small, &plan, NULL, &message), 0);
	settings.threads = 513;
	assert_int_equal(run_plan_make(&settings, &small, &plan, NULL, &message), -ENOTSUP);
	assert_non_null(strstr(message.text, "enough for 512"));
	settings.threads = 65536;
	assert_int_equal(run_plan_make(&settings, &memory, &plan, NULL, &message), -ENOTSUP);
	assert_non_null(strstr(message.text, "pid_max"));
	settings.cpus.count = 65536; /* such a machine has them anyway */
	assert_int_equal(run_plan_make(&settings, &memory, &plan, NULL, &message), 0);
	machine_set_root(NULL);
	testing_remove_tree(tree);
}

static void defaults_fit_the_machine(void **state)
{
	struct machine_memory small = {.total_bytes = 2 * GIB, .available_bytes = GIB};
	struct run_settings settings = with_loads();
	struct run_plan plan;

	settings.limit.bytes = 0;
	assert_int_equal(run_plan_make(&settings, &small, &plan, NULL, NULL), 0);
	assert_int_equal(plan.limit_bytes, 2 * GIB / 5);
	assert_int_equal(run_plan_make(&settings, &memory, &plan, NULL, NULL), 0);
	assert_int_equal(plan.limit_bytes, 2 * GIB);
}

static void refused(struct run_settings *settings, int error, const char *part)
{
	struct message message = {""};
	struct run_plan plan;

	assert_int_equal(run_plan_make(settings, &memory, &plan, NULL, &message), error);
	if (!strstr(message.text, part))
		fail_msg("'%s' lacks '%s'", message.text, part);
}

static void contradictions_are_told(void **state)
{
	struct run_settings settings = with_loads();

	settings.limit.bytes = 1;
	refused(&settings, -EINVAL, "at least 32M");
	settings = with_loads();
	settings.footprint = (struct size_value){.bytes = 3 * GIB};
	refused(&settings, -EINVAL, "does not fit");
	settings = with_loads();
	settings.scope = SCOPE_MACHINE;
	refused(&settings, -EINVAL, "--scope memcg");
	settings = with_loads();
	settings.loads[0] = &swap_load;
	settings.load_count = 1;
	refused(&settings, -EINVAL, "held by the gem load");
	settings = with_loads();
	settings.scope = SCOPE_MACHINE;
	settings.limit.bytes = 0;
	settings.footprint = (struct size_value){.bytes = 23 * GIB};
	refused(&settings, -ENOMEM, "available");
	settings.force = true;
	assert_int_equal(run_plan_make(&settings, &memory, &(struct run_plan){0}, NULL, NULL), 0);
	settings = with_loads();
	settings.limit.bytes = 22 * GIB;
	refused(&settings, -ENOMEM, "--limit");
	settings = with_loads();
	settings.load_sizes[1].bytes = 4096;
	refused(&settings, -EINVAL, "at least 1M");
}

static void swap_is_made_only_when_missing(void **state)
{
	struct machine_memory swapped = memory;
	struct run_settings settings = with_loads();
	struct run_plan plan;

	swapped.swap_free_bytes = 8 * GIB;
	assert_int_equal(run_plan_make(&settings, &swapped, &plan, NULL, NULL), 0);
	assert_int_equal(plan.swap_bytes, 0);
	settings.swap = SWAP_ZRAM;
	settings.swap_size.bytes = 512 * MIB;
	assert_int_equal(run_plan_make(&settings, &swapped, &plan, NULL, NULL), 0);
	assert_int_equal(plan.swap_bytes, 512 * MIB);
	settings.swap = SWAP_NONE;
	assert_int_equal(run_plan_make(&settings, &memory, &plan, NULL, NULL), 0);
	assert_int_equal(plan.swap_bytes, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arms_get_the_same_traffic),
		cmocka_unit_test(a_drop_in_call_changes_nothing),
		cmocka_unit_test(defaults_fit_the_machine),
		cmocka_unit_test(threads_leave_the_machine_its_own),
		cmocka_unit_test(contradictions_are_told),
		cmocka_unit_test(swap_is_made_only_when_missing),
	};

	return cmocka_run_group_tests_name("run/plan", tests, NULL, NULL);
}
