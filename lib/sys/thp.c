/* SPDX-License-Identifier: MIT */
#include "sys/thp.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/file.h"

#ifndef PR_THP_DISABLE_EXCEPT_ADVISED /* include/uapi/linux/prctl.h, since 6.18 */
#define PR_THP_DISABLE_EXCEPT_ADVISED (1 << 1)
#endif

#define THP_FOLDER "/sys/kernel/mm/transparent_hugepage"

int thp_page_bytes(uint64_t *ret_bytes)
{
	int64_t bytes;
	int result = machine_read_int64(THP_FOLDER "/hpage_pmd_size", &bytes);

	if (result == -ENOENT)
		return -ENOTSUP;
	if (result < 0)
		return result;
	if (bytes <= 0)
		return -ENOTSUP;
	*ret_bytes = (uint64_t)bytes;
	return 0;
}

static enum thp_mode mode_of(const char *word)
{
	if (strcmp(word, "always") == 0)
		return THP_ALWAYS;
	return strcmp(word, "madvise") == 0 ? THP_MADVISE : THP_NEVER;
}

enum thp_mode thp_mode(void)
{
	char word[32], path[PATH_MAX];
	uint64_t bytes;

	if (thp_page_bytes(&bytes) < 0)
		return THP_UNSUPPORTED;
	snprintf(path, sizeof(path), THP_FOLDER "/hugepages-%" PRIu64 "kB/enabled", bytes / 1024);
	if (machine_read_choice(path, word, sizeof(word)) == 0 && strcmp(word, "inherit") != 0)
		return mode_of(word);
	if (machine_read_choice(THP_FOLDER "/enabled", word, sizeof(word)) < 0)
		return THP_UNSUPPORTED;
	return mode_of(word);
}

bool thp_answer_forbids(int answer)
{
	return answer > 0 && !(answer & PR_THP_DISABLE_EXCEPT_ADVISED);
}

bool thp_forbidden_here(void)
{
	return thp_answer_forbids(prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0));
}

static int by_size(const void *left, const void *right)
{
	const struct thp_size *a = left, *b = right;

	return (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* "hugepages-64kB"; false for other names. */
static bool read_size(const char *name, struct thp_size *ret_size)
{
	char path[PATH_MAX], unit[4];
	uint64_t kib;

	if (sscanf(name, "hugepages-%" SCNu64 "%3s", &kib, unit) != 2 || strcmp(unit, "kB") != 0)
		return false;
	ret_size->bytes = kib * 1024;
	snprintf(path, sizeof(path), THP_FOLDER "/%s/enabled", name);
	/* Sizes that exist for files and shmem alone have no such file. */
	return machine_read_choice(path, ret_size->enabled, sizeof(ret_size->enabled)) == 0;
}

int thp_sizes(struct thp_size **ret_sizes, size_t *ret_count)
{
	struct thp_size *sizes = NULL, *grown, size;
	struct dirent *entry;
	char path[PATH_MAX];
	size_t count = 0;
	DIR *directory;
	int result = machine_path(THP_FOLDER, path, sizeof(path));

	if (result < 0)
		return result;
	directory = opendir(path);
	if (!directory)
		return errno == ENOENT ? -ENOTSUP : -errno;
	while ((entry = readdir(directory))) {
		if (!read_size(entry->d_name, &size))
			continue;
		grown = reallocarray(sizes, count + 1, sizeof(*sizes));
		if (!grown) {
			free(sizes);
			closedir(directory);
			return -ENOMEM;
		}
		sizes = grown;
		sizes[count++] = size;
	}
	closedir(directory);
	if (count)
		qsort(sizes, count, sizeof(*sizes), by_size);
	*ret_sizes = sizes;
	*ret_count = count;
	return 0;
}

int thp_region_map(size_t bytes, struct thp_region *ret_region)
{
	struct thp_region region;
	uint64_t huge_bytes;
	uintptr_t start;
	int result;

	result = thp_page_bytes(&huge_bytes);
	if (result < 0)
		return result;
	if (bytes == 0 || bytes > SIZE_MAX / 2)
		return -EINVAL;
	region.bytes = (bytes + huge_bytes - 1) / huge_bytes * huge_bytes;
	/* Room to align, and at least a small page on either side. */
	region.mapping_bytes = region.bytes + 2 * huge_bytes;
	region.mapping = mmap(NULL, region.mapping_bytes, PROT_NONE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (region.mapping == MAP_FAILED)
		return -errno;
	start = (uintptr_t)region.mapping;
	start += huge_bytes - start % huge_bytes;
	region.memory = (void *)start;
	if (mprotect(region.memory, region.bytes, PROT_READ | PROT_WRITE) < 0) {
		result = -errno;
		munmap(region.mapping, region.mapping_bytes);
		return result;
	}
	*ret_region = region;
	return 0;
}

void thp_region_unmap(struct thp_region *region)
{
	if (region->mapping)
		munmap(region->mapping, region->mapping_bytes);
	*region = (struct thp_region){0};
}

int thp_mapped_bytes(const void *memory, size_t bytes, uint64_t *ret_bytes)
{
	uintptr_t begin = (uintptr_t)memory, end = begin + bytes;
	uint64_t total = 0, first, last, kib;
	bool inside = false;
	char line[512];
	int result = 0;
	FILE *smaps = fopen("/proc/self/smaps", "re");

	if (!smaps)
		return -errno;
	while (result == 0 && fgets(line, sizeof(line), smaps)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " ", &first, &last) == 2) {
			inside = first < end && last > begin;
			if (inside && (first < begin || last > end))
				result = -ERANGE;
		} else if (inside && sscanf(line, "AnonHugePages: %" SCNu64, &kib) == 1) {
			total += kib * 1024;
		}
	}
	fclose(smaps);
	if (result == 0)
		*ret_bytes = total;
	return result;
}
