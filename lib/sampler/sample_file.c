/* SPDX-License-Identifier: MIT */
#include "sampler/sample_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "sys/child.h"
#include "undo/transaction.h"

#define WRITE_EVERY_NS (50 * NS_PER_MS)
#define KILL_GRACE_NS (200 * NS_PER_MS)

struct sink_shared {
	_Atomic int32_t stop, error;
	_Atomic uint64_t written; /* handed to the kernel */
};

struct sample_sink {
	struct sink_shared *shared;
	struct sample_ring *rings;
	size_t shared_bytes, threads;
	int *cpus;
	bool text, finished;
	int fd;
	FILE *stream; /* of the writer */
	struct child writer;
	struct transaction *transaction;
};

static bool write_header(struct sample_sink *sink)
{
	struct sample_file_header header = {
		.magic = SAMPLE_FILE_MAGIC,
		.header_bytes = sizeof(header),
		.record_bytes = sizeof(struct sample_file_record),
		.threads = (uint32_t)sink->threads,
	};

	if (sink->text)
		return fputs("# thread cpu when_ns late_ns\n", sink->stream) >= 0;
	return fwrite(&header, sizeof(header), 1, sink->stream) == 1;
}

static bool write_sample(struct sample_sink *sink, size_t thread, int64_t when_ns, int64_t late_ns)
{
	struct sample_file_record record = {
		.when_ns = when_ns,
		.late_ns = late_ns,
		.thread = (uint32_t)thread,
		.cpu = sink->cpus[thread],
	};

	if (sink->text)
		return fprintf(sink->stream, "%zu %d %" PRId64 " %" PRId64 "\n", thread, record.cpu,
			       when_ns, late_ns) > 0;
	return fwrite(&record, sizeof(record), 1, sink->stream) == 1;
}

static bool write_end(struct sample_sink *sink, uint64_t written, uint64_t lost)
{
	struct sample_file_record record = {
		.when_ns = (int64_t)written,
		.late_ns = (int64_t)lost,
		.thread = SAMPLE_FILE_END,
		.cpu = -1,
	};

	if (sink->text)
		return fprintf(sink->stream, "# written %" PRIu64 " lost %" PRIu64 "\n", written,
			       lost) > 0;
	return fwrite(&record, sizeof(record), 1, sink->stream) == 1;
}

/* Takes what is in one ring; false when the file failed. */
static bool drain_ring(struct sample_sink *sink, size_t thread, uint64_t *taken)
{
	struct sample_ring *ring = &sink->rings[thread];
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);

	for (; tail != head; tail++) {
		size_t slot = tail % SAMPLE_RING_SIZE;

		if (!write_sample(sink, thread, ring->entries[slot].when_ns,
				  ring->entries[slot].late_ns))
			return false;
		(*taken)++;
		atomic_store_explicit(&ring->tail, tail + 1, memory_order_release);
	}
	return true;
}

static bool drain(struct sample_sink *sink, uint64_t *taken)
{
	for (size_t i = 0; i < sink->threads; i++)
		if (!drain_ring(sink, i, taken))
			return false;
	if (fflush(sink->stream) != 0)
		return false;
	atomic_store(&sink->shared->written, *taken);
	return true;
}

static uint64_t no_room(const struct sample_sink *sink)
{
	uint64_t lost = 0;

	for (size_t i = 0; i < sink->threads; i++)
		lost += atomic_load(&sink->rings[i].lost);
	return lost;
}

static int writer_run(void *argument)
{
	struct sample_sink *sink = argument;
	uint64_t taken = 0;
	bool good, last = false;

	sink->stream = fdopen(sink->fd, "w");
	if (!sink->stream)
		return -errno;
	good = write_header(sink);
	while (good && !last) {
		last = atomic_load(&sink->shared->stop) != 0;
		good = drain(sink, &taken);
		if (good && !last)
			clock_sleep_for(WRITE_EVERY_NS);
	}
	good = good && write_end(sink, taken, no_room(sink)) && fflush(sink->stream) == 0;
	if (!good)
		atomic_store(&sink->shared->error, errno ? -errno : -EIO);
	return good ? 0 : -EIO;
}

