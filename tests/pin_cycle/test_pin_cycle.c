/* SPDX-License-Identifier: MIT */
/* The processes that pin_cycle lets take turns, for real. */
#include "support/testing.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "pin_cycle/pin_cycle.h"
#include "pin_cycle/state.h"

#define BYTES (UINT64_C(1) << 20)

static int start(enum variant variant, struct pin_worker *worker)
{
	struct backend_settings settings = {.variant = variant};
	struct message message = {""};
	int error;

	*worker = (struct pin_worker){.ops = backend_find("shm"), .variant = variant};
	error = pin_worker_start(worker, &settings, NULL, &message);

	if (error)
		SKIP_BECAUSE("%s", message.text);
	return error;
}

static void a_turn_times_each_phase(void **state)
{
	struct pin_worker worker;
	struct message message = {""};
	struct pin_turn turn;

	start(VARIANT_STOCK, &worker);
	assert_true(worker.greeting.pin_method[0] != '\0');
	for (int i = 0; i < 3; i++) {
		assert_int_equal(pin_worker_turn(&worker, BYTES, false, 10 * NS_PER_S, NULL, &turn,
						 &message),
				 0);
		for (int phase = 0; phase < BUFFER_PHASES; phase++) {
			assert_true(turn.ns[phase] > 0);
			assert_true(turn.cpu_ns[phase] > 0);
			/* One thread cannot use more than the time that passes; but a host may take
			 * the CPU away between the reads of the two clocks. */
			assert_true(turn.cpu_ns[phase] < turn.ns[phase] + 200 * NS_PER_MS);
		}
		assert_true(turn.ns[PHASE_RECLAIM] < 0);
	}
	pin_worker_stop(&worker, NULL);
}

static void reclaim_can_be_asked_for_held_pages(void **state)
{
	struct pin_worker worker;
	struct message message = {""};
	struct pin_turn turn;
	int error;

	start(VARIANT_MLOCK, &worker);
	error = pin_worker_turn(&worker, BYTES, true, 10 * NS_PER_S, NULL, &turn, &message);
	if (error == -EINVAL)
		SKIP_BECAUSE("no MADV_PAGEOUT before Linux 5.4");
	assert_int_equal(error, 0);
	assert_true(turn.ns[PHASE_RECLAIM] > 0);
	pin_worker_stop(&worker, NULL);
}

static void a_worker_that_dies_is_told(void **state)
{
	struct pin_worker worker;
	struct message message = {""};
	struct pin_turn turn;

	start(VARIANT_BASELINE, &worker);
	kill(worker.child.pid, SIGKILL);
	assert_int_equal(
		pin_worker_turn(&worker, BYTES, false, 10 * NS_PER_S, NULL, &turn, &message),
		-ECHILD);
	assert_non_null(strstr(message.text, "ended"));
	pin_worker_stop(&worker, NULL);
}

/* A later worker holds copies of what the earlier ones are spoken to by; they must end all the
 * same. */
static void workers_end_when_asked_not_at_the_limit(void **state)
{
	struct pin_worker workers[3];
	int64_t begin_ns;

	for (size_t i = 0; i < 3; i++)
		start(VARIANT_BASELINE, &workers[i]);
	begin_ns = clock_now_ns();
	for (size_t i = 0; i < 3; i++)
		pin_worker_stop(&workers[i], NULL);
	/* one that does not end when asked is killed after 2 s */
	assert_true(clock_now_ns() - begin_ns < 2 * NS_PER_S);
}

static void too_large_a_buffer_is_an_error(void **state)
{
	struct pin_worker worker;
	struct message message = {""};
	struct pin_turn turn;

	start(VARIANT_BASELINE, &worker);
	assert_true(pin_worker_turn(&worker, UINT64_C(1) << 62, false, 10 * NS_PER_S, NULL, &turn,
				    &message) < 0);
	assert_true(message.text[0] != '\0');
	/* And the worker goes on. */
	assert_int_equal(
		pin_worker_turn(&worker, BYTES, false, 10 * NS_PER_S, NULL, &turn, &message), 0);
	pin_worker_stop(&worker, NULL);
}

static void a_signal_ends_the_wait(void **state)
{
	static const volatile sig_atomic_t interrupted = 1;
	struct pin_worker worker;
	struct message message = {""};
	struct pin_turn turn;

	start(VARIANT_BASELINE, &worker);
	assert_int_equal(pin_worker_turn(&worker, BYTES, false, 10 * NS_PER_S, &interrupted, &turn,
					 &message),
			 -EINTR);
	pin_worker_stop(&worker, NULL);
}

static void what_does_not_fit_is_refused(void **state)
{
	struct pin_cycle_settings settings = {
		.backend = "shm", .parts = PIN_CYCLE_COLD, .sizes = {4096}, .size_count = 1};
	struct message message = {""};
	struct record *record;

	assert_int_equal(pin_cycle_execute(&settings, &record, &message), -EINVAL);
	settings.sizes[0] = UINT64_C(1) << 62;
	assert_int_equal(pin_cycle_execute(&settings, &record, &message), -ENOMEM);
	settings.backend = "zzz";
	assert_int_equal(pin_cycle_execute(&settings, &record, &message), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_turn_times_each_phase),
		cmocka_unit_test(reclaim_can_be_asked_for_held_pages),
		cmocka_unit_test(a_worker_that_dies_is_told),
		cmocka_unit_test(workers_end_when_asked_not_at_the_limit),
		cmocka_unit_test(too_large_a_buffer_is_an_error),
		cmocka_unit_test(a_signal_ends_the_wait),
		cmocka_unit_test(what_does_not_fit_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
