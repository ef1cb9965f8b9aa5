/* SPDX-License-Identifier: MIT */
/* Kernels that do not tell when the idle task leaves a CPU: what later events show is put in. */
#include "support/testing.h"

#include <stdlib.h>

#include "base/array.h"
#include "explain/explain_checks.h"

#define COMPLETE(told, events, count, added)                                            \
	do {                                                                            \
		(count) = ARRAY_SIZE(told);                                             \
		(events) = malloc(sizeof(told));                                        \
		assert_non_null(events);                                                \
		memcpy(events, told, sizeof(told));                                     \
		assert_int_equal(explain_add_untold(&(events), &(count), &(added)), 0); \
		check_order(events, count);                                             \
	} while (0)

/* In order, and on each CPU every event is of the task that the last switch brought. */
static void check_order(const struct trace_event *events, size_t count)
{
	int32_t current[8];

	memset(current, -1, sizeof(current));
	for (size_t i = 0; i < count; i++) {
		int32_t *known = &current[events[i].cpu];

		assert_true(i == 0 || events[i - 1].when_ns <= events[i].when_ns);
		if (events[i].kind == TRACE_LOST) {
			*known = -1;
			continue;
		}
		assert_true(*known == -1 || *known == events[i].tid);
		*known = events[i].kind == TRACE_SWITCH ? events[i].other : events[i].tid;
	}
}

static void test_nothing_is_untold(void **state)
{
	const struct trace_event told[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		waking(3, 0, 0, SAMPLER),
		switched(5, 0, 0, STATE_RUNNABLE, "swapper/0", SAMPLER, "sampler", 0),
		plain(7, 1, LOAD, TRACE_ENTER, CAUSE_DIRECT_RECLAIM, NULL),
		switched(9, 1, LOAD, STATE_SLEEPING, "load", 0, "swapper/1", 120),
	};
	struct trace_event *events;
	size_t count, added;

	COMPLETE(told, events, count, added);
	assert_int_equal(added, 0);
	assert_int_equal(count, 5);
	free(events);
	events = NULL;
	count = 0;
	assert_int_equal(explain_add_untold(&events, &count, &added), 0);
	assert_int_equal(added, 0);
}

/* The sampler reclaims at its limit, on a CPU that was idle: not 40 ms of an idle CPU. */
static void test_reclaim_on_an_idle_cpu(void **state)
{
	struct trace_event told[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		plain(-14, 0, 0, TRACE_IRQ_ENTER, CAUSE_IRQ, "local timer"),
		waking(-12, 0, 0, SAMPLER),
		plain(-10, 0, 0, TRACE_IRQ_LEAVE, CAUSE_IRQ, "local timer"),
		plain(100, 0, SAMPLER, TRACE_ENTER, CAUSE_MEMCG_RECLAIM, NULL),
		plain(39000, 0, SAMPLER, TRACE_LEAVE, CAUSE_MEMCG_RECLAIM, NULL),
		switched(40100, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
	};
	struct explain_window window = window_of(40000, SUBJECT_INTERVAL);
	struct trace_event *events;
	struct explanation e;
	size_t count, added;

	COMPLETE(told, events, count, added);
	assert_int_equal(added, 1);
	assert_int_equal(events[4].kind, TRACE_SWITCH);
	assert_true(events[4].inferred);
	assert_int_equal(events[4].when_ns, AT(-10));
	assert_int_equal(events[4].other, SAMPLER);
	assert_string_equal(events[4].other_comm, "sampler");
	assert_int_equal(explain_delay(events, count, &window, &virtual_machine, &e), 0);
	check_sums(&e);
	assert_int_equal(e.phase_ns[EXPLAIN_ON_CPU], 40000000);
	assert_int_equal(charged(&e, CAUSE_MEMCG_RECLAIM), 38900000);
	assert_int_equal(charged(&e, CAUSE_IDLE), 0);
	assert_says(&e, "the sampler itself was in memcg reclaim");
	free(events);
}

/* Woken from another CPU, and nothing else told: it ran from the waking on. */
static void test_woken_from_another_cpu(void **state)
{
	struct trace_event told[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		plain(-200, 1, LOAD, TRACE_ENTER, CAUSE_DIRECT_RECLAIM, NULL),
		waking(8000, 1, LOAD, SAMPLER),
		plain(8005, 1, LOAD, TRACE_LEAVE, CAUSE_DIRECT_RECLAIM, NULL),
		switched(8100, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
	};
	struct explain_window window = window_of(8010, SUBJECT_WAKEUP);
	struct trace_event *events;
	struct explanation e;
	size_t count, added;

	told[2].value = 0;
	COMPLETE(told, events, count, added);
	assert_int_equal(added, 1);
	assert_int_equal(events[3].when_ns, AT(8000));
	assert_int_equal(events[3].cpu, 0);
	assert_int_equal(explain_delay(events, count, &window, &real_machine, &e), 0);
	check_sums(&e);
	assert_int_equal(e.phase_ns[EXPLAIN_RETURN], 10000);
	assert_true(e.switch_inferred);
	assert_false(e.switched_in);
	free(events);
}

/* The host wakes the idle CPU late: where the switch was is not known, and the sampler not slow. */
static void test_woken_late_by_the_host(void **state)
{
	struct trace_event told[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		waking(3, 1, LOAD, SAMPLER),
		plain(18003, 0, SAMPLER, TRACE_ENTER, CAUSE_LOCK, NULL),
		plain(18005, 0, SAMPLER, TRACE_LEAVE, CAUSE_LOCK, NULL),
	};
	struct explain_window window = window_of(18010, SUBJECT_WAKEUP);
	struct trace_event *events;
	struct explanation e;
	size_t count, added;

	told[1].value = 0;
	COMPLETE(told, events, count, added);
	assert_int_equal(added, 1);
	assert_int_equal(explain_delay(events, count, &window, &virtual_machine, &e), 0);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 18000000);
	assert_says(&e, "CPU 0 was possibly stopped by the host");
	free(events);
}

/* At the begin of its interval the sampler runs, however it came there: silence is its own. */
static void test_silence_of_an_interval(void **state)
{
	const struct trace_event told[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		waking(-12, 0, 0, SAMPLER),
		plain(-10, 0, 0, TRACE_IRQ_LEAVE, CAUSE_IRQ, "local timer"),
		switched(15000, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
	};
	struct explain_window window = window_of(14900, SUBJECT_INTERVAL);
	struct trace_event *events;
	struct explanation e;
	size_t count, added;

	COMPLETE(told, events, count, added);
	assert_int_equal(explain_delay(events, count, &window, &virtual_machine, &e), 0);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_SELF), 14900000);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 0);
	free(events);
}

