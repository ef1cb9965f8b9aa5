/* SPDX-License-Identifier: MIT */
#ifndef BASE_PROFILE_MARK_H
#define BASE_PROFILE_MARK_H

/*
 * Marks in the sampling loops. In virtual time the lab profiles one delay (lab/profile.c): a plugin
 * of QEMU must know where a sample begins and ends, but can read neither registers nor the guest's
 * clock. So the loops execute an instruction that does nothing and that no compiler writes, "nopl
 * displacement(%rax)", and the plugin knows it by its bytes. It costs one instruction and changes
 * nothing; empty on other processors.
 */
#define PROFILE_MARK_LOOP 0x53594c30  /* a sampling thread enters its loop */
#define PROFILE_MARK_BEGIN 0x53594c31 /* a sample begins (wakeup: the wait for it) */
#define PROFILE_MARK_END 0x53594c32   /* its last clock read is done */

#define PROFILE_MARK_TEXT_(value) #value
#define PROFILE_MARK_TEXT(value) PROFILE_MARK_TEXT_(value)

#ifdef __x86_64__
#define profile_mark(mark) \
	__asm__ volatile(".byte 0x0f, 0x1f, 0x80\n\t.long " PROFILE_MARK_TEXT(mark)::: "memory")
#else
#define profile_mark(mark) \
	do {               \
	} while (0)
#endif

#endif
