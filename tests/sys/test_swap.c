/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>

#include "base/file.h"
#include "undo/transaction.h"
#include "sys/swap.h"

static int set_up(void **state)
{
	char *tree = calloc(1, 256);

	assert_non_null(tree);
	testing_make_tree(tree, 256);
	testing_write(tree, "/run/.keep", "");
	machine_set_root(tree);
	*state = tree;
	return 0;
}

static int tear_down(void **state)
{
	machine_set_root(NULL);
	testing_remove_tree(*state);
	free(*state);
	return 0;
}

static void totals_of_all_areas(void **state)
{
	uint64_t total = 1, unused = 1;

	/* A kernel without swap has no such file. */
	assert_int_equal(swap_total(&total, &unused), 0);
	assert_int_equal(total, 0);
	testing_write(*state, "/proc/swaps", "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n");
	assert_int_equal(swap_total(&total, &unused), 0);
	assert_int_equal(total, 0);
	assert_int_equal(unused, 0);
	testing_write(*state, "/proc/swaps",
		      "Filename Type Size Used Priority\n"
		      "/dev/zram0 partition 65532 32 32767\n"
		      "/swap\\040file file 5368709120 0 -2\n");
	assert_int_equal(swap_total(&total, &unused), 0);
	assert_true(total == (UINT64_C(65532) + UINT64_C(5368709120)) * 1024);
	assert_true(unused == total - 32 * 1024);
}

static void says_what_is_missing(void **state)
{
	struct message message = {0};
	struct swap_area area;
	struct transaction *transaction;

	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(swap_make_zram(transaction, 4096, &area, &message), -EINVAL);
	if (geteuid() == 0) {
		int result = swap_make_zram(transaction, 64 << 20, &area, &message);

		if (result == -EPERM) /* root of a container */
			assert_non_null(strstr(message.text, "CAP_SYS_ADMIN"));
		else
			assert_int_equal(result, -ENODEV);
		assert_non_null(strstr(message.text, "--swap none"));
	}
	assert_int_equal(transaction_close(transaction, NULL), 0);
}

static void a_device_in_use_is_not_taken(void **state)
{
	struct transaction *transaction;
	char text[64];

	testing_write(*state, "/sys/block/zram0/initstate", "1\n");
	assert_int_equal(transaction_open(&transaction, "test", NULL), 0);
	assert_int_equal(transaction_own_swap(transaction, "zram0", false, NULL), -EBUSY);
	testing_write(*state, "/sys/block/zram0/initstate", "0\n");
	testing_write(*state, "/sys/block/zram0/comp_algorithm", "lzo [lzo-rle] lz4 zstd\n");
	testing_write(*state, "/sys/block/zram0/reset", "0\n");
	assert_int_equal(transaction_own_swap(transaction, "zram0", false, NULL), 0);
	assert_int_equal(transaction_close(transaction, NULL), 0);
	assert_int_equal(machine_read_line("/sys/block/zram0/reset", text, sizeof(text)), 0);
	assert_string_equal(text, "1");
	assert_int_equal(machine_read_line("/sys/block/zram0/comp_algorithm", text, sizeof(text)),
			 0);
	assert_memory_equal(text, "lzo-rle", 7);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		CASE(totals_of_all_areas),
		CASE(says_what_is_missing),
		CASE(a_device_in_use_is_not_taken),
	};

	return cmocka_run_group_tests_name("swap", tests, NULL, NULL);
}
