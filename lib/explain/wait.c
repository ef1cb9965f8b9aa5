/* SPDX-License-Identifier: MIT */
/* Whom the subject of a delay waited for: its waker, who held that up, and who collapsed its pages.
 */
#include "explain/explain_internal.h"

#include <string.h>

#include "base/clock.h"

/* A collapse tells of itself after it gave the lock back; whom it held up may run first. */
#define COLLAPSE_TOLD_NS NS_PER_MS
/* Of a chain of tasks that waited for each other. */
#define WAKERS_FOLLOWED 8

static void copy_comm(struct replay *replay, int32_t tid, char *comm, size_t size)
{
	const struct replay_task *task = replay_task(replay, tid);

	snprintf(comm, size, "%s", task && task->comm ? task->comm : "");
}

/* Is @tid inside contention for a lock just before events[@index]? */
static bool waited_for_lock(const struct trace_event *events, size_t index, int32_t tid)
{
	while (index-- > 0)
		if (events[index].tid == tid && events[index].cause == CAUSE_LOCK)
			return events[index].kind == TRACE_ENTER;
	return false;
}

/* The event that last woke @tid in the window, before @index; NULL: none did. */
static const struct trace_event *woken_by(const struct trace_event *events, size_t index,
					  const struct explain_window *window, int32_t tid)
{
	while (index-- > 0 && events[index].when_ns >= window->when_ns)
		if (events[index].kind == TRACE_WAKING && events[index].other == tid &&
		    events[index].when_ns <= window->when_ns + window->late_ns)
			return &events[index];
	return NULL;
}

/*
 * Threads of the sampler queue for the same lock, and one of them may be all that is seen of who
 * held it up: goes back from waker to waker, as far as these waited for a lock themselves.
 */
static void follow_wakers(struct replay *replay, const struct trace_event *events, size_t count,
			  struct explanation *explanation)
{
	const struct explain_window *window = &explanation->window;
	const struct trace_event *waking = woken_by(events, count, window, window->tid);
	int32_t tid = explanation->waker_tid;
	int64_t released_ns = replay->subject.woken_at_ns;

	for (int links = 0; waking && links < WAKERS_FOLLOWED; links++) {
		waking = woken_by(events, (size_t)(waking - events), window, tid);
		if (!waking || waking->tid == 0 || waking->tid == tid ||
		    !waited_for_lock(events, (size_t)(waking - events), tid))
			break;
		tid = waking->tid;
		released_ns = waking->when_ns;
	}
	if (tid == explanation->waker_tid || tid == window->tid)
		return;
	explanation->holder_tid = tid;
	replay->subject.released_ns = released_ns;
	copy_comm(replay, tid, explanation->holder_comm, sizeof(explanation->holder_comm));
}

static void note_waker(struct replay *replay, const struct trace_event *events, size_t count,
		       struct explanation *explanation)
{
	int32_t waker = replay->subject.waker_tid;

	if (waker == 0 || replay->subject.waker_in_irq || !replay->subject.woken_from_block)
		return;
	explanation->waker_tid = waker;
	replay->subject.released_ns = replay->subject.woken_at_ns;
	copy_comm(replay, waker, explanation->waker_comm, sizeof(explanation->waker_comm));
	follow_wakers(replay, events, count, explanation);
}

/* The address space that the subject's own lock waits were for; 0: not known. */
static int32_t own_space(const struct trace_event *events, size_t count, int32_t tid)
{
	for (size_t i = 0; i < count; i++)
		if (events[i].kind == TRACE_ENTER && events[i].cause == CAUSE_LOCK &&
		    events[i].tid == tid && events[i].other != 0)
			return events[i].other;
	return 0;
}

/*
 * Who collapsed a huge page of the subject's address space meanwhile: the waker, or another while
 * the subject spun. Told when it is over: one that ended just after the window counts too.
 */
static void note_collapse(struct replay *replay, const struct trace_event *events, size_t count,
			  struct explanation *explanation)
{
	const struct explain_window *window = &explanation->window;
	int64_t end_ns = window->when_ns + window->late_ns + COLLAPSE_TOLD_NS;
	int32_t space = own_space(events, count, window->tid);

