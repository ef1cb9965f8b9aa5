/* SPDX-License-Identifier: MIT */
/*
 * Buffers that need no GPU: shared memory whose pages are held by the kernel calls that a driver
 * makes, reached from user space (mm/shmem.c, mm/vmscan.c, ipc/shm.c).
 *
 *   baseline  nothing holds the pages
 *   stock     one more reference on each page (see shm_pin.h); pages stay on the inactive anonymous
 * LRU mapping   the same reference, and SHM_LOCK: mapping_set_unevictable() before the pages exist,
 *             mapping_clear_unevictable() and shmem_unlock_mapping() at release
 *   mlock     the same reference, and mlock(2) on the mapping, which has to stay for that
 *
 * A segment is marked IPC_RMID as soon as it is attached, so the kernel frees it when the last
 * attach goes, SIGKILL included; one page stays attached until release, or the segment would die
 * early and leave its pinned pages orphans outside the page cache.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "backends/shm_pin.h"
#include "base/thread_timer.h"
#include "base/page_fill.h"
#include "ops.h"

#ifndef MADV_COLD
#define MADV_COLD 20
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

#define TRIAL_BYTES (64 * 1024)
#define SEGMENT_KEY                                                                   \
	0x7379 /* upper half of our keys where no IPC namespace of our own can be had \
		*/

struct shm_backend {
	struct backend public;
	const struct pin_method *method; /* NULL: baseline */
	size_t page_bytes;
	bool private_ipc;
	_Atomic uint64_t next_seed;
	struct page_fill fill;
};

struct shm_buffer {
	char *address;
	uint64_t mapped_bytes;
	int segment; /* SysV id, -1 none */
	int memfd;   /* -1 none */
	bool locked; /* SHM_LOCK */
	void *pin;
};

extern const struct backend_ops backend_shm;

static key_t segment_key(struct shm_backend *backend)
{
	struct random random;

	if (backend->private_ipc)
		return IPC_PRIVATE;
	random_seed(&random, atomic_fetch_add(&backend->next_seed, 1));
	return (key_t)(SEGMENT_KEY << 16 | (int)random_below(&random, 0x10000));
}

static int segment_create(struct shm_backend *backend, struct shm_buffer *buffer, uint64_t bytes)
{
	void *address;
	int error;

	do
		buffer->segment = shmget(segment_key(backend), bytes, IPC_CREAT | IPC_EXCL | 0600);
	while (buffer->segment < 0 && errno == EEXIST);
	if (buffer->segment < 0)
		return -errno; /* ENOSPC: shmmni or shmall */
	address = shmat(buffer->segment, NULL, 0);
	error = address == (void *)-1 ? -errno : 0;
	shmctl(buffer->segment, IPC_RMID, NULL);
	if (error < 0)
		return error;
	buffer->address = address;
	buffer->mapped_bytes = bytes;
	return 0;
}

static int memfd_create_mapped(struct shm_buffer *buffer, uint64_t bytes)
{
	void *address;

	buffer->memfd = memfd_create("syslatency", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (buffer->memfd < 0 || ftruncate(buffer->memfd, (off_t)bytes) < 0)
		return -errno;
	address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, buffer->memfd, 0);
	if (address == MAP_FAILED)
		return -errno;
	buffer->address = address;
	buffer->mapped_bytes = bytes;
	return 0;
}

static int populate(char *address, uint64_t bytes, size_t page_bytes)
{
	while (madvise(address, bytes, MADV_POPULATE_WRITE) < 0) {
		if (errno == EINTR || errno == EAGAIN)
			continue;
		if (errno != EINVAL)
			return -ENOMEM;
		/* Before Linux 5.14. */
		for (uint64_t at = 0; at < bytes; at += page_bytes)
			*(volatile char *)(address + at) = 1;
		break;
	}
	return 0;
}

/* mlock(2) by number: sanitizers make the C library's call do nothing, and pages would stay
 * unlocked. */
