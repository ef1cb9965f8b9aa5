/* SPDX-License-Identifier: MIT */
#ifndef DOUBLE_MODEL_H
#define DOUBLE_MODEL_H

#include <stdint.h>

#include "i915_double.h"

/* State of the device: open files, their objects and contexts, engines. All under model_lock. */

#define MAX_FILES 64
#define MAX_ENGINES 16
#define MAX_CONTEXTS 64

struct object {
	uint32_t handle;
	uint64_t bytes;
	int memory;	 /* memfd: real shmem */
	bool has_pages;	 /* the driver holds all pages */
	int madvise;	 /* 0 WILLNEED, 1 DONTNEED, 2 purged */
	bool has_offset; /* MMAP_OFFSET was asked for */
	int64_t busy_until_ns;
	struct object *next; /* oldest first */
};

struct context {
	uint32_t id;
	uint16_t engines[64];	   /* class << 8 | instance */
	unsigned int engine_count; /* 0: legacy rings */
};

struct failures {
	bool no_access, no_pwrite;
	unsigned int eintr, eagain;
	uint64_t eio_at, enospc_at, hang_at, enodev_at; /* execbufs; 0 never */
	uint64_t enomem_at;				/* objects */
};

struct counts {
	uint64_t created, pwritten, mapped, submitted, advised, closed, purged, breaches;
};

struct device_file {
	int descriptor; /* 0: free slot (0 is never ours) */
	bool render_node;
	struct object *objects;
	uint32_t next_handle;
	struct context contexts[MAX_CONTEXTS];
	uint32_t next_context;
	struct failures failures;
	unsigned int interrupted; /* times in a row that the running call was refused with
				     EINTR/EAGAIN */
	uint64_t execbufs, creates;
	struct counts counts;
	int64_t engine_busy_until_ns[MAX_ENGINES];
};

void model_lock(void);
void model_unlock(void);
struct device_file *model_file(int descriptor);
struct object *model_object(struct device_file *file, uint32_t handle);
struct object *model_create(struct device_file *file, uint64_t bytes); /* NULL: no memory */
void model_destroy(struct device_file *file, struct object *object);
int model_get_pages(struct object *object); /* -EFAULT: DONTNEED or purged */
void model_shrink(struct device_file *file);
int64_t model_now_ns(void);

/* Logs a breach of the uAPI and returns @error. */
int breach(struct device_file *file, int error, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* Runs the commands of a batch; the time it takes, or -EIO when it would hang the GPU. */
int64_t model_run_batch(struct device_file *file, const struct object *batch, uint64_t start,
			uint64_t length);

#endif
