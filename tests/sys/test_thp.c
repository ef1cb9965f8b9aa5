/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include <errno.h>
#include <sys/mman.h>

#include "base/file.h"
#include "sys/thp.h"

#define FOLDER "/sys/kernel/mm/transparent_hugepage"

static void kernels_of_all_kinds(void **state)
{
	struct thp_size *sizes;
	uint64_t bytes;
	char tree[256];
	size_t count;

	testing_make_tree(tree, sizeof(tree));
	machine_set_root(tree);
	assert_int_equal(thp_page_bytes(&bytes), -ENOTSUP);
	assert_int_equal(thp_mode(), THP_UNSUPPORTED);
	assert_int_equal(thp_sizes(&sizes, &count), -ENOTSUP);
	testing_write(tree, FOLDER "/hpage_pmd_size", "2097152\n");
	testing_write(tree, FOLDER "/enabled", "always [madvise] never\n");
	assert_int_equal(thp_page_bytes(&bytes), 0);
	assert_int_equal(bytes, 2 << 20);
	assert_int_equal(thp_mode(), THP_MADVISE);
	assert_int_equal(thp_sizes(&sizes, &count), 0);
	assert_int_equal(count, 0);
	free(sizes);
	testing_write(tree, FOLDER "/enabled", "always madvise [never]\n");
	assert_int_equal(thp_mode(), THP_NEVER);
	testing_write(tree, FOLDER "/enabled", "[always] madvise never\n");
	testing_write(tree, FOLDER "/hugepages-2048kB/enabled", "always [inherit] madvise never\n");
	assert_int_equal(thp_mode(), THP_ALWAYS);
	testing_write(tree, FOLDER "/hugepages-2048kB/enabled", "always inherit madvise [never]\n");
	assert_int_equal(thp_mode(), THP_NEVER);
	testing_write(tree, FOLDER "/hugepages-64kB/enabled", "[always] inherit madvise never\n");
	testing_write(tree, FOLDER "/hugepages-8kB/shmem_enabled", "[never]\n");
	testing_write(tree, FOLDER "/hugepages-x/enabled", "[never]\n");
	assert_int_equal(thp_sizes(&sizes, &count), 0);
	assert_int_equal(count, 2);
	assert_int_equal(sizes[0].bytes, 64 << 10);
	assert_string_equal(sizes[0].enabled, "always");
	assert_int_equal(sizes[1].bytes, 2 << 20);
	assert_string_equal(sizes[1].enabled, "never");
	free(sizes);
	machine_set_root(NULL);
	testing_remove_tree(tree);
}

static void regions_are_aligned_and_guarded(void **state)
{
	struct thp_region region, none = {0};
	uint64_t huge_bytes, mapped;
	unsigned char resident;

	if (thp_page_bytes(&huge_bytes) < 0)
		SKIP_BECAUSE("a kernel without transparent huge pages");
	assert_int_equal(thp_region_map(huge_bytes + 1, &region), 0);
	assert_int_equal((uintptr_t)region.memory % huge_bytes, 0);
	assert_int_equal(region.bytes, 2 * huge_bytes);
	assert_true((char *)region.memory > (char *)region.mapping);
	assert_true((char *)region.memory + region.bytes <
		    (char *)region.mapping + region.mapping_bytes);
	/* Nothing is there before it is touched, and smaps agrees. */
	assert_int_equal(mincore(region.memory, 4096, &resident), 0);
	assert_int_equal(resident & 1, 0);
	assert_int_equal(thp_mapped_bytes(region.memory, region.bytes, &mapped), 0);
	assert_int_equal(mapped, 0);
	/* Half of a mapping cannot be told from smaps. */
	assert_int_equal(thp_mapped_bytes(region.memory, huge_bytes, &mapped), -ERANGE);
	thp_region_unmap(&region);
	assert_null(region.memory);
	thp_region_unmap(&none);
	assert_int_equal(thp_region_map(0, &region), -EINVAL);
	assert_int_equal(thp_region_map(SIZE_MAX, &region), -EINVAL);
}

static void huge_pages_are_counted(void **state)
{
	uint64_t huge_bytes, mapped;
	struct thp_region region;

	if (thp_page_bytes(&huge_bytes) < 0 || thp_mode() < THP_MADVISE || thp_forbidden_here())
		SKIP_BECAUSE("transparent huge pages are off");
	assert_int_equal(thp_region_map(4 * huge_bytes, &region), 0);
	assert_int_equal(madvise(region.memory, region.bytes, MADV_HUGEPAGE), 0);
	memset(region.memory, 1, region.bytes);
	assert_int_equal(thp_mapped_bytes(region.memory, region.bytes, &mapped), 0);
	assert_int_equal(mapped % huge_bytes, 0);
	if (mapped == 0) {
		thp_region_unmap(&region);
		SKIP_BECAUSE("no huge page was free");
	}
	/* A page freed out of a huge one splits the mapping. */
	assert_int_equal(madvise(region.memory, 4096, MADV_DONTNEED), 0);
	assert_int_equal(thp_mapped_bytes(region.memory, region.bytes, &mapped), 0);
	assert_true(mapped < region.bytes);
	/* Small pages are none. */
	assert_int_equal(madvise(region.memory, region.bytes, MADV_DONTNEED), 0);
	assert_int_equal(madvise(region.memory, region.bytes, MADV_NOHUGEPAGE), 0);
	memset(region.memory, 1, region.bytes);
	assert_int_equal(thp_mapped_bytes(region.memory, region.bytes, &mapped), 0);
	assert_int_equal(mapped, 0);
	thp_region_unmap(&region);
}

/* 0 allowed, 1 forbidden, 3 (Linux 6.18) forbidden but where madvise asks; < 0: no such call. */
static void except_advised_is_no_ban(void **state)
{
	assert_false(thp_answer_forbids(0));
	assert_true(thp_answer_forbids(1));
	assert_false(thp_answer_forbids(3));
	assert_false(thp_answer_forbids(-1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_of_all_kinds),
		cmocka_unit_test(regions_are_aligned_and_guarded),
		cmocka_unit_test(huge_pages_are_counted),
		cmocka_unit_test(except_advised_is_no_ban),
	};

	return cmocka_run_group_tests_name("thp memory", tests, NULL, NULL);
}
