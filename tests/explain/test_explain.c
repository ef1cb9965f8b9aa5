/* SPDX-License-Identifier: MIT */
#include "support/testing.h"

#include "explain/explain_checks.h"

static void test_hog(void **state)
{
	const struct trace_event events[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", 300, "hog", 0),
		waking(3, 0, 300, SAMPLER),
		switched(5000, 0, 300, STATE_SLEEPING, "hog", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(5004, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(e.phase_ns[EXPLAIN_TIMER], 3000);
	assert_int_equal(e.phase_ns[EXPLAIN_DISPATCH], 4997000);
	assert_int_equal(e.phase_ns[EXPLAIN_RETURN], 4000);
	assert_int_equal(charged(&e, CAUSE_TASK), 5000000);
	assert_int_equal(charged(&e, CAUSE_SELF), 4000);
	assert_true(e.switched_in);
	assert_says(&e, "hog (pid 300, FIFO 99) held CPU 0");
}

static void test_stack_of_the_blocker_only(void **state)
{
	/* Another task was interrupted by the timer; the hog came after it. */
	struct trace_event events[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", LOAD, "load", 120),
		plain(3, 0, LOAD, TRACE_STACK, CAUSE_UNKNOWN, "memset < clear_page"),
		waking(3, 0, LOAD, SAMPLER),
		switched(5, 0, LOAD, STATE_RUNNABLE, "load", 300, "hog", 0),
		switched(5000, 0, 300, STATE_SLEEPING, "hog", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(5004, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &real_machine, &e);
	assert_says(&e, "hog (pid 300, FIFO 99) held CPU 0");
	assert_null(strstr(e.sentence, "memset"));
	events[1].tid = events[2].tid = 300;
	EXPLAIN(events, &window, &real_machine, &e);
	assert_says(&e, "last seen in memset < clear_page");
}

static void test_memcg_reclaim_entered_before(void **state)
{
	/* The begin of the region lies before the events; its end tells that it was there. */
	struct trace_event events[] = {
		switched(-900, 0, SAMPLER, STATE_SLEEPING, "sampler", LOAD, "swap", 120),
		waking(12, 0, LOAD, SAMPLER),
		plain(4000, 0, LOAD, TRACE_RECLAIMED, CAUSE_UNKNOWN, NULL),
		plain(8800, 0, LOAD, TRACE_LEAVE, CAUSE_MEMCG_RECLAIM, NULL),
		switched(8878, 0, LOAD, STATE_RUNNABLE, "swap", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(8890, SUBJECT_WAKEUP);
	struct explanation e;

	events[2].value = 32;
	events[2].other = 64;
	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_MEMCG_RECLAIM), 8800000);
	assert_int_equal(e.anon_pages, 32);
	assert_int_equal(e.scanned_pages, 64);
	assert_says(&e, "swap (pid 200) was in memcg reclaim");
	assert_says(&e, "of 64 pages scanned, 32 anonymous put to swap");
	assert_says(&e, "without a reschedule");
	assert_int_equal(e.explained_ns, e.window.late_ns);
}

static void test_shrinker_inside_reclaim(void **state)
{
	/* The sampler of thp: its own reclaim, most of it in one shrinker. */
	const struct trace_event events[] = {
		switched(-50, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		plain(100, 0, SAMPLER, TRACE_ENTER, CAUSE_MEMCG_RECLAIM, NULL),
		plain(1000, 0, SAMPLER, TRACE_ENTER, CAUSE_SHRINKER, "deferred_split_scan"),
		plain(99000, 0, SAMPLER, TRACE_LEAVE, CAUSE_SHRINKER, "deferred_split_scan"),
		plain(116000, 0, SAMPLER, TRACE_LEAVE, CAUSE_MEMCG_RECLAIM, NULL),
	};
	struct explain_window window = window_of(117000, SUBJECT_INTERVAL);
	struct explanation e;

	EXPLAIN(events, &window, &real_machine, &e);
	check_sums(&e);
	assert_int_equal(e.phase_ns[EXPLAIN_ON_CPU], 117000000);
	assert_int_equal(e.phase_ns[EXPLAIN_OFF_CPU], 0);
	assert_int_equal(charged(&e, CAUSE_SHRINKER), 98000000);
	assert_int_equal(charged(&e, CAUSE_MEMCG_RECLAIM), 17900000);
	assert_says(&e, "the sampler itself was in memcg reclaim");
	assert_says(&e, "84% of that in the shrinker deferred_split_scan");
}

static void test_stolen(void **state)
{
	const struct trace_event events[] = {
		switched(-100, 0, SAMPLER, STATE_SLEEPING, "sampler", LOAD, "swap", 120),
		plain(-90, 0, LOAD, TRACE_ENTER, CAUSE_MEMCG_RECLAIM, NULL),
		waking(40400, 0, LOAD, SAMPLER),
		switched(40700, 0, LOAD, STATE_RUNNABLE, "swap", SAMPLER, "sampler", 0),
		plain(41000, 0, LOAD, TRACE_LEAVE, CAUSE_MEMCG_RECLAIM, NULL),
	};
	struct explain_window window = window_of(40800, SUBJECT_WAKEUP);
	struct explanation e;

	window.steal_ns = 40000000;
	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_STEAL), 40400000);
	assert_true(charged(&e, CAUSE_MEMCG_RECLAIM) < 1000000);
	assert_says(&e, "the host stopped CPU 0");
	assert_says(&e, "40");
}

static void test_possibly_stolen(void **state)
{
	const struct trace_event events[] = {
		switched(-100, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		waking(4000, 0, 0, SAMPLER),
		switched(4004, 0, 0, STATE_RUNNABLE, "swapper/0", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(4008, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 4000000);
	assert_says(&e, "possibly stopped by the host");
	assert_says(&e, "no event on the CPU for 4");
	/* Nobody can stop the CPU of a real machine so. */
	EXPLAIN(events, &window, &real_machine, &e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 0);
	assert_int_equal(charged(&e, CAUSE_IDLE), 4004000);
	assert_says(&e, "was idle");
}

/* Beyond a tick the counter is believed about what ran, but it tells nothing of an idle CPU. */
static void test_possibly_stolen_for_long(void **state)
{
	struct trace_event events[] = {
		switched(-100, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		waking(44000, 0, 0, SAMPLER),
		switched(44004, 0, 0, STATE_RUNNABLE, "swapper/0", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(44008, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 44000000);
	assert_says(&e, "possibly stopped by the host (which it does not count as steal");
	/* What the counter tells of is steal, and the rest no less likely for it. */
	window.steal_ns = 10000000;
	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_STEAL), 20000000);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 24000000);
	assert_int_equal(charged(&e, CAUSE_IDLE), 4000);
	window.steal_ns = 0;
	events[0] = switched(-100, 0, SAMPLER, STATE_SLEEPING, "sampler", LOAD, "load", 120);
	events[1] = waking(44000, 0, LOAD, SAMPLER);
	events[2] = switched(44004, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0);
	EXPLAIN(events, &window, &virtual_machine, &e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 0);
	assert_says(&e, "interrupts were off");
	window.steal_ns = -1; /* not told at all */
	EXPLAIN(events, &window, &virtual_machine, &e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 44000000);
	assert_says(&e, "its steal is not known");
}

/* Woken, and the idle CPU does not go on: no idle state takes milliseconds to leave. */
static void test_stolen_while_leaving_idle(void **state)
{
	struct trace_event events[] = {
		switched(-100, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		waking(3, 0, 0, SAMPLER),
		switched(18003, 0, 0, STATE_RUNNABLE, "swapper/0", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(18010, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 18000000);
	assert_says(&e, "CPU 0 was possibly stopped by the host");
	EXPLAIN(events, &window, &real_machine, &e);
	assert_int_equal(charged(&e, CAUSE_IDLE), 18003000);
	assert_says(&e, "was idle: waking it took so long");
	/* So long may it take. */
	events[2].when_ns = AT(700);
	window.late_ns = 710000;
	EXPLAIN(events, &window, &virtual_machine, &e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 0);
}

/* The sampler's own code is short: what takes milliseconds in silence is not clearing a page. */
static void test_silence_in_own_code(void **state)
{
	const struct trace_event events[] = {
		switched(-50, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		plain(100, 0, SAMPLER, TRACE_IRQ_ENTER, CAUSE_IRQ, "local timer"),
		plain(105, 0, SAMPLER, TRACE_IRQ_LEAVE, CAUSE_IRQ, "local timer"),
		plain(8400, 0, SAMPLER, TRACE_IRQ_ENTER, CAUSE_IRQ, "local timer"),
		plain(8405, 0, SAMPLER, TRACE_IRQ_LEAVE, CAUSE_IRQ, "local timer"),
	};
	struct explain_window window = window_of(8500, SUBJECT_INTERVAL);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 8295000);
	assert_says(&e, "CPU 0 was possibly stopped by the host");
	window.steal_ns = 10000000;
	EXPLAIN(events, &window, &virtual_machine, &e);
	assert_int_equal(charged(&e, CAUSE_STEAL), 8295000);
	window.steal_ns = 0;
	EXPLAIN(events, &window, &real_machine, &e);
	assert_int_equal(charged(&e, CAUSE_SELF), 8490000);
	assert_says(&e, "no event for 8.29 ms");
}

static void test_hog_beside_steal(void **state)
{
	/* Steal of a tick somewhere near must not take the blame from a task that was seen. */
	const struct trace_event events[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", 300, "hog", 0),
		waking(3, 0, 300, SAMPLER),
		switched(5000, 0, 300, STATE_SLEEPING, "hog", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(5004, SUBJECT_WAKEUP);
	struct explanation e;

	window.steal_ns = 10000000;
	EXPLAIN(events, &window, &virtual_machine, &e);
	assert_int_equal(charged(&e, CAUSE_STEAL), 0);
	assert_says(&e, "hog");
}

static void test_stolen_in_a_timer_handler(void **state)
{
	/* No handler of the kernel's own timers takes 2.4 ms: the CPU was stopped inside it. */
	const struct trace_event events[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", LOAD, "load", 120),
		plain(10, 0, LOAD, TRACE_IRQ_ENTER, CAUSE_IRQ, "local timer"),
		plain(12, 0, LOAD, TRACE_IRQ_ENTER, CAUSE_IRQ, "timer posix_timer_fn"),
		waking(20, 0, LOAD, SAMPLER),
		plain(2420, 0, LOAD, TRACE_IRQ_LEAVE, CAUSE_IRQ, NULL),
		plain(2424, 0, LOAD, TRACE_IRQ_LEAVE, CAUSE_IRQ, NULL),
		switched(2430, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(2440, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 2400000);
	EXPLAIN(events, &window, &real_machine, &e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 0);
	assert_true(charged(&e, CAUSE_IRQ) > 2400000);
}

static void test_softirq(void **state)
{
	const struct trace_event events[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", LOAD, "flood", 120),
		plain(-20, 0, LOAD, TRACE_IRQ_ENTER, CAUSE_SOFTIRQ, "NET_RX"),
		plain(2, 0, LOAD, TRACE_IRQ_ENTER, CAUSE_IRQ, "local timer"),
		waking(4, 0, LOAD, SAMPLER),
		plain(9, 0, LOAD, TRACE_IRQ_LEAVE, CAUSE_IRQ, "local timer"),
		plain(900, 0, LOAD, TRACE_IRQ_LEAVE, CAUSE_SOFTIRQ, "NET_RX"),
		switched(905, 0, LOAD, STATE_RUNNABLE, "flood", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(910, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_SOFTIRQ), 893000);
	assert_int_equal(charged(&e, CAUSE_IRQ), 7000);
	assert_says(&e, "the softirq NET_RX ran on CPU 0 on top of flood (pid 200)");
}

static void test_irq_entered_before(void **state)
{
	const struct trace_event events[] = {
		waking(700, 0, LOAD, SAMPLER),
		plain(750, 0, LOAD, TRACE_IRQ_LEAVE, CAUSE_IRQ, "nvme0q1"),
		switched(760, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(765, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &real_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_IRQ), 750000);
	assert_says(&e, "the interrupt nvme0q1 ran on CPU 0");
}

static void test_compaction_of_a_task(void **state)
{
	const struct trace_event events[] = {
		switched(-10, 0, SAMPLER, STATE_SLEEPING, "sampler", 400, "sh", 120),
		plain(-5, 0, 400, TRACE_ENTER, CAUSE_COMPACTION, NULL),
		waking(2, 0, 400, SAMPLER),
		switched(600, 0, 400, STATE_RUNNABLE, "sh", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(603, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &real_machine, &e);
	assert_int_equal(charged(&e, CAUSE_COMPACTION), 600000);
	assert_says(&e, "sh (pid 400) was in compaction");
}

static void test_stopped(void **state)
{
	const struct trace_event events[] = {
		switched(-200, 0, SAMPLER, STATE_STOPPED, "sampler", 0, "swapper/0", 120),
		waking(9000, 1, 500, SAMPLER),
		switched(9010, 0, 0, STATE_RUNNABLE, "swapper/0", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(9020, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_STOPPED), 9000000);
	assert_says(&e, "stopped by a signal");
}

static void test_stopped_after_it_ran(void **state)
{
	/* Woken by its timer, stopped on the way back to the program. */
	const struct trace_event events[] = {
		switched(-200, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		waking(3, 0, 0, SAMPLER),
		switched(5, 0, 0, STATE_RUNNABLE, "swapper/0", SAMPLER, "sampler", 0),
		switched(6, 0, SAMPLER, STATE_STOPPED, "sampler", 0, "swapper/0", 120),
		waking(8000, 1, 500, SAMPLER),
		switched(8004, 0, 0, STATE_RUNNABLE, "swapper/0", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(8010, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_STOPPED), 7994000);
	assert_int_equal(e.phase_ns[EXPLAIN_TIMER], 3000);
	assert_says(&e, "stopped by a signal");
}

static void test_preempted_interval(void **state)
{
	const struct trace_event events[] = {
		switched(-50, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 120),
		switched(100, 0, SAMPLER, STATE_RUNNABLE, "sampler", 700, "kswapd0", 120),
		switched(4100, 0, 700, STATE_SLEEPING, "kswapd0", SAMPLER, "sampler", 120),
	};
	struct explain_window window = window_of(4300, SUBJECT_INTERVAL);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(e.phase_ns[EXPLAIN_OFF_CPU], 4000000);
	assert_int_equal(charged(&e, CAUSE_KSWAPD), 4000000);
	assert_int_equal(charged(&e, CAUSE_SELF), 300000);
	assert_says(&e, "kswapd0 (pid 700) was in background reclaim");
}

static void test_lost_events_are_unknown(void **state)
{
	const struct trace_event events[] = {
		switched(-100, 0, SAMPLER, STATE_SLEEPING, "sampler", LOAD, "load", 120),
		waking(5, 0, LOAD, SAMPLER),
		plain(1000, 0, 0, TRACE_LOST, CAUSE_UNKNOWN, NULL),
		switched(1100, 0, 300, STATE_RUNNABLE, "hog", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(1110, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_true(charged(&e, CAUSE_UNKNOWN) >= 995000);
	assert_true(e.explained_ns < e.window.late_ns / 2);
	assert_says(&e, "unknown");
}

static void test_no_events_at_all(void **state)
{
	struct explain_window window = window_of(1110, SUBJECT_WAKEUP);
	struct explanation e;

	assert_int_equal(explain_delay(NULL, 0, &window, &real_machine, &e), 0);
	check_sums(&e);
	assert_int_equal(e.explained_ns, 0);
	assert_says(&e, "unknown");
	/* No event and no interrupt in a guest: the sign of theft, and no more than a sign. */
	window.steal_ns = -1;
	assert_int_equal(explain_delay(NULL, 0, &window, &virtual_machine, &e), 0);
	check_sums(&e);
}

static void test_more_labels_than_slices(void **state)
{
	struct trace_event events[200];
	struct explain_window window = window_of(1000, SUBJECT_WAKEUP);
	struct explanation e;

	for (int i = 0; i < 200; i++)
		events[i] =
			switched(5 * i, 0, 1000 + i, STATE_RUNNABLE, "many", 1001 + i, "many", 120);
	EXPLAIN(events, &window, &real_machine, &e);
	check_sums(&e);
	assert_int_equal(e.slice_count, EXPLAIN_SLICES);
	assert_true(charged(&e, CAUSE_UNKNOWN) > 0);
}

static void test_nests_deeper_than_kept(void **state)
{
	struct trace_event events[64];
	struct explain_window window = window_of(100, SUBJECT_WAKEUP);
	struct explanation e;

	for (int i = 0; i < 32; i++)
		events[i] = plain(i, 0, LOAD, TRACE_ENTER, CAUSE_DIRECT_RECLAIM, NULL);
	for (int i = 32; i < 64; i++)
		events[i] = plain(i, 0, LOAD, TRACE_LEAVE, CAUSE_DIRECT_RECLAIM, NULL);
	EXPLAIN(events, &window, &real_machine, &e);
	check_sums(&e);
}

static void test_picks_the_worst(void **state)
{
	struct sampling_thread *threads = calloc(2, sizeof(*threads));
	struct explain_window windows[3];

	assert_non_null(threads);
	threads[0].tid = 11;
	threads[1].tid = 12;
	threads[0].worst[0] = (struct sampling_worst){.when_ns = 1, .late_ns = 50, .cpu = 0};
	threads[0].worst[4] = (struct sampling_worst){.when_ns = 2, .late_ns = 70, .cpu = 0};
	threads[1].worst[9] =
		(struct sampling_worst){.when_ns = 3, .late_ns = 60, .cpu = 1, .steal_ns = 5};
	threads[1].worst[1] = (struct sampling_worst){.when_ns = 4, .late_ns = 10, .cpu = 1};
	assert_int_equal(explain_pick(threads, 2, SUBJECT_WAKEUP, windows, 3), 3);
	assert_int_equal(windows[0].late_ns, 70);
	assert_int_equal(windows[1].late_ns, 60);
	assert_int_equal(windows[1].tid, 12);
	assert_int_equal(windows[1].steal_ns, 5);
	assert_int_equal(windows[2].late_ns, 50);
	free(threads);
}

static void test_data_and_summary(void **state)
{
	const struct trace_event events[] = {
		switched(-300, 0, SAMPLER, STATE_SLEEPING, "sampler", 300, "ho\"g\xff", 0),
		waking(3, 0, 300, SAMPLER),
		switched(5000, 0, 300, STATE_SLEEPING, "ho\"g\xff", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(5000, SUBJECT_WAKEUP);
	struct explanation e[2];
	json_t *json, *summary;
	char *text = NULL;
	size_t size = 0;
	FILE *stream;

	EXPLAIN(events, &window, &real_machine, &e[0]);
	e[1] = e[0];
	e[1].window.late_ns = 10; /* below the bound: not counted */
	json = explanation_json(&e[0], ORIGIN_NS - 1000);
	assert_string_equal(json_string_value(json_object_get(json, "cause")), "task");
	assert_true(json_number_value(json_object_get(json, "when_us")) == 1.0);
	assert_true(json_number_value(json_object_get(json, "explained_percent")) == 100.0);
	summary = explain_summary(e, 2, 1000);
	assert_int_equal(json_array_size(summary), 1);
	assert_true(json_number_value(json_object_get(json_array_get(summary, 0), "percent")) ==
		    100.0);
	json_decref(summary);
	json_decref(json);

	stream = open_memstream(&text, &size);
	assert_non_null(stream);
	assert_int_equal(explain_write_perfetto(stream, events, 3, &window, 1, ORIGIN_NS), 0);
	fclose(stream);
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	assert_true(json_array_size(json_object_get(json, "traceEvents")) > 5);
	json_decref(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hog),
		cmocka_unit_test(test_stack_of_the_blocker_only),
		cmocka_unit_test(test_memcg_reclaim_entered_before),
		cmocka_unit_test(test_shrinker_inside_reclaim),
		cmocka_unit_test(test_stolen),
		cmocka_unit_test(test_possibly_stolen),
		cmocka_unit_test(test_possibly_stolen_for_long),
		cmocka_unit_test(test_stolen_while_leaving_idle),
		cmocka_unit_test(test_hog_beside_steal),
		cmocka_unit_test(test_silence_in_own_code),
		cmocka_unit_test(test_stolen_in_a_timer_handler),
		cmocka_unit_test(test_softirq),
		cmocka_unit_test(test_irq_entered_before),
		cmocka_unit_test(test_compaction_of_a_task),
		cmocka_unit_test(test_stopped),
		cmocka_unit_test(test_stopped_after_it_ran),
		cmocka_unit_test(test_preempted_interval),
		cmocka_unit_test(test_lost_events_are_unknown),
		cmocka_unit_test(test_no_events_at_all),
		cmocka_unit_test(test_more_labels_than_slices),
		cmocka_unit_test(test_nests_deeper_than_kept),
		cmocka_unit_test(test_picks_the_worst),
		cmocka_unit_test(test_data_and_summary),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
