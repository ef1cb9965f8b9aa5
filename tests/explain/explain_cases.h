/* SPDX-License-Identifier: MIT */
#ifndef TESTS_EXPLAIN_CASES_H
#define TESTS_EXPLAIN_CASES_H

#include "support/testing.h"

#include "base/array.h"
#include "explain/explain.h"

/* Event arrays as a kernel would have written them; times in microseconds from the expiry. */

#define ORIGIN_NS INT64_C(1000000000000)
#define AT(us) (ORIGIN_NS + (int64_t)((us)*1000))

/* Tasks: number, name, the kernel's priority. */
#define IDLE 0, "swapper", 120
#define SAMPLER 100, "sampler", 0
#define SECOND 101, "sampler", 0 /* another thread of the sampler */
#define ORDINARY 100, "sampler", 120
#define LOAD 200, "load", 120
#define HOG 300, "hog", 0
#define HOLDER 600, "holder", 120
#define KSWAPD 700, "kswapd0", 120
#define KHUGEPAGED 101, "khugepaged", 139

#define TID(...) TID_(__VA_ARGS__)
#define TID_(tid_, comm_, priority_) tid_

/* @from leaves the CPU in @state_, @to comes: both tasks. */
#define SWITCH(us, cpu_, ...) SWITCH_(us, cpu_, __VA_ARGS__)
#define SWITCH_(us, cpu_, tid_, comm_, priority_, state_, to, to_comm, to_priority)         \
	{                                                                                   \
		.when_ns = AT(us), .cpu = cpu_, .tid = tid_, .kind = TRACE_SWITCH,          \
		.value = STATE_##state_, .comm = comm_, .other = to, .other_comm = to_comm, \
		.priority = to_priority                                                     \
	}
#define FROM_IDLE(us) SWITCH(us, 0, IDLE, RUNNABLE, SAMPLER)
#define TO_IDLE(us) SWITCH(us, 0, SAMPLER, SLEEPING, IDLE)
#define FROM_LOAD(us) SWITCH(us, 0, LOAD, RUNNABLE, SAMPLER)
#define TO_LOAD(us, state) SWITCH(us, 0, SAMPLER, state, LOAD)

/* On @cpu_ the task @by wakes @who, which will run on CPU 0. */
#define WAKING(us, cpu_, by, who) WAKING_(us, cpu_, TID(by), TID(who), 0)
#define WAKING_ON(us, cpu_, by, who) WAKING_(us, cpu_, TID(by), TID(who), cpu_)
#define WAKING_(us, cpu_, by, who, on)                                                         \
	{                                                                                      \
		.when_ns = AT(us), .cpu = cpu_, .tid = by, .kind = TRACE_WAKING, .other = who, \
		.value = on, .priority = -1                                                    \
	}

/* More members may follow. */
#define EVENT(us, cpu, task, kind, ...) EVENT_(us, cpu, TID(task), kind, ##__VA_ARGS__)
#define EVENT_(us, cpu_, tid_, kind_, ...)                                          \
	{                                                                           \
		.when_ns = AT(us), .cpu = cpu_, .tid = tid_, .kind = TRACE_##kind_, \
		.priority = -1, ##__VA_ARGS__                                       \
	}
