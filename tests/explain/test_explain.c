/* SPDX-License-Identifier: MIT */
#include "explain/explain_cases.h"

#define SWAP 200, "swap", 120
#define FLOOD 200, "flood", 120
#define SWITCH_SWAP(us) SWITCH(us, 0, SAMPLER, SLEEPING, SWAP)
#define SHRINKER .name = "deferred_split_scan"
#define OVER_HOG                                                             \
	SWITCH(-300, 0, SAMPLER, SLEEPING, HOG), WAKING(3, 0, HOG, SAMPLER), \
		SWITCH(5000, 0, HOG, SLEEPING, SAMPLER)
/* The idle CPU is late for the timer; late after the waking; a load ran meanwhile. */
#define IDLE_UNTIL(us) TO_IDLE(-100), WAKING(us, 0, IDLE, SAMPLER), FROM_IDLE((us) + 4)
#define LOAD_UNTIL(us) TO_LOAD(-100, SLEEPING), WAKING(us, 0, LOAD, SAMPLER), FROM_LOAD((us) + 4)
#define LEAVES_IDLE_AT(us) TO_IDLE(-100), WAKING(3, 0, IDLE, SAMPLER), FROM_IDLE(us)

static const struct explain_case cases[] = {
	{"hog",
	 WAKEUP(5004),
	 {OVER_HOG},
	 {{GUEST, .charged = {{CAUSE_TASK, 5000}, {CAUSE_SELF, 4}},
	   .phases = {{EXPLAIN_TIMER, 3}, {EXPLAIN_DISPATCH, 4997}, {EXPLAIN_RETURN, 4}},
	   .says = {"hog (pid 300, FIFO 99) held CPU 0"}},
	  /* Steal of a tick somewhere near must not take the blame from a task that was seen. */
	  {GUEST, 10000, .charged = {{CAUSE_STEAL, 0}}, .says = {"hog"}}}},

	/* Another task was interrupted by the timer; the hog came after it. */
	{"stack of another task",
	 WAKEUP(5004),
	 {TO_LOAD(-300, SLEEPING), EVENT(3, 0, LOAD, STACK, .name = "memset < clear_page"),
	  WAKING(3, 0, LOAD, SAMPLER), SWITCH(5, 0, LOAD, RUNNABLE, HOG),
	  SWITCH(5000, 0, HOG, SLEEPING, SAMPLER)},
	 {{REAL, .says = {"hog (pid 300, FIFO 99) held CPU 0"}, .says_not = "memset"}}},
	{"stack of the blocker",
	 WAKEUP(5004),
	 {SWITCH(-300, 0, SAMPLER, SLEEPING, HOG),
	  EVENT(3, 0, HOG, STACK, .name = "memset < clear_page"), WAKING(3, 0, HOG, SAMPLER),
	  SWITCH(5000, 0, HOG, SLEEPING, SAMPLER)},
	 {{REAL, .says = {"last seen in memset < clear_page"}}}},

	/* The begin of the region lies before the events; its end tells that it was there. */
	{"memcg reclaim entered before",
	 WAKEUP(8890),
	 {SWITCH_SWAP(-900), WAKING(12, 0, SWAP, SAMPLER),
	  EVENT(4000, 0, SWAP, RECLAIMED, .value = 32, .other = 64),
	  LEAVE(8800, 0, SWAP, MEMCG_RECLAIM), SWITCH(8878, 0, SWAP, RUNNABLE, SAMPLER)},
	 {{GUEST, .charged = {{CAUSE_MEMCG_RECLAIM, 8800}, {CAUSE_TASK, 78}, {CAUSE_SELF, 12}},
	   .says = {"swap (pid 200) was in memcg reclaim",
		    "of 64 pages scanned, 32 anonymous put to swap", "without a reschedule"}}}},

	/* The sampler of thp: its own reclaim, most of it in one shrinker. */
	{"shrinker inside reclaim",
	 INTERVAL(117000),
	 {FROM_LOAD(-50), ENTER(100, 0, SAMPLER, MEMCG_RECLAIM),
	  ENTER(1000, 0, SAMPLER, SHRINKER, SHRINKER), LEAVE(99000, 0, SAMPLER, SHRINKER, SHRINKER),
	  LEAVE(116000, 0, SAMPLER, MEMCG_RECLAIM)},
	 {{REAL, .charged = {{CAUSE_SHRINKER, 98000}, {CAUSE_MEMCG_RECLAIM, 17900}},
	   .phases = {{EXPLAIN_ON_CPU, 117000}},
	   .says = {"the sampler itself was in memcg reclaim",
		    "84% of that in the shrinker deferred_split_scan"}}}},

	{"stolen",
	 WAKEUP(40800),
	 {SWITCH_SWAP(-100), ENTER(-90, 0, SWAP, MEMCG_RECLAIM), WAKING(40400, 0, SWAP, SAMPLER),
	  SWITCH(40700, 0, SWAP, RUNNABLE, SAMPLER), LEAVE(41000, 0, SWAP, MEMCG_RECLAIM)},
	 {{GUEST, 40000, .charged = {{CAUSE_STEAL, 40400}, {CAUSE_MEMCG_RECLAIM, 300}},
	   .says = {"the host stopped CPU 0", "40"}}}},
	{"possibly stolen",
	 WAKEUP(4008),
	 {IDLE_UNTIL(4000)},
	 {{GUEST, .charged = {{CAUSE_POSSIBLE_STEAL, 4000}},
	   .says = {"possibly stopped by the host", "no event on the CPU for 4"}},
	  /* Nobody can stop the CPU of a real machine so. */
	  {REAL, .charged = {{CAUSE_POSSIBLE_STEAL, 0}, {CAUSE_IDLE, 4004}},
	   .says = {"was idle"}}}},
	/* Beyond a tick the counter is believed about what ran, but it tells nothing of an idle
	 * CPU: what it tells of is steal, and the rest no less likely for it. */
	{"possibly stolen for long",
	 WAKEUP(44008),
	 {IDLE_UNTIL(44000)},
	 {{GUEST, .charged = {{CAUSE_POSSIBLE_STEAL, 44000}},
	   .says = {"possibly stopped by the host (which it does not count as steal"}},
	  {GUEST, 10000,
	   .charged = {{CAUSE_STEAL, 20000}, {CAUSE_POSSIBLE_STEAL, 24000}, {CAUSE_IDLE, 4}}}}},
	{"a task ran for long",
	 WAKEUP(44008),
	 {LOAD_UNTIL(44000)},
	 {{GUEST, .charged = {{CAUSE_POSSIBLE_STEAL, 0}}, .says = {"interrupts were off"}},
	  {GUEST, -1, .charged = {{CAUSE_POSSIBLE_STEAL, 44000}},
	   .says = {"its steal is not known"}}}},
	/* Woken, and the idle CPU does not go on: no idle state takes milliseconds to leave. */
	{"stolen while leaving idle",
	 WAKEUP(18010),
	 {LEAVES_IDLE_AT(18003)},
	 {{GUEST, .charged = {{CAUSE_POSSIBLE_STEAL, 18000}},
	   .says = {"CPU 0 was possibly stopped by the host"}},
	  {REAL, .charged = {{CAUSE_IDLE, 18003}}, .says = {"was idle: waking it took so long"}}}},
	{"leaving idle may take so long",
	 WAKEUP(710),
	 {LEAVES_IDLE_AT(700)},
	 {{GUEST, .charged = {{CAUSE_POSSIBLE_STEAL, 0}}}}},
	/* The sampler's own code is short: what takes milliseconds in silence is not clearing a
	 * page. */
	{"silence in own code",
	 INTERVAL(8500),
	 {FROM_LOAD(-50), IRQ(100, 0, SAMPLER, ENTER, "local timer"),
	  IRQ(105, 0, SAMPLER, LEAVE, "local timer"), IRQ(8400, 0, SAMPLER, ENTER, "local timer"),
	  IRQ(8405, 0, SAMPLER, LEAVE, "local timer")},
	 {{GUEST, .charged = {{CAUSE_POSSIBLE_STEAL, 8295}},
	   .says = {"CPU 0 was possibly stopped by the host"}},
	  {GUEST, 10000, .charged = {{CAUSE_STEAL, 8295}}},
	  {REAL, .charged = {{CAUSE_SELF, 8490}}, .says = {"no event for 8.29 ms"}}}},
	/* No handler of the kernel's own timers takes 2.4 ms: the CPU was stopped inside it. */
	{"stolen in a timer handler",
	 WAKEUP(2440),
	 {TO_LOAD(-300, SLEEPING), IRQ(10, 0, LOAD, ENTER, "local timer"),
	  IRQ(12, 0, LOAD, ENTER, "timer posix_timer_fn"), WAKING(20, 0, LOAD, SAMPLER),
	  IRQ(2420, 0, LOAD, LEAVE, NULL), IRQ(2424, 0, LOAD, LEAVE, NULL), FROM_LOAD(2430)},
	 {{GUEST, .charged = {{CAUSE_POSSIBLE_STEAL, 2400}}},
	  {REAL, .charged = {{CAUSE_POSSIBLE_STEAL, 0}, {CAUSE_IRQ, 2414}}}}},

	{"softirq",
	 WAKEUP(910),
	 {SWITCH(-300, 0, SAMPLER, SLEEPING, FLOOD),
	  EVENT(-20, 0, FLOOD, IRQ_ENTER, .cause = CAUSE_SOFTIRQ, .name = "NET_RX"),
	  IRQ(2, 0, FLOOD, ENTER, "local timer"), WAKING(4, 0, FLOOD, SAMPLER),
	  IRQ(9, 0, FLOOD, LEAVE, "local timer"),
	  EVENT(900, 0, FLOOD, IRQ_LEAVE, .cause = CAUSE_SOFTIRQ, .name = "NET_RX"),
	  SWITCH(905, 0, FLOOD, RUNNABLE, SAMPLER)},
	 {{GUEST, .charged = {{CAUSE_SOFTIRQ, 893}, {CAUSE_IRQ, 7}},
	   .says = {"the softirq NET_RX ran on CPU 0 on top of flood (pid 200)"}}}},
	{"interrupt entered before",
	 WAKEUP(765),
	 {WAKING(700, 0, LOAD, SAMPLER), IRQ(750, 0, LOAD, LEAVE, "nvme0q1"), FROM_LOAD(760)},
	 {{REAL, .charged = {{CAUSE_IRQ, 750}}, .says = {"the interrupt nvme0q1 ran on CPU 0"}}}},
	{"no interrupt is older than a switch",
	 WAKEUP(765),
	 {WAKING(600, 0, HOG, SAMPLER), SWITCH(700, 0, HOG, RUNNABLE, LOAD),
	  IRQ(750, 0, LOAD, LEAVE, "nvme0q1"), FROM_LOAD(760)},
	 {{REAL, .charged = {{CAUSE_IRQ, 0}, {CAUSE_TASK, 760}}}}},
	{"compaction of a task",
	 WAKEUP(603),
	 {TO_LOAD(-10, SLEEPING), ENTER(-5, 0, LOAD, COMPACTION), WAKING(2, 0, LOAD, SAMPLER),
	  FROM_LOAD(600)},
	 {{REAL, .charged = {{CAUSE_COMPACTION, 600}},
	   .says = {"load (pid 200) was in compaction"}}}},
	{"stopped",
	 WAKEUP(9020),
	 {SWITCH(-200, 0, SAMPLER, STOPPED, IDLE), WAKING(9000, 1, LOAD, SAMPLER), FROM_IDLE(9010)},
	 {{GUEST, .charged = {{CAUSE_STOPPED, 9000}}, .says = {"stopped by a signal"}}}},
	/* Woken by its timer, stopped on the way back to the program. */
	{"stopped after it ran",
	 WAKEUP(8010),
	 {TO_IDLE(-200), WAKING(3, 0, IDLE, SAMPLER), FROM_IDLE(5),
	  SWITCH(6, 0, SAMPLER, STOPPED, IDLE), WAKING(8000, 1, LOAD, SAMPLER), FROM_IDLE(8004)},
	 {{GUEST, .charged = {{CAUSE_STOPPED, 7994}}, .phases = {{EXPLAIN_TIMER, 3}},
	   .says = {"stopped by a signal"}}}},
	{"preempted interval",
	 INTERVAL(4300),
	 {SWITCH(-50, 0, LOAD, RUNNABLE, ORDINARY), SWITCH(100, 0, ORDINARY, RUNNABLE, KSWAPD),
	  SWITCH(4100, 0, KSWAPD, SLEEPING, ORDINARY)},
	 {{GUEST, .charged = {{CAUSE_KSWAPD, 4000}, {CAUSE_SELF, 300}},
	   .phases = {{EXPLAIN_OFF_CPU, 4000}},
	   .says = {"kswapd0 (pid 700) was in background reclaim"}}}},

	{"lost events are unknown",
	 WAKEUP(1110),
	 {TO_LOAD(-100, SLEEPING), WAKING(5, 0, LOAD, SAMPLER), LOST(1000, 0),
	  SWITCH(1100, 0, HOG, RUNNABLE, SAMPLER)},
	 {{GUEST, .unknown_us = 1095, .says = {"unknown"}}}},
	{"unknown before a loss that comes first",
	 WAKEUP(1110),
	 {LOST(500, 0), WAKING(600, 0, LOAD, SAMPLER), FROM_LOAD(1100)},
	 {{REAL, .unknown_us = 600, .charged = {{CAUSE_TASK, 500}, {CAUSE_SELF, 10}}}}},
	/* What ends after a loss was entered in it at the latest: it is not blamed for what was
	 * before. */
	{"reclaim that ends after a loss",
	 WAKEUP(2010),
	 {TO_LOAD(-100, SLEEPING), WAKING(5, 0, LOAD, SAMPLER), EVENT(500, 0, LOAD, RECLAIMED),
	  LOST(1000, 0), EVENT(1100, 0, LOAD, RECLAIMED), LEAVE(1900, 0, LOAD, DIRECT_RECLAIM),
	  FROM_LOAD(2000)},
	 {{REAL, .unknown_us = 600,
	   .charged = {{CAUSE_TASK, 600}, {CAUSE_DIRECT_RECLAIM, 800}, {CAUSE_SELF, 10}}}}},
	/* The end of a region may lie in the gap. */
	{"reclaim that begins before a loss",
	 WAKEUP(2010),
	 {TO_LOAD(-100, SLEEPING), ENTER(-50, 0, LOAD, DIRECT_RECLAIM), WAKING(5, 0, LOAD, SAMPLER),
	  LOST(1000, 0), EVENT(1100, 0, LOAD, RECLAIMED), FROM_LOAD(2000)},
	 {{REAL, .unknown_us = 1095,
	   .charged = {{CAUSE_DIRECT_RECLAIM, 5}, {CAUSE_TASK, 900}, {CAUSE_SELF, 10}}}}},
	/* The task goes on elsewhere: the gap is that of the CPU that it was on. */
	{"a task that leaves a gap",
	 WAKEUP(2010),
	 {ENTER(-200, 1, LOAD, DIRECT_RECLAIM), TO_IDLE(-100), LOST(-40, 1),
	  SWITCH(-30, 0, IDLE, RUNNABLE, LOAD), WAKING(5, 0, LOAD, SAMPLER), FROM_LOAD(2000)},
	 {{REAL, .charged = {{CAUSE_TASK, 2000}, {CAUSE_DIRECT_RECLAIM, 0}}}}},
	/* A sleep in a lock may have ended in the gap, but where its end is seen it was there. */
	{"a lock wait across a loss",
	 INTERVAL(9100),
	 {FROM_LOAD(-50), ENTER(10, 0, SAMPLER, LOCK), TO_LOAD(12, BLOCKED), LOST(500, 0),
	  WAKING(9000, 1, HOLDER, SAMPLER), FROM_LOAD(9004), LEAVE(9005, 0, SAMPLER, LOCK)},
	 {{REAL, .unknown_us = 492, .charged = {{CAUSE_LOCK, 8503}, {CAUSE_SELF, 105}}}}},
	/* No event and no interrupt. */
	{"no events at all",
	 WAKEUP(1110),
	 {{0}},
	 {{REAL, .unknown_us = 1110, .says = {"unknown"}}, {GUEST, -1}}},
};

