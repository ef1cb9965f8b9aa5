/* SPDX-License-Identifier: MIT */
/*
 * Graphics buffers: a footprint that is held pinned through the run, and beside it one worker a CPU
 * that allocates, pins, uses and releases a buffer, forever. Where the buffers come from is the
 * backend's.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/pace.h"
#include "base/parse.h"
#include "base/proc.h"
#include "ops.h"

#define BUFFER_BYTES (UINT64_C(16) << 20) /* as IGT's leaking load; the footprint too */
#define SMALL_BUFFER_BYTES UINT64_C(4096) /* as IGT's load without -m, on a real driver */
#define BACK_OFF_LEAST_NS (10 * NS_PER_MS)
#define BACK_OFF_MOST_NS (160 * NS_PER_MS)

enum {
	EXTRA_BUFFERS,
	EXTRA_SUBMISSIONS,
	EXTRA_ALLOCATE_NS,
	EXTRA_POPULATE_NS,
	EXTRA_PIN_NS,
	EXTRA_RELEASE_NS,
	EXTRA_ALLOCATION_FAILURES,
	EXTRA_BUDGET_WAITS,
	EXTRA_QUEUED_BYTES,
	EXTRA_OBSERVED_PAGES,
	EXTRA_OBSERVED_UNEVICTABLE,
	EXTRA_OBSERVED_MLOCK,
};

static const char *const gem_extras[] = {
	"buffers",
	"submissions",
	"allocate_ns",
	"populate_ns",
	"pin_ns",
	"release_ns",
	"allocation_failures",
	"budget_waits",
	"=queued_bytes",
	"=observed_pages",
	"=observed_unevictable_pages",
	"=observed_mlock_pages",
	NULL,
};

static const struct claim gem_claims[] = {
	{
		.name = "buffers were allocated and released",
		.witness = "load_stats.gem.buffers",
		.test = CLAIM_AT_LEAST,
		.bound = 1,
		.why = "not one buffer went through its life in the window",
		.advice = "raise --limit, lower --footprint, or measure longer (-t)",
	},
	{.name = NULL},
};

/* What the workers and the main thread of the load share. */
struct gem {
	struct load *load;
	const struct backend_ops *ops;
	struct backend *backend;
	uint64_t churn_bytes; /* of one buffer */
	uint64_t churn_budget_bytes;
	struct pace pace;
	struct buffer *footprint;
	size_t footprint_count;
	pthread_mutex_t lock; /* the queue and held_bytes */
	uint64_t held_bytes;  /* by workers and queue */
	struct buffer *queue; /* leaked where no shrinker takes them: a ring, oldest first */
	size_t queue_size, queue_first, queue_count;
	_Atomic int32_t error; /* the first that ends the load */
};

struct gem_worker {
	struct gem *gem;
	pthread_t thread;
	int cpu;
	struct random random;
};

static bool has_shrinker(const struct backend *backend)
{
	return backend->release_context && strcmp(backend->release_context, "shrinker") == 0;
}

static void count(struct gem *gem, unsigned int extra, uint64_t value)
{
	atomic_fetch_add_explicit(&gem->load->shared->extra[extra], value, memory_order_relaxed);
}

static bool stopping(struct gem *gem)
{
	return load_stopping(gem->load) || atomic_load(&gem->error) < 0;
}

/* The first failure ends the load; its words are the record's. */
static void fail(struct gem *gem, int error, const char *what)
{
	const char *why = atomic_load(&gem->backend->failure);
	int32_t none = 0;

	if (!atomic_compare_exchange_strong(&gem->error, &none, error))
		return;
	message_set(&gem->load->shared->message, error, "gem load: %s: %s", what,
		    why ? why : strerrordesc_np(-error));
}

static int gem_release(struct gem *gem, struct buffer *buffer)
{
	int error = gem->ops->release(gem->backend, buffer);

	count(gem, EXTRA_RELEASE_NS, (uint64_t)buffer->phase_ns[BUFFER_RELEASE]);
	atomic_fetch_sub(&gem->load->shared->pinned_bytes, buffer->bytes);
	return error;
}

static int gem_allocate(struct gem *gem, struct buffer *buffer, uint64_t bytes)
{
	int error;

	memset(buffer, 0, sizeof(*buffer));
	buffer->bytes = bytes;
	error = gem->ops->allocate(gem->backend, buffer);
	if (error < 0)
		return error;
	count(gem, EXTRA_ALLOCATE_NS, (uint64_t)buffer->phase_ns[BUFFER_ALLOCATE]);
	count(gem, EXTRA_POPULATE_NS, (uint64_t)buffer->phase_ns[BUFFER_POPULATE]);
	count(gem, EXTRA_PIN_NS, (uint64_t)buffer->phase_ns[BUFFER_PIN]);
	atomic_fetch_add(&gem->load->shared->pinned_bytes, bytes);
	return 0;
}

