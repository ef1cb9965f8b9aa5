/* SPDX-License-Identifier: MIT */
/* Kernels that do not report when the idle task leaves a CPU: what later events show is inferred.
 */
#include "explain/explain_cases.h"

#define TASK 300, "task", 120
#define OTHER 400, "other", 120
#define IDLE_ON(us, cpu) SWITCH(us, cpu, SAMPLER, SLEEPING, IDLE)

/* A switch that must have been added: to whom, when, on which CPU. */
struct added {
	int32_t to, cpu;
	double us;
};

struct inferred_case {
	struct added added[4];
	struct explain_case given;
};

static const struct inferred_case cases[] = {
	{.given = {"nothing is inferred",
		   .events = {TO_IDLE(-300), WAKING(3, 0, IDLE, SAMPLER), FROM_IDLE(5),
			      ENTER(7, 1, LOAD, DIRECT_RECLAIM),
			      SWITCH(9, 1, LOAD, SLEEPING, IDLE)}}},
	{.given = {"no events"}},

	/* The sampler reclaims at its limit, on a CPU that was idle: not 40 ms of an idle CPU. */
	{{{TID(SAMPLER), 0, -10}},
	 {"reclaim on an idle CPU",
	  INTERVAL(40000),
	  {TO_IDLE(-300), IRQ(-14, 0, IDLE, ENTER, "local timer"), WAKING(-12, 0, IDLE, SAMPLER),
	   IRQ(-10, 0, IDLE, LEAVE, "local timer"), ENTER(100, 0, SAMPLER, MEMCG_RECLAIM),
	   LEAVE(39000, 0, SAMPLER, MEMCG_RECLAIM), TO_IDLE(40100)},
	  {{GUEST, .charged = {{CAUSE_MEMCG_RECLAIM, 38900}, {CAUSE_IDLE, 0}},
	    .phases = {{EXPLAIN_ON_CPU, 40000}},
	    .says = {"the sampler itself was in memcg reclaim"}}}}},
	/* Woken from another CPU, and nothing else reported: it ran from the waking on. */
	{{{TID(SAMPLER), 0, 8000}},
	 {"woken from another CPU",
	  WAKEUP(8010),
	  {TO_IDLE(-300), ENTER(-200, 1, LOAD, DIRECT_RECLAIM), WAKING(8000, 1, LOAD, SAMPLER),
	   LEAVE(8005, 1, LOAD, DIRECT_RECLAIM), TO_IDLE(8100)},
	  {{REAL, .phases = {{EXPLAIN_RETURN, 10}}}}}},
	/* The host wakes the idle CPU late: where the switch was is not known, and the sampler not
	 * slow. */
	{{{TID(SAMPLER), 0, 3}},
	 {"woken late by the host",
	  WAKEUP(18010),
	  {TO_IDLE(-300), WAKING(3, 1, LOAD, SAMPLER), ENTER(18003, 0, SAMPLER, LOCK),
	   LEAVE(18005, 0, SAMPLER, LOCK)},
	  {{GUEST, .charged = {{CAUSE_POSSIBLE_STEAL, 18000}},
	    .says = {"CPU 0 was possibly stopped by the host"}}}}},
	/* At the begin of its interval the sampler runs, however it came there: silence is its own.
	 */
	{{{TID(SAMPLER), 0, -10}},
	 {"silence of an interval",
	  INTERVAL(14900),
	  {TO_IDLE(-300), WAKING(-12, 0, IDLE, SAMPLER), IRQ(-10, 0, IDLE, LEAVE, "local timer"),
	   TO_IDLE(15000)},
	  {{GUEST, .charged = {{CAUSE_SELF, 14900}, {CAUSE_POSSIBLE_STEAL, 0}}}}}},

	/* Of two CPUs one switch follows an event and the other comes just before the next. */
	{{{TID(SAMPLER), 1, 0}, {TID(TASK), 2, 50}},
	 {"order of two CPUs",
	  .events = {IDLE_ON(-300, 1), SWITCH(-200, 2, LOAD, SLEEPING, IDLE),
		     WAKING_ON(-1, 1, IDLE, SAMPLER), IRQ(0, 1, IDLE, LEAVE, "local timer"),
		     ENTER(50, 2, TASK, COMPACTION), IDLE_ON(100, 1)}}},

	/* Without a waking, only the interrupt that asks for a switch, or one just before, ended
	 * the idle. */
	{{{TID(TASK), 0, 35000}},
	 {"a timer does not end the idle",
	  .events = {TO_IDLE(-300), IRQ(2000, 0, IDLE, LEAVE, "local timer"),
		     ENTER(35000, 0, TASK, COMPACTION)}}},
	{{{TID(TASK), 0, 2000}},
	 {"a reschedule ends the idle",
	  .events = {TO_IDLE(-300), IRQ(2000, 0, IDLE, LEAVE, "reschedule"),
		     ENTER(35000, 0, TASK, COMPACTION)}}},
	{{{TID(TASK), 0, 2000}},
	 {"a function call ends the idle",
	  .events = {TO_IDLE(-300), IRQ(2000, 0, IDLE, LEAVE, "call function"),
		     ENTER(35000, 0, TASK, COMPACTION)}}},
	{{{TID(TASK), 0, 2000}},
	 {"an interrupt just before ends the idle",
	  .events = {TO_IDLE(-300), IRQ(2000, 0, IDLE, LEAVE, "local timer"),
		     ENTER(2700, 0, TASK, COMPACTION)}}},

	/* Nothing says when a task came to an idle CPU: not before its first event. Nor when
	 * another took a busy CPU. */
	{{{TID(TASK), 0, 500}, {TID(OTHER), 0, 900}, {TID(IDLE), 0, 950}},
	 {"unknown before the first event",
	  .events = {TO_IDLE(-300), IDLE_ON(-290, 1), ENTER(500, 0, TASK, COMPACTION),
		     ENTER(900, 0, OTHER, COMPACTION), IRQ(950, 0, IDLE, ENTER, "local timer")}}},
	/* Across a loss nothing follows from anything. */
	{.given = {"nothing across a loss",
		   .events = {TO_IDLE(-300), LOST(100, 0), ENTER(500, 0, TASK, COMPACTION)}}},
};

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