static long lock_pages(void *address, uint64_t bytes)
{
	return syscall(SYS_mlock, address, bytes);
}

/* mlock(2) says ENOMEM for RLIMIT_MEMLOCK as well; only a limit can be meant where it applies. */
static int lock_error(int error)
{
	return error == ENOMEM && geteuid() != 0 ? -EPERM : -error;
}

static int pin(struct shm_backend *backend, struct shm_buffer *buffer)
{
	int error;

	if (!backend->method)
		return 0;
	error = backend->method->pin(buffer->address, buffer->mapped_bytes, buffer->memfd,
				     &buffer->pin);
	if (error == 0 && backend->public.settings.variant == VARIANT_MLOCK &&
	    lock_pages(buffer->address, buffer->mapped_bytes) < 0)
		error = lock_error(errno);
	return error;
}

/*
 * A driver's pages are mapped nowhere, and inactive. Ours were touched through a mapping, which
 * would put them on the active list when it goes: MADV_COLD first takes the marks of use away.
 */
static void unmap_cold(struct shm_backend *backend, struct shm_buffer *buffer)
{
	madvise(buffer->address, buffer->mapped_bytes, MADV_COLD);
	if (buffer->mapped_bytes > backend->page_bytes)
		munmap(buffer->address + backend->page_bytes,
		       buffer->mapped_bytes - backend->page_bytes);
	buffer->mapped_bytes = backend->page_bytes;
}

/* In the driver's order: evictable again, unpinned, freed. Takes half-built buffers. */
static void destroy(struct shm_backend *backend, struct shm_buffer *buffer)
{
	if (buffer->locked)
		shmctl(buffer->segment, SHM_UNLOCK, NULL);
	if (buffer->pin)
		backend->method->unpin(buffer->pin);
	if (buffer->address)
		munmap(buffer->address, buffer->mapped_bytes);
	if (buffer->memfd >= 0)
		close(buffer->memfd);
	free(buffer);
}

static int create(struct shm_backend *backend, struct shm_buffer *buffer, uint64_t bytes)
{
	if (backend->method && backend->method->needs_memfd)
		return memfd_create_mapped(buffer, bytes);
	return segment_create(backend, buffer, bytes);
}

static const char *failure_text(int error)
{
	switch (error) {
	case -EMFILE:
	case -ENFILE:
		return "no descriptor is left, and each 1 MiB pinned takes one: raise ulimit -n";
	case -EPERM:
		return "a limit of ordinary users is reached: RLIMIT_MEMLOCK (ulimit -l), or "
		       "/proc/sys/fs/pipe-user-pages-soft";
	case -ENOSPC:
		return "no SysV segment is left: raise /proc/sys/kernel/shmmni";
	default:
		return NULL;
	}
}

static void end_phase(struct thread_timer *timer, struct buffer *buffer, enum buffer_phase phase)
{
	thread_timer_add(timer, &buffer->phase_ns[phase], &buffer->phase_cpu_ns[phase]);
}

