/* SPDX-License-Identifier: MIT */
/* The loop itself, in a thread of the test: phases, huge pages, pace, throttling. */
#include "support/testing.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "ops.h"
#include "sys/rt.h"

extern const struct measure_ops measure_thp;

/* Its shadow of the mapping has faults of its own. */
#ifdef __SANITIZE_THREAD__
#define UNDER_TSAN true
#else
#define UNDER_TSAN false
#endif

struct emitted {
	int64_t when_ns, took_ns;
};

struct probe {
	struct measure_settings settings;
	struct measure_thread measure;
	struct sampling_thread *shared;
	_Atomic int32_t stop;
	_Atomic int64_t start_ns;
	bool fifo;
	int error;
	pthread_t thread;
	struct emitted emitted[50000];
	size_t emitted_count;
};

static void keep_emitted(struct measure_thread *thread, int64_t when_ns, int64_t late_ns)
{
	struct probe *probe = thread->emit_data;

	if (probe->emitted_count < 50000) {
		probe->emitted[probe->emitted_count].when_ns = when_ns;
		probe->emitted[probe->emitted_count++].took_ns = late_ns;
	}
}

static void *run(void *argument)
{
	struct probe *probe = argument;
	struct rt_status status = {0};

	if (probe->shared->cpu >= 0)
		cpu_pin(0, probe->shared->cpu);
	if (probe->fifo)
		probe->error = rt_set_fifo(99, &status, NULL);
	probe->shared->policy = status.policy;
	if (probe->error == 0)
		probe->error = measure_thp.prepare(&probe->measure);
	if (probe->error == 0)
		measure_thp.loop(&probe->measure);
	return NULL;
}

static struct probe *probe_run(int64_t pace_ns, bool fifo, int cpu, int64_t duration_ns)
{
	struct probe *probe = calloc(1, sizeof(*probe));

	assert_non_null(probe);
	probe->settings.pace_ns = pace_ns;
	probe->fifo = fifo;
	probe->shared = calloc(1, sizeof(*probe->shared));
	probe->shared->cpu = cpu;
	probe->shared->phases = calloc(SAMPLING_PHASES, sizeof(*probe->shared->phases));
	probe->measure.settings = &probe->settings;
	probe->measure.shared = probe->shared;
	probe->measure.stop = &probe->stop;
	probe->measure.start_ns = &probe->start_ns;
	probe->measure.scratch = calloc(1, measure_thp.scratch_bytes);
	probe->measure.emit = keep_emitted;
	probe->measure.emit_data = probe;
	assert_int_equal(pthread_create(&probe->thread, NULL, run, probe), 0);
	clock_sleep_for(duration_ns);
	atomic_store(&probe->stop, 1);
	pthread_join(probe->thread, NULL);
	return probe;
}

static void probe_free(struct probe *probe)
{
	free(probe->measure.scratch);
	free(probe->shared->phases);
	free(probe->shared);
	free(probe);
}

static bool huge_pages_here(void)
{
	char enabled[32];

	return machine_read_choice("/sys/kernel/mm/transparent_hugepage/enabled", enabled,
				   sizeof(enabled)) == 0 &&
	       strcmp(enabled, "never") != 0;
}

static void phases_add_up_to_the_sample(void **state)
{
	struct probe *probe = probe_run(0, false, -1, 400 * NS_PER_MS);
	struct sampling_thread *shared = probe->shared;
	double sum_ns = 0;

	assert_int_equal(probe->error, 0);
	assert_true(probe->emitted_count > 10);
	assert_int_equal(atomic_load(&shared->count), probe->emitted_count);
	for (int phase = 0; phase < SAMPLING_PHASES; phase++) {
		assert_int_equal(shared->phases[phase].total, probe->emitted_count);
		assert_true(shared->phase_moments[phase].minimum > 0);
		sum_ns += shared->phase_moments[phase].mean;
	}
	/* no clock cost is taken off here, so that the parts are the whole */
	assert_true(sum_ns > shared->moments.mean - 1 && sum_ns < shared->moments.mean + 1);
	assert_int_equal(shared->thp_hits + shared->thp_misses, probe->emitted_count);
	assert_int_equal(atomic_load(&shared->waiting_since_ns), 0);
	probe_free(probe);
}

