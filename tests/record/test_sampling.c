/* SPDX-License-Identifier: MIT */
#include "record/sampling.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/random.h"

static int new_thread(void **state)
{
	struct sampling_thread *thread = calloc(1, sizeof(*thread));

	thread->cpu = -1;
	*state = thread;
	return thread ? 0 : -1;
}

static int free_thread(void **state)
{
	free(*state);
	return 0;
}

static void keeps_exact_moments_and_extremes(void **state)
{
	struct sampling_thread *thread = *state;
	static const int64_t values_ns[] = {5, -3, 1000, 250000, 7, 675 * NS_PER_S};
	const size_t n = ARRAY_SIZE(values_ns);
	double sum = 0, squares = 0, mean;

	for (size_t i = 0; i < n; i++) {
		sampling_add(thread, 100 + (int64_t)i, values_ns[i]);
		sum += (double)values_ns[i];
	}
	mean = sum / (double)n;
	for (size_t i = 0; i < n; i++)
		squares += ((double)values_ns[i] - mean) * ((double)values_ns[i] - mean);
	assert_int_equal(atomic_load(&thread->count), n);
	assert_int_equal(thread->observed.total, n);
	assert_int_equal((int64_t)thread->moments.minimum, -3);
	assert_int_equal((int64_t)thread->moments.maximum, 675 * NS_PER_S);
	assert_true(fabs(thread->moments.mean - mean) < 1e-6 * mean);
	assert_true(fabs(thread->moments.m2 - squares) < 1e-9 * squares);
}

static void all_negative_series_has_a_negative_maximum(void **state)
{
	struct sampling_thread *thread = *state;

	sampling_add(thread, 1, -20);
	sampling_add(thread, 2, -10);
	assert_int_equal((int64_t)thread->moments.minimum, -20);
	assert_int_equal((int64_t)thread->moments.maximum, -10);
}

static void worst_holds_the_ten_largest(void **state)
{
	struct sampling_thread *thread = *state;
	size_t order[100];
	struct random random;
	int64_t sum_ns = 0;

	random_seed(&random, 7);
	for (size_t i = 0; i < 100; i++)
		order[i] = i + 1;
	random_shuffle(&random, order, 100);
	for (size_t i = 0; i < 100; i++)
		sampling_add(thread, (int64_t)order[i] * 1000, (int64_t)order[i]);
	for (int i = 0; i < SAMPLING_WORST; i++) {
		assert_in_range(thread->worst[i].late_ns, 91, 100);
		assert_int_equal(thread->worst[i].when_ns, thread->worst[i].late_ns * 1000);
		assert_int_equal(thread->worst[i].steal_ns, -1);
		assert_int_equal(order[thread->worst[i].index], thread->worst[i].late_ns);
		sum_ns += thread->worst[i].late_ns;
	}
	assert_int_equal(sum_ns, 955); /* 91 + ... + 100, each once */
}

/* The definition, deadline by deadline, against which the closed form is held. */
static void fill_naively(struct histogram *histogram, double *sum, double *squares, int64_t late_ns,
			 int64_t period_ns)
{
	int64_t value_ns = late_ns;

	do {
		histogram_record(histogram, value_ns);
		*sum += (double)value_ns;
		*squares += (double)value_ns * (double)value_ns;
		value_ns -= period_ns;
	} while (value_ns >= 0);
}

