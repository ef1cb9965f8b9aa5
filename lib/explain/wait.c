/* SPDX-License-Identifier: MIT */
/* Whom the subject of a delay waited for: its waker, who held that up, and who collapsed its pages.
 */
#include "explain/explain_internal.h"

#include "base/clock.h"

/* A collapse is reported after it released the lock; whom it held up may run first. */
#define COLLAPSE_REPORTED_NS NS_PER_MS
/* Of a chain of tasks that waited for each other. */
#define WAKERS_FOLLOWED 8

static void copy_comm(const struct replay *replay, int32_t tid, char *comm, size_t size)
{
	const struct replay_task *task = replay_task(replay, tid);

	snprintf(comm, size, "%s", task && task->comm ? task->comm : "");
}

/* Is @tid inside contention for a lock just before events[@index]? */
static bool waited_for_lock(const struct replay *replay, size_t index, int32_t tid)
{
	const struct trace_event *events = replay->events;

	while (index-- > 0)
		if (events[index].tid == tid && events[index].cause == CAUSE_LOCK)
			return events[index].kind == TRACE_ENTER;
	return false;
}

/* The event that last woke @tid in the window, before @index; NULL: none did. */
static const struct trace_event *woken_by(const struct replay *replay, size_t index, int32_t tid)
{
	const struct trace_event *events = replay->events;
	const struct explain_window *window = replay->window;

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
static void follow_wakers(struct replay *replay, struct explanation *explanation)
{
	int32_t subject = replay->window->tid, tid = explanation->waker_tid;
	const struct trace_event *waking = woken_by(replay, replay->count, subject);
	int64_t released_ns = replay->subject.woken_at_ns;

	for (int links = 0; waking && links < WAKERS_FOLLOWED; links++) {
		waking = woken_by(replay, (size_t)(waking - replay->events), tid);
		if (!waking || waking->tid == 0 || waking->tid == tid ||
		    !waited_for_lock(replay, (size_t)(waking - replay->events), tid))
			break;
		tid = waking->tid;
		released_ns = waking->when_ns;
	}
	if (tid == explanation->waker_tid || tid == subject)
		return;
	explanation->holder_tid = tid;
	replay->subject.released_ns = released_ns;
	copy_comm(replay, tid, explanation->holder_comm, sizeof(explanation->holder_comm));
}

static void note_waker(struct replay *replay, struct explanation *explanation)
{
	int32_t waker = replay->subject.waker_tid;

	if (waker == 0 || replay->subject.waker_in_irq || !replay->subject.woken_from_block)
		return;
	explanation->waker_tid = waker;
	replay->subject.released_ns = replay->subject.woken_at_ns;
	copy_comm(replay, waker, explanation->waker_comm, sizeof(explanation->waker_comm));
	follow_wakers(replay, explanation);
}

/* The address space that the subject's own lock waits were for; 0: not known. */
static int32_t own_space(const struct replay *replay)
{
	for (size_t i = 0; i < replay->count; i++) {
		const struct trace_event *event = &replay->events[i];

		if (event->kind == TRACE_ENTER && event->cause == CAUSE_LOCK &&
		    event->tid == replay->window->tid && event->other != 0)
			return event->other;
	}
	return 0;
}

/*
 * Who collapsed a huge page of the subject's address space meanwhile: the waker, or another while
 * the subject spun. Reported when it is over: one that ended just after the window counts too.
 */
static void note_collapse(const struct replay *replay, struct explanation *explanation)
{
	const struct explain_window *window = replay->window;
	int64_t end_ns = window->when_ns + window->late_ns + COLLAPSE_REPORTED_NS;
	int32_t space = own_space(replay);

	for (size_t i = 0; i < replay->count; i++) {
		const struct trace_event *event = &replay->events[i];
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

/* Only regions that events reported: a kernel thread's name says nothing of when it works. */
static void add_doing(const struct replay *replay, int32_t tid, int64_t ns, int64_t *doing_ns)
{
	const struct replay_task *task = replay_task(replay, tid);
	struct explain_slice label;

	if (ns <= 0 || !task || task->nest.depth == 0)
		return;
	replay_label_task(replay, tid, &label);
	doing_ns[explain_base(&label)] += ns;
}

/* What @tid was in from @from_ns to @to_ns. */
static void replay_doing(struct replay *replay, int32_t tid, int64_t from_ns, int64_t to_ns,
			 int64_t *doing_ns)
{
	int64_t at_ns = from_ns;

	for (size_t i = 0; i < replay->count && replay->events[i].when_ns < to_ns; i++) {
		const struct trace_event *event = &replay->events[i];

		if (event->when_ns > at_ns) {
			add_doing(replay, tid, event->when_ns - at_ns, doing_ns);
			at_ns = event->when_ns;
		}
		replay_apply(replay, event);
	}
	add_doing(replay, tid, to_ns - at_ns, doing_ns);
}

/*
 * What the one that held it up was in meanwhile, on whatever CPU, from the begin of the window's
 * last sleep until it released what it held: replayed once more, now that it is known who it was.
 */
static int note_doing(const struct replay *first, struct explanation *explanation)
{
	const struct explain_window *window = first->window;
	const struct subject *subject = &first->subject;
	int32_t tid = explanation->holder_tid ? explanation->holder_tid : explanation->waker_tid;
	int64_t from_ns = subject->waited_since_ns > window->when_ns ? subject->waited_since_ns
								     : window->when_ns;
	int64_t doing_ns[CAUSE_KINDS] = {0};
	struct replay replay;
	int error;

	if (tid == 0 || subject->released_ns <= from_ns)
		return 0;
	error = replay_start(&replay, first->events, first->count, window);
	if (error)
		return error;
	replay_doing(&replay, tid, from_ns, subject->released_ns, doing_ns);
	replay_end(&replay);
	for (int kind = CAUSE_DIRECT_RECLAIM; kind < CAUSE_KINDS; kind++)
		if (doing_ns[kind] > explanation->doing_ns) {
			explanation->doing = (enum cause_kind)kind;
			explanation->doing_ns = doing_ns[kind];
		}
	return 0;
}

int explain_wait(struct replay *replay, struct explanation *explanation)
{
	note_waker(replay, explanation);
	note_collapse(replay, explanation);
	return note_doing(replay, explanation);
}