/* What only this harness does (filling, MADV_COLD, unmapping) is in no phase: a driver does not. */
static int shm_allocate(struct backend *public, struct buffer *buffer)
{
	struct shm_backend *backend = (struct shm_backend *)public;
	uint64_t bytes = (buffer->bytes + backend->page_bytes - 1) / backend->page_bytes *
			 backend->page_bytes;
	struct shm_buffer *own = calloc(1, sizeof(*own));
	struct random random;
	struct thread_timer timer;
	int error;

	if (!own)
		return -ENOMEM;
	memset(buffer->phase_ns, 0, sizeof(buffer->phase_ns));
	memset(buffer->phase_cpu_ns, 0, sizeof(buffer->phase_cpu_ns));
	own->segment = own->memfd = -1;
	random_seed(&random, atomic_fetch_add(&backend->next_seed, 1));
	thread_timer_start(&timer);
	error = create(backend, own, bytes);
	end_phase(&timer, buffer, BUFFER_ALLOCATE);
	if (error == 0 && public->settings.variant == VARIANT_MAPPING) {
		/* Before the pages exist: locked later, they stay on the LRU until reclaim culls
		 * them. */
		if (shmctl(own->segment, SHM_LOCK, NULL) < 0)
			error = errno == ENOMEM ? -EPERM : -errno;
		else
			own->locked = true;
		end_phase(&timer, buffer, BUFFER_PIN);
	}
	if (error == 0)
		error = populate(own->address, bytes, backend->page_bytes);
	end_phase(&timer, buffer, BUFFER_POPULATE);
	if (error < 0)
		goto fail;
	page_fill_copy(&backend->fill, &random, own->address, bytes);
	thread_timer_start(&timer);
	error = pin(backend, own);
	end_phase(&timer, buffer, BUFFER_PIN);
	if (error < 0)
		goto fail;
	if (public->settings.variant != VARIANT_MLOCK)
		unmap_cold(backend, own);
	buffer->memory = public->settings.variant == VARIANT_MLOCK ? own->address : NULL;
	buffer->handle = own->segment >= 0 ? (uint64_t)own->segment : (uint64_t)own->memfd;
	buffer->private_data = own;
	return 0;
fail:
	destroy(backend, own);
	atomic_store(&public->failure, failure_text(error));
	return error;
}

static int shm_release(struct backend *public, struct buffer *buffer)
{
	struct thread_timer timer;

	if (!buffer->private_data)
		return -EINVAL;
	thread_timer_start(&timer);
	destroy((struct shm_backend *)public, buffer->private_data);
	end_phase(&timer, buffer, BUFFER_RELEASE);
	buffer->private_data = NULL;
	buffer->memory = NULL;
	return 0;
}

/* All of it: what holds the buffer keeps one page mapped, or none but a locked one. */
static int shm_map(struct backend *public, struct buffer *buffer, void **ret_memory)
{
	const struct shm_buffer *own = buffer->private_data;
	void *memory;

	if (!own)
		return -EINVAL;
	if (own->segment >= 0) {
		memory = shmat(own->segment, NULL, 0);
		if (memory == (void *)-1)
			return -errno;
	} else {
		memory = mmap(NULL, buffer->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, own->memfd,
			      0);
		if (memory == MAP_FAILED)
			return -errno;
	}
	*ret_memory = memory;
	return 0;
}

/*
 * Segments that a process killed between shmget and IPC_RMID left: empty, but there. With a
 * namespace of one's own they die with it; ordinary users have none.
 */
static void remove_leftovers(void)
{
	struct shm_info info;
	int last = shmctl(0, SHM_INFO, (struct shmid_ds *)(void *)&info);

	for (int i = 0; i <= last; i++) {
		struct shmid_ds segment;
		int id = shmctl(i, SHM_STAT, &segment);

		if (id < 0 || segment.shm_perm.__key >> 16 != SEGMENT_KEY ||
		    segment.shm_perm.uid != geteuid() || segment.shm_nattch > 0)
			continue;
		if (kill(segment.shm_cpid, 0) < 0 && errno == ESRCH)
			shmctl(id, IPC_RMID, NULL);
	}
}

/* One descriptor pins 1 MiB at most: take all that the hard limit allows. */
static void raise_descriptor_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
		limit.rlim_cur = limit.rlim_max;
		setrlimit(RLIMIT_NOFILE, &limit);
	}
}

/* Makes and releases one small buffer as @method would. */
static int trial(struct shm_backend *backend, const struct pin_method *method)
{
	struct buffer buffer = {.bytes = TRIAL_BYTES};
	int error;

	if (method && method->needs_memfd && backend->public.settings.variant == VARIANT_MAPPING)
		return -ENOTSUP; /* SHM_LOCK takes SysV segments only */
	backend->method = method;
	error = shm_allocate(&backend->public, &buffer);
	return error < 0 ? error : shm_release(&backend->public, &buffer);
}

