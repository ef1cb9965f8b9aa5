/* SPDX-License-Identifier: MIT */
#ifndef UNDO_VERBS_H
#define UNDO_VERBS_H

#include <stdint.h>
#include <sys/types.h>

#include "base/message.h"
#include "undo/record.h"

struct undo_context {
	pid_t program; /* the living program that asks; moved out of groups, not killed; 0: none */
	int64_t process_ns; /* how long a killed process may take to die */
	int64_t busy_ns;    /* how long a group, device or trace instance may stay busy */
	int64_t swap_ns;    /* how long swapoff may be refused for want of memory */
	void (*done)(void *data,
		     const struct undo_record *record); /* one is put back; may be NULL */
	void *data;
};

/*
 * Undoes what is not done yet and has a sequence above @mark, by kinds in the order that lets each
 * succeed (processes die, which frees memory and swap; then segments, swapoff, groups and trace
 * instances, trees; then old values and scheduling), newest first within a kind. Goes on after an
 * error; the first one is returned. -ETIMEDOUT, -EBUSY and -ENOMEM may pass with time.
 */
int undo_list_run(struct undo_list *list, uint64_t mark, const struct undo_context *context,
		  struct message *message);

/* Parts that are tested or used on their own. */
int undo_remove_tree(const char *path); /* own files only, no symbolic link followed, one device */

#endif