/* Of two CPUs one switch follows an event and the other comes just before the next. */
static void test_order_of_two_cpus(void **state)
{
	const struct trace_event told[] = {
		switched(-300, 1, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/1", 120),
		switched(-200, 2, LOAD, STATE_SLEEPING, "load", 0, "swapper/2", 120),
		waking(-1, 1, 0, SAMPLER),
		plain(0, 1, 0, TRACE_IRQ_LEAVE, CAUSE_IRQ, "local timer"),
		plain(50, 2, 300, TRACE_ENTER, CAUSE_COMPACTION, NULL),
		switched(100, 1, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/1", 120),
	};
	struct trace_event *events;
	size_t count, added;

	COMPLETE(told, events, count, added);
	assert_int_equal(added, 2);
	assert_int_equal(events[4].when_ns, AT(0));
	assert_int_equal(events[4].other, SAMPLER);
	assert_int_equal(events[5].when_ns, AT(50));
	assert_int_equal(events[5].other, 300);
	free(events);
}

/* Without a waking, only the interrupt that asks for a switch, or one just before, ended the idle.
 */
static void test_which_interrupt_ends_idle(void **state)
{
	struct trace_event told[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		plain(2000, 0, 0, TRACE_IRQ_LEAVE, CAUSE_IRQ, "local timer"),
		plain(35000, 0, 300, TRACE_ENTER, CAUSE_COMPACTION, NULL),
	};
	struct trace_event *events;
	size_t count, added;

	COMPLETE(told, events, count, added);
	assert_int_equal(events[2].when_ns, AT(35000));
	free(events);
	told[1].name = "reschedule";
	COMPLETE(told, events, count, added);
	assert_int_equal(events[2].when_ns, AT(2000));
	free(events);
	told[1].name = "call function";
	COMPLETE(told, events, count, added);
	assert_int_equal(events[2].when_ns, AT(2000));
	free(events);
	told[1].name = "local timer";
	told[2].when_ns = AT(2700);
	COMPLETE(told, events, count, added);
	assert_int_equal(events[2].when_ns, AT(2000));
	free(events);
}

/* Nothing tells when a task came to an idle CPU: not before its first event. */
static void test_unknown_before_the_first_event(void **state)
{
	const struct trace_event told[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		switched(-290, 1, SAMPLER, STATE_SLEEPING, "other", 0, "swapper/1", 120),
		plain(500, 0, 300, TRACE_ENTER, CAUSE_COMPACTION, NULL),
		/* Nor when another took a busy CPU. */
		plain(900, 0, 400, TRACE_ENTER, CAUSE_COMPACTION, NULL),
		plain(950, 0, 0, TRACE_IRQ_ENTER, CAUSE_IRQ, "local timer"),
	};
	struct trace_event *events;
	size_t count, added;

	COMPLETE(told, events, count, added);
	assert_int_equal(added, 3);
	assert_int_equal(events[2].when_ns, AT(500));
	assert_int_equal(events[4].when_ns, AT(900));
	assert_int_equal(events[4].tid, 300);
	assert_int_equal(events[4].other, 400);
	assert_int_equal(events[6].other, 0);
	free(events);
}

/* Across a loss nothing follows from anything. */
static void test_nothing_across_a_loss(void **state)
{
	const struct trace_event told[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		plain(100, 0, 0, TRACE_LOST, CAUSE_UNKNOWN, NULL),
		plain(500, 0, 300, TRACE_ENTER, CAUSE_COMPACTION, NULL),
	};
	struct trace_event *events;
	size_t count, added;

	COMPLETE(told, events, count, added);
	assert_int_equal(added, 0);
	free(events);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_untold),
		cmocka_unit_test(test_reclaim_on_an_idle_cpu),
		cmocka_unit_test(test_woken_from_another_cpu),
		cmocka_unit_test(test_woken_late_by_the_host),
		cmocka_unit_test(test_silence_of_an_interval),
		cmocka_unit_test(test_order_of_two_cpus),
		cmocka_unit_test(test_which_interrupt_ends_idle),
		cmocka_unit_test(test_unknown_before_the_first_event),
		cmocka_unit_test(test_nothing_across_a_loss),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
