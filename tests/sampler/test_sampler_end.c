/* SPDX-License-Identifier: MIT */
/* The sampler frozen, stuck and stopped: known answers, and an end in time. */
#include "sampler/sampler_fixture.h"

#include "sampler/sample_file.h"

#include "base/clock.h"

/* Reads the samples file and fills in missed deadlines by the definition. */
static void correct_by_hand(const char *path, uint32_t thread, int64_t period_ns,
			    struct histogram *ret_corrected, uint64_t *ret_long,
			    uint64_t *ret_count)
{
	const struct sample_file_header *header;
	const struct sample_file_record *record;
	char *text;
	size_t size;

	memset(ret_corrected, 0, sizeof(*ret_corrected));
	*ret_long = *ret_count = 0;
	assert_int_equal(file_read(path, &text, &size), 0);
	header = (const struct sample_file_header *)text;
	for (record = (const struct sample_file_record *)(text + header->header_bytes);
	     record->thread != SAMPLE_FILE_END; record++) {
		if (record->thread != thread)
			continue;
		*ret_count += 1;
		*ret_long += record->late_ns >= NS_PER_S;
		for (int64_t late_ns = record->late_ns; late_ns >= 0; late_ns -= period_ns)
			histogram_record(ret_corrected, late_ns);
	}
	free(text);
}

/* Returns how long the process was stopped at least, by the clock beside the two signals. */
static int64_t freeze(struct sampler *sampler, int64_t frozen_ns)
{
	pid_t pid = process_of(sampler_thread(sampler, 0));
	int64_t stopped_ns, until_ns, lasted_ns;
	size_t index;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	stopped_ns = clock_now_ns();
	until_ns = stopped_ns + frozen_ns;
	poll_until(sampler, until_ns - 300 * NS_PER_MS);
	/* told while it lasts */
	assert_true(sampler_stalled_ns(sampler, clock_now_ns(), &index) >
		    frozen_ns - 900 * NS_PER_MS);
	poll_until(sampler, until_ns);
	lasted_ns = clock_now_ns() - stopped_ns;
	assert_int_equal(kill(pid, SIGCONT), 0);
	return lasted_ns;
}

static void frozen_two_seconds_of_six(void **state)
{
	const int64_t period_ns = 10 * NS_PER_MS, frozen_ns = 2 * NS_PER_S;
	char path[] = "/tmp/syslatency-frozen-XXXXXX";
	struct histogram *expected = calloc(1, sizeof(*expected));
	struct sampler_settings settings;
	const struct sampling_thread *threads;
	struct sampler *sampler;
	uint64_t long_samples, samples, deadlines, over, lost;
	int64_t begin_ns, lasted_ns;
	size_t count;

	close(mkstemp(path));
	settings_fixed(&settings, period_ns);
	settings.samples_path = path;
	sampler = start(&settings);
	begin_ns = clock_now_ns() + 5 * NS_PER_MS;
	sampler_begin(sampler, begin_ns);
	poll_until(sampler, begin_ns + 2 * NS_PER_S);
	lasted_ns = freeze(sampler, frozen_ns);
	poll_until(sampler, begin_ns + 6 * NS_PER_S);
	deadlines = (uint64_t)((clock_now_ns() - begin_ns) / period_ns);
	assert_int_equal(stop_sampler(sampler), 0);
	assert_int_equal(sampler_samples(sampler, &lost, NULL), 0);
	assert_int_equal(lost, 0);
	threads = sampler_threads(sampler, &count);
	for (size_t i = 0; i < count; i++) {
		const struct sampling_thread *thread = &threads[i];

		correct_by_hand(path, (uint32_t)i, period_ns, expected, &long_samples, &samples);
		assert_int_equal(long_samples, 1); /* observed: one */
		assert_int_equal(atomic_load(&thread->count), samples);
		/* the stop may take hold, and the waking last, longer on a busy machine */
		assert_in_range((int64_t)thread->moments.maximum,
				lasted_ns - period_ns - 20 * NS_PER_MS,
				lasted_ns + 500 * NS_PER_MS);
		assert_true(atomic_load(&thread->missed) >=
			    (uint64_t)((int64_t)thread->moments.maximum / period_ns));
		/* corrected: what the arithmetic says, bucket by bucket */
		assert_memory_equal(&thread->corrected, expected, sizeof(*expected));
		assert_int_equal(thread->corrected.total, samples + atomic_load(&thread->missed));
		/* of 600 deadlines about 100 were late by a second and more; whole buckets: 0.8% */
		over = (uint64_t)(((int64_t)thread->moments.maximum - NS_PER_S) / period_ns) + 1;
		assert_in_range(histogram_count_above(&thread->corrected, NS_PER_S), over - 2,
				over);
		assert_in_range(thread->corrected.total, deadlines - 10, deadlines + 10);
		assert_int_equal(atomic_load(&thread->early), 0);
	}
	sampler_free(sampler);
	unlink(path);
	free(expected);
}

