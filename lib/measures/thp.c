/* SPDX-License-Identifier: MIT */
/*
 * How long it takes to get and give back a transparent huge page: map 2 MiB, ask for a huge page,
 * touch every 4 KiB, unmap; the loop of gem_syslatency -m of IGT.
 */
#include <errno.h>
#include <math.h>
#include <sched.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <time.h>

#include "base/clock.h"
#include "base/profile_mark.h"
#include "ops.h"
#include "sys/thp.h"

#define HUGE_BYTES (UINT64_C(2) << 20)
#define PAGE_BYTES 4096

/*
 * An involuntary absence of at least this is a gap of throttling; shorter samples are not looked
 * at. The throttle takes 50 ms of a second by default, the server of ordinary tasks as much as they
 * use.
 */
#define GAP_NS NS_PER_MS

enum { PHASE_MAP, PHASE_POPULATE, PHASE_UNMAP, PHASE_COUNT };
static const char *const thp_phases[] = {"map", "populate", "unmap", NULL};

struct thp_scratch {
	/* aligned to 2 MiB, a guard page on either side; NULL: where the kernel likes, as IGT */
	unsigned char *address;
	uint64_t faults; /* of this thread up to the last sample */
	/* of the last look for throttling */
	int64_t wall_ns, cpu_ns, involuntary;
};

static inline bool stopping(const struct measure_thread *thread)
{
	return atomic_load_explicit(thread->stop, memory_order_relaxed) != 0;
}

/*
 * An aligned address of our own: kernels before 6.7 place a 2 MiB mapping anywhere, where no huge
 * page fits. Mapping at a fixed address costs what IGT's mapping costs; a larger, aligned by hand,
 * would not. The guards keep neighbours from growing into the hole, which is open from the first
 * sample on (open_hole()): until then threads are made, whose stacks would go there.
 */
static int reserve_address(struct thp_scratch *scratch)
{
	const size_t span = 2 * HUGE_BYTES + 2 * PAGE_BYTES;
	unsigned char *span_start, *aligned, *guard_end;

	span_start =
		mmap(NULL, span, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (span_start == MAP_FAILED)
		return -errno;
	aligned = (unsigned char *)(((uintptr_t)span_start + PAGE_BYTES + HUGE_BYTES - 1) &
				    ~(uintptr_t)(HUGE_BYTES - 1));
	guard_end = aligned + HUGE_BYTES + PAGE_BYTES;
	if (aligned - PAGE_BYTES > span_start)
		munmap(span_start, (size_t)(aligned - PAGE_BYTES - span_start));
	if (span_start + span > guard_end)
		munmap(guard_end, (size_t)(span_start + span - guard_end));
	scratch->address = aligned;
	return 0;
}

static void open_hole(const struct thp_scratch *scratch)
{
	if (scratch->address)
		munmap(scratch->address, HUGE_BYTES);
}

/* Since Linux 6.7 a mapping of 2 MiB is aligned by itself. */
static bool kernel_aligns(void)
{
	bool aligned = true;

	for (int i = 0; i < 4 && aligned; i++) {
		void *mapped =
			mmap(NULL, HUGE_BYTES, PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (mapped == MAP_FAILED)
			return false;
		aligned = ((uintptr_t)mapped & (HUGE_BYTES - 1)) == 0;
		munmap(mapped, HUGE_BYTES);
	}
	return aligned;
}

/*
 * Unpaced, the threads meet in the kernel all the time: mappings that lie side by side are merged
 * and split under one lock, which is a tenth of what IGT's loop takes on two CPUs. So the unpaced
 * probe maps as IGT does wherever the kernel aligns, and the paced one keeps its threads apart.
 */
static int thp_prepare(struct measure_thread *thread)
{
	if (thread->settings->pace_ns == 0 && kernel_aligns())
		return 0;
	return reserve_address(thread->scratch);
}

static int64_t thread_cpu_ns(void)
{
	struct timespec time;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
	return timespec_to_ns(&time);
}

static void look_begins(struct thp_scratch *scratch, int64_t now_ns)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	scratch->wall_ns = now_ns;
	scratch->cpu_ns = thread_cpu_ns();
	scratch->involuntary = usage.ru_nivcsw;
	scratch->faults = (uint64_t)usage.ru_minflt;
}

/*
 * A FIFO task that never sleeps is taken off its CPU against its will only by what ranks above it:
 * the throttle of real-time tasks, or the server that gives ordinary tasks their share (deadline
 * class, Linux 6.12). Stolen time does not look so (the task stays current), nor does a sleep in
 * reclaim (a voluntary switch). @long_ns: the sample or pause just over.
 */
static void look_for_throttling(struct measure_thread *thread, int64_t now_ns, int64_t long_ns)
{
	struct thp_scratch before = *(struct thp_scratch *)thread->scratch;
	struct thp_scratch *scratch = thread->scratch;
	struct sampling_thread *shared = thread->shared;
	int64_t away_ns;

	look_begins(scratch, now_ns);
	scratch->faults = before.faults;
	if (shared->policy != SCHED_FIFO || scratch->involuntary == before.involuntary)
		return;
	away_ns = (scratch->wall_ns - before.wall_ns) - (scratch->cpu_ns - before.cpu_ns);
	if (away_ns > long_ns)
		away_ns = long_ns;
	if (away_ns < GAP_NS)
		return;
	shared->throttle_gaps++;
	shared->throttle_total_ns += away_ns;
}

/* One fault for 2 MiB is a huge page; more are pages of another size. */
static inline void count_hit(struct measure_thread *thread)
{
	struct thp_scratch *scratch = thread->scratch;
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	if ((uint64_t)usage.ru_minflt - scratch->faults == 1)
		thread->shared->thp_hits++;
	else
		thread->shared->thp_misses++;
	scratch->faults = (uint64_t)usage.ru_minflt;
}

/* The timed part; the four times at its joints. -errno of mmap. */
static inline int sample_huge_page(unsigned char *wanted, int64_t times_ns[PHASE_COUNT + 1])
{
	int flags = MAP_PRIVATE | MAP_ANONYMOUS | (wanted ? MAP_FIXED_NOREPLACE : 0);
	unsigned char *address;

	profile_mark(PROFILE_MARK_BEGIN);
	times_ns[PHASE_MAP] = clock_now_ns();
	address = mmap(wanted, HUGE_BYTES, PROT_WRITE, flags, -1, 0);
	if (address == MAP_FAILED)
		return -errno;
	if (wanted && address != wanted) { /* before Linux 4.17 the flag is not known */
		munmap(address, HUGE_BYTES);
		return -EEXIST;
	}
	madvise(address, HUGE_BYTES, MADV_HUGEPAGE);
	times_ns[PHASE_POPULATE] = clock_now_ns();
	for (size_t offset = 0; offset < HUGE_BYTES; offset += PAGE_BYTES)
		*(volatile uint32_t *)(address + offset) = 0;
	times_ns[PHASE_UNMAP] = clock_now_ns();
	munmap(address, HUGE_BYTES);
	times_ns[PHASE_COUNT] = clock_now_ns();
	profile_mark(PROFILE_MARK_END);
	return 0;
}

static void pace(struct measure_thread *thread, int64_t from_ns)
{
	struct timespec deadline = ns_to_timespec(from_ns + thread->settings->pace_ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL) == EINTR &&
	       !stopping(thread))
		;
}