/* ---- the footprint, and what the kernel says that its pages are ---- */

static void publish_observed(struct load_shared *shared, uint64_t bytes,
			     const struct proc_unevictable *before,
			     const struct proc_unevictable *after)
{
	atomic_store(&shared->extra[EXTRA_OBSERVED_PAGES], bytes / (uint64_t)sysconf(_SC_PAGESIZE));
	atomic_store(&shared->extra[EXTRA_OBSERVED_UNEVICTABLE],
		     (uint64_t)(after->pages - before->pages));
	atomic_store(&shared->extra[EXTRA_OBSERVED_MLOCK],
		     (uint64_t)(after->mlock_pages - before->mlock_pages));
}

static void release_footprint(struct gem *gem)
{
	while (gem->footprint_count > 0)
		gem_release(gem, &gem->footprint[--gem->footprint_count]);
}

/*
 * Allocates the footprint; without one, a single buffer for the observation, released again. On the
 * way the kernel's counts of unevictable pages tell which variant these pages really are.
 */
static int hold_footprint(struct gem *gem)
{
	uint64_t wanted = gem->load->settings.footprint_bytes;
	uint64_t bytes = wanted > 0 ? wanted : BUFFER_BYTES, held = 0;
	size_t count_wanted = (size_t)((bytes + BUFFER_BYTES - 1) / BUFFER_BYTES);
	struct proc_unevictable before, after;
	bool known;
	int error = 0;

	gem->footprint = calloc(count_wanted, sizeof(*gem->footprint));
	if (!gem->footprint)
		return -ENOMEM;
	known = proc_read_unevictable(&before) == 0;
	while (held < bytes && !load_stopping(gem->load)) {
		uint64_t part = bytes - held < BUFFER_BYTES ? bytes - held : BUFFER_BYTES;

		error = gem_allocate(gem, &gem->footprint[gem->footprint_count], part);
		if (error < 0)
			break;
		gem->footprint_count++;
		held += part;
	}
	known = proc_read_unevictable(&after) == 0 && known;
	if (error < 0 && wanted > 0) {
		char have[24], want[24], what[96];

		snprintf(what, sizeof(what), "the footprint ends at %s of %s",
			 format_size(held, have, sizeof(have)),
			 format_size(wanted, want, sizeof(want)));
		fail(gem, error, what);
		return error;
	}
	if (held > 0 && known)
		publish_observed(gem->load->shared, held, &before, &after);
	if (wanted == 0)
		release_footprint(gem);
	return 0;
}

/* ---- the churn ---- */

/* Takes the oldest of the queue; false when it is empty. The lock is held. */
static bool queue_take(struct gem *gem, struct buffer *ret_buffer)
{
	if (gem->queue_count == 0)
		return false;
	*ret_buffer = gem->queue[gem->queue_first];
	gem->queue_first = (gem->queue_first + 1) % gem->queue_size;
	gem->queue_count--;
	atomic_store_explicit(&gem->load->shared->extra[EXTRA_QUEUED_BYTES],
			      gem->queue_count * gem->churn_bytes, memory_order_relaxed);
	return true;
}

static bool queue_put(struct gem *gem, const struct buffer *buffer)
{
	bool fits;

	pthread_mutex_lock(&gem->lock);
	fits = gem->queue_count < gem->queue_size;
	if (fits) {
		gem->queue[(gem->queue_first + gem->queue_count++) % gem->queue_size] = *buffer;
		atomic_store_explicit(&gem->load->shared->extra[EXTRA_QUEUED_BYTES],
				      gem->queue_count * gem->churn_bytes, memory_order_relaxed);
	}
	pthread_mutex_unlock(&gem->lock);
	return fits;
}

static void release_oldest(struct gem *gem)
{
	struct buffer oldest;
	bool taken;

	pthread_mutex_lock(&gem->lock);
	taken = queue_take(gem, &oldest);
	if (taken)
		gem->held_bytes -= oldest.bytes;
	pthread_mutex_unlock(&gem->lock);
	if (taken)
		gem_release(gem, &oldest);
}

/* Takes a buffer's worth of the budget: frees the oldest leaked one, or waits for another worker.
 */
