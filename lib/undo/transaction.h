/* SPDX-License-Identifier: MIT */
#ifndef UNDO_TRANSACTION_H
#define UNDO_TRANSACTION_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"

/*
 * The transaction that every change to the machine goes through. Each verb first appends to the
 * journal how to undo the change, then makes it. The guardian, a process of its own session that
 * outlives a SIGKILL of the program, undoes all when the program dies or calls transaction_close().
 * When it was killed, transaction_close() does it, and transaction_restore() when both were.
 *
 * The order of undoing: first all own processes and the members of own groups get SIGKILL, all at
 * once, because they hold memory, swap and groups; then the rest is undone newest first, each
 * change before those that it was built on.
 *
 * Verbs that change what the whole machine shares (a setting, swap, scheduling) take the
 * machine-wide lock: a second program waits up to 10 s (SYSLATENCY_LOCK_WAIT_S overrides), then is
 * told who holds it. Groups and processes are the program's own and need no lock.
 */
struct transaction;

/*
 * How long to wait for the machine-wide lock: SYSLATENCY_LOCK_WAIT_S, or @otherwise_ns. -EINVAL:
 * the variable holds no such time.
 */
int64_t transaction_lock_wait_ns(int64_t otherwise_ns, struct message *message);

/* Starts the guardian and the journal. @program is the name that others are told. */
int transaction_open(struct transaction **ret_transaction, const char *program,
		     struct message *message);

/* From now on the wait for the lock ends with -EINTR once *@interrupted is set. */
void transaction_watch_interrupt(struct transaction *transaction,
				 const volatile sig_atomic_t *interrupted);

/*
 * Every verb may be called from any thread, and from children that were forked after
 * transaction_open(). What could not be put back safely is refused (-EINVAL): attribute files lie
 * below /sys or /proc/sys, groups below /sys/fs/cgroup, and the last name of a group or trace
 * instance starts with "syslatency". -EPIPE: the guardian was killed; nothing is changed any more.
 */

/* Takes the machine-wide lock now; the verbs that need it do so themselves. -EBUSY names the
 * holder. */
int transaction_lock(struct transaction *transaction, struct message *message);

/* Writes @value to the attribute file @path (under the root prefix); puts the value that is there
 * now back. */
int transaction_write(struct transaction *transaction, const char *path, const char *value,
		      struct message *message);

/* As transaction_write, for files that are not written as they are read ("+memory"; undo
 * "-memory"). */
int transaction_write_reversibly(struct transaction *transaction, const char *path,
				 const char *value, const char *undo_value,
				 struct message *message);

/* mkdir of a cgroup or trace instance; undo: end what is inside (cgroup.procs), rmdir. */
int transaction_make_group(struct transaction *transaction, const char *path,
			   struct message *message);
int transaction_make_trace_instance(struct transaction *transaction, const char *path,
				    struct message *message);

/*
 * Mounts tracefs at /sys/kernel/tracing, where it belongs, or joins the mount of another of our
 * programs; undo: unmount, unless others use it by then, so that the last one does. Hold a file of
 * it open, and look again whether it is still there. -EBUSY: it is mounted there by others.
 */
int transaction_mount_tracefs(struct transaction *transaction, struct message *message);

/*
 * Call before configuring: undo is swapoff, then 1 to /sys/block/<name>/reset, then hot_remove when
 * @hot_added. @device is "zram0".
 */
int transaction_own_swap(struct transaction *transaction, const char *device, bool hot_added,
			 struct message *message);
void transaction_disown_swap(struct transaction *transaction,
			     const char *device); /* it was never made */

/* The caller's child @pid; undo: SIGKILL through a pidfd, checked by its start time. */
int transaction_own_process(struct transaction *transaction, pid_t pid, struct message *message);
/* It was reaped; NULL accepted. Waits for nobody. */
void transaction_disown_process(struct transaction *transaction, pid_t pid);

/* Policy, priority, nice and affinity of a task that is not ours (khugepaged); undo: as it was. */
int transaction_save_scheduling(struct transaction *transaction, pid_t pid,
				struct message *message);

/* Undo everything after the mark, in this process; for resets between phases. What cannot be undone
 * is tried again at the end. */
size_t transaction_mark(const struct transaction *transaction);
int transaction_undo_to(struct transaction *transaction, size_t mark, struct message *message);

/*
 * From now on nothing here waits beyond @deadline_ns: what the guardian has not done by then it
 * goes on with while the program ends. NULL is accepted.
 */
void transaction_end_by(struct transaction *transaction, int64_t deadline_ns);

/*
 * Undoes all, ends the guardian, frees. First error, with what could not be put back in @message
 * (the journal then stays for "syslat check --restore"). NULL is accepted. -EBUSY: the guardian
 * lives and is not done (transaction_end_by(), or it was stopped).
 * A forked child must not call this; transaction_forget() only frees its copy.
 */
int transaction_close(struct transaction *transaction, struct message *message);
void transaction_forget(struct transaction *transaction);

/*
 * Undoes what the journals of dead programs of this boot left, discards journals of other boots.
 * *ret_count: journals undone.
 */
int transaction_restore(int *ret_count, struct message *message);

/* Journals whose program and guardian are both dead (what --restore would undo). */
int transaction_count_abandoned(int *ret_count);

/* Journals whose program is dead and whose guardian lives: the machine is not yet as it was. */
int transaction_count_unfinished(int *ret_count);

#endif