/* The first method that works, or the one asked for; why none does is in @message. */
static int choose_method(struct shm_backend *backend, struct message *message)
{
	const char *wanted = backend->public.settings.pin_method;
	char why[400] = "", known[80] = "";
	int first_error = 0;

	for (size_t i = 0; pin_methods[i]; i++) {
		const struct pin_method *method = pin_methods[i];
		size_t length = strlen(why), known_length = strlen(known);
		int error;

		snprintf(known + known_length, sizeof(known) - known_length, " %s", method->name);
		if (wanted && strcmp(wanted, method->name) != 0)
			continue;
		error = trial(backend, method);
		if (error == 0) {
			backend->public.pin_method = method->name;
			return 0;
		}
		if (first_error == 0)
			first_error = error;
		snprintf(why + length, sizeof(why) - length, "%s%s: %s", length ? "; " : "",
			 method->name, strerrordesc_np(-error));
	}
	if (first_error == 0)
		return message_set(message, -EINVAL, "unknown pin method \"%s\": there are%s",
				   wanted, known);
	return message_set(message, first_error == -ENOMEM ? -ENOMEM : -ENOTSUP,
			   "shm: no way to hold page references for variant %s works here (%s)",
			   variant_name(backend->public.settings.variant), why);
}

static void add_notes(struct shm_backend *backend)
{
	size_t count = 0;
	void *page = mmap(NULL, backend->page_bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	backend->public.notes[count++] =
		"shm buffers are released by the load itself, not by a shrinker inside reclaim: "
		"the release cost of a variant is not part of the victim's delay here";
	if (page == MAP_FAILED)
		return;
	if (madvise(page, backend->page_bytes, MADV_COLD) < 0)
		backend->public.notes[count++] =
			"no MADV_COLD (Linux before 5.4): pinned pages sit on the active list, "
			"where a driver's are inactive";
	munmap(page, backend->page_bytes);
}

static int shm_open_backend(const struct backend_settings *settings, struct backend **ret_backend,
			    struct message *message)
{
	struct shm_backend *backend;
	int error = 0;

	if (settings->device)
		return message_set(message, -EINVAL, "shm: has no device \"%s\"", settings->device);
	backend = calloc(1, sizeof(*backend));
	if (!backend)
		return message_set_errno(message, -ENOMEM, "shm");
	backend->public.ops = &backend_shm;
	backend->public.settings = *settings;
	backend->public.release_context = "load";
	backend->public.pin_method = "none";
	backend->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	backend->next_seed = random_fresh_seed();
	page_fill_init(&backend->fill, random_fresh_seed());
	raise_descriptor_limit();
	/* A namespace of our own dies with us, whatever state its segments are in. */
	backend->private_ipc = unshare(CLONE_NEWIPC) == 0;
	if (!backend->private_ipc)
		remove_leftovers();
	if (settings->variant == VARIANT_BASELINE) {
		error = trial(backend, NULL);
		if (error < 0)
			message_set_errno(message, error, "shm: cannot make shared memory");
	} else {
		error = choose_method(backend, message);
	}
	if (error < 0) {
		free(backend);
		return error;
	}
	add_notes(backend);
	*ret_backend = &backend->public;
	return 0;
}

static void shm_close(struct backend *backend)
{
	free(backend);
}

/* In the order of shm_pin.c; one that this build lacks is refused when it is opened. */
static const char *const method_names[] = {"vmsplice", "io_uring", "udmabuf", NULL};

const struct backend_ops backend_shm = {
	.name = "shm",
	.summary = "shared memory pinned from user space; needs no GPU",
	.flags = BACKEND_MAKES_VARIANTS,
	.preference = 1,
	.variants = 1 << VARIANT_BASELINE | 1 << VARIANT_STOCK | 1 << VARIANT_MAPPING |
		    1 << VARIANT_MLOCK,
	.open = shm_open_backend,
	.allocate = shm_allocate,
	.release = shm_release,
	.close = shm_close,
	.map = shm_map,
	.pin_methods = method_names,
};