static bool reserve(struct gem *gem)
{
	while (!stopping(gem)) {
		bool reserved, queued;

		pthread_mutex_lock(&gem->lock);
		queued = gem->queue_count > 0;
		reserved = gem->held_bytes + gem->churn_bytes <= gem->churn_budget_bytes;
		if (reserved)
			gem->held_bytes += gem->churn_bytes;
		pthread_mutex_unlock(&gem->lock);
		if (reserved)
			return true;
		if (queued) {
			release_oldest(gem);
			continue;
		}
		count(gem, EXTRA_BUDGET_WAITS, 1);
		pace_sleep_until(clock_now_ns() + NS_PER_MS, &gem->load->shared->stop);
	}
	return false;
}

static void unreserve(struct gem *gem)
{
	pthread_mutex_lock(&gem->lock);
	gem->held_bytes -= gem->churn_bytes;
	pthread_mutex_unlock(&gem->lock);
}

/* Uses, counts and releases (or leaks) an allocated buffer. */
static int use_buffer(struct gem_worker *worker, struct buffer *buffer)
{
	struct gem *gem = worker->gem;
	struct load_shared *shared = gem->load->shared;
	uint64_t submitted = 1;
	int error = 0;

	if (gem->ops->exercise) {
		submitted = 0;
		error = gem->ops->exercise(gem->backend, buffer, &worker->random, &submitted);
	}
	atomic_fetch_add_explicit(&shared->ops, submitted, memory_order_relaxed);
	atomic_fetch_add_explicit(&shared->bytes, buffer->bytes, memory_order_relaxed);
	count(gem, EXTRA_SUBMISSIONS, submitted);
	count(gem, EXTRA_BUFFERS, 1);
	if (error == 0 && gem->queue && queue_put(gem, buffer))
		return 0;
	if (error == 0)
		error = gem_release(gem, buffer);
	else
		gem_release(gem, buffer);
	unreserve(gem);
	return error;
}

static bool is_shortage(int error)
{
	return error == -ENOMEM || error == -EAGAIN || error == -ENOSPC;
}

static void *gem_worker(void *argument)
{
	struct gem_worker *worker = argument;
	struct gem *gem = worker->gem;
	int64_t back_off_ns = BACK_OFF_LEAST_NS;

	if (worker->cpu >= 0)
		cpu_pin(0, worker->cpu); /* an affinity that the machine refuses leaves it where it
					    is */
	while (!stopping(gem) && pace_wait(&gem->pace, &gem->load->shared->stop)) {
		struct buffer buffer;
		int error;

		if (!reserve(gem))
			break;
		error = gem_allocate(gem, &buffer, gem->churn_bytes);
		if (error < 0) {
			unreserve(gem);
			if (!is_shortage(error)) {
				fail(gem, error, "a buffer cannot be allocated");
				break;
			}
			/* Short of memory is what this load is for: wait, try again. */
			count(gem, EXTRA_ALLOCATION_FAILURES, 1);
			release_oldest(gem);
			pace_sleep_until(clock_now_ns() + back_off_ns, &gem->load->shared->stop);
			if (back_off_ns < BACK_OFF_MOST_NS)
				back_off_ns *= 2;
			continue;
		}
		back_off_ns = BACK_OFF_LEAST_NS;
		error = use_buffer(worker, &buffer);
		if (error < 0)
			fail(gem, error, "a buffer cannot be used or released");
	}
	return NULL;
}

/* Starts a worker a CPU, waits for the end, joins. */
static int churn(struct gem *gem)
{
	const struct load_settings *settings = &gem->load->settings;
	size_t wanted = settings->cpus.count > 0 ? settings->cpus.count : 1, started = 0;
	struct gem_worker *workers = calloc(wanted, sizeof(*workers));

	if (!workers)
		return -ENOMEM;
	pace_start(&gem->pace, settings->rate_per_s);
	for (; started < wanted; started++) {
		struct gem_worker *worker = &workers[started];
		int error;

		worker->gem = gem;
		worker->cpu = settings->cpus.count > 0 ? settings->cpus.cpus[started] : -1;
		random_seed(&worker->random, settings->seed + started);
		error = pthread_create(&worker->thread, NULL, gem_worker, worker);
		if (error) {
			fail(gem, -error, "a worker cannot be started");
			break;
		}
	}
	if (started == wanted)
		atomic_store(&gem->load->shared->state, LOAD_STEADY);
	while (!stopping(gem))
		pace_sleep_until(clock_now_ns() + 10 * NS_PER_MS, &gem->load->shared->stop);
	for (size_t i = 0; i < started; i++)
		pthread_join(workers[i].thread, NULL);
	free(workers);
	return atomic_load(&gem->error);
}

/* ---- budget and start ---- */

/*
 * A quarter of the limit, or of what the machine has available: for buffers in the workers' hands
 * and leaked ones, not for the footprint.
 */
