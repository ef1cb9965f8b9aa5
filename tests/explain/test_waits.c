/* SPDX-License-Identifier: MIT */
/* Delays in which the sampler waits for another task: locks, compaction, the share of ordinary
 * tasks. */
#include "explain/explain_cases.h"

#define READ .name = "mmap_lock (to read)"
#define WRITE .name = "mmap_lock (to write)"
#define MUTEX .name = "a mutex", .lock = 0xabc0

static const struct explain_case cases[] = {
	{"lock held by collapse",
	 INTERVAL(850),
	 {FROM_LOAD(-50), ENTER(10, 0, SAMPLER, LOCK, .name = "a read-write semaphore (to write)"),
	  TO_LOAD(12, BLOCKED), WAKING(800, 1, HOLDER, SAMPLER), EVENT(801, 1, HOLDER, COLLAPSE),
	  FROM_LOAD(803), LEAVE(804, 0, SAMPLER, LOCK), SWITCH(900, 1, HOLDER, SLEEPING, IDLE)},
	 {{GUEST, .charged = {{CAUSE_LOCK, 791}}, .collapser = TID(HOLDER),
	   .phases = {{EXPLAIN_OFF_CPU, 791}},
	   .says = {"the sampler waited for a read-write semaphore (to write) until holder "
		    "(pid 600) woke it, which was collapsing a huge page"}}}},

	/* A writer that spins is not woken by anybody; the lock's own events tell what it waits
	 * for. Another address space is none of its business. */
	{"spins while another collapses",
	 INTERVAL(815),
	 {FROM_LOAD(-50), SWITCH(-40, 1, IDLE, RUNNABLE, HOLDER),
	  ENTER(10, 0, SAMPLER, LOCK, WRITE, .other = 7),
	  EVENT(500, 1, KSWAPD, COLLAPSE, .other = 8),
	  ENTER(700, 0, SAMPLER, LOCK, .name = "a read-write semaphore (to write)"),
	  LEAVE(790, 0, SAMPLER, LOCK), LEAVE(800, 0, SAMPLER, LOCK),
	  EVENT(801, 1, HOLDER, COLLAPSE, .other = 7)},
	 {{GUEST, .charged = {{CAUSE_LOCK, 790}}, .collapser = TID(HOLDER),
	   .phases = {{EXPLAIN_ON_CPU, 815}},
	   .says = {"the sampler waited for mmap_lock (to write) while holder (pid 600) was "
		    "collapsing a huge page"}}}},

	/* Another thread of the sampler wakes it, which itself had to wait for the one that held
	 * the lock. */
	{"queue for a lock",
	 INTERVAL(800),
	 {FROM_LOAD(-50), ENTER(1, 1, SECOND, LOCK, WRITE), SWITCH(2, 1, SECOND, BLOCKED, HOLDER),
	  ENTER(10, 0, SAMPLER, LOCK, READ), TO_LOAD(12, BLOCKED),
	  WAKING_ON(700, 1, HOLDER, SECOND), SWITCH(702, 1, HOLDER, RUNNABLE, SECOND),
	  LEAVE(703, 1, SECOND, LOCK), WAKING(750, 1, SECOND, SAMPLER), FROM_LOAD(753),
	  LEAVE(754, 0, SAMPLER, LOCK)},
	 {{GUEST, .holder = TID(HOLDER),
	   .says = {"the sampler waited for mmap_lock (to read) until sampler (pid 101) woke it, "
		    "which had waited for holder (pid 600)"}}}},
	/* Its timer woke that one: what it did before is its own affair. */
	{"a timer in the queue for a lock",
	 INTERVAL(800),
	 {FROM_LOAD(-50), ENTER(1, 1, SECOND, LOCK, WRITE), SWITCH(2, 1, SECOND, BLOCKED, HOLDER),
	  ENTER(10, 0, SAMPLER, LOCK, READ), TO_LOAD(12, BLOCKED), WAKING_ON(700, 1, IDLE, SECOND),
	  SWITCH(702, 1, HOLDER, RUNNABLE, SECOND), LEAVE(703, 1, SECOND, LOCK),
	  WAKING(750, 1, SECOND, SAMPLER), FROM_LOAD(753), LEAVE(754, 0, SAMPLER, LOCK)},
	 {{GUEST, .holder = NOBODY}}},

	/* The lock is held by a thread that is held up itself, and that is the cause: of the sleep,
	 * which begins at 12 us. */
	{"lock held in reclaim",
	 INTERVAL(9900),
	 {FROM_LOAD(-50), SWITCH(-40, 1, LOAD, RUNNABLE, SECOND),
	  ENTER(-30, 1, SECOND, MEMCG_RECLAIM), ENTER(10, 0, SAMPLER, LOCK, READ),
	  TO_LOAD(12, BLOCKED), ENTER(200, 1, SECOND, SWAP_IO, .name = "writes to zram"),
	  LEAVE(500, 1, SECOND, SWAP_IO), LEAVE(9000, 1, SECOND, MEMCG_RECLAIM),
	  WAKING(9800, 1, SECOND, SAMPLER), FROM_LOAD(9804), LEAVE(9805, 0, SAMPLER, LOCK)},
	 {{GUEST, .doing = CAUSE_MEMCG_RECLAIM, .doing_us = 8988,
	   .says = {"the sampler waited for mmap_lock (to read) until sampler (pid 101) woke it, "
		    "which was in memcg reclaim for 8.99 ms"}}}},
	{"a small part of the wait is no cause",
	 INTERVAL(9900),
	 {FROM_LOAD(-50), SWITCH(-40, 1, LOAD, RUNNABLE, SECOND),
	  ENTER(-30, 1, SECOND, MEMCG_RECLAIM), ENTER(10, 0, SAMPLER, LOCK, READ),
	  TO_LOAD(12, BLOCKED), LEAVE(600, 1, SECOND, MEMCG_RECLAIM),
	  WAKING(9800, 1, SECOND, SAMPLER), FROM_LOAD(9804), LEAVE(9805, 0, SAMPLER, LOCK)},
	 {{GUEST, .doing_us = 588, .says_not = "reclaim"}}},
	{"what was before the sleep is none of its causes",
	 INTERVAL(9900),
	 {FROM_LOAD(-50), SWITCH(-40, 1, LOAD, RUNNABLE, SECOND),
	  ENTER(-30, 1, SECOND, MEMCG_RECLAIM), LEAVE(600, 1, SECOND, MEMCG_RECLAIM),
	  ENTER(4000, 0, SAMPLER, LOCK, READ), TO_LOAD(4010, BLOCKED),
	  WAKING(9800, 1, SECOND, SAMPLER), FROM_LOAD(9804), LEAVE(9805, 0, SAMPLER, LOCK)},
	 {{GUEST, .doing = NOBODY}}},
	/* What the holder does after it gave the lock to the next in the queue is its own affair.
	 */
	{"doing ends with the lock",
	 INTERVAL(5000),
	 {FROM_LOAD(-50), ENTER(1, 1, SECOND, LOCK, WRITE), SWITCH(2, 1, SECOND, BLOCKED, HOLDER),
	  ENTER(10, 0, SAMPLER, LOCK, READ), TO_LOAD(12, BLOCKED),
	  WAKING_ON(1000, 1, HOLDER, SECOND), ENTER(1100, 1, HOLDER, DIRECT_RECLAIM),
	  LEAVE(4900, 1, HOLDER, DIRECT_RECLAIM), SWITCH(4902, 1, HOLDER, RUNNABLE, SECOND),
	  LEAVE(4903, 1, SECOND, LOCK), WAKING(4950, 1, SECOND, SAMPLER), FROM_LOAD(4953),
	  LEAVE(4954, 0, SAMPLER, LOCK)},
	 {{GUEST, .holder = TID(HOLDER), .doing = NOBODY}}},

	/* Across a loss it is not known what the holder was in, nor by a kernel thread's name. */
	{"doing is unknown in a gap",
	 INTERVAL(9900),
	 {FROM_LOAD(-50), SWITCH(-40, 1, LOAD, RUNNABLE, KHUGEPAGED),
	  ENTER(-30, 1, KHUGEPAGED, MEMCG_RECLAIM), ENTER(10, 0, SAMPLER, LOCK, READ),
	  TO_LOAD(12, BLOCKED), LOST(9000, 1), WAKING(9800, 1, KHUGEPAGED, SAMPLER),
	  FROM_LOAD(9804), LEAVE(9805, 0, SAMPLER, LOCK)},
	 {{GUEST, .waker = TID(KHUGEPAGED), .doing = NOBODY}}},
	{"doing that ends after a gap",
	 INTERVAL(9900),
	 {FROM_LOAD(-50), SWITCH(-40, 1, LOAD, RUNNABLE, KHUGEPAGED),
	  EVENT(-30, 1, KHUGEPAGED, RECLAIMED), ENTER(10, 0, SAMPLER, LOCK, READ),
	  TO_LOAD(12, BLOCKED), WAKING(9800, 1, KHUGEPAGED, SAMPLER), FROM_LOAD(9804),
	  LOST(9850, 1), LEAVE(9895, 1, KHUGEPAGED, MEMCG_RECLAIM)},
	 {{GUEST, .waker = TID(KHUGEPAGED), .doing = NOBODY}}},
	{"doing that begins before a gap",
	 INTERVAL(9900),
	 {FROM_LOAD(-50), SWITCH(-40, 1, LOAD, RUNNABLE, KHUGEPAGED),
	  ENTER(-30, 1, KHUGEPAGED, MEMCG_RECLAIM), LOST(-20, 1), ENTER(10, 0, SAMPLER, LOCK, READ),
	  TO_LOAD(12, BLOCKED), WAKING(9800, 1, KHUGEPAGED, SAMPLER), FROM_LOAD(9804),
	  LEAVE(9805, 0, SAMPLER, LOCK)},
	 {{GUEST, .waker = TID(KHUGEPAGED), .doing = NOBODY}}},

	/* Spinning, sleeping, first in the queue and spinning again: four begins, one end. */
	{"a mutex is entered once",
	 INTERVAL(5000),
	 {FROM_LOAD(-50), ENTER(100, 0, SAMPLER, LOCK, MUTEX), ENTER(110, 0, SAMPLER, LOCK, MUTEX),
	  TO_LOAD(120, BLOCKED), WAKING(500, 1, HOLDER, SAMPLER), FROM_LOAD(505),
	  ENTER(510, 0, SAMPLER, LOCK, MUTEX), ENTER(520, 0, SAMPLER, LOCK, MUTEX),
	  LEAVE(600, 0, SAMPLER, LOCK, .lock = 0xabc0)},
	 {{REAL, .charged = {{CAUSE_LOCK, 495}, {CAUSE_TASK, 5}, {CAUSE_SELF, 4500}}}}},
	/* An end is of its own lock only: the inner one does not end the outer. */
	{"locks end by their address",
	 INTERVAL(5000),
	 {FROM_LOAD(-50), ENTER(100, 0, SAMPLER, LOCK, MUTEX),
	  ENTER(200, 0, SAMPLER, LOCK, .name = "a spin lock", .lock = 0xdef0),
	  LEAVE(300, 0, SAMPLER, LOCK, .lock = 0xdef0),
	  LEAVE(900, 0, SAMPLER, LOCK, .lock = 0x1110),
	  LEAVE(1000, 0, SAMPLER, LOCK, .lock = 0xabc0)},
	 {{REAL, .charged = {{CAUSE_LOCK, 900}, {CAUSE_SELF, 4100}}}}},

	/* The sampler touches a page that compaction is moving. */
	{"sleep until compaction ends",
	 WAKEUP(8010),
	 {TO_IDLE(-200), ENTER(-150, 1, LOAD, COMPACTION), WAKING(3, 0, IDLE, SAMPLER),
	  FROM_IDLE(5), SWITCH(6, 0, SAMPLER, BLOCKED, IDLE), WAKING(8000, 1, LOAD, SAMPLER),
	  FROM_IDLE(8004), SWITCH(9000, 1, LOAD, SLEEPING, IDLE)},
	 {{GUEST, .charged = {{CAUSE_COMPACTION, 7994}},
	   .says = {"load (pid 200) was in compaction, and the sampler waited for it"}}}},

	/* What takes the CPU from a FIFO task for an ordinary one is the share that is kept for
	 * those. An ordinary sampler takes turns with the others. */
	{"displaced by an ordinary task",
	 INTERVAL(920),
	 {FROM_LOAD(-50), TO_LOAD(10, RUNNABLE), FROM_LOAD(900)},
	 {{GUEST, .says = {"load (pid 200) was given CPU 0 though the sampler could run"}}}},
	{"an ordinary sampler takes turns",
	 INTERVAL(920),
	 {SWITCH(-50, 0, LOAD, RUNNABLE, ORDINARY), TO_LOAD(10, RUNNABLE),
	  SWITCH(900, 0, LOAD, RUNNABLE, ORDINARY)},
	 {{GUEST, .says = {"load (pid 200) held CPU 0"}}}},

	/* Off the CPU though it could run, and nothing else ran: not the host, whose theft looks
	 * different. */
	{"throttled to idle",
	 INTERVAL(50020),
	 {FROM_LOAD(-50), SWITCH(10, 0, SAMPLER, RUNNABLE, IDLE), FROM_IDLE(50010)},
	 {{GUEST, .charged = {{CAUSE_POSSIBLE_STEAL, 0}, {CAUSE_IDLE, 50000}},
	   .says = {"CPU 0 idled though the sampler could run: real-time throttling"}}}},
	{"throttled after another's turn",
	 INTERVAL(50020),
	 {FROM_LOAD(-50), TO_LOAD(10, RUNNABLE), SWITCH(1000, 0, LOAD, SLEEPING, IDLE),
	  FROM_IDLE(50010)},
	 {{GUEST, .charged = {{CAUSE_POSSIBLE_STEAL, 0}}, .says = {"real-time throttling"}}}},

	/* The idle tasks of all CPUs have the same number; a lock of one is none of the other's. */
	{"idle task of another CPU",
	 WAKEUP(18010),
	 {TO_IDLE(-100), ENTER(-80, 1, IDLE, LOCK, .name = "a spin lock"),
	  WAKING(3, 0, IDLE, SAMPLER), FROM_IDLE(18003)},
	 {{GUEST, .charged = {{CAUSE_POSSIBLE_STEAL, 18000}}}}},
};

int main(void)
{
	return run_cases(cases, ARRAY_SIZE(cases), NULL, 0);
}