/* Before Linux 6.7 it is luck where 2 MiB land: here the address is made for it. */
static void the_mapping_is_aligned_and_becomes_huge(void **state)
{
	struct probe *probe;
	const uintptr_t *address;

	if (!huge_pages_here() || UNDER_TSAN) {
		print_message(
			"# skipped: transparent huge pages are off, or a sanitizer faults too\n");
		skip();
	}
	probe = probe_run(0, false, -1, 300 * NS_PER_MS);
	assert_true(probe->shared->thp_hits > probe->shared->thp_misses);
	probe_free(probe);
	probe = probe_run(NS_PER_MS, false, -1, 300 * NS_PER_MS);
	address = probe->measure.scratch; /* first member of its scratch */
	assert_true(*address != 0);
	assert_int_equal(*address % (2 << 20), 0);
	/* free memory may be short or in pieces for a while: most, not all */
	assert_true(probe->shared->thp_hits > probe->shared->thp_misses);
	probe_free(probe);
}

/* Where a page is small, one sample has 512 faults, and is told as a miss. */
static void small_pages_are_misses(void **state)
{
	struct probe *probe;
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		if (prctl(PR_SET_THP_DISABLE, 1UL, 0UL, 0UL, 0UL) < 0)
			_exit(77);
		probe = probe_run(0, false, -1, 200 * NS_PER_MS);
		_exit(probe->shared->thp_hits == 0 && probe->shared->thp_misses > 3 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77) {
		print_message("# skipped: PR_SET_THP_DISABLE is not there\n");
		skip();
	}
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void pace_sleeps_between_samples(void **state)
{
	struct probe *probe = probe_run(5 * NS_PER_MS, false, -1, 300 * NS_PER_MS);

	assert_in_range(probe->emitted_count, 5, 60);
	for (size_t i = 1; i < probe->emitted_count; i++)
		assert_true(probe->emitted[i].when_ns - probe->emitted[i - 1].when_ns -
				    probe->emitted[i - 1].took_ns >=
			    5 * NS_PER_MS);
	assert_int_equal(probe->shared->throttle_gaps, 0);
	probe_free(probe);
}

static void *spin(void *argument)
{
	_Atomic int32_t *stop = argument;

	cpu_pin(0, 0);
	while (atomic_load_explicit(stop, memory_order_relaxed) == 0)
		;
	return NULL;
}

/* Beside a task that wants the CPU. */
static struct probe *probe_beside_spinner(bool fifo, int64_t duration_ns)
{
	_Atomic int32_t stop = 0;
	struct probe *probe;
	pthread_t spinner;

	assert_int_equal(pthread_create(&spinner, NULL, spin, &stop), 0);
	probe = probe_run(0, fifo, 0, duration_ns);
	atomic_store(&stop, 1);
	pthread_join(spinner, NULL);
	return probe;
}

/*
 * A task that wants the CPU gets its share in gaps of the unpaced FIFO probe, once a second: 5% of
 * 2.5 s is 125 ms; at least a whole turn of it, and never more than a fifth, but where a host stops
 * the CPU in the gaps.
 */
static void throttling_is_seen_and_counted(void **state)
{
	bool right = false;
	int64_t runtime_us;

	if (machine_read_int64("/proc/sys/kernel/sched_rt_runtime_us", &runtime_us) < 0 ||
	    runtime_us < 0) {
		print_message("# skipped: real-time tasks are not throttled here\n");
		skip();
	}
	for (int attempt = 0; attempt < 5 && !right; attempt++) {
		struct probe *probe = probe_beside_spinner(true, 2500 * NS_PER_MS);
		const struct sampling_thread *shared = probe->shared;

		if (probe->error == -EPERM) {
			print_message("# skipped: SCHED_FIFO is not permitted\n");
			skip();
		}
		assert_int_equal(probe->error, 0);
		print_message("# %llu gaps, %lld us in all, longest sample %lld us\n",
			      (unsigned long long)shared->throttle_gaps,
			      (long long)shared->throttle_total_ns / 1000,
			      (long long)(shared->moments.maximum / 1000));
		right = shared->throttle_gaps >= 1 && shared->throttle_total_ns > 20 * NS_PER_MS &&
			shared->throttle_total_ns < 500 * NS_PER_MS;
		probe_free(probe);
	}
	assert_true(right);
}

/* An ordinary task that shares its CPU is switched off all the time: that is no throttling. */
static void time_sharing_is_no_throttling(void **state)
{
	struct probe *probe = probe_beside_spinner(false, 500 * NS_PER_MS);

	assert_int_equal(probe->shared->throttle_gaps, 0);
	probe_free(probe);
}

/* No address space left: an error of the thread, not an assertion. */
static void failing_mmap_is_told(void **state)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		struct rlimit little = {0, 0};
		struct measure_settings settings = {0};
		struct sampling_thread *shared = calloc(1, sizeof(*shared));
		_Atomic int32_t stop = 0;
		struct measure_thread measure = {
			.settings = &settings, .shared = shared, .stop = &stop};

		measure.scratch = calloc(1, measure_thp.scratch_bytes);
		if (measure_thp.prepare(&measure) != 0)
			_exit(2);
		setrlimit(RLIMIT_AS, &little);
		measure_thp.loop(&measure);
		_exit(atomic_load(&shared->error) == -ENOMEM ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void stop_after_one(struct measure_thread *thread, int64_t when_ns, int64_t late_ns)
{
	_Atomic int32_t *stop = thread->emit_data;

	atomic_fetch_add(stop, 1);
}

/* Enough to fill every gap that is nearer to the top than the place. */
#define LATER_MAPPINGS 4096

/* What is mapped between a thread's preparation and its first sample: the stacks of the others. */
static void later_mappings_leave_the_place_alone(void **state)
{
	struct measure_settings settings = {.pace_ns = NS_PER_MS};
	struct sampling_thread *shared = calloc(1, sizeof(*shared));
	size_t bytes = (size_t)1 << 20;
	_Atomic int32_t stop = 0;
	struct measure_thread measure = {.settings = &settings,
					 .shared = shared,
					 .stop = &stop,
					 .emit = stop_after_one,
					 .emit_data = &stop};
	void *mapped[LATER_MAPPINGS];

	assert_non_null(shared);
	shared->phases = calloc(SAMPLING_PHASES, sizeof(*shared->phases));
	measure.scratch = calloc(1, measure_thp.scratch_bytes);
	assert_int_equal(measure_thp.prepare(&measure), 0);
	for (int i = 0; i < LATER_MAPPINGS; i++) {
		mapped[i] = mmap(NULL, bytes, PROT_NONE,
				 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		assert_true(mapped[i] != MAP_FAILED);
	}
	measure_thp.loop(&measure);
	assert_int_equal(atomic_load(&shared->error), 0);
	assert_int_equal(stop, 1);
	for (int i = 0; i < LATER_MAPPINGS; i++)
		munmap(mapped[i], bytes);
	free(measure.scratch);
	free(shared->phases);
	free(shared);
}

static void kernel_without_huge_pages_is_refused(void **state)
{
	struct measure_settings settings = {0};
	char root[TREE_SIZE];
	struct message message;

	testing_open_machine(root);
	assert_int_equal(measure_thp.check(&settings, &message), -ENOTSUP);
	assert_non_null(strstr(message.text, "transparent huge pages"));
	testing_write(root, "/sys/kernel/mm/transparent_hugepage/enabled",
		      "always [madvise] never\n");
	testing_write(root, "/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", "2097152\n");
	assert_int_equal(measure_thp.check(&settings, &message), 0);
	testing_close_machine(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(phases_add_up_to_the_sample),
		cmocka_unit_test(the_mapping_is_aligned_and_becomes_huge),
		cmocka_unit_test(small_pages_are_misses),
		cmocka_unit_test(pace_sleeps_between_samples),
		cmocka_unit_test(throttling_is_seen_and_counted),
		cmocka_unit_test(time_sharing_is_no_throttling),
		cmocka_unit_test(failing_mmap_is_told),
		cmocka_unit_test(later_mappings_leave_the_place_alone),
		cmocka_unit_test(kernel_without_huge_pages_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