static void add_sample(struct measure_thread *thread, const int64_t times_ns[PHASE_COUNT + 1])
{
	int64_t cost_ns = llrint(thread->settings->clock_cost_ns);
	int64_t took_ns = times_ns[PHASE_COUNT] - times_ns[0] - cost_ns;

	sampling_add(thread->shared, times_ns[0], took_ns);
	for (int phase = 0; phase < PHASE_COUNT; phase++)
		sampling_add_phase(thread->shared, phase,
				   times_ns[phase + 1] - times_ns[phase] - cost_ns);
	if (thread->emit)
		thread->emit(thread, times_ns[0], took_ns);
	count_hit(thread);
}

static void thp_loop(struct measure_thread *thread)
{
	struct thp_scratch *scratch = thread->scratch;
	struct sampling_thread *shared = thread->shared;
	int64_t times_ns[PHASE_COUNT + 1], ended_ns = clock_now_ns();

	profile_mark(PROFILE_MARK_LOOP);
	open_hole(scratch);
	look_begins(scratch, ended_ns);
	while (!stopping(thread)) {
		int error;

		atomic_store_explicit(&shared->waiting_since_ns, clock_now_ns(),
				      memory_order_relaxed);
		error = sample_huge_page(scratch->address, times_ns);
		atomic_store_explicit(&shared->waiting_since_ns, 0, memory_order_relaxed);
		if (error < 0) {
			atomic_store(&shared->error, error);
			break;
		}
		add_sample(thread, times_ns);
		/* From end to end: throttling strikes within a sample or between two. */
		if (thread->settings->pace_ns > 0)
			pace(thread, times_ns[PHASE_COUNT]);
		else if (times_ns[PHASE_COUNT] - ended_ns > GAP_NS)
			look_for_throttling(thread, times_ns[PHASE_COUNT],
					    times_ns[PHASE_COUNT] - ended_ns);
		ended_ns = times_ns[PHASE_COUNT];
	}
}

static int thp_check(const struct measure_settings *settings, struct message *message)
{
	if (thp_mode() == THP_UNSUPPORTED)
		return message_set(
			message, -ENOTSUP,
			"this kernel has no transparent huge pages: use --measure wakeup");
	if (thp_forbidden_here())
		return message_set(message, -ENOTSUP,
				   "huge pages are forbidden to this process "
				   "(PR_SET_THP_DISABLE): start it from another one");
	return 0;
}

static const struct claim thp_claims[] = {
	{.name = "huge pages allocated",
	 .witness = "counters.vmstat.thp_fault_alloc",
	 .reference = "latency.count",
	 .test = CLAIM_RATIO_AT_LEAST,
	 .bound = 0.01,
	 .why = "almost no sample got a huge page: the time is that of 512 small ones",
	 .advice = "set /sys/kernel/mm/transparent_hugepage/enabled to madvise or always"},
	{.name = NULL},
};

const struct measure_ops measure_thp = {
	.name = "thp",
	.summary = "time to map, populate and unmap 2 MiB as a transparent huge page",
	.claims = thp_claims,
	.flags = MEASURE_IN_GROUP | MEASURE_PACES | MEASURE_FAULTS | MEASURE_HUGE_PAGES,
	.igt_flag = 'm',
	.phases = thp_phases,
	.subject = SUBJECT_INTERVAL,
	.scratch_bytes = sizeof(struct thp_scratch),
	.check = thp_check,
	.prepare = thp_prepare,
	.loop = thp_loop,
};