/* A FIFO without a reader is refused, not waited for. */
static int open_file(const char *path, struct message *message)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);

	if (fd < 0)
		return message_set_errno(message, errno == ENXIO ? -EPIPE : -errno,
					 "samples file %.300s", path);
	fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
	return fd;
}

static int map_rings(struct sample_sink *sink)
{
	size_t first = (sizeof(struct sink_shared) + 63) & ~(size_t)63;
	char *memory;

	sink->shared_bytes = first + sink->threads * sizeof(struct sample_ring);
	memory = mmap(NULL, sink->shared_bytes, PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (memory == MAP_FAILED)
		return -errno;
	sink->shared = (struct sink_shared *)memory;
	sink->rings = (struct sample_ring *)(memory + first);
	return 0;
}

int sample_sink_open(const char *path, const int *cpus, size_t threads,
		     struct transaction *transaction, struct sample_sink **ret_sink,
		     struct message *message)
{
	struct child_settings child = {.name = "samples", .transaction = transaction};
	size_t length = strlen(path);
	struct sample_sink *sink = calloc(1, sizeof(*sink));
	int error;

	if (!sink)
		return message_set_errno(message, -ENOMEM, "samples");
	sink->fd = -1;
	sink->threads = threads;
	sink->transaction = transaction;
	sink->text = length > 4 && strcmp(path + length - 4, ".txt") == 0;
	sink->cpus = calloc(threads, sizeof(*sink->cpus));
	error = sink->cpus ? map_rings(sink) : -ENOMEM;
	if (error < 0) {
		message_set_errno(message, error, "rings of the samples");
		goto fail;
	}
	memcpy(sink->cpus, cpus, threads * sizeof(*cpus));
	error = open_file(path, message);
	if (error < 0)
		goto fail;
	sink->fd = error;
	error = child_start(&child, writer_run, sink, &sink->writer, message);
	if (error < 0)
		goto fail;
	*ret_sink = sink;
	return 0;
fail:
	sample_sink_free(sink);
	return error;
}

struct sample_ring *sample_sink_ring(struct sample_sink *sink, size_t thread)
{
	return &sink->rings[thread];
}

int sample_sink_finish(struct sample_sink *sink, int64_t deadline_ns, struct message *message)
{
	int status = 0, error;
	pid_t pid;

	if (sink->finished)
		return 0;
	sink->finished = true;
	pid = sink->writer.pid;
	atomic_store(&sink->shared->stop, 1);
	error = child_wait(&sink->writer, deadline_ns, &status);
	if (error == -ETIMEDOUT) {
		child_kill(&sink->writer, KILL_GRACE_NS, sink->transaction);
		return message_set(message, -ETIMEDOUT,
				   "the samples file did not take its data in time: %" PRIu64
				   " samples are not in it",
				   sample_sink_lost(sink));
	}
	if (sink->transaction && pid > 0)
		transaction_disown_process(sink->transaction, pid);
	error = atomic_load(&sink->shared->error);
	if (error == 0 && status != 0)
		return message_set(message, -ECHILD,
				   "the process that writes the samples was killed: %" PRIu64
				   " samples are not in the file",
				   sample_sink_lost(sink));
	if (error < 0)
		return message_set_errno(message, error,
					 "the samples file lacks %" PRIu64 " samples",
					 sample_sink_lost(sink));
	return 0;
}

uint64_t sample_sink_lost(const struct sample_sink *sink)
{
	uint64_t put = no_room(sink);

	for (size_t i = 0; i < sink->threads; i++)
		put += atomic_load(&sink->rings[i].head);
	return put - atomic_load(&sink->shared->written);
}

void sample_sink_free(struct sample_sink *sink)
{
	if (!sink)
		return;
	if (sink->writer.pid > 0)
		child_kill(&sink->writer, KILL_GRACE_NS, sink->transaction);
	if (sink->fd >= 0)
		close(sink->fd);
	if (sink->shared)
		munmap(sink->shared, sink->shared_bytes);
	free(sink->cpus);
	free(sink);
}