static void infer(void **state)
{
	const struct inferred_case *inferred = *state;
	size_t count = count_events(inferred->given.events), added = 77, found = 0;
	struct trace_event *events = calloc(EVENTS_MOST, sizeof(*events));
	struct explain_case completed = inferred->given;
	void *data = &completed;

	assert_non_null(events);
	memcpy(events, inferred->given.events, count * sizeof(*events));
	assert_int_equal(explain_infer_switches(&events, &count, &added), 0);
	check_order(events, count);
	for (size_t i = 0; i < count; i++) {
		if (!events[i].inferred)
			continue;
		assert_in_range(found, 0, ARRAY_SIZE(inferred->added) - 1);
		assert_int_equal(events[i].kind, TRACE_SWITCH);
		assert_int_equal(events[i].other, inferred->added[found].to);
		assert_int_equal(events[i].cpu, inferred->added[found].cpu);
		assert_int_equal(events[i].when_ns, AT(inferred->added[found].us));
		found++;
	}
	assert_int_equal(found, added);
	assert_true(found == ARRAY_SIZE(inferred->added) || inferred->added[found].us == 0);
	assert_int_equal(count, count_events(inferred->given.events) + added);
	assert_true(count <= EVENTS_MOST);
	memcpy(completed.events, events, count * sizeof(*events));
	run_case(&data);
	free(events);
}

/* The name comes from a later event; the explanation says what was inferred. */
static void test_marks_and_names(void **state)
{
	const struct explain_case *given = &cases[2].given;
	size_t count = count_events(given->events), added;
	struct explain_window window = window_of(40000, SUBJECT_INTERVAL);
	struct explain_settings settings = {.tick_ns = 10000000};
	struct trace_event *events = calloc(count, sizeof(*events));
	struct explanation e;

	assert_non_null(events);
	memcpy(events, given->events, count * sizeof(*events));
	assert_int_equal(explain_infer_switches(&events, &count, &added), 0);
	assert_string_equal(events[4].other_comm, "sampler");
	window.when_ns = AT(-20);
	assert_int_equal(explain_delay(events, count, &window, &settings, &e), 0);
	assert_true(e.switch_inferred);
	assert_false(e.switched_in);
	free(events);
}

int main(void)
{
	struct CMUnitTest tests[ARRAY_SIZE(cases) + 1];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++)
		tests[i] = (struct CMUnitTest){.name = cases[i].given.name,
					       .test_func = infer,
					       .initial_state = (void *)(uintptr_t)&cases[i]};
	tests[ARRAY_SIZE(cases)] = (struct CMUnitTest)cmocka_unit_test(test_marks_and_names);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
