/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>

#include "sys/knob.h"
#include "sys/knob_record.h"

static void test_only_tracefs_in_its_place(void **state)
{
	static const char *const refused[] = {
		"mount /etc",
		"mount /sys/kernel/tracing/",
		"mount /sys/kernel/tracing/../debug",
		"mount \\e",
		"mount",
		"mount /sys/kernel/tracing 1",
	};
	struct undo_list list = {0};

	assert_int_equal(undo_list_add(&list, 1, "mount /sys/kernel/tracing", NULL), 0);
	assert_int_equal(list.records[0].verb, UNDO_MOUNT);
	/* Others may go on using it, so it holds no machine-wide lock. */
	assert_false(undo_list_is_global(&list));
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		assert_int_equal(undo_list_add(&list, 2, refused[i], NULL), -EINVAL);
	assert_int_equal(list.count, 1);
	undo_list_clear(&list);
}

static void test_mount_and_back(void **state)
{
	bool before = access("/sys/kernel/tracing/instances", F_OK) == 0;
	struct knobs *knobs;
	struct message message = {""};
	int error;

	if (geteuid() != 0)
		SKIP_BECAUSE("mounting needs root");
	if (before)
		SKIP_BECAUSE("tracefs is mounted already");
	assert_int_equal(knobs_open(&knobs, "test", &message), 0);
	error = knobs_mount_tracefs(knobs, &message);
	if (error) {
		knobs_close(knobs, NULL);
		SKIP_BECAUSE("%s", message.text);
	}
	assert_int_equal(access("/sys/kernel/tracing/instances", F_OK), 0);
	assert_int_equal(knobs_make_trace_instance(
				 knobs, "/sys/kernel/tracing/instances/syslatency-test", &message),
			 0);
	assert_int_equal(knobs_close(knobs, &message), 0);
	/* Unless another program has come to use it meanwhile, nothing is left. */
	if (access("/sys/kernel/tracing/instances", F_OK) == 0)
		assert_true(access("/sys/kernel/tracing/instances/syslatency-test", F_OK) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_only_tracefs_in_its_place),
		cmocka_unit_test(test_mount_and_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
