/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include "sys/steal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"

static char root[TREE_SIZE];

/* A machine whose CPU 0 lost @ticks so far; @extra: more lines. */
static void lay_out_stat(int ticks, const char *extra)
{
	char text[512];

	snprintf(text, sizeof(text),
		 "cpu  9 9 9 9 9 9 9 999 0 0\ncpu0 10 0 5 900 1 0 2 %d 0 0\n%sintr 1 2 3\n", ticks,
		 extra);
	testing_write(root, "/proc/stat", text);
}

static int set_up(void **state)
{
	testing_open_machine(root);
	return 0;
}

static int tear_down(void **state)
{
	testing_close_machine(root);
	return 0;
}

static void between_is_of_the_enclosing_polls(void **state)
{
	struct steal_log *log = steal_log_new();
	const int64_t tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);

	lay_out_stat(5, "");
	steal_log_poll(log, 1000);
	lay_out_stat(7, "");
	steal_log_poll(log, 2000);
	lay_out_stat(12, "");
	steal_log_poll(log, 3000);
	assert_int_equal(steal_log_between(log, 0, 1100, 1900), 2 * tick_ns);
	assert_int_equal(steal_log_between(log, 0, 1100, 2100), 7 * tick_ns);
	assert_int_equal(steal_log_between(log, 0, 2000, 2000), 0);
	assert_int_equal(steal_log_between(log, 0, 999, 2000), -1);
	assert_int_equal(steal_log_between(log, 0, 1500, 3001), -1);
	steal_log_free(log);
}

/* A CPU that was stopped counts it at a later tick. */
static void around_waits_until_it_is_counted(void **state)
{
	struct steal_log *log = steal_log_new();
	const int64_t tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK), end_ns = 100 * NS_PER_MS;
	const int64_t late_ns = 40 * NS_PER_MS, when_ns = end_ns - late_ns;

	lay_out_stat(5, "");
	steal_log_poll(log, when_ns);
	steal_log_poll(log, end_ns);
	steal_log_poll(log, end_ns + 1);
	assert_int_equal(steal_log_around(log, 0, when_ns, late_ns), -1);
	lay_out_stat(9, "");
	steal_log_poll(log, end_ns + STEAL_COUNTED_NS);
	assert_int_equal(steal_log_around(log, 0, when_ns, late_ns), 4 * tick_ns);
	lay_out_stat(99, "");
	steal_log_poll(log, end_ns + 2 * STEAL_COUNTED_NS);
	assert_int_equal(steal_log_around(log, 0, when_ns, late_ns), 4 * tick_ns);
	steal_log_free(log);
}

static void unknown_cpus_have_none(void **state)
{
	struct steal_log *log = steal_log_new();

	lay_out_stat(5, "cpu1000000 1 1 1 1 1 1 1 1 0 0\n");
	steal_log_poll(log, 1000);
	steal_log_poll(log, 2000);
	assert_int_equal(steal_log_between(log, 0, 1000, 2000), 0);
	assert_int_equal(steal_log_between(log, 1, 1000, 2000), -1);
	assert_int_equal(steal_log_between(log, 1000000, 1000, 2000), -1);
	assert_int_equal(steal_log_between(log, -1, 1000, 2000), -1);
	steal_log_free(log);
}

static void long_run_keeps_its_beginning_and_its_end(void **state)
{
	struct steal_log *log = steal_log_new();
	const int64_t tick_ns = NS_PER_S / sysconf(_SC_CLK_TCK);

	for (int i = 0; i < 5000; i++) {
		if (i % 1000 == 0)
			lay_out_stat(i / 1000, "");
		steal_log_poll(log, i);
	}
	assert_int_equal(steal_log_between(log, 0, 0, 4999), 4 * tick_ns);
	assert_int_equal(steal_log_between(log, 0, 4990, 4998), 0);
	steal_log_free(log);
}

static void no_proc_is_unknown(void **state)
{
	struct steal_log *log = steal_log_new();

	machine_set_root("/nonexistent");
	steal_log_poll(log, 1000);
	assert_int_equal(steal_log_between(log, 0, 1000, 1000), -1);
	steal_log_poll(NULL, 1000);
	assert_int_equal(steal_log_between(NULL, 0, 1000, 1000), -1);
	steal_log_free(NULL);
	machine_set_root(root);
	steal_log_free(log);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(between_is_of_the_enclosing_polls),
		cmocka_unit_test(around_waits_until_it_is_counted),
		cmocka_unit_test(unknown_cpus_have_none),
		cmocka_unit_test(long_run_keeps_its_beginning_and_its_end),
		cmocka_unit_test(no_proc_is_unknown),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