#define ENTER(us, cpu, task, cause_, ...) \
	EVENT_(us, cpu, TID(task), ENTER, .cause = CAUSE_##cause_, ##__VA_ARGS__)
#define LEAVE(us, cpu, task, cause_, ...) \
	EVENT_(us, cpu, TID(task), LEAVE, .cause = CAUSE_##cause_, ##__VA_ARGS__)
#define IRQ(us, cpu, task, what, name_) \
	EVENT_(us, cpu, TID(task), IRQ_##what, .cause = CAUSE_IRQ, .name = name_)
#define LOST(us, cpu) EVENT(us, cpu, IDLE, LOST)

#define NOBODY (-1)

/* What must be said of the same events on one machine. Times not given are not asked for. */
struct expected {
	enum { NOTHING_MORE, GUEST, REAL } machine;
	double steal_us; /* -1: not known */
	struct {
		enum cause_kind cause;
		double us;
	} charged[4];
	double unknown_us; /* 0: not asked for */
	struct {
		enum explain_phase phase;
		double us;
	} phases[3];
	const char *says[3], *says_not;
	int32_t waker, holder, collapser; /* a tid, or NOBODY */
	int doing;			  /* enum cause_kind, or NOBODY */
	double doing_us;
};

#define EVENTS_MOST 16

struct explain_case {
	const char *name;
	enum explain_subject subject;
	double late_us;
	struct trace_event events[EVENTS_MOST]; /* sorted; the first without a time ends them */
	struct expected expected[4];
};

#define WAKEUP(us) .subject = SUBJECT_WAKEUP, .late_us = us
#define INTERVAL(us) .subject = SUBJECT_INTERVAL, .late_us = us

static inline struct explain_window window_of(double late_us, enum explain_subject subject)
{
	return (struct explain_window){.when_ns = ORIGIN_NS,
				       .late_ns = (int64_t)(late_us * 1000),
				       .tid = TID(SAMPLER),
				       .subject = subject};
}

static inline size_t count_events(const struct trace_event *events)
{
	size_t count = 0;

	while (count < EVENTS_MOST && events[count].when_ns)
		count++;
	return count;
}

/* Whatever happens, each nanosecond is in one phase and one slice. */
static inline void check_sums(const struct explanation *explanation)
{
	int64_t phases_ns = 0, slices_ns = 0;

	for (int i = 0; i < EXPLAIN_PHASES; i++)
		phases_ns += explanation->phase_ns[i];
	for (size_t i = 0; i < explanation->slice_count; i++)
		slices_ns += explanation->slices[i].ns;
	assert_int_equal(phases_ns, explanation->window.late_ns);
	assert_int_equal(slices_ns, explanation->window.late_ns);
	assert_in_range(explanation->explained_ns, 0, explanation->window.late_ns);
}

static inline int64_t charged(const struct explanation *explanation, enum cause_kind cause)
{
	int64_t ns = 0;

	for (size_t i = 0; i < explanation->slice_count; i++)
		if (explanation->slices[i].cause == cause)
			ns += explanation->slices[i].ns;
	return ns;
}

static inline void check_number(const char *what, int64_t is, int64_t wanted)
{
	if (is != wanted)
		fail_msg("%s: %lld where %lld is wanted", what, (long long)is, (long long)wanted);
}

static inline void check_tid(const char *what, int32_t is, int32_t wanted)
{
	if (wanted)
		check_number(what, is, wanted == NOBODY ? 0 : wanted);
}

static inline void check_words(const char *sentence, const struct expected *expected)
{
	for (size_t i = 0; i < ARRAY_SIZE(expected->says) && expected->says[i]; i++)
		if (!strstr(sentence, expected->says[i]))
			fail_msg("\"%s\" does not say \"%s\"", sentence, expected->says[i]);
	if (expected->says_not && strstr(sentence, expected->says_not))
		fail_msg("\"%s\" says \"%s\"", sentence, expected->says_not);
}

static inline void check_explanation(const struct explanation *e, const struct expected *expected)
{
	check_sums(e);
	for (size_t i = 0; i < ARRAY_SIZE(expected->charged) && expected->charged[i].cause; i++)
		check_number(cause_name(expected->charged[i].cause),
			     charged(e, expected->charged[i].cause),
			     (int64_t)(expected->charged[i].us * 1000));
	if (expected->unknown_us != 0)
		check_number("unknown", charged(e, CAUSE_UNKNOWN),
			     (int64_t)(expected->unknown_us * 1000));
	for (size_t i = 0; i < ARRAY_SIZE(expected->phases) && expected->phases[i].us > 0; i++)
		check_number(explain_phase_name(expected->phases[i].phase),
			     e->phase_ns[expected->phases[i].phase],
			     (int64_t)(expected->phases[i].us * 1000));
	check_tid("waker", e->waker_tid, expected->waker);
	check_tid("holder", e->holder_tid, expected->holder);
	check_tid("collapser", e->collapser_tid, expected->collapser);
	check_tid("doing", (int32_t)e->doing, expected->doing);
	if (expected->doing_us > 0)
		check_number("doing", e->doing_ns, (int64_t)(expected->doing_us * 1000));
	check_words(e->sentence, expected);
}

static inline void run_case(void **state)
{
	const struct explain_case *given = *state;
	struct explain_window window = window_of(given->late_us, given->subject);
	struct explanation e;

	for (size_t i = 0; i < ARRAY_SIZE(given->expected) && given->expected[i].machine; i++) {
		const struct expected *expected = &given->expected[i];
		struct explain_settings settings = {expected->machine == GUEST, 10000000};

		window.steal_ns =
			(int64_t)(expected->steal_us < 0 ? -1 : expected->steal_us * 1000);
		assert_int_equal(explain_delay(given->events, count_events(given->events), &window,
					       &settings, &e),
				 0);
		check_explanation(&e, expected);
	}
}

/* A test for each case, and those of @more. */
static inline int run_cases(const struct explain_case *cases, size_t count,
			    const struct CMUnitTest *more, size_t more_count)
{
	struct CMUnitTest tests[64];

	assert_true(count + more_count <= ARRAY_SIZE(tests));
	for (size_t i = 0; i < count; i++)
		tests[i] = (struct CMUnitTest){.name = cases[i].name,
					       .test_func = run_case,
					       .initial_state = (void *)(uintptr_t)&cases[i]};
	for (size_t i = 0; i < more_count; i++)
		tests[count + i] = more[i];
	return _cmocka_run_group_tests("cases", tests, count + more_count, NULL, NULL);
}

#endif