/* IGT's schedule starts anew from the wake: the same freeze is one sample and nothing is missed. */
static void frozen_on_igts_schedule_is_one_sample(void **state)
{
	struct sampler_settings settings;
	const struct sampling_thread *threads;
	struct sampler *sampler;
	size_t count;

	settings_fixed(&settings, 0);
	settings.measure_settings.schedule = SCHEDULE_IGT;
	sampler = start(&settings);
	run_for(sampler, 200 * NS_PER_MS);
	freeze(sampler, 1200 * NS_PER_MS);
	poll_until(sampler, clock_now_ns() + 200 * NS_PER_MS);
	stop_sampler(sampler);
	threads = sampler_threads(sampler, &count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(histogram_count_above(&threads[i].observed, NS_PER_S), 1);
		assert_int_equal(atomic_load(&threads[i].missed), 0);
		assert_int_equal(threads[i].corrected.total, 0);
	}
	sampler_free(sampler);
}

/* Frozen to the end: the run ends all the same, and the wait is told as "at least". */
static void frozen_to_the_end_is_at_least(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler;
	int64_t stall_ns, frozen_at_ns;
	pid_t pid;

	settings_fixed(&settings, 10 * NS_PER_MS);
	sampler = start(&settings);
	run_for(sampler, 200 * NS_PER_MS);
	pid = process_of(sampler_thread(sampler, 0));
	frozen_at_ns = clock_now_ns();
	assert_int_equal(kill(pid, SIGSTOP), 0);
	poll_until(sampler, clock_now_ns() + 500 * NS_PER_MS);
	stall_ns = stop_sampler(sampler);
	assert_true(stall_ns > 400 * NS_PER_MS);
	assert_true(stall_ns < clock_now_ns() - frozen_at_ns + 10 * NS_PER_MS);
	assert_int_equal(kill(pid, 0), -1); /* ended, and reaped */
	sampler_free(sampler);
}

static void stuck_loop(struct measure_thread *thread)
{
	atomic_store(&thread->shared->waiting_since_ns, clock_now_ns());
	for (;;)
		clock_sleep_for(10 * NS_PER_MS);
}

static const struct measure_ops measure_stuck = {.name = "stuck", .loop = stuck_loop};

static void stuck_thread_does_not_hold_the_end(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler;
	int64_t stall_ns, before_ns;

	settings_fixed(&settings, NS_PER_MS);
	settings.measure = &measure_stuck;
	sampler = start(&settings);
	run_for(sampler, 300 * NS_PER_MS);
	before_ns = clock_now_ns();
	assert_int_equal(sampler_stop(sampler, &stall_ns), 0);
	assert_true(clock_now_ns() - before_ns < 1100 * NS_PER_MS);
	assert_in_range(stall_ns, 300 * NS_PER_MS, 3 * NS_PER_S);
	sampler_free(sampler);
}

static void long_interval_stops_at_once(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler;
	int64_t before_ns, stall_ns;

	settings_fixed(&settings, 3600 * NS_PER_S);
	sampler = start(&settings);
	run_for(sampler, 100 * NS_PER_MS);
	before_ns = clock_now_ns();
	assert_int_equal(sampler_stop(sampler, &stall_ns), 0);
	assert_true(clock_now_ns() - before_ns < 900 * NS_PER_MS);
	assert_int_equal(stall_ns, 0); /* nobody was late */
	assert_int_equal(sampler_stop(sampler, &stall_ns), 0);
	sampler_free(sampler);
}

static void stop_before_the_begin(void **state)
{
	struct sampler_settings settings;
	struct sampler *sampler;
	size_t count;

	settings_fixed(&settings, NS_PER_MS);
	sampler = start(&settings);
	stop_sampler(sampler);
	assert_int_equal(atomic_load(&sampler_threads(sampler, &count)[0].count), 0);
	sampler_free(sampler);
	settings_fixed(&settings, NS_PER_MS);
	sampler = start(&settings);
	sampler_free(sampler); /* without a stop */
	sampler_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frozen_two_seconds_of_six),
		cmocka_unit_test(frozen_on_igts_schedule_is_one_sample),
		cmocka_unit_test(frozen_to_the_end_is_at_least),
		cmocka_unit_test(stuck_thread_does_not_hold_the_end),
		cmocka_unit_test(long_interval_stops_at_once),
		cmocka_unit_test(stop_before_the_begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