static uint64_t churn_budget(const struct load_settings *settings)
{
	uint64_t whole = settings->limit_bytes;

	if (!settings->in_memcg || whole == 0)
		whole = proc_available_bytes();
	return whole / 4 > BUFFER_BYTES ? whole / 4 : BUFFER_BYTES;
}

static uint64_t gem_default_budget(const struct load_settings *settings)
{
	return churn_budget(settings);
}

static int gem_check(const struct load_settings *settings, struct message *message)
{
	char footprint[24], limit[24];

	if (!settings->backend)
		return message_set(message, -EINVAL, "gem load: no backend");
	if (!(settings->backend->variants & 1U << settings->backend_settings.variant))
		return message_set(message, -EINVAL, "backend %s cannot make variant %s",
				   settings->backend->name,
				   variant_name(settings->backend_settings.variant));
	if (settings->limit_bytes > 0 &&
	    settings->footprint_bytes + BUFFER_BYTES > settings->limit_bytes)
		return message_set(
			message, -EINVAL,
			"the footprint of %s does not fit the limit of %s, of which pinned pages "
			"cannot be reclaimed: raise --limit or lower --footprint",
			format_size(settings->footprint_bytes, footprint, sizeof(footprint)),
			format_size(settings->limit_bytes, limit, sizeof(limit)));
	return 0;
}

static void describe_backend(struct gem *gem)
{
	struct load_shared *shared = gem->load->shared;
	const struct backend *backend = gem->backend;
	size_t length = 0;

	snprintf(shared->pin_method, sizeof(shared->pin_method), "%s",
		 backend->pin_method ? backend->pin_method : "");
	snprintf(shared->release_context, sizeof(shared->release_context), "%s",
		 backend->release_context ? backend->release_context : "");
	for (size_t i = 0; i < ARRAY_SIZE(backend->notes); i++) {
		if (!backend->notes[i] || length >= sizeof(shared->note.text))
			break;
		length += (size_t)snprintf(shared->note.text + length,
					   sizeof(shared->note.text) - length, "%s%s",
					   i > 0 ? "; " : "", backend->notes[i]);
	}
}

/* Sizes of buffers and queue: a driver's shrinker takes leaked buffers, elsewhere the queue does.
 */
static int size_churn(struct gem *gem)
{
	const struct load_settings *settings = &gem->load->settings;
	bool shrinker = has_shrinker(gem->backend), leak = settings->backend_settings.leak;

	/* A GPU (what can exercise) gets IGT's sizes. */
	gem->churn_bytes = gem->ops->exercise && !leak ? SMALL_BUFFER_BYTES : BUFFER_BYTES;
	gem->churn_budget_bytes =
		settings->budget_bytes > 0 ? settings->budget_bytes : churn_budget(settings);
	if (gem->churn_budget_bytes < gem->churn_bytes) {
		atomic_store(&gem->error, -EINVAL);
		return message_set(&gem->load->shared->message, -EINVAL,
				   "gem load: its size holds not one buffer of 16 MiB: raise "
				   "--load gem=SIZE");
	}
	if (!leak || shrinker)
		return 0;
	gem->queue_size = (size_t)(gem->churn_budget_bytes / gem->churn_bytes);
	gem->queue = calloc(gem->queue_size, sizeof(*gem->queue));
	return gem->queue ? 0 : -ENOMEM;
}

static int gem_run(struct load *load)
{
	struct gem gem = {
		.load = load, .ops = load->settings.backend, .lock = PTHREAD_MUTEX_INITIALIZER};
	const struct load_settings *settings = &load->settings;
	struct backend_settings backend_settings = settings->backend_settings;
	int error;

	backend_settings.in_memcg = settings->in_memcg && settings->limit_bytes > 0;
	error = settings->backend->open(&backend_settings, &gem.backend, &load->shared->message);
	if (error < 0)
		return error;
	describe_backend(&gem);
	error = size_churn(&gem);
	if (error == 0)
		error = hold_footprint(&gem);
	if (error == 0 && !load_stopping(load))
		error = churn(&gem);
	while (gem.queue_count > 0)
		release_oldest(&gem);
	release_footprint(&gem);
	gem.ops->close(gem.backend);
	free(gem.footprint);
	free(gem.queue);
	return error;
}

const struct load_ops load_gem = {
	.name = "gem",
	.summary = "allocates, pins, uses and releases buffers of a GPU (or of --backend shm)",
	.flags = LOAD_HOLDS_BUFFERS,
	.extra_names = gem_extras,
	.claims = gem_claims,
	.default_budget = gem_default_budget,
	.check = gem_check,
	.run = gem_run,
};