static void explain_all(const struct trace_event *events, size_t count, double late_us,
			struct explanation *e)
{
	struct explain_window window = window_of(late_us, SUBJECT_WAKEUP);
	struct explain_settings settings = {.tick_ns = 10000000};

	assert_int_equal(explain_delay(events, count, &window, &settings, e), 0);
	check_sums(e);
}

static void test_more_labels_than_slices(void **state)
{
	struct trace_event events[200];
	struct explanation e;

	for (int i = 0; i < 200; i++)
		events[i] = (struct trace_event)SWITCH(5 * i, 0, 1000 + i, "many", 120, RUNNABLE,
						       1001 + i, "many", 120);
	explain_all(events, ARRAY_SIZE(events), 1000, &e);
	assert_int_equal(e.slice_count, EXPLAIN_SLICES);
	assert_true(charged(&e, CAUSE_UNKNOWN) > 0);
}

static void test_nests_deeper_than_kept(void **state)
{
	struct trace_event events[64];
	struct explanation e;

	for (int i = 0; i < 64; i++)
		events[i] = i < 32 ? (struct trace_event)ENTER(i, 0, LOAD, DIRECT_RECLAIM)
				   : (struct trace_event)LEAVE(i, 0, LOAD, DIRECT_RECLAIM);
	explain_all(events, ARRAY_SIZE(events), 100, &e);
	assert_int_equal(charged(&e, CAUSE_DIRECT_RECLAIM), 63000);
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
		SWITCH(-300, 0, SAMPLER, SLEEPING, 300, "ho\"g\xff", 0),
		WAKING(3, 0, HOG, SAMPLER),
		SWITCH(5000, 0, 300, "ho\"g\xff", 0, SLEEPING, SAMPLER),
	};
	struct explanation e[2];
	json_t *json, *summary;
	char *text = NULL;
	size_t size = 0;
	FILE *stream;

	explain_all(events, ARRAY_SIZE(events), 5000, &e[0]);
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
	assert_int_equal(explain_write_perfetto(stream, events, 3, &e[0].window, 1, ORIGIN_NS), 0);
	fclose(stream);
	json = json_loads(text, 0, NULL);
	assert_non_null(json);
	assert_true(json_array_size(json_object_get(json, "traceEvents")) > 5);
	json_decref(json);
	free(text);
}

int main(void)
{
	const struct CMUnitTest more[] = {
		cmocka_unit_test(test_more_labels_than_slices),
		cmocka_unit_test(test_nests_deeper_than_kept),
		cmocka_unit_test(test_picks_the_worst),
		cmocka_unit_test(test_data_and_summary),
	};

	return run_cases(cases, ARRAY_SIZE(cases), more, ARRAY_SIZE(more));
}
