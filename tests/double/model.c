/* SPDX-License-Identifier: MIT */
#undef _FILE_OFFSET_BITS
#include "model.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

static struct device_file files[MAX_FILES];
static pthread_mutex_t files_lock = PTHREAD_MUTEX_INITIALIZER;

void model_lock(void)
{
	pthread_mutex_lock(&files_lock);
}

void model_unlock(void)
{
	pthread_mutex_unlock(&files_lock);
}

int64_t model_now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

int breach(struct device_file *file, int error, const char *format, ...)
{
	char text[300];
	va_list list;

	va_start(list, format);
	vsnprintf(text, sizeof(text), format, list);
	va_end(list);
	file->counts.breaches++;
	double_log("breach: %s", text);
	return error;
}

/* "eio@5" or "eintr*3": the number after @word and @mark; 0 when absent. */
static uint64_t number_after(const char *text, const char *word)
{
	const char *found = text ? strstr(text, word) : NULL;

	return found ? strtoull(found + strlen(word), NULL, 10) : 0;
}

static void read_failures(struct failures *failures)
{
	const char *text = getenv("I915_DOUBLE_FAIL");

	failures->no_access = text && strstr(text, "eacces");
	failures->no_pwrite = text && strstr(text, "nopwrite");
	failures->eintr = (unsigned int)number_after(text, "eintr*");
	failures->eagain = (unsigned int)number_after(text, "eagain*");
	failures->eio_at = number_after(text, "eio@");
	failures->enospc_at = number_after(text, "enospc@");
	failures->hang_at = number_after(text, "hang@");
	failures->enodev_at = number_after(text, "enodev@");
	failures->enomem_at = number_after(text, "enomem@");
}

int double_open(int descriptor, bool render_node)
{
	struct device_file *file = NULL;
	struct failures failures;

	read_failures(&failures);
	if (failures.no_access)
		return -EACCES;
	model_lock();
	for (size_t i = 0; i < MAX_FILES && !file; i++)
		if (files[i].descriptor == 0)
			file = &files[i];
	if (file) {
		memset(file, 0, sizeof(*file));
		file->descriptor = descriptor;
		file->render_node = render_node;
		file->failures = failures;
		file->next_handle = file->next_context = 1;
	}
	model_unlock();
	return file ? 0 : -ENFILE;
}

struct device_file *model_file(int descriptor)
{
	for (size_t i = 0; i < MAX_FILES; i++)
		if (descriptor > 0 && files[i].descriptor == descriptor)
			return &files[i];
	return NULL;
}

bool double_owns(int descriptor)
{
	bool owns;

	model_lock();
	owns = model_file(descriptor) != NULL;
	model_unlock();
	return owns;
}

void double_close(int descriptor)
{
	struct device_file *file;
	uint64_t left = 0;

	model_lock();
	file = model_file(descriptor);
	if (file) {
		const struct counts *counts = &file->counts;

		while (file->objects) {
			model_destroy(file, file->objects);
			left++;
		}
		double_log(
			"closed: created=%llu pwritten=%llu mapped=%llu submitted=%llu advised=%llu "
			"closed=%llu purged=%llu left=%llu breaches=%llu",
			(unsigned long long)counts->created, (unsigned long long)counts->pwritten,
			(unsigned long long)counts->mapped, (unsigned long long)counts->submitted,
			(unsigned long long)counts->advised, (unsigned long long)counts->closed,
			(unsigned long long)counts->purged, (unsigned long long)left,
			(unsigned long long)counts->breaches);
		file->descriptor = 0;
	}
	model_unlock();
}

struct object *model_object(struct device_file *file, uint32_t handle)
{
	for (struct object *object = file->objects; object; object = object->next)
		if (object->handle == handle)
			return object;
	return NULL;
}

struct object *model_create(struct device_file *file, uint64_t bytes)
{
	struct object *object = calloc(1, sizeof(*object)), **end = &file->objects;

	if (!object)
		return NULL;
	object->memory = memfd_create("i915-double", MFD_CLOEXEC);
	if (object->memory < 0 || ftruncate(object->memory, (off_t)bytes) != 0) {
		if (object->memory >= 0)
			real_close(object->memory);
		free(object);
		return NULL;
	}
	object->bytes = bytes;
	object->handle = file->next_handle++;
	while (*end)
		end = &(*end)->next;
	*end = object;
	return object;
}

void model_destroy(struct device_file *file, struct object *object)
{
	struct object **link = &file->objects;

	while (*link != object)
		link = &(*link)->next;
	*link = object->next;
	real_close(object->memory);
	free(object);
}

int model_get_pages(struct object *object)
{
	int error;

	if (object->madvise != 0)
		return -EFAULT;
	if (object->has_pages)
		return 0;
	error = posix_fallocate(object->memory, 0, (off_t)object->bytes);
	if (error)
		return error == ENOSPC ? -ENOMEM : -error;
	object->has_pages = true;
	return 0;
}

/* Purges the oldest DONTNEED objects that are idle, down to half of what they may hold. */
void model_shrink(struct device_file *file)
{
	const char *text = getenv("I915_DOUBLE_PURGE");
	uint64_t most = text ? strtoull(text, NULL, 10) : 0, held = 0;
	int64_t now_ns = model_now_ns();

	for (struct object *object = file->objects; object; object = object->next)
		held += object->madvise == 1 ? object->bytes : 0;
	if (!text || held <= most)
		return;
	for (struct object *object = file->objects; object && held > most / 2;
	     object = object->next) {
		if (object->madvise != 1 || object->busy_until_ns > now_ns)
			continue;
		object->madvise = 2;
		object->has_pages = false;
		held -= object->bytes;
		file->counts.purged++;
		if (ftruncate(object->memory, 0) != 0)
			abort();
	}
}

#define MI_NOOP 0
#define MI_BATCH_BUFFER_END UINT32_C(0x05000000)
#define NS_PER_COMMAND 100

int64_t model_run_batch(struct device_file *file, const struct object *batch, uint64_t start,
			uint64_t length)
{
	size_t mapped = (batch->bytes + 4095) & ~UINT64_C(4095);
	const uint32_t *commands;
	int64_t result = -EIO;
	uint64_t i;

	commands = real_mmap(NULL, mapped, PROT_READ, MAP_SHARED, batch->memory, 0);
	if (commands == MAP_FAILED)
		return -ENOMEM;
	for (i = start / 4; i < (start + length) / 4; i++)
		if (commands[i] != MI_NOOP)
			break;
	if (i >= (start + length) / 4)
		breach(file, 0, "execbuf: batch of %llu bytes without MI_BATCH_BUFFER_END",
		       (unsigned long long)length);
	else if (commands[i] != MI_BATCH_BUFFER_END)
		breach(file, 0, "execbuf: unknown command %08x at %llu", commands[i],
		       (unsigned long long)(4 * i));
	else
		result = (int64_t)(i - start / 4 + 1) * NS_PER_COMMAND;
	munmap((void *)(uintptr_t)commands, mapped);
	return result;
}
