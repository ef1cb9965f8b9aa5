/* SPDX-License-Identifier: MIT */
#ifndef TESTS_EXPLAIN_CHECKS_H
#define TESTS_EXPLAIN_CHECKS_H

#include "explain/explain_events.h"

#include "base/array.h"

static const struct explain_settings virtual_machine = {.guest = true, .tick_ns = 10000000};
static const struct explain_settings __attribute__((unused))
real_machine = {.guest = false, .tick_ns = 10000000};

#define EXPLAIN(events, window, settings, explanation)                                             \
	assert_int_equal(explain_delay(events, ARRAY_SIZE(events), window, settings, explanation), \
			 0)

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
	assert_true(explanation->explained_ns >= 0);
	assert_true(explanation->explained_ns <= explanation->window.late_ns);
}

static inline int64_t charged(const struct explanation *explanation, enum cause_kind cause)
{
	int64_t ns = 0;

	for (size_t i = 0; i < explanation->slice_count; i++)
		if (explanation->slices[i].cause == cause)
			ns += explanation->slices[i].ns;
	return ns;
}

static inline void assert_says(const struct explanation *explanation, const char *words)
{
	if (!strstr(explanation->sentence, words))
		fail_msg("\"%s\" does not say \"%s\"", explanation->sentence, words);
}

#endif
