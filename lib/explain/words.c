/* SPDX-License-Identifier: MIT */
/* One sentence for one delay. */
#include "explain/explain_internal.h"

#include <stdarg.h>

#include "base/clock.h"
#include "base/parse.h"

/* Shares below are not worth words. */
#define WORTH_PERCENT 10
#define DOING_WORTH_PERCENT 30
/* The sampler's own code takes less without any event. */
#define SILENCE_WORTH_NS NS_PER_MS

struct words {
	char *text;
	size_t size, used;
};

static void say(struct words *words, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void say(struct words *words, const char *format, ...)
{
	va_list arguments;
	int length;

	if (words->used >= words->size)
		return;
	va_start(arguments, format);
	length = vsnprintf(words->text + words->used, words->size - words->used, format, arguments);
	va_end(arguments);
	words->used += length > 0 ? (size_t)length : 0;
}

static bool is_reclaim(enum cause_kind kind)
{
	return kind == CAUSE_DIRECT_RECLAIM || kind == CAUSE_MEMCG_RECLAIM;
}

/* "swap (pid 200": left open. */
static void say_pid(struct words *words, const char *comm, int32_t tid)
{
	say(words, "%s (pid %d", comm[0] ? comm : "a task", tid);
}

static void say_task(struct words *words, const struct explain_slice *slice)
{
	say_pid(words, slice->comm, slice->tid);
	if (is_real_time(slice->priority))
		say(words, ", FIFO %d", 99 - slice->priority);
	say(words, ")");
}

static void say_duration(struct words *words, const char *before, int64_t ns, const char *after)
{
	char text[32];

	say(words, "%s%s%s", before, format_duration(ns, text, sizeof(text)), after);
}

/* The largest share of the group that has a name of its own: a shrinker inside reclaim. */
static void say_part(struct words *words, const struct explanation *explanation,
		     const struct explain_slice *main, int64_t main_ns)
{
	for (size_t i = 0; i < explanation->slice_count; i++) {
		const struct explain_slice *slice = &explanation->slices[i];
		int percent = (int)(100 * slice->ns / main_ns);

		if (slice->cause == explain_base(slice) || !explain_same_group(slice, main) ||
		    percent < WORTH_PERCENT)
			continue;
		say(words, ", %d%% of that in ", percent);
		if (slice->cause == CAUSE_SHRINKER)
			say(words, "the shrinker %s", slice->name[0] ? slice->name : "(no name)");
		else if (slice->cause == CAUSE_LOCK)
			say(words, "contention for %s", slice->name[0] ? slice->name : "a lock");
		else
			say(words, "%s", slice->name[0] ? slice->name : cause_name(slice->cause));
		return;
	}
}

static void say_pages(struct words *words, const struct explanation *explanation)
{
	if (explanation->scanned_pages <= 0)
		return;
	say(words, ": of %lld pages scanned", (long long)explanation->scanned_pages);
	if (explanation->anon_pages > 0)
		say(words, ", %lld anonymous put to swap", (long long)explanation->anon_pages);
	if (explanation->file_pages > 0)
		say(words, ", %lld of files freed", (long long)explanation->file_pages);
	if (explanation->anon_pages + explanation->file_pages == 0)
		say(words, ", none freed");
}

static const char *region_name(enum cause_kind kind)
{
	static const char *const regions[CAUSE_KINDS] = {
		[CAUSE_DIRECT_RECLAIM] = "direct reclaim",
		[CAUSE_MEMCG_RECLAIM] = "memcg reclaim",
		[CAUSE_SHRINKER] = "a shrinker",
		[CAUSE_COMPACTION] = "compaction",
		[CAUSE_WRITEBACK] = "writeback",
		[CAUSE_SWAP_IO] = "swap I/O",
		[CAUSE_KSWAPD] = "background reclaim",
		[CAUSE_KHUGEPAGED] = "the collapse of huge pages",
		[CAUSE_LOCK] = "contention for a lock",
	};

	return regions[kind] ? regions[kind] : cause_name(kind);
}

static void say_region(struct words *words, const struct explanation *explanation,
		       const struct explain_slice *main, int64_t main_ns)
{
	enum cause_kind base = explain_base(main);
	bool self = main->tid == explanation->window.tid;

	if (self)
		say(words, "the sampler itself");
	else
		say_task(words, main);
	say(words, " was in ");
	if (base == CAUSE_SHRINKER)
		say(words, "the shrinker %s", main->name[0] ? main->name : "(no name)");
	else
		say(words, "%s", region_name(base));
	say_part(words, explanation, main, main_ns);
	if (is_reclaim(base) || base == CAUSE_KSWAPD)
		say_pages(words, explanation);
	if (main->outer == CAUSE_BLOCKED)
		say(words, ", and the sampler waited for it");
	else if (!self && main->phase == EXPLAIN_DISPATCH)
		say(words, ", without a reschedule");
}

static void say_theft(struct words *words, const struct explanation *explanation,
		      const struct explain_slice *main, const struct explain_settings *settings)
{
	const struct explain_window *window = &explanation->window;

	if (main->cause == CAUSE_STEAL) {
		say(words, "the host stopped CPU %d", window->cpu);
		say_duration(words, " (steal of ", window->steal_ns, " around it");
	} else {
		say(words, "CPU %d was possibly stopped by the host", window->cpu);
		if (window->steal_ns < 0)
			say(words, " (its steal is not known");
		else if (explanation->silent_ns > settings->tick_ns)
			say(words, " (which it does not count as steal");
		else
			say_duration(words, " (below the tick of ", settings->tick_ns,
				     " that steal is counted in");
	}
	if (main->phase == EXPLAIN_TIMER)
		say_duration(words, "; the timer fired ", explanation->phase_ns[EXPLAIN_TIMER],
			     " late");
	else if (main->phase == EXPLAIN_ON_CPU)
		say(words, "; or it had to find the memory behind the page");
	say_duration(words, ", no event on the CPU for ", explanation->silent_ns, ")");
}

static void say_task_cause(struct words *words, const struct explanation *explanation,
			   const struct explain_slice *main,
			   const struct explain_settings *settings)
{
	if (main->phase == EXPLAIN_TIMER) {
		say_duration(words, "the timer fired ", explanation->phase_ns[EXPLAIN_TIMER],
			     " late while ");
		say_task(words, main);
		say(words, settings->guest
				   ? " ran: interrupts were off, or the host stopped the CPU"
				   : " ran: interrupts were off");
		return;
	}
	say_task(words, main);
	if (main->tid != 0 && main->tid == explanation->displacer_tid) {
		say(words,
		    " was given CPU %d though the sampler could run: the share of ordinary "
		    "tasks (deadline server or real-time throttling)",
		    explanation->window.cpu);
		return;
	}
	say(words, " held CPU %d", explanation->window.cpu);
	if ((main->phase == EXPLAIN_DISPATCH || main->phase == EXPLAIN_OFF_CPU) &&
	    !is_real_time(main->priority))
		say(words, " in the kernel or before the sampler's turn");
}

/* What held up the one that held the sampler up. */
static void say_doing(struct words *words, const struct explanation *explanation, int64_t wait_ns)
{
	if (explanation->doing == CAUSE_UNKNOWN || explanation->doing == CAUSE_LOCK ||
	    100 * explanation->doing_ns < DOING_WORTH_PERCENT * wait_ns)
		return;
	say(words, ", which was in %s", region_name(explanation->doing));
	say_duration(words, " for ", explanation->doing_ns, "");
}

static void say_other(struct words *words, const char *before, const char *comm, int32_t tid,
		      const char *after)
{
	if (!tid)
		return;
	say(words, "%s", before);
	say_pid(words, comm, tid);
	say(words, ")%s", after);
}

static void say_wait(struct words *words, const struct explanation *explanation,
		     const struct explain_slice *main, int64_t main_ns)
{
	if (main->cause == CAUSE_STOPPED) {
		say(words, "the sampler was stopped by a signal (SIGSTOP or a debugger)");
		return;
	}
	if (main->cause == CAUSE_LOCK)
		say(words, "the sampler waited for %s", main->name[0] ? main->name : "a lock");
	else
		say(words, "the sampler slept in the kernel");
	say_other(words, " until ", explanation->waker_comm, explanation->waker_tid, " woke it");
	say_other(words, ", which had waited for ", explanation->holder_comm,
		  explanation->holder_tid, "");
	if (!explanation->collapser_tid)
		say_doing(words, explanation, main_ns);
	else if (explanation->collapser_tid ==
		 (explanation->holder_tid ? explanation->holder_tid : explanation->waker_tid))
		say(words, ", which was collapsing a huge page");
	else if (main->cause == CAUSE_LOCK)
		say_other(words, " while ", explanation->collapser_comm, explanation->collapser_tid,
			  " was collapsing a huge page");
}

static void say_cause(struct words *words, const struct explanation *explanation,
		      const struct explain_slice *main, int64_t main_ns,
		      const struct explain_settings *settings)
{
	const struct explain_window *window = &explanation->window;

	switch (explain_base(main)) {
	case CAUSE_STEAL:
	case CAUSE_POSSIBLE_STEAL:
		say_theft(words, explanation, main, settings);
		break;
	case CAUSE_IRQ:
		say(words, "the interrupt %s ran on CPU %d", main->name, window->cpu);
		break;
	case CAUSE_SOFTIRQ:
		say(words, "the softirq %s ran on CPU %d", main->name, window->cpu);
		if (main->tid && main->comm[0])
			say(words, " on top of %s (pid %d)", main->comm, main->tid);
		break;
	case CAUSE_IDLE:
		say(words,
		    is_throttled(main) ? "CPU %d idled though the sampler could run: real-time "
					 "throttling, or the CPU quota of its group"
				       : "CPU %d was idle: waking it took so long",
		    window->cpu);
		break;
	case CAUSE_TASK:
		say_task_cause(words, explanation, main, settings);
		break;
	case CAUSE_SELF:
		say(words, window->subject == SUBJECT_WAKEUP
				   ? "the sampler was on its way back to the program"
				   : "the huge page itself: clearing it and its page tables");
		if (explanation->silent_ns >= SILENCE_WORTH_NS)
			say_duration(words,
				     ", or what tells of nothing (interrupts off, waiting for "
				     "other CPUs to flush their TLB, the host): no event for ",
				     explanation->silent_ns, "");
		break;
	case CAUSE_STOPPED:
	case CAUSE_BLOCKED:
		say_wait(words, explanation, main, main_ns);
		break;
	case CAUSE_LOCK:
		if (main->tid == window->tid) {
			say_wait(words, explanation, main, main_ns);
			break;
		}
		/* fall through */
	default:
		say_region(words, explanation, main, main_ns);
		break;
	}
}

/* Interrupts and stolen time are the CPU's, whatever task they came upon. */
static bool is_of_cpu(enum cause_kind kind)
{
	return kind == CAUSE_IRQ || kind == CAUSE_SOFTIRQ || kind == CAUSE_STEAL ||
	       kind == CAUSE_POSSIBLE_STEAL;
}

void explain_in_words(struct explanation *explanation, const struct explain_settings *settings)
{
	struct words words = {explanation->sentence, sizeof(explanation->sentence), 0};
	int64_t late_ns = explanation->window.late_ns, main_ns;
	const struct explain_slice *main = explain_main(explanation, &main_ns);
	int unknown;

	explanation->sentence[0] = '\0';
	if (!main || late_ns <= 0)
		return;
	if (main->cause == CAUSE_UNKNOWN) {
		say(&words, "unknown: no event tells what CPU %d did", explanation->window.cpu);
		return;
	}
	if (100 * main_ns < 97 * late_ns)
		say(&words, "%d%%: ", (int)(100 * main_ns / late_ns));
	say_cause(&words, explanation, main, main_ns, settings);
	if (explanation->stack[0] && !is_of_cpu(main->cause) && main->tid != 0 &&
	    main->tid == explanation->stack_tid && main->phase == EXPLAIN_DISPATCH)
		say(&words, "; last seen in %s", explanation->stack);
	unknown = (int)(100 * (late_ns - explanation->explained_ns) / late_ns);
	if (unknown > 5)
		say(&words, "; %d%% unknown", unknown);
}