	for (size_t i = 0; i < count; i++) {
		const struct trace_event *event = &events[i];
		bool woke = event->tid == explanation->waker_tid ||
			    event->tid == explanation->holder_tid;
		bool own = space != 0 && event->other != 0 ? event->other == space : woke;

		if (event->kind != TRACE_COLLAPSE || !own || event->tid == window->tid ||
		    event->when_ns < window->when_ns || (event->when_ns > end_ns && !woke))
			continue;
		explanation->collapser_tid = event->tid;
		copy_comm(replay, event->tid, explanation->collapser_comm,
			  sizeof(explanation->collapser_comm));
		return;
	}
}

/* Of regions that events told: what a kernel thread is called says nothing of when it works. */
static void add_doing(struct replay *replay, int32_t tid, int64_t ns, int64_t *doing_ns)
{
	const struct replay_task *task = replay_task(replay, tid);
	struct explain_slice label;

	if (ns <= 0 || !task || task->nest.depth == 0)
		return;
	replay_label_task(replay, tid, &label);
	doing_ns[explain_base(&label)] += ns;
}

/* The replay up to @to_ns; what @tid was in from @from_ns on. */
static void replay_doing(struct replay *replay, const struct trace_event *events, size_t count,
			 int32_t tid, int64_t from_ns, int64_t to_ns, int64_t *doing_ns)
{
	int64_t at_ns = from_ns;

	for (size_t i = 0; i < count && events[i].when_ns < to_ns; i++) {
		if (events[i].when_ns > at_ns) {
			add_doing(replay, tid, events[i].when_ns - at_ns, doing_ns);
			at_ns = events[i].when_ns;
		}
		replay_apply(replay, &events[i]);
		/* What it had entered may have ended in the gap. */
		if (events[i].kind == TRACE_LOST && replay_task(replay, tid))
			replay_task(replay, tid)->nest.depth = 0;
	}
	add_doing(replay, tid, to_ns - at_ns, doing_ns);
}

/* A region whose end is told after a loss need not have begun before it. */
static bool lost_since(const struct trace_event *events, size_t count, int64_t from_ns)
{
	for (size_t i = count; i-- > 0 && events[i].when_ns >= from_ns;)
		if (events[i].kind == TRACE_LOST)
			return true;
	return false;
}

/*
 * What the one that held it up was in meanwhile, on whatever CPU, from the begin of the window's
 * last sleep until it gave on what it held: replayed once more, now that it is known who that was.
 */
static int note_doing(const struct trace_event *events, size_t count, const struct subject *subject,
		      struct explanation *explanation)
{
	const struct explain_window *window = &explanation->window;
	int32_t tid = explanation->holder_tid ? explanation->holder_tid : explanation->waker_tid;
	int64_t from_ns = subject->waited_since_ns > window->when_ns ? subject->waited_since_ns
								     : window->when_ns;
	int64_t doing_ns[CAUSE_KINDS] = {0};
	struct replay replay;
	int error;

	if (tid == 0 || subject->released_ns <= from_ns || lost_since(events, count, from_ns))
		return 0;
	error = replay_start(&replay, events, count, window);
	if (error)
		return error;
	replay_doing(&replay, events, count, tid, from_ns, subject->released_ns, doing_ns);
	replay_end(&replay);
	for (int kind = CAUSE_DIRECT_RECLAIM; kind < CAUSE_KINDS; kind++)
		if (doing_ns[kind] > explanation->doing_ns) {
			explanation->doing = (enum cause_kind)kind;
			explanation->doing_ns = doing_ns[kind];
		}
	return 0;
}

int explain_wait(struct replay *replay, const struct trace_event *events, size_t count,
		 struct explanation *explanation)
{
	note_waker(replay, events, count, explanation);
	note_collapse(replay, events, count, explanation);
	return note_doing(events, count, &replay->subject, explanation);
}
