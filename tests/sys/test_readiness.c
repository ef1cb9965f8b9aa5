/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include "base/file.h"
#include "base/json.h"
#include "sys/environment.h"
#include "sys/readiness.h"

static char tree[256];

static int set_up(void **state)
{
	testing_make_tree(tree, sizeof(tree));
	machine_set_root(tree);
	/* a machine that is fit */
	testing_write(tree, "/proc/meminfo", "MemTotal: 16254304 kB\nSwapTotal: 1048572 kB\n");
	testing_write(tree, "/proc/pressure/memory", "some avg10=0 total=0\n");
	testing_write(
		tree, "/proc/buddyinfo",
		"Node 0, zone      DMA      1      0      0      0      0      0      0      0"
		"      0      1      3\n"
		"Node 0, zone   Normal   9000   8000      0      0      0      0      0      0"
		"      0     10    400\n");
	testing_write(tree, "/sys/kernel/mm/transparent_hugepage/enabled",
		      "always [madvise] never\n");
	testing_write(tree, "/proc/sys/kernel/sched_rt_runtime_us", "-1\n");
	testing_write(tree, "/proc/sys/kernel/sched_rt_period_us", "1000000\n");
	testing_write(tree, "/proc/sys/kernel/hung_task_warnings", "10\n");
	testing_write(tree, "/proc/cpuinfo", "model name\t: x\nflags\t\t: fpu\n");
	testing_write(tree, "/sys/devices/system/cpu/online", "0\n");
	testing_write(tree, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
		      "performance\n");
	return 0;
}

static int tear_down(void **state)
{
	machine_set_root(NULL);
	testing_remove_tree(tree);
	return 0;
}

/* Warnings of the machine as laid out now; the clock's cost is the real one and is left out. */
static json_t *warnings_with(const char *counters_text)
{
	json_t *environment = environment_describe();
	json_t *counters = counters_text ? json_loads(counters_text, 0, NULL) : NULL;
	json_t *warnings;

	assert_true(!counters_text || counters);
	json_object_set_new(environment, "clock_read_ns", json_real(30));
	warnings = readiness_warnings(environment, counters);
	assert_non_null(warnings);
	json_decref(environment);
	json_decref(counters);
	return warnings;
}

/* Exactly one warning, of @kind, with @text in it, and a command that holds @command (NULL: none).
 */
static void expect_one(const char *counters, const char *kind, const char *text,
		       const char *command)
{
	json_t *warnings = warnings_with(counters), *first = json_array_get(warnings, 0);
	const char *seen = json_get_string(first, "command", NULL);

	if (json_array_size(warnings) != 1 ||
	    strcmp(json_get_string(first, "kind", ""), kind) != 0 ||
	    !strstr(json_get_string(first, "text", ""), text) || !seen != !command ||
	    (command && !strstr(seen, command))) {
		char *all = json_dumps(warnings, 0);

		fail_msg("wanted one of %s, got %s", kind, all);
	}
	json_decref(warnings);
}

static void test_a_fit_machine(void **state)
{
	json_t *warnings = warnings_with("{\"clock\": {\"elapsed_ms\": 300}, \"steal_ms\": 0, "
					 "\"cpu\": {\"neighbours_ms\": 10}}");

	assert_int_equal(json_array_size(warnings), 0);
	json_decref(warnings);
	warnings = readiness_warnings(NULL, NULL); /* nothing known: nothing claimed of it */
	assert_non_null(warnings);
	json_decref(warnings);
}

static void test_host(void **state)
{
	expect_one("{\"clock\": {\"elapsed_ms\": 300}, \"steal_ms\": 20}", "steal",
		   "20 ms of the last 300", NULL);
	testing_write(tree, "/proc/cpuinfo", "model name\t: x\nflags\t\t: fpu hypervisor\n");
	expect_one(NULL, "guest", "hypervisor unknown", NULL);
}

static void test_neighbours(void **state)
{
	expect_one("{\"clock\": {\"elapsed_ms\": 300}, \"cpu\": {\"neighbours_ms\": 290, "
		   "\"busiest_neighbour\": \"cc1\", \"busiest_neighbour_pid\": 42}}",
		   "neighbours", "cc1 (pid 42)", "taskset -apc 0 42");
}

static void test_governor(void **state)
{
	testing_write(tree, "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
	expect_one(NULL, "governor", "powersave", "echo performance");
}

static void test_throttling(void **state)
{
	testing_write(tree, "/proc/sys/kernel/sched_rt_runtime_us", "950000\n");
	expect_one(NULL, "throttling", "950 of 1000 ms", "sysctl -w kernel.sched_rt_runtime_us=-1");
}

static void test_no_swap(void **state)
{
	testing_write(tree, "/proc/meminfo", "MemTotal: 16254304 kB\nSwapTotal: 0 kB\n");
	expect_one(NULL, "swap", "no swap", "--swap zram:4G");
}

static void test_huge_pages_off(void **state)
{
	testing_write(tree, "/sys/kernel/mm/transparent_hugepage/enabled",
		      "always madvise [never]\n");
	expect_one(NULL, "thp", "off", "echo madvise");
}

static void test_no_huge_pages(void **state)
{
	testing_remove_tree(tree);
	set_up(state);
	char path[512];

	snprintf(path, sizeof(path), "%s/sys/kernel/mm/transparent_hugepage/enabled", tree);
	assert_int_equal(unlink(path), 0);
	expect_one(NULL, "thp", "no transparent huge pages", NULL);
}

static void test_fragmentation(void **state)
{
	testing_write(
		tree, "/proc/buddyinfo",
		"Node 0, zone   Normal   9000   8000    100    100    100    100    100    100"
		"    100      5      6\n");
	expect_one(NULL, "fragmentation", "only 17 free blocks", "compact_memory");
}

static void test_debugging_kernel(void **state)
{
	testing_write(tree, "/proc/sys/kernel/osrelease", "6.1\n");
	testing_write(tree, "/proc/sys/kernel/version", "#1\n");
	testing_write(tree, "/boot/config-6.1", "CONFIG_KASAN=y\nCONFIG_PROVE_LOCKING=y\n");
	expect_one(NULL, "debugging", "KASAN PROVE_LOCKING", NULL);
}

static void test_reclaimers(void **state)
{
	testing_write(tree, "/sys/kernel/mm/lru_gen/enabled", "0x0007\n");
	expect_one(NULL, "mglru", "MGLRU is on", "lru_gen");
	testing_write(tree, "/sys/kernel/mm/lru_gen/enabled", "0x0000\n");
	testing_write(tree, "/sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "1\n");
	testing_write(tree, "/sys/kernel/mm/damon/admin/kdamonds/0/state", "on\n");
	expect_one(NULL, "damon", "DAMON runs", "echo off");
	testing_write(tree, "/sys/kernel/mm/damon/admin/kdamonds/0/state", "off\n");
	test_a_fit_machine(state);
}

static void test_reports(void **state)
{
	testing_write(tree, "/proc/sys/kernel/hung_task_warnings", "0\n");
	expect_one(NULL, "hung-tasks", "used up", "hung_task_warnings=10");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(test_a_fit_machine),    CASE(test_host),	       CASE(test_neighbours),
		CASE(test_governor),	     CASE(test_throttling),    CASE(test_no_swap),
		CASE(test_huge_pages_off),   CASE(test_no_huge_pages), CASE(test_fragmentation),
		CASE(test_debugging_kernel), CASE(test_reclaimers),    CASE(test_reports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
