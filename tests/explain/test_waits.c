/* SPDX-License-Identifier: MIT */
/* Delays in which the sampler waits for another task: locks, compaction, the share of ordinary
 * tasks. */
#include "support/testing.h"

#include "explain/explain_checks.h"

#include "base/array.h"

static void test_lock_held_by_collapse(void **state)
{
	const struct trace_event events[] = {
		switched(-50, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		plain(10, 0, SAMPLER, TRACE_ENTER, CAUSE_LOCK, "a read-write semaphore (to write)"),
		switched(12, 0, SAMPLER, STATE_BLOCKED, "sampler", LOAD, "load", 120),
		waking(800, 1, 600, SAMPLER),
		plain(801, 1, 600, TRACE_COLLAPSE, CAUSE_UNKNOWN, NULL),
		switched(803, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		plain(804, 0, SAMPLER, TRACE_LEAVE, CAUSE_LOCK, NULL),
		switched(900, 1, 600, STATE_SLEEPING, "collapser", 0, "swapper/1", 120),
	};
	struct explain_window window = window_of(850, SUBJECT_INTERVAL);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_LOCK), 791000);
	assert_int_equal(e.phase_ns[EXPLAIN_OFF_CPU], 791000);
	assert_int_equal(e.collapser_tid, 600);
	assert_says(&e, "the sampler waited for a read-write semaphore (to write) until collapser "
			"(pid 600) woke it, which was collapsing a huge page");
}

/* A writer that spins is not woken by anybody; the lock's own events tell what it waits for. */
static void test_spins_while_another_collapses(void **state)
{
	struct trace_event events[] = {
		switched(-50, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		switched(-40, 1, 0, STATE_RUNNABLE, "swapper/1", 600, "collapser", 120),
		plain(10, 0, SAMPLER, TRACE_ENTER, CAUSE_LOCK, "mmap_lock (to write)"),
		/* Another address space is none of its business. */
		plain(500, 1, 700, TRACE_COLLAPSE, CAUSE_UNKNOWN, NULL),
		plain(700, 0, SAMPLER, TRACE_ENTER, CAUSE_LOCK,
		      "a read-write semaphore (to write)"),
		plain(790, 0, SAMPLER, TRACE_LEAVE, CAUSE_LOCK, NULL),
		plain(800, 0, SAMPLER, TRACE_LEAVE, CAUSE_LOCK, NULL),
		plain(801, 1, 600, TRACE_COLLAPSE, CAUSE_UNKNOWN, NULL),
	};
	struct explain_window window = window_of(815, SUBJECT_INTERVAL);
	struct explanation e;

	events[2].other = 7;
	events[3].other = 8;
	events[7].other = 7;
	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_LOCK), 790000);
	assert_int_equal(e.phase_ns[EXPLAIN_ON_CPU], 815000);
	assert_int_equal(e.collapser_tid, 600);
	assert_says(&e, "the sampler waited for mmap_lock (to write) while collapser (pid 600) was "
			"collapsing a huge page");
}

/* Another thread of the sampler wakes it, which itself had to wait for the one that held the lock.
 */
