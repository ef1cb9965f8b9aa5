/* SPDX-License-Identifier: MIT */
/* What a slice of a delay is called, and what it counts to. */
#include "explain/explain_internal.h"

#include <string.h>

const char *cause_name(enum cause_kind kind)
{
	static const char *const names[CAUSE_KINDS] = {
		[CAUSE_UNKNOWN] = "unknown",
		[CAUSE_STEAL] = "steal",
		[CAUSE_POSSIBLE_STEAL] = "possibly-stolen",
		[CAUSE_IRQ] = "irq",
		[CAUSE_SOFTIRQ] = "softirq",
		[CAUSE_IDLE] = "idle",
		[CAUSE_TASK] = "task",
		[CAUSE_DIRECT_RECLAIM] = "direct-reclaim",
		[CAUSE_MEMCG_RECLAIM] = "memcg-reclaim",
		[CAUSE_SHRINKER] = "shrinker",
		[CAUSE_COMPACTION] = "compaction",
		[CAUSE_LOCK] = "lock",
		[CAUSE_WRITEBACK] = "writeback",
		[CAUSE_SWAP_IO] = "swap-io",
		[CAUSE_KSWAPD] = "kswapd",
		[CAUSE_KHUGEPAGED] = "khugepaged",
		[CAUSE_STOPPED] = "stopped",
		[CAUSE_BLOCKED] = "blocked",
		[CAUSE_SELF] = "self",
	};

	return kind >= 0 && kind < CAUSE_KINDS ? names[kind] : "unknown";
}

const char *explain_phase_name(enum explain_phase phase)
{
	static const char *const phases[EXPLAIN_PHASES] = {
		[EXPLAIN_TIMER] = "timer",     [EXPLAIN_DISPATCH] = "dispatch",
		[EXPLAIN_RETURN] = "return",   [EXPLAIN_ON_CPU] = "on_cpu",
		[EXPLAIN_OFF_CPU] = "off_cpu",
	};

	return phases[phase];
}

bool is_real_time(int32_t priority)
{
	return priority >= 0 && priority < 100;
}

bool is_throttled(const struct explain_slice *slice)
{
	return slice->cause == CAUSE_IDLE && strcmp(slice->name, EXPLAIN_THROTTLED) == 0;
}

enum cause_kind explain_base(const struct explain_slice *slice)
{
	bool part = slice->cause == CAUSE_SHRINKER || slice->cause == CAUSE_COMPACTION ||
		    slice->cause == CAUSE_SWAP_IO || slice->cause == CAUSE_LOCK;
	bool in_reclaim =
		slice->outer == CAUSE_DIRECT_RECLAIM || slice->outer == CAUSE_MEMCG_RECLAIM;

	return part && in_reclaim ? slice->outer : slice->cause;
}

bool explain_same_group(const struct explain_slice *a, const struct explain_slice *b)
{
	if (explain_base(a) != explain_base(b))
		return false;
	switch (explain_base(a)) {
	case CAUSE_IRQ: /* the CPU's, whatever task they came upon */
	case CAUSE_SOFTIRQ:
		return strcmp(a->name, b->name) == 0;
	case CAUSE_STEAL:
	case CAUSE_POSSIBLE_STEAL:
		return true;
	case CAUSE_IDLE:
		return a->tid == b->tid && strcmp(a->name, b->name) == 0;
	default:
		return a->tid == b->tid;
	}
}

const struct explain_slice *explain_main(const struct explanation *explanation, int64_t *ret_ns)
{
	const struct explain_slice *best = NULL, *slices = explanation->slices;

	*ret_ns = 0;
	for (size_t i = 0; i < explanation->slice_count; i++) {
		int64_t ns = 0;

		for (size_t k = 0; k < explanation->slice_count; k++)
			ns += explain_same_group(&slices[k], &slices[i]) ? slices[k].ns : 0;
		if (ns > *ret_ns) {
			best = &slices[i];
			*ret_ns = ns;
		}
	}
	return best;
}

int32_t explain_highest_cpu(const struct trace_event *events, size_t count, int32_t highest)
{
	for (size_t i = 0; i < count; i++)
		if (events[i].cpu > highest)
			highest = events[i].cpu;
	return highest;
}