static void correction_is_the_arithmetic_series(void **state)
{
	struct sampling_thread *thread = *state;
	struct histogram *naive = calloc(1, sizeof(*naive));
	const int64_t period_ns = 10 * NS_PER_MS;
	double sum = 0, squares = 0, mean, m2;
	uint64_t missed = 0;
	struct random random;

	random_seed(&random, 11);
	for (int i = 0; i < 2000; i++) {
		/* mostly on time, every hundredth a stall of up to 3 s, exact multiples too */
		int64_t late_ns = i % 100 ? (int64_t)random_below(&random, NS_PER_MS)
					  : (int64_t)random_below(&random, 3 * NS_PER_S);

		if (i == 500)
			late_ns = 7 * period_ns;
		missed += sampling_add_scheduled(thread, i, late_ns, late_ns, period_ns);
		fill_naively(naive, &sum, &squares, late_ns, period_ns);
	}
	assert_int_equal(atomic_load(&thread->count), 2000);
	assert_int_equal(atomic_load(&thread->missed), missed);
	assert_true(missed > 1000);
	assert_int_equal(thread->corrected.total, 2000 + missed);
	assert_memory_equal(&thread->corrected, naive, sizeof(*naive));
	mean = sum / (double)naive->total;
	m2 = squares - mean * sum;
	assert_true(fabs(thread->corrected_moments.mean - mean) < 1e-9 * mean);
	assert_true(fabs(thread->corrected_moments.m2 - m2) < 1e-6 * m2);
	assert_int_equal((int64_t)thread->corrected_moments.maximum,
			 (int64_t)thread->moments.maximum);
	free(naive);
}

static void eleven_minutes_at_100us_are_filled_in_at_once(void **state)
{
	struct sampling_thread *thread = *state;
	uint64_t missed =
		sampling_add_scheduled(thread, 0, 675 * NS_PER_S, 675 * NS_PER_S, 100 * NS_PER_US);

	assert_int_equal(missed, 6750000);
	assert_int_equal(thread->corrected.total, 6750001);
	assert_int_equal((int64_t)thread->corrected_moments.minimum, 0);
	assert_true(fabs(thread->corrected_moments.mean - 337.5e9) < 1);
}

static void early_wake_misses_nothing(void **state)
{
	struct sampling_thread *thread = *state;

	assert_int_equal(sampling_add_scheduled(thread, 0, -500, -470, 1000), 0);
	assert_int_equal(thread->corrected.total, 1);
	assert_int_equal((int64_t)thread->corrected_moments.minimum, -500);
	/* the cost of the clock decides neither way what was missed */
	assert_int_equal(sampling_add_scheduled(thread, 0, 970, 1000, 1000), 1);
	assert_int_equal(thread->corrected.total, 3);
}

static void other_cpu_is_a_migration(void **state)
{
	struct sampling_thread *thread = *state;

	thread->cpu = 1 << 20; /* nobody runs there */
	sampling_add(thread, 0, 1);
	assert_int_equal(thread->migrations, 1);
}

static void phases_count_apart(void **state)
{
	struct sampling_thread *thread = *state;

	thread->phases = calloc(SAMPLING_PHASES, sizeof(*thread->phases));
	sampling_add_phase(thread, 1, 300);
	sampling_add_phase(thread, 1, 100);
	assert_int_equal(thread->phases[1].total, 2);
	assert_int_equal(thread->phases[0].total, 0);
	assert_int_equal((int64_t)thread->phase_moments[1].minimum, 100);
	assert_int_equal((int64_t)thread->phase_moments[1].maximum, 300);
	assert_true(fabs(thread->phase_moments[1].mean - 200) < 1e-9);
	free(thread->phases);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(keeps_exact_moments_and_extremes, new_thread,
						free_thread),
		cmocka_unit_test_setup_teardown(all_negative_series_has_a_negative_maximum,
						new_thread, free_thread),
		cmocka_unit_test_setup_teardown(worst_holds_the_ten_largest, new_thread,
						free_thread),
		cmocka_unit_test_setup_teardown(correction_is_the_arithmetic_series, new_thread,
						free_thread),
		cmocka_unit_test_setup_teardown(eleven_minutes_at_100us_are_filled_in_at_once,
						new_thread, free_thread),
		cmocka_unit_test_setup_teardown(early_wake_misses_nothing, new_thread, free_thread),
		cmocka_unit_test_setup_teardown(other_cpu_is_a_migration, new_thread, free_thread),
		cmocka_unit_test_setup_teardown(phases_count_apart, new_thread, free_thread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