static void test_queue_for_a_lock(void **state)
{
	struct trace_event events[] = {
		switched(-50, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		plain(1, 1, 101, TRACE_ENTER, CAUSE_LOCK, "mmap_lock (to write)"),
		switched(2, 1, 101, STATE_BLOCKED, "sampler", 600, "holder", 120),
		plain(10, 0, SAMPLER, TRACE_ENTER, CAUSE_LOCK, "mmap_lock (to read)"),
		switched(12, 0, SAMPLER, STATE_BLOCKED, "sampler", LOAD, "load", 120),
		waking(700, 1, 600, 101),
		switched(702, 1, 600, STATE_RUNNABLE, "holder", 101, "sampler", 0),
		plain(703, 1, 101, TRACE_LEAVE, CAUSE_LOCK, NULL),
		waking(750, 1, 101, SAMPLER),
		switched(753, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		plain(754, 0, SAMPLER, TRACE_LEAVE, CAUSE_LOCK, NULL),
	};
	struct explain_window window = window_of(800, SUBJECT_INTERVAL);
	struct explanation e;

	events[8].value = 0; /* back to its own CPU */
	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(e.holder_tid, 600);
	assert_says(&e,
		    "the sampler waited for mmap_lock (to read) until sampler (pid 101) woke it, "
		    "which had waited for holder (pid 600)");
	/* Its timer woke that one: what it did before is its own affair. */
	events[5] = waking(700, 1, 0, 101);
	EXPLAIN(events, &window, &virtual_machine, &e);
	assert_int_equal(e.holder_tid, 0);
}

static int by_time(const void *a, const void *b)
{
	const struct trace_event *left = a, *right = b;

	return left->when_ns < right->when_ns ? -1 : left->when_ns > right->when_ns ? 1 : 0;
}

/* The lock is held by a thread that is held up itself, and that is the cause. */
static void test_lock_held_in_reclaim(void **state)
{
	struct trace_event events[] = {
		switched(-50, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		switched(-40, 1, LOAD, STATE_RUNNABLE, "load", 101, "sampler", 0),
		plain(-30, 1, 101, TRACE_ENTER, CAUSE_MEMCG_RECLAIM, NULL),
		plain(10, 0, SAMPLER, TRACE_ENTER, CAUSE_LOCK, "mmap_lock (to read)"),
		switched(12, 0, SAMPLER, STATE_BLOCKED, "sampler", LOAD, "load", 120),
		plain(200, 1, 101, TRACE_ENTER, CAUSE_SWAP_IO, "writes to zram"),
		plain(500, 1, 101, TRACE_LEAVE, CAUSE_SWAP_IO, NULL),
		plain(9000, 1, 101, TRACE_LEAVE, CAUSE_MEMCG_RECLAIM, NULL),
		waking(9800, 1, 101, SAMPLER),
		switched(9804, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		plain(9805, 0, SAMPLER, TRACE_LEAVE, CAUSE_LOCK, NULL),
	};
	struct explain_window window = window_of(9900, SUBJECT_INTERVAL);
	struct explanation e;

	events[8].value = 0; /* back to its own CPU */
	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(e.doing, CAUSE_MEMCG_RECLAIM);
	assert_int_equal(e.doing_ns, 8988000); /* of the sleep, which begins at 12 us */
	assert_says(&e, "the sampler waited for mmap_lock (to read) until sampler (pid 101) woke "
			"it, which was in memcg reclaim for 8.99 ms");
	/* A small part of the wait is no cause. */
	events[7].when_ns = AT(600);
	EXPLAIN(events, &window, &virtual_machine, &e);
	assert_int_equal(e.doing_ns, 588000);
	assert_null(strstr(e.sentence, "reclaim"));
	/* What was before the sleep is none of its causes. */
	events[3].when_ns = AT(4000);
	events[4].when_ns = AT(4010);
	qsort(events, ARRAY_SIZE(events), sizeof(events[0]), by_time);
	EXPLAIN(events, &window, &virtual_machine, &e);
	assert_int_equal(e.doing, CAUSE_UNKNOWN);
}

/* What the holder does after it gave the lock to the next in the queue is its own affair. */
static void test_doing_ends_with_the_lock(void **state)
{
	struct trace_event events[] = {
		switched(-50, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		plain(1, 1, 101, TRACE_ENTER, CAUSE_LOCK, "mmap_lock (to write)"),
		switched(2, 1, 101, STATE_BLOCKED, "sampler", 600, "holder", 120),
		plain(10, 0, SAMPLER, TRACE_ENTER, CAUSE_LOCK, "mmap_lock (to read)"),
		switched(12, 0, SAMPLER, STATE_BLOCKED, "sampler", LOAD, "load", 120),
		waking(1000, 1, 600, 101),
		plain(1100, 1, 600, TRACE_ENTER, CAUSE_DIRECT_RECLAIM, NULL),
		plain(4900, 1, 600, TRACE_LEAVE, CAUSE_DIRECT_RECLAIM, NULL),
		switched(4902, 1, 600, STATE_RUNNABLE, "holder", 101, "sampler", 0),
		plain(4903, 1, 101, TRACE_LEAVE, CAUSE_LOCK, NULL),
		waking(4950, 1, 101, SAMPLER),
		switched(4953, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		plain(4954, 0, SAMPLER, TRACE_LEAVE, CAUSE_LOCK, NULL),
	};
	struct explain_window window = window_of(5000, SUBJECT_INTERVAL);
	struct explanation e;

	events[10].value = 0;
	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(e.holder_tid, 600);
	assert_int_equal(e.doing, CAUSE_UNKNOWN);
}

/* Across a loss it is not known what the holder was in, nor by the name of a kernel thread. */
static void test_doing_is_not_guessed(void **state)
{
	struct trace_event events[] = {
		switched(-50, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		switched(-40, 1, LOAD, STATE_RUNNABLE, "load", 101, "khugepaged", 139),
		plain(-30, 1, 101, TRACE_ENTER, CAUSE_MEMCG_RECLAIM, NULL),
		plain(10, 0, SAMPLER, TRACE_ENTER, CAUSE_LOCK, "mmap_lock (to read)"),
		switched(12, 0, SAMPLER, STATE_BLOCKED, "sampler", LOAD, "load", 120),
		plain(9000, 1, 0, TRACE_LOST, CAUSE_UNKNOWN, NULL),
		waking(9800, 1, 101, SAMPLER),
		switched(9804, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		plain(9805, 0, SAMPLER, TRACE_LEAVE, CAUSE_LOCK, NULL),
	};
	struct explain_window window = window_of(9900, SUBJECT_INTERVAL);
	struct explanation e;

	events[6].value = 0;
	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(e.waker_tid, 101);
	assert_int_equal(e.doing, CAUSE_UNKNOWN);
	/* Lost after it, what ends then need not have begun before. */
	events[2] = plain(-30, 1, 101, TRACE_RECLAIMED, CAUSE_UNKNOWN, NULL);
	events[5] = plain(9850, 1, 0, TRACE_LOST, CAUSE_UNKNOWN, NULL);
	events[8] = plain(9895, 1, 101, TRACE_LEAVE, CAUSE_MEMCG_RECLAIM, NULL);
	qsort(events, ARRAY_SIZE(events), sizeof(events[0]), by_time);
	EXPLAIN(events, &window, &virtual_machine, &e);
	assert_int_equal(e.doing, CAUSE_UNKNOWN);
}

static void test_doing_before_a_loss_is_not_guessed(void **state)
{
	struct trace_event events[] = {
		switched(-50, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		switched(-40, 1, LOAD, STATE_RUNNABLE, "load", 101, "khugepaged", 139),
		plain(-30, 1, 101, TRACE_ENTER, CAUSE_MEMCG_RECLAIM, NULL),
		plain(10, 0, SAMPLER, TRACE_ENTER, CAUSE_LOCK, "mmap_lock (to read)"),
		switched(12, 0, SAMPLER, STATE_BLOCKED, "sampler", LOAD, "load", 120),
		plain(9000, 1, 0, TRACE_LOST, CAUSE_UNKNOWN, NULL),
		waking(9800, 1, 101, SAMPLER),
		switched(9804, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		plain(9805, 0, SAMPLER, TRACE_LEAVE, CAUSE_LOCK, NULL),
	};
	struct explain_window window = window_of(9900, SUBJECT_INTERVAL);
	struct explanation e;

	events[6].value = 0;
	/* Lost before the sleep, it may have ended in the gap. */
	events[5] = plain(-20, 1, 0, TRACE_LOST, CAUSE_UNKNOWN, NULL);
	qsort(events, ARRAY_SIZE(events), sizeof(events[0]), by_time);
	EXPLAIN(events, &window, &virtual_machine, &e);
	assert_int_equal(e.doing, CAUSE_UNKNOWN);
}

static void test_sleep_until_compaction_ends(void **state)
{
	/* The sampler touches a page that compaction is moving. */
	struct trace_event events[] = {
		switched(-200, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		plain(-150, 1, 400, TRACE_ENTER, CAUSE_COMPACTION, NULL),
		waking(3, 0, 0, SAMPLER),
		switched(5, 0, 0, STATE_RUNNABLE, "swapper/0", SAMPLER, "sampler", 0),
		switched(6, 0, SAMPLER, STATE_BLOCKED, "sampler", 0, "swapper/0", 120),
		waking(8000, 1, 400, SAMPLER),
		switched(8004, 0, 0, STATE_RUNNABLE, "swapper/0", SAMPLER, "sampler", 0),
		switched(9000, 1, 400, STATE_SLEEPING, "compact", 0, "swapper/1", 120),
	};
	struct explain_window window = window_of(8010, SUBJECT_WAKEUP);
	struct explanation e;

	events[5].value = 0; /* back to its own CPU */
	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_COMPACTION), 7994000);
	assert_says(&e, "compact (pid 400) was in compaction, and the sampler waited for it");
}

/* What takes the CPU from a FIFO task for an ordinary one is the share that is kept for those. */
static void test_displaced_by_an_ordinary_task(void **state)
{
	struct trace_event events[] = {
		switched(-50, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		switched(10, 0, SAMPLER, STATE_RUNNABLE, "sampler", LOAD, "load", 120),
		switched(900, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(920, SUBJECT_INTERVAL);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_says(&e, "load (pid 200) was given CPU 0 though the sampler could run");
	/* An ordinary sampler takes turns with the others. */
	events[0].priority = 120;
	events[2].priority = 120;
	EXPLAIN(events, &window, &virtual_machine, &e);
	assert_says(&e, "load (pid 200) held CPU 0");
}

/* Off the CPU though it could run, and nothing else ran: not the host, whose theft looks else. */
static void test_throttled_to_idle(void **state)
{
	struct trace_event events[] = {
		switched(-50, 0, LOAD, STATE_RUNNABLE, "load", SAMPLER, "sampler", 0),
		switched(10, 0, SAMPLER, STATE_RUNNABLE, "sampler", 0, "swapper/0", 120),
		switched(50010, 0, 0, STATE_RUNNABLE, "swapper/0", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(50020, SUBJECT_INTERVAL);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 0);
	assert_int_equal(charged(&e, CAUSE_IDLE), 50000000);
	assert_says(&e, "CPU 0 idled though the sampler could run: real-time throttling");
	/* Another had its turn first. */
	{
		const struct trace_event later[] = {
			events[0],
			switched(10, 0, SAMPLER, STATE_RUNNABLE, "sampler", LOAD, "load", 120),
			switched(1000, 0, LOAD, STATE_SLEEPING, "load", 0, "swapper/0", 120),
			events[2],
		};

		EXPLAIN(later, &window, &virtual_machine, &e);
		assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 0);
		assert_says(&e, "real-time throttling");
	}
}

/* The idle tasks of all CPUs have the same number; a lock of one is none of the other's. */
static void test_idle_task_of_another_cpu(void **state)
{
	const struct trace_event events[] = {
		switched(-100, 0, SAMPLER, STATE_SLEEPING, "sampler", 0, "swapper/0", 120),
		plain(-80, 1, 0, TRACE_ENTER, CAUSE_LOCK, "a spin lock"),
		waking(3, 0, 0, SAMPLER),
		switched(18003, 0, 0, STATE_RUNNABLE, "swapper/0", SAMPLER, "sampler", 0),
	};
	struct explain_window window = window_of(18010, SUBJECT_WAKEUP);
	struct explanation e;

	EXPLAIN(events, &window, &virtual_machine, &e);
	check_sums(&e);
	assert_int_equal(charged(&e, CAUSE_POSSIBLE_STEAL), 18000000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lock_held_by_collapse),
		cmocka_unit_test(test_spins_while_another_collapses),
		cmocka_unit_test(test_queue_for_a_lock),
		cmocka_unit_test(test_lock_held_in_reclaim),
		cmocka_unit_test(test_doing_is_not_guessed),
		cmocka_unit_test(test_doing_before_a_loss_is_not_guessed),
		cmocka_unit_test(test_doing_ends_with_the_lock),
		cmocka_unit_test(test_throttled_to_idle),
		cmocka_unit_test(test_idle_task_of_another_cpu),
		cmocka_unit_test(test_sleep_until_compaction_ends),
		cmocka_unit_test(test_displaced_by_an_ordinary_task),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
