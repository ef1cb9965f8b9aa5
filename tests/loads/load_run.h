/* SPDX-License-Identifier: MIT */
#ifndef TESTS_LOADS_LOAD_RUN_H
#define TESTS_LOADS_LOAD_RUN_H

/* One load for a second or two in a small group of its own, with the kernel's counters around it.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "base/parse.h"
#include "run/loads.h"
#include "sys/cgroup.h"
#include "undo/transaction.h"
#include "sys/snapshot.h"
#include "sys/swap.h"

#define MIB (UINT64_C(1) << 20)

struct load_run {
	struct transaction *transaction;
	struct cgroup group;
	struct swap_area swap;
	struct load_process process;
	struct snapshot *before, *after;
	json_t *stats;	 /* of the load alone */
	int64_t stop_ns; /* that the load took to end */
};

static inline void run_skip(struct load_run *run, const char *why)
{
	transaction_close(run->transaction, NULL);
	memset(run, 0, sizeof(*run));
	print_message("# skipped: %s\n", why);
	skip();
}

/* A group of @limit_bytes (0: none) and @swap_bytes of zram swap (0: none), or the test is skipped.
 */
static inline void run_prepare(struct load_run *run, uint64_t limit_bytes, uint64_t swap_bytes)
{
	struct message message = {""};
	struct cgroup parent;

	memset(run, 0, sizeof(*run));
	assert_int_equal(transaction_open(&run->transaction, "test", &message), 0);
	if (limit_bytes > 0) {
		if (cgroup_detect(&parent, &message) < 0 ||
		    cgroup_make(run->transaction, "load", &run->group, &message) < 0)
			run_skip(run, message.text);
		assert_int_equal(cgroup_set_limit(&run->group, limit_bytes, &message), 0);
	}
	if (swap_bytes > 0 &&
	    swap_make_zram(run->transaction, swap_bytes, &run->swap, &message) < 0)
		run_skip(run, message.text);
}

static inline int run_start(struct load_run *run, struct load_settings *settings, int64_t wait_ns,
			    struct message *message)
{
	bool grouped = run->group.version != CGROUP_NONE;
	struct message own = {""};
	int error;

	settings->transaction = run->transaction;
	settings->in_memcg = grouped;
	settings->seed = 42;
	error = load_start(settings, grouped ? &run->group : NULL, &run->process, message);
	if (error < 0)
		return error;
	error = loads_wait_steady(&run->process, 1, clock_now_ns() + wait_ns,
				  message ? message : &own);
	if (error < 0)
		print_message("# %s\n", message ? message->text : own.text);
	return error;
}

/* The measured window. */
static inline void run_measure(struct load_run *run, int64_t window_ns)
{
	const struct cgroup *group = run->group.version != CGROUP_NONE ? &run->group : NULL;
	struct message message = {""};
	json_t *all;
	int64_t begin_ns;

	assert_int_equal(snapshot_take(group, &run->before), 0);
	loads_begin(&run->process, 1);
	begin_ns = clock_now_ns();
	clock_sleep_for(window_ns);
	if (loads_poll(&run->process, 1, &message) < 0)
		print_message("# %s\n", message.text);
	assert_int_equal(loads_poll(&run->process, 1, NULL), 0);
	all = loads_statistics(&run->process, 1, (double)(clock_now_ns() - begin_ns) / 1e9);
	assert_non_null(all);
	run->stats = json_incref(json_at(all, run->process.load.settings.ops->name));
	json_decref(all);
	assert_int_equal(snapshot_take(group, &run->after), 0);
}

static inline void run_end(struct load_run *run)
{
	struct message message = {""};
	int64_t begin_ns = clock_now_ns();

	if (run->process.load.shared)
		loads_stop(&run->process, 1, begin_ns + 10 * NS_PER_S, begin_ns + 12 * NS_PER_S);
	run->stop_ns = clock_now_ns() - begin_ns;
	loads_free(&run->process, 1);
	snapshot_free(run->before);
	snapshot_free(run->after);
	json_decref(run->stats);
	run->stats = NULL;
	if (transaction_close(run->transaction, &message) < 0)
		fail_msg("%s", message.text);
}

static inline int64_t run_delta(const struct load_run *run, const char *name)
{
	int64_t before = 0, after = 0;

	snapshot_get(run->before, name, &before);
	snapshot_get(run->after, name, &after);
	return after - before;
}

static inline int64_t run_level(const struct load_run *run, const char *name)
{
	int64_t after = -1;

	snapshot_get(run->after, name, &after);
	return after;
}

static inline double run_stat(const struct load_run *run, const char *name)
{
	assert_true(json_is_number(json_object_get(run->stats, name)));
	return json_get_number(run->stats, name, -1);
}

static inline void run_show(const struct load_run *run)
{
	char *line = json_line(run->stats);

	print_message("# %s\n", line);
	free(line);
}

#endif
